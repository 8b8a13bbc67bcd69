// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator on the tiles of `cuda` against the same policies in double, row by row. Needs neither doctest nor Eigen:
// the same cases run on emulated warps and, compiled by nvcc, on a device.
#pragma once

#include <cmath>
#include <cstdio>
#include <deque>
#include <exception>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/exec/states.hpp>
#include <attune/exec/terms.hpp>
#include <attune/exec/weight_gate.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

namespace attune::cuda_check {

/// Extents of a problem. The last `unseen` keys are NaN.
struct sizes {
  index_t batch = 1, heads = 2, key_heads = 1, value_heads = 1, queries = 100, keys = 200, width = 64, value_width = 64,
          gate_width = 64, unseen = 0;
  double query_scale = 1;
  bool padded = false;         ///< rows with a gap between them
  bool positive_bias = false;  ///< the bias of a pair is a probability
};

inline shape extents_of(field f, sizes const& n) {
  index_t const width = f == field::gate_q || f == field::gate_k                           ? n.gate_width
                        : f == field::center || f == field::spread || f == field::place    ? 2
                        : f == field::sort_q || f == field::sort_k || f == field::key_bias ? 1
                        : f == field::position_q || f == field::position_k                 ? 32
                                                                                           : n.width;
  switch (side_of(f)) {
    case input_side::query:
      return {n.batch, n.heads, n.queries, f == field::output_gate ? n.value_width : width};
    case input_side::key:
      return f == field::v || f == field::value_gate ? shape{n.batch, n.value_heads, n.keys, n.value_width}
                                                     : shape{n.batch, n.key_heads, n.keys, width};
    case input_side::pair:
      return {n.batch, n.heads, n.queries, n.keys};
    case input_side::ground:
      return {1, n.heads, 1, n.value_width};
  }
  return {};
}

/// Tables and numbers of an operator, where `Place` keeps them.
template <class Place>
struct learned {
  Place& place;
  index_t width = 64;  ///< of queries and keys
  std::mt19937 random{7};
  template <class T>
  T const* array(std::vector<T> const& x) {
    return place.keep(x);
  }
  tensor<float const> numbers(index_t heads, index_t rows, index_t columns, float least = -1) {
    std::uniform_real_distribution<float> draw(least, 1);
    std::vector<float> x(std::size_t(heads * rows * columns));
    for (float& y : x) y = draw(random);
    return {place.keep(x), shape{1, heads, rows, columns}};
  }
  stored_view angles(index_t rows, index_t pairs) {
    rotary_frequencies f;
    std::vector<float> x(std::size_t(rows * 2 * pairs));
    for (index_t n = 0; n < rows; ++n)
      for (index_t r = 0; r < pairs; ++r) {
        double const angle = double(n) * std::pow(100.0, -double(r) / double(pairs));
        x[std::size_t(n * 2 * pairs + r)] = float(std::cos(angle));
        x[std::size_t(n * 2 * pairs + pairs + r)] = float(std::sin(angle));
      }
    return tensor<float const>(place.keep(x), shape{1, 1, rows, 2 * pairs});
  }
};

/// Memory of the host.
struct host_place {
  std::deque<std::vector<unsigned char>> kept;
  template <class T>
  T* keep(std::vector<T> const& x) {
    auto& to = kept.emplace_back(x.size() * sizeof(T) + 64);
    auto* const at = to.data() + (64 - reinterpret_cast<std::uintptr_t>(to.data()) % 64) % 64;
    if (!x.empty()) std::memcpy(at, x.data(), x.size() * sizeof(T));
    return reinterpret_cast<T*>(at);
  }
  template <class T>
  std::vector<T> fetch(T const* from, std::size_t n) {
    return std::vector<T>(from, from + n);
  }
};

/// The value sums of a row in double, and the sums of the absolute values of their terms.
template <class Op>
struct exact_row {
  std::vector<double> out, absolute;
  double lse = 0, ground_weight = 0, largest = 0;  ///< largest: of the magnitudes of logits
};

template <class Op>
exact_row<Op> evaluate(Op const& op, inputs<Op, tensor<double const>> const& in, problem_shape const& p, index_t b,
                       index_t h, index_t i) {
  using normalizer = typename Op::normalizer_policy;
  auto const facts = detail::scalar_row<double>(p, op.mask, b, h, i);
  auto const f = op.bind(facts);
  double largest = 0;
  auto state = row_state<double>::template empty<normalizer>(f.normalizer, p.value_width), absolute = state;
  mask_row const r = p.row(b, h, i);
  index_t const head = p.group(h, p.value_heads);
  for (key_interval k = mask::next(op.mask, r, 0); !k.empty(); k = mask::next(op.mask, r, k.last))
    for (index_t j = k.first; j < k.last; ++j) {
      double x[Op::contractions::size + 1];
      [&]<class... C, int... N>(contraction::list<C...>, std::integer_sequence<int, N...>) {
        (..., (x[N] = detail::contracted<C, double>(in, p, op.template owner<N>(), {b, h, i, j})));
      }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
      double const a = f.logit(x, key<double>{double(j)});
      if (std::isfinite(a)) largest = std::fmax(largest, std::fabs(a));
      double factor = 1;
      if constexpr (Op::has_weight_gate) factor = detail::factor_of_pair(op, f, x, p, b, h, i, j);
      auto const value = [&](index_t d) {
        double v = in.v(b, head, j, d);
        if constexpr (Op::has_value_gate) v *= f.value_gate.factor(in.value_gate(b, head, j, d));
        return factor * v;
      };
      state.template accumulate<normalizer>(f.normalizer, a, value);
      absolute.template accumulate<normalizer>(f.normalizer, a, [&](index_t d) { return std::fabs(value(d)); });
    }
  // The sums of absolute terms: what is subtracted counts too.
  std::vector<double> magnitude;
  if constexpr (normalizer::traits.family == row_family::range_weighted) {
    auto const by =
        finish_adjusted(f.normalizer, absolute.reference, absolute.earned, absolute.lowest, absolute.reference);
    for (std::size_t d = 0; d < absolute.acc.size(); ++d)
      magnitude.push_back(std::fabs(by.value_factor) *
                          (std::fabs(absolute.second[d]) + std::fabs(absolute.reference - by.low) * absolute.acc[d]));
  } else {
    auto const by =
        finish_masses<normalizer>(f.normalizer, absolute.reference, absolute.earned, absolute.ground, facts.visible);
    for (std::size_t d = 0; d < absolute.acc.size(); ++d)
      magnitude.push_back(std::fabs(by.value_factor) * absolute.acc[d] +
                          (absolute.second.empty() ? 0 : std::fabs(by.share) * absolute.second[d]));
  }
  auto const done = finish_state<normalizer>(state, f.normalizer, facts.visible);
  exact_row<Op> to;
  for (index_t d = 0; d < p.value_width; ++d) {
    double const g = done.ground_weight;
    to.out.push_back(detail::finished_element<double>(in, p, f, state.acc[std::size_t(d)], g, b, h, i, d));
    double ground = 0;
    if constexpr (Op::uses(field::v0)) ground = std::fabs(g * detail::shared_element<double>(in.v0, b, h, i, d));
    to.absolute.push_back(magnitude[std::size_t(d)] + ground);
  }
  to.lse = done.lse + f.logit_shift;
  to.ground_weight = done.ground_weight;
  to.largest = largest;
  return to;
}

inline int failures = 0, cases = 0;
inline bool quiet = false;  ///< prints cases that fail alone

/// Runs make(learned) on `place` and compares. `loose`: factor of the bound, for operators that round more.
/// `poison`: a value of this key is NaN: rows that see it must be NaN, all others finite.
template <class E, class Place, class Make>
void check(Place& place, char const* name, sizes const& n, Make const& make, double loose = 1, index_t poison = -1,
           std::optional<index_t> offset = std::nullopt) {
  ++cases;
  try {
    host_place host;
    learned<host_place> for_host{host, n.width};
    learned<Place> for_place{place, n.width};
    auto const exact = make(for_host);
    auto const op = make(for_place);
    using Op = std::remove_cvref_t<decltype(op)>;
    std::mt19937 random(unsigned(n.queries * 131 + n.keys + n.width));
    std::normal_distribution<float> normal;
    double const none = std::numeric_limits<double>::quiet_NaN();
    auto const draw = [&](field f, std::vector<double>& x, std::vector<E>& y) {
      shape const e = extents_of(f, n);
      x.resize(std::size_t(e.size()));
      y.resize(x.size());
      for (std::size_t at = 0; at < x.size(); ++at) {
        index_t const j = side_of(f) == input_side::key    ? index_t(at) / e.feature % e.position
                          : side_of(f) == input_side::pair ? index_t(at) % e.feature
                                                           : -1;
        float z = normal(random);
        if (f == field::q) z *= float(n.query_scale);
        if (f == field::spread) z = 1 + std::fabs(z);
        if (f == field::bias && n.positive_bias) z = 0.01f + std::fabs(z);
        y[at] = E(j >= n.keys - n.unseen ? std::numeric_limits<float>::quiet_NaN() : z);
        if (f == field::v && poison >= 0 && j == poison && index_t(at) % e.feature == 3)
          y[at] = E(std::numeric_limits<float>::quiet_NaN());
        x[at] = double(float(y[at]));
      }
    };
    std::vector<double> wide[field_count];
    std::vector<E> narrow[field_count];
    E const* there[field_count] = {};
    strides steps[field_count];
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        shape const e = extents_of(F, n);
        draw(F, wide[int(F)], narrow[int(F)]);
        steps[int(F)] = strides::dense(e);
        if (n.padded && e.feature % 8 == 0) {  // rows with a gap of 8 numbers
          std::vector<E> apart(std::size_t(e.batch * e.head * e.position * (e.feature + 8)),
                               E(std::numeric_limits<float>::quiet_NaN()));
          for (index_t r = 0; r < e.batch * e.head * e.position; ++r)
            for (index_t d = 0; d < e.feature; ++d)
              apart[std::size_t(r * (e.feature + 8) + d)] = narrow[int(F)][std::size_t(r * e.feature + d)];
          there[int(F)] = place.keep(apart);
          steps[int(F)] = {e.head * e.position * (e.feature + 8), e.position * (e.feature + 8), e.feature + 8, 1};
        } else {
          there[int(F)] = place.keep(narrow[int(F)]);
        }
      }
    });
    auto const in = make_inputs<Op, tensor<E const>>(
        [&]<field F>() { return tensor<E const>(there[int(F)], extents_of(F, n), steps[int(F)]); }, offset);
    auto const right = make_inputs<Op, tensor<double const>>(
        [&]<field F>() { return tensor<double const>(wide[int(F)].data(), extents_of(F, n)); }, offset);
    shape const e{n.batch, n.heads, n.queries, n.value_width}, rows{n.batch, n.heads, n.queries, 1};
    E* const out = place.keep(std::vector<E>(std::size_t(e.size()), E(std::numeric_limits<float>::quiet_NaN())));
    float* const lse = place.keep(std::vector<float>(std::size_t(rows.size()), float(none)));
    float* const ground = place.keep(std::vector<float>(std::size_t(rows.size()), float(none)));
    outputs<Op, E> to{.out = tensor<E>(out, e)};
    if constexpr (Op::has_lse) to.lse.values = tensor<float>(lse, rows);
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<float>(ground, rows);
    place.forward(op, in, to);
    auto const got = place.fetch(static_cast<E const*>(out), std::size_t(e.size()));
    auto const got_lse = place.fetch(static_cast<float const*>(lse), std::size_t(rows.size()));
    auto const got_ground = place.fetch(static_cast<float const*>(ground), std::size_t(rows.size()));

    problem_shape const p = detail::checked_problem("check", exact, right, e);
    double const unit = std::is_same_v<E, bfloat16>  ? 0x1p-8
                        : std::is_same_v<E, float16> ? 0x1p-11
                                                     : 0x1p-21,
                 least = std::is_same_v<E, float> ? 1e-7 : 1e-6;
    double worst = 0, worst_lse = 0, worst_ground = 0, error = 0;
    int wrong_nan = 0, compared = 0;
    index_t const rows_in_all = n.batch * n.heads * n.queries, stride = rows_in_all > 3000 ? rows_in_all / 1501 : 1;
    for (index_t row = 0; row < rows_in_all; row += stride) {
      index_t const i = row % n.queries, h = row / n.queries % n.heads, b = row / (n.queries * n.heads);
      auto const x = evaluate(exact, right, p, b, h, i);
      for (index_t d = 0; d < n.value_width; ++d) {
        double const y = double(float(got[std::size_t(row * n.value_width + d)])), z = x.out[std::size_t(d)];
        if (std::isnan(y) != std::isnan(z)) ++wrong_nan;
        if (std::isnan(z) || std::isnan(y)) continue;
        ++compared;
        double const logits = std::is_same_v<E, float> ? 1 + x.largest : 1;  // products have the error of floats
        double const bound = 2.2 * unit * loose * logits * x.absolute[std::size_t(d)] + least;
        worst = std::fmax(worst, std::fabs(y - z) / bound);
        error = std::fmax(error, std::fabs(y - z));
      }
      if constexpr (Op::has_lse) {
        double const y = double(got_lse[std::size_t(row)]);
        if (std::isnan(y) != std::isnan(x.lse)) ++wrong_nan;
        if (std::isfinite(x.lse) || y != x.lse) {
          if (!std::isnan(x.lse))
            worst_lse =
                std::fmax(worst_lse, std::fabs(y - x.lse) / ((loose > 1 ? 2e-2 : 2e-5) * (1 + std::fabs(x.lse))));
        }
      }
      if constexpr (Op::has_ground_weight) {
        double const y = double(got_ground[std::size_t(row)]);
        if (std::isnan(y) != std::isnan(x.ground_weight)) ++wrong_nan;
        if (!std::isnan(y))
          worst_ground = std::fmax(worst_ground, std::fabs(y - x.ground_weight) / (loose > 1 ? 1e-2 : 3e-5));
      }
    }
    bool const pass = worst <= 1 && worst_lse <= 1 && worst_ground <= 1 && wrong_nan == 0 && compared > 0;
    failures += pass ? 0 : 1;
    if (quiet && pass) return;
    std::printf(
        "%s  %-34s %s B%d H%d/%d/%d L%dx%d D%d/%d  error %.1e  share of bound: out %.2f lse %.2f ground %.2f  wrong "
        "NaN %d of %d numbers\n",
        pass ? "PASS" : "FAIL", name,
        std::is_same_v<E, bfloat16> ? "bf16"
        : std::is_same_v<E, float>  ? "fp32"
                                    : "fp16",
        int(n.batch), int(n.heads), int(n.key_heads), int(n.value_heads), int(n.queries), int(n.keys), int(n.width),
        int(n.value_width), error, worst, worst_lse, worst_ground, wrong_nan, compared);
  } catch (std::exception const& e) {
    ++failures;
    std::printf("FAIL  %-34s %s\n", name, e.what());
  }
  std::fflush(stdout);
}

}  // namespace attune::cuda_check
