// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Statistics of random problems on an executor: fused in float and double, whole and merged from parts, against the
// definitions on dense weights in double.
//
// The bound, to first order. eps is the spacing at 1.
//   delta   what rounding does to a logit of the row: eps (2 + sqrt D) stretch (1 + the largest sum_d |q_d k_d| of its
//           keys): the pointwise steps and a random walk of the products, stretch being what length scale and gate make
//           of it
//   rho     exponential, division, sums over K keys: eps (4 + sqrt K)
//   |w_j|   (2 delta + rho) g_j:  g = w for everything exponential; affine w + 2 |share|; self-adjusted w + 2 p / (high
//                                 - low);
//           sparsemax 1, entmax15 sqrt w + delta, on the support and 4 delta around it
// A sum of weights adds those and rho |w|; an entropy adds |w_j| (1 + |log w_j|), the derivative of w log w, with the
// error itself in place of a smaller w. The worst share of the bound seen is printed.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/reference.hpp>

#include "random.hpp"

namespace attune::test::statistics_fuzz {

inline constexpr std::uint64_t fixed_seed = 20250713;

/// How a weight depends on its logits.
enum class sensitivity { relative, shared, adjusted, linear, square };

/// The memory of a call.
template <class T>
struct numbers {
  std::vector<T> q, k, v, gate_q, gate_k, scores, v0;

  numbers() = default;
  template <class U>
  explicit numbers(numbers<U> const& x)
      : q(x.q.begin(), x.q.end()), k(x.k.begin(), x.k.end()), v(x.v.begin(), x.v.end()),
        gate_q(x.gate_q.begin(), x.gate_q.end()), gate_k(x.gate_k.begin(), x.gate_k.end()),
        scores(x.scores.begin(), x.scores.end()), v0(x.v0.begin(), x.v0.end()) {}
};

/// A random problem: everything follows from its seed.
struct drawn {
  index_t batch, heads, key_heads, queries, keys, width;
  numbers<float> x;
  std::vector<unsigned char> visible;  ///< (batch, head, query, key)
  statistics_request request;

  explicit drawn(rng& random, bool many_heads = false) {
    batch = many_heads ? 8 : random.between(1, 2);
    heads = many_heads ? 8 : random.pick<index_t>({1, 2, 4});
    key_heads = heads == 1 ? 1 : random.pick<index_t>({1, heads / 2, heads});
    queries = many_heads ? 300 : random.between(1, random.pick<index_t>({5, 40, 150}));
    keys = many_heads ? 20 : random.between(1, random.pick<index_t>({5, 70, 300}));
    width = random.between(1, 16);
    auto const fill = [&](std::vector<float>& to, index_t n) {
      for (index_t i = 0; i < n; ++i) to.push_back(float(random.normal()));
    };
    fill(x.q, batch * heads * queries * width);
    fill(x.k, batch * key_heads * keys * width);
    fill(x.v, batch * key_heads * keys * 2);
    fill(x.gate_q, batch * heads * queries * 2);
    fill(x.gate_k, batch * key_heads * keys * 2);
    fill(x.v0, 2);
    double const off = random.pick({0.0, 0.0, 0.1, 0.9});
    for (index_t n = 0; n < batch * heads * queries * keys; ++n)  // coarse: there are ties
      x.scores.push_back(random.chance(off) ? -std::numeric_limits<float>::infinity()
                                            : float(random.between(-128, 128)) / 32);
    hide(random);
    request = {.entropy = random.chance(0.9), .columns = random.chance(0.7)};
    if (random.chance(0.7)) request.above = f32(random.pick({0.0, 0.01, 0.1, 0.5}));
  }
  mask::runtime mask() const { return {.visible = visible.data(), .visible_shape = {batch, heads, queries, keys}}; }
  bool sees(index_t b, index_t h, index_t i, index_t j) const {
    return visible[std::size_t(((b * heads + h) * queries + i) * keys + j)] != 0;
  }

  /// What an operator reads, from numbers of any type.
  template <class View, class Op, class T>
  inputs<Op, View> of(Op const&, numbers<T> const& all) const {
    auto const view = [&](std::vector<T> const& from, index_t n, index_t positions, index_t features) {
      return View(tensor<T const>(from, shape{batch, n, positions, features}));
    };
    View const values = view(all.v, key_heads, keys, 2);
    if constexpr (Op::uses(field::scores))
      return {.v = values, .scores = view(all.scores, heads, queries, keys)};
    else if constexpr (Op::uses(field::gate_q))
      return {.q = view(all.q, heads, queries, width),
              .k = view(all.k, key_heads, keys, width),
              .v = values,
              .gate_q = view(all.gate_q, heads, queries, 2),
              .gate_k = view(all.gate_k, key_heads, keys, 2),
              .v0 = View(tensor<T const>(all.v0, shape{1, 1, 1, 2}))};
    else
      return {.q = view(all.q, heads, queries, width), .k = view(all.k, key_heads, keys, width), .v = values};
  }
  template <class T, class Exec, class Op>
  row_statistics<T> run(Exec const& exec, Op const& op, std::vector<key_interval> const& parts) const {
    numbers<T> const own(x);
    auto const in = of<tensor<T const>>(op, own);
    std::vector<T> out(std::size_t(batch * heads * queries * 2));
    auto const rows = forward_and_save(exec, op, in, {.out = tensor<T>(out, shape{batch, heads, queries, index_t(2)})});
    if (parts.empty()) return statistics(exec, op, in, rows, request);
    auto all = statistics(exec, op, in, rows, request, parts.front());
    for (std::size_t n = 1; n < parts.size(); ++n) all = merge(statistics(exec, op, in, rows, request, parts[n]), all);
    return all;
  }

 private:
  /// One of five kinds of visibility, and garbage in keys and scores that nobody sees.
  void hide(rng& random) {
    int const kind = int(random.between(0, 4));
    index_t const window = random.between(1, keys), offset = random.between(-queries / 2, keys);
    double const share = random.uniform();
    for (index_t b = 0; b < batch; ++b) {
      index_t const length = random.between(0, keys);
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < queries; ++i)
          for (index_t j = 0; j < keys; ++j) {
            index_t const distance = i + offset - j;
            visible.push_back((kind == 0   ? true
                               : kind == 1 ? distance >= 0
                               : kind == 2 ? distance >= 0 && distance < window
                               : kind == 3 ? j < length
                                           : random.chance(share))
                                  ? 1
                                  : 0);
          }
    }
    float const garbage = std::numeric_limits<float>::quiet_NaN();
    for (index_t b = 0; b < batch; ++b)
      for (index_t g = 0; g < key_heads; ++g)
        for (index_t j = 0; j < keys; ++j) {
          bool seen = false;
          for (index_t h = 0; h < heads; ++h)
            for (index_t i = 0; i < queries; ++i) seen = seen || (h * key_heads / heads == g && sees(b, h, i, j));
          auto const at = std::size_t((b * key_heads + g) * keys + j);
          for (index_t d = 0; d < width && !seen; ++d) x.k[at * std::size_t(width) + std::size_t(d)] = garbage;
          for (std::size_t d = 0; d < 2 && !seen; ++d) x.v[at * 2 + d] = x.gate_k[at * 2 + d] = garbage;
        }
    for (std::size_t n = 0; n < x.scores.size(); ++n)
      if (visible[n] == 0) x.scores[n] = garbage;
  }
};

/// The largest share of a bound that an error had.
struct worst_share {
  double share = 0;
  std::string where = "nothing";
  void note(double error, double bound, std::string const& what) {
    double const s = error == 0 ? 0 : error / bound;
    if (!(s <= share)) share = s, where = what;
  }
};

inline double distance(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)) ? 0 : std::fabs(x - y); }

template <class T>
worst_share compare(drawn const& d, row_statistics<T> const& got, dense_result<double> const& dense, sensitivity how,
                    double stretch, double share) {
  worst_share all;
  double const eps = double(std::numeric_limits<T>::epsilon());
  row_statistics<double> const exact = statistics(dense, d.request);
  std::vector<double> column(std::size_t(d.keys));
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h) {
      auto const& head = dense.at(b, h);
      std::fill(column.begin(), column.end(), 0.0);
      for (index_t i = 0; i < d.queries; ++i) {
        auto const n = std::size_t(exact.at(b, h, i));
        std::string const place = " of row " + std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(i);
        double size = 0, low = 1e300, high = -1e300, count = 0, logit = 0;
        for (index_t j = 0; j < d.keys; ++j) {
          if (!head.visible(i, j)) continue;
          auto const inner = [&](std::vector<float> const& q, std::vector<float> const& k, index_t width) {
            index_t const row = ((b * d.heads + h) * d.queries + i) * width,
                          key = ((b * d.key_heads + h * d.key_heads / d.heads) * d.keys + j) * width;
            double sum = 0;
            for (index_t c = 0; c < width; ++c)
              sum += std::fabs(double(q[std::size_t(row + c)]) * k[std::size_t(key + c)]);
            return sum;
          };
          size = std::max(size, inner(d.x.q, d.x.k, d.width) + inner(d.x.gate_q, d.x.gate_k, 2));
          ++count;
          if (double const a = head.logits(i, j); std::isfinite(a))
            low = std::min(low, a), high = std::max(high, a), logit = std::max(logit, std::fabs(a));
        }
        double const delta = eps * (2 + std::sqrt(double(d.width))) * stretch * (1 + size),
                     rho = eps * (4 + std::sqrt(count));
        double const unit = 2 * delta + rho, reported = delta + 8 * eps * logit;
        double top = 0, mass = 0, entropy = 0, most = 0, least = 0;
        bool positive = true, negative = false;
        for (index_t j = 0; j < d.keys; ++j) {
          if (!head.visible(i, j)) continue;
          double const w = head.weights(i, j), a = head.logits(i, j);
          double g = std::fabs(w);
          if (how == sensitivity::shared) g += 2 * std::fabs(share) / count;
          if (how == sensitivity::adjusted && a > -1e300) g += 2 * std::exp(a - head.lse(i)) / (high - low);
          if (how == sensitivity::linear) g = a - head.threshold(i) > -4 * delta ? 1 : 0;
          if (how == sensitivity::square) g = a / 2 - head.threshold(i) > -4 * delta ? std::sqrt(w) + delta : 0;
          double const off = unit * g;
          top = std::max(top, off);
          mass += off + rho * std::fabs(w);
          entropy += (off + rho * std::fabs(w)) * (1 + std::fabs(std::log(std::max({std::fabs(w), off, 1e-300}))));
          column[std::size_t(j)] += off + rho * std::fabs(w);
          positive = positive && (w >= off || how != sensitivity::shared);
          negative = negative || w < -off;
          if (d.request.above) most += w > *d.request.above - off, least += w > *d.request.above + off;
          if (j == 0) all.note(distance(double(got.first_key[n]), exact.first_key[n]), off, "first key" + place);
        }
        all.note(distance(double(got.highest_logit[n]), exact.highest_logit[n]), reported, "highest logit" + place);
        all.note(distance(double(got.mean_logit[n]), exact.mean_logit[n]), reported + rho * logit,
                 "mean logit" + place);
        all.note(double(std::abs(got.scored[n] - exact.scored[n])), 0, "scored" + place);
        all.note(distance(double(got.highest_weight[n]), exact.highest_weight[n]), top, "highest weight" + place);
        all.note(distance(double(got.mass[n]), exact.mass[n]), mass, "mass" + place);
        all.note(distance(double(got.ground_weight[n]), exact.ground_weight[n]), unit, "ground weight" + place);
        if (!head.visible(i, 0)) all.note(double(got.first_key[n]), 0, "first key, hidden," + place);
        if (d.request.entropy && (positive || negative))
          all.note(distance(double(got.entropy[n]), exact.entropy[n]), entropy, "entropy" + place);
        if (d.request.above) {
          double const c = double(got.above[n]);
          all.note(c > most ? c - most : c < least ? least - c : 0, 0, "above" + place);
        }
      }
      for (index_t j = 0; j < d.keys && d.request.columns; ++j) {
        auto const n = std::size_t(exact.at_key(b, h, j));
        all.note(distance(double(got.columns[n]), exact.columns[n]),
                 column[std::size_t(j)] + eps * std::fabs(exact.columns[n]), "column " + std::to_string(j));
      }
    }
  return all;
}

template <class T>
bool same_bits(row_statistics<T> const& a, row_statistics<T> const& b) {
  auto const same = [](auto const& x, auto const& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0);
  };
  return same(a.highest_logit, b.highest_logit) && same(a.mean_logit, b.mean_logit) && same(a.scored, b.scored) &&
         same(a.highest_weight, b.highest_weight) && same(a.mass, b.mass) && same(a.first_key, b.first_key) &&
         same(a.ground_weight, b.ground_weight) && same(a.entropy, b.entropy) && same(a.above, b.above) &&
         same(a.columns, b.columns);
}

/// The keys in one to four parts, some of them perhaps empty, in any order.
inline std::vector<key_interval> random_parts(index_t keys, rng& random) {
  std::vector<index_t> cuts{0, random.between(0, keys), random.between(0, keys), keys};
  std::sort(cuts.begin(), cuts.end());
  std::vector<key_interval> parts;
  for (std::size_t n = 0; n + 1 < cuts.size(); ++n) parts.push_back({cuts[n], cuts[n + 1]});
  std::swap(parts.front(), parts[std::size_t(random.between(0, index_t(parts.size()) - 1))]);
  return parts;
}

struct tally {
  worst_share worst;
  int failures = 0;
};

template <class T, class Executors, class Op>
void check_type(Executors const& on, char const* name, std::uint64_t seed, drawn const& d, Op const& op,
                sensitivity how, double stretch, double share, std::vector<key_interval> const& parts, tally& to) {
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op, d.x));
  auto const whole = d.run<T>(on.template of<T>(1), op, {});
  bool const alike = same_bits(whole, d.run<T>(on.template of<T>(2), op, {})) &&
                     same_bits(whole, d.run<T>(on.template of<T>(3), op, {}));
  std::string const where =
      std::string(name) + (sizeof(T) == 4 ? ", float" : ", double") + ", ATTUNE_SEED=" + std::to_string(seed) + ": ";
  CHECK_MESSAGE(alike, where << "2 or 3 threads differ from 1");
  for (auto const& got : {whole, d.run<T>(on.template of<T>(2), op, parts)}) {
    worst_share const s = compare(d, got, dense, how, stretch, share);
    CHECK_MESSAGE(s.share <= 1, where << s.where << ": " << s.share << " of the bound");
    to.failures += !(s.share <= 1);
    to.worst.note(s.share, 1, where + s.where);
  }
}

/// `count` problems from a seed; on.of<T>(threads) is the executor.
template <class Executors>
void fuzz(Executors const& on, std::string const& title, std::uint64_t seed, index count) {
  tally all;
  for (index n = 0; n < count && all.failures < 5; ++n) {
    std::uint64_t const own = seed + std::uint64_t(n);
    rng random(own);
    drawn const d(random, n == 7);
    auto const parts = random_parts(d.keys, random);
    auto const check = [&](char const* name, auto const& op, sensitivity how, double stretch = 1, double share = 0) {
      check_type<float>(on, name, own, d, op, how, stretch, share, parts, all);
      check_type<double>(on, name, own, d, op, how, stretch, share, parts, all);
    };
    mask::runtime const m = d.mask();
    using namespace normalizer;
    switch (random.between(0, 9)) {
      case 0:
        check("softmax", attention(kernel::dot_product{}, m), sensitivity::relative);
        break;
      case 1:
        check("sink", attention(kernel::dot_product{}, sink{0.5}, m), sensitivity::relative);
        break;
      case 2:  // softplus(-1) log 300 = 1.8
        check("principled", principled_attention({-1.0, 0.2, 0.3}, m), sensitivity::relative, 4);
        break;
      case 3:  // with a row constant
        check("principled, low ground", principled_attention({-1.0, 0.2, -40.0}, m), sensitivity::relative, 4);
        break;
      case 4: {
        double const average = random.pick({1.0, 0.5});
        check("affine", attention(kernel::dot_product{}, affine<>{.alpha = 0.75, .average = average}, m),
              sensitivity::shared, 1, average - 0.75);
        break;
      }
      case 5:
        check("sigmoid", attention(kernel::dot_product{}, normalizer::sigmoid{}, m), sensitivity::relative);
        break;
      case 6:
        check("self-adjusted", attention(kernel::dot_product{}, self_adjusted<adjusted_form::full_range>{}, m),
              sensitivity::adjusted);
        break;
      case 7:
        check("sparsemax", attention(kernel::dot_product{}, sparsemax{}, m), sensitivity::linear);
        break;
      case 8:
        check("entmax15", attention(kernel::dot_product{}, entmax15{}, m), sensitivity::square);
        break;
      default:  // of logits without rounding: which keys are the largest is no matter of taste
        check("top-k", attention(kernel::given_scores{}, top_k{5}, m), sensitivity::relative);
    }
  }
  std::printf("statistics, %s: %d cases from seed %llu, worst %.2f of the bound (%s)\n", title.c_str(), int(count),
              static_cast<unsigned long long>(seed), all.worst.share, all.worst.where.c_str());
}

}  // namespace attune::test::statistics_fuzz
