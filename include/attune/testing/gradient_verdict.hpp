// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto report = gradient_verdict(op, {.q = Q, .k = K, .v = V}, {.out = dO},
//                                  gradient_candidate().with(field::q, tensor(dq, s)).with(field::k,
//                                  ...).with(field::v, ...));
//
// Is somebody's backward pass right? The same tests as testing/verdict.hpp has for a forward pass. Every element must
// be within its bound (gradient_bound.hpp), and the residual must not be explained by the effect of a parameter or of a
// known mistake on the gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/reference/directional.hpp>
#include <attune/testing/defect.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/judging/conclusion.hpp>
#include <attune/testing/judging/gradient_candidate.hpp>
#include <attune/testing/moving_parameter.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class gradient_judge {
  using view = any_tensor;
  static constexpr int noise_samples = 24;

 public:
  gradient_judge(Op const& op, inputs<Op, view> const& in, cotangents<Op, view> const& d,
                 gradient_candidate const& given, verdict_options const& how)
      : op_(op), in_(in), d_(d), given_(given), how_(how), seen_(how.gate, regions_),
        p_(attune::detail::checked_problem("gradient_verdict", op, in, attune::detail::output_shape(in))) {
    if (given.all().empty()) throw error("testing::gradient_verdict", "the candidate", "no gradient", "at least one");
    storage narrowest = given.all().begin()->second.stored;
    for (auto const& [f, x] : given.all()) {
      if (!Op::uses(f))
        throw error("testing::gradient_verdict", std::string("d") + name_of(f), "values",
                    "none: the operator has no such input");
      if (format_of(x.stored).unit > format_of(narrowest).unit) narrowest = x.stored;
    }
    stored_ = narrowest;
    precision_ = how.how.value_or(precision(stored_));
    precision_.out = stored_;
  }

  verdict_report operator()() {
    auto bounds = gradient_error_bound(op_, in_, d_, precision_);
    for (auto const& [f, x] : given_.all()) {
      shape const& e = bounds.shapes[std::size_t(f)];
      if (!(x.extents == e))
        throw error("testing::gradient_verdict", std::string("d") + name_of(f), "shape " + to_string(x.extents),
                    to_string(e));
      std::string const name = std::string("d") + name_of(f);
      report_.elements.push_back(compared(name, e, x.values, bounds.of(f)));
      bool const of_keys = side_of(f) == input_side::key;
      tensors_[f] = regions_.add(name, e, of_keys ? "key" : "query", of_keys ? "key head" : "head");
      double const accumulation = accumulation_of(precision_.arithmetic, f);
      report_.condition = std::fmax(report_.condition, condition_of(bounds.of(f), accumulation, how_.gate));
    }
    common_noise();
    std::size_t first = 0;
    for (auto const& [f, x] : given_.all()) {
      shape const& e = bounds.shapes[std::size_t(f)];
      int const tensor = tensors_[f];
      energies energy(std::string("d") + name_of(f), regions_, how_.gate, e);
      energy.add(tensor, x.values, bounds.of(f), accumulation_of(precision_.arithmetic, f), seen_.common(), first);
      report_.energies.push_back(energy.excess());
      if (report_.energies.back().used > 1) seen_.must_explain(tensor);
      report_.false_alarms += energy.false_alarms();
      first += x.values.size();
      for (std::size_t n = 0; n < x.values.size(); ++n) {
        if (n % std::size_t(e.feature) == 0) {
          index_t const row = index_t(n) / e.feature;
          std::vector<int> ids;
          regions_.of(tensor, row / (e.position * e.head), row / e.position % e.head, row % e.position, ids);
          seen_.begin_row(std::move(ids));
        }
        seen_.add(x.values[n], bounds.of(f)[n], tensor);
      }
    }
    seen_.close(stored_);
    exact_ = gradients(d_, p_);
    for_each_moving_parameter(op_, p_, [&](finding const& f, Op const& op, lift<dual<double, 1>> const& numbers) {
      auto const moved = attune::detail::dense_vjp<dual<double, 1>>(op, in_, p_, d_, numbers);
      judge(f, along(moved, [](dual<double, 1> const& x) { return x.tangent[0]; }));
    });
    factors();
    mistakes();
    if (any_outside(report_) || any_noticed(report_, how_.gate) || seen_.must_explain_any()) {
      by_row();
      by_noise(bounds);
    }
    conclude(report_, seen_, how_, 1);  // the bounds are looser than for outputs, the projections are not
    return std::move(report_);
  }

 private:
  using dense = dense_gradients<double>;

  dense gradients(cotangents<Op, view> const& d, problem_shape const& p) const {
    return attune::detail::dense_vjp<double>(op_, in_, p, d);
  }
  /// The numbers of all given fields, in the order of the residual.
  template <class T, class Get>
  std::vector<double> along(dense_gradients<T> const& g, Get const& get) const {
    std::vector<double> to;
    for (auto const& [f, x] : given_.all())
      for (T const& y : g.of(f).values) to.push_back(get(y));
    return to;
  }
  void judge(finding const& f, std::vector<double> const& direction) {
    report_.findings.push_back(seen_.judged(f, direction));
  }
  void judge(std::string name, std::vector<double> const& direction) {
    finding f;
    f.name = std::move(name);
    judge(f, direction);
  }
  /// The change of the gradients if they were `other`.
  std::vector<double> change_to(dense const& other) const {
    auto to = along(other, [](double x) { return x; });
    auto const from = along(exact_, [](double x) { return x; });
    for (std::size_t n = 0; n < to.size(); ++n) to[n] = to[n] == from[n] ? 0 : to[n] - from[n];
    return to;
  }

  // ---- cotangents ---------------------------------------------------------------------------------------------------
  shape rows() const { return {p_.batch, p_.heads, p_.queries, 1}; }
  double by_row(any_tensor const& x, index_t b, index_t h, index_t i) const { return x.absent() ? 0 : x(b, h, i, 0); }
  template <class Visit>
  void for_each_row(Visit const& visit) const {
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t h = 0; h < p_.heads; ++h)
        for (index_t i = 0; i < p_.queries; ++i) visit(b, h, i);
  }
  /// The gradients with another cotangent of the lse, given per row.
  template <class Number>
  dense with_lse(cotangents<Op, view> d, Number const& number) const {
    std::vector<double> by;
    for_each_row([&](index_t b, index_t h, index_t i) { by.push_back(number(b, h, i)); });
    if constexpr (Op::has_lse) d.lse = tensor<double const>(by, rows());
    return gradients(d, p_);
  }

  /// In 16 bits the row term <do, out> uses a rounded `out`. This error is common to a whole row of dS, and differs
  /// between correct kernels. It enters the gradients like a cotangent of the lse.
  void common_noise() {
    double const unit = format_of(precision_.arithmetic).unit;
    if (!(format_of(precision_.weights).unit > unit || format_of(precision_.out).unit > unit)) return;
    if (!Op::has_lse || d_.out.absent()) return;
    auto const bounds = error_bound(op_, in_, precision_);
    normal_numbers random(1);
    for (int n = 0; n < noise_samples; ++n) {
      cotangents<Op, view> none;
      auto const noise = with_lse(none, [&](index_t b, index_t h, index_t i) {
        double square = 0;
        for (index_t c = 0; c < p_.value_width; ++c) {
          double const x = d_.out(b, h, i, c) * bounds.at_out(b, h, i, c).scatter;
          square += std::isfinite(x) ? x * x : 0;
        }
        return random() * std::sqrt(square);
      });
      auto response = along(noise, [](double x) { return x; });
      bool const finite = std::all_of(response.begin(), response.end(), [](double x) { return std::isfinite(x); });
      if (finite) seen_.add_common(std::move(response));
    }
  }

  // ---- possible mistakes --------------------------------------------------------------------------------------------
  /// A factor of one gradient: a missing scale, or truncation.
  void factors() {
    finding lse;  // weights are e^(s - lse)
    lse.name = "saved lse";
    lse.parameter = true;
    if (Op::has_lse && given_.all().size() > 1) judge(lse, along(exact_, [](double x) { return -x; }));
    for (auto const& [wanted, unused] : given_.all()) {
      finding f;
      f.name = std::string("d") + name_of(wanted);
      f.parameter = f.relative = true;
      std::vector<double> direction;
      for (auto const& [other, x] : given_.all())
        for (double y : exact_.of(other).values) direction.push_back(other == wanted ? y : 0);
      judge(f, direction);
    }
  }

  void mistakes() {
    if constexpr (Op::has_lse) {
      auto const given = [&](index_t b, index_t h, index_t i) { return by_row(d_.lse, b, h, i); };
      if (!d_.lse.absent()) {
        judge("gradient without its lse term", change_to(with_lse(d_, [](index_t, index_t, index_t) { return 0.; })));
        judge("lse term of the gradient has the wrong sign",
              change_to(with_lse(d_, [&](index_t b, index_t h, index_t i) { return -given(b, h, i); })));
      }
      // dS = P (dP - D): omitting D is a cotangent of the lse that is larger by D.
      if (!d_.out.absent()) {
        altered_rows<Op> const rows(op_, in_, p_);
        judge("row term <dout, out> missing from dS", change_to(with_lse(d_, [&](index_t b, index_t h, index_t i) {
                auto const row = rows.template evaluate<double>(defect::none, b, h, i);
                double term = given(b, h, i);
                for (index_t c = 0; c < p_.value_width; ++c) term += d_.out(b, h, i, c) * row.out[std::size_t(c)];
                if constexpr (Op::has_ground_weight) term += by_row(d_.ground_weight, b, h, i) * row.ground_weight;
                return term;
              })));
      }
    }
    if constexpr (Op::has_ground_weight)
      if (!d_.ground_weight.absent()) {
        cotangents<Op, view> without = d_;
        without.ground_weight = {};
        judge("gradient without its ground weight term", change_to(gradients(without, p_)));
      }
    auto const standing = [&](char const* name, index_t offset) {
      problem_shape p = p_;
      p.offset = offset;
      judge(name, change_to(attune::detail::dense_vjp<double>(op_, in_, p, d_)));
    };
    standing("mask aligned top-left", 0);
    standing("mask shifted by +1", p_.offset + 1);
    standing("mask shifted by -1", p_.offset - 1);
    if constexpr (std::is_same_v<typename Op::mask_policy, mask::causal>) standing("mask ignored", p_.keys);
    next_key_head();
    unnormalized_values();
    one_head_of_a_group();
    by_position();
  }

  /// The backward pass reads keys and values of the next key head.
  void next_key_head() {
    if constexpr (Op::uses(field::k)) {
      if (p_.key_heads < 2 || p_.key_heads != p_.value_heads) return;
      auto const turned = [](any_tensor const& x) {
        shape const& e = x.extents();
        std::vector<double> to;
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t j = 0; j < e.position; ++j)
              for (index_t c = 0; c < e.feature; ++c) to.push_back(x(b, (h + 1) % e.head, j, c));
        return to;
      };
      std::vector<double> const k = turned(in_.k), v = turned(in_.v);
      inputs<Op, view> other = in_;
      other.k = tensor<double const>(k, in_.k.extents());
      other.v = tensor<double const>(v, in_.v.extents());
      judge("keys and values of the next key head",
            change_to(attune::detail::dense_vjp<double>(op_, other, p_, d_)));
    }
  }
  /// dv from e^(s - maximum), which nobody divided by the sum.
  void unnormalized_values() {
    if constexpr (Op::has_lse && !Op::has_ground_weight) {
      if (d_.out.absent() || given_.all().count(field::v) == 0) return;
      altered_rows<Op> const rows(op_, in_, p_);
      std::vector<double> sums;
      for_each_row([&](index_t b, index_t h, index_t i) {
        double most = 0;
        for (double w : rows.template evaluate<double>(defect::none, b, h, i).weights) most = std::fmax(most, w);
        sums.push_back(most > 0 ? 1 / most : 1);
      });
      dense other = exact_;
      other.of(field::v) = scaled(sums).of(field::v);
      judge("dv from weights that are not normalized", change_to(other));
    }
  }
  /// The gradients with each row's cotangents multiplied.
  dense scaled(std::vector<double> const& by) const {
    std::vector<double> out, lse, ground;
    std::size_t n = 0;
    for_each_row([&](index_t b, index_t h, index_t i) {
      double const x = by[n++];
      for (index_t c = 0; c < p_.value_width; ++c) out.push_back(d_.out.absent() ? 0 : x * d_.out(b, h, i, c));
      if constexpr (Op::has_lse) lse.push_back(x * by_row(d_.lse, b, h, i));
      if constexpr (Op::has_ground_weight) ground.push_back(x * by_row(d_.ground_weight, b, h, i));
    });
    cotangents<Op, view> d;
    d.out = tensor<double const>(out, {p_.batch, p_.heads, p_.queries, p_.value_width});
    if constexpr (Op::has_lse) d.lse = tensor<double const>(lse, rows());
    if constexpr (Op::has_ground_weight) d.ground_weight = tensor<double const>(ground, rows());
    return gradients(d, p_);
  }

  // ---- numbers of rows, and noise: for a verdict that is already FAIL ------------------------------------------------
  /// For each query, the multiple of `effect` that fits the residual of dq.
  std::vector<double> fitted(gradient_array<double> const& effect) const {
    std::size_t at = 0;
    for (auto const& [f, x] : given_.all()) {
      if (f == field::q) break;
      at += x.values.size();
    }
    std::size_t const width = std::size_t(effect.extents.feature);
    std::vector<double> to;
    for (std::size_t n = 0; n < effect.values.size(); n += width) {
      double square = 0, product = 0;
      for (std::size_t c = n; c < n + width; ++c) {
        double const y = effect.values[c], m = seen_.metric(at + c);
        square += y * y * m;
        product += y * m * seen_.residual(at + c);
      }
      to.push_back(square > 0 ? product / square : 0);
    }
    return to;
  }
  void by_row() {
    if constexpr (Op::has_lse && Op::uses(field::q)) {
      if (given_.all().count(field::q) == 0) return;
      auto const add = [&](char const* name, dense const& effect) {
        finding f;
        f.name = name;
        f.last_resort = true;
        f = seen_.judged(f, along(effect, [](double x) { return x; }));
        f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
        report_.findings.push_back(f);
      };
      cotangents<Op, view> const none;
      auto const by = fitted(with_lse(none, [](index_t, index_t, index_t) { return 1.; }).of(field::q));
      std::size_t n = 0;
      add("row term <dout, out> off, by another number in each row",
          with_lse(none, [&](index_t, index_t, index_t) { return by[n++]; }));
      add("saved lse off, by another number in each row", scaled(fitted(exact_.of(field::q))));
    }
  }
  void by_noise(certify::gradient_bounds const& bounds) {
    double const bf16 = format_of(storage::bf16).unit, fp16 = format_of(storage::fp16).unit;
    auto const add = [&](std::string name, double least, double most, auto const& size) {
      finding f;
      f.name = std::move(name);
      std::vector<int> in;
      std::vector<double> sizes;
      std::size_t number = 0;
      for (auto const& [by, x] : given_.all()) {
        energy_excess const& e = report_.energies[number++];
        bool any = false;
        for (std::size_t n = 0; n < x.values.size(); ++n) {
          sizes.push_back(size(by, n));
          any = any || sizes.back() > 0;
        }
        if (!any || !e.found) continue;
        if (f.where.empty()) f.where = regions_.words(e.parts);
        if (e.parts.empty())
          in.push_back(0);
        else
          in.insert(in.end(), e.parts.begin(), e.parts.end());
      }
      report_.findings.push_back(seen_.judged_as_noise(f, sizes, least, most, in));
    };
    auto const value = [&](field f, std::size_t n) { return std::fabs(exact_.of(f).values[n]); };
    auto const spread = [&](field f, std::size_t n) { return bounds.spreads[std::size_t(f)][n]; };
    for (auto const& [by, unused] : given_.all())
      add(std::string("sums of d") + name_of(by) + " rounded to 16 bits", fp16 / 8, 16 * bf16,
          [&](field f, std::size_t n) { return f == by ? value(f, n) : 0; });
    if (given_.all().count(field::k) > 0 && given_.all().count(field::v) > 0)
      add("sums of dk and dv rounded to 16 bits", fp16 / 8, 16 * bf16,
          [&](field f, std::size_t n) { return f == field::k || f == field::v ? value(f, n) : 0; });
    double const usual = 0.42;  // of mantissas that are equally likely on a logarithmic scale
    for (storage s : {storage::bf16, storage::fp16}) {
      double const unit = format_of(s).unit * usual;
      if (!(format_of(precision_.weights).unit < format_of(s).unit)) continue;
      add(std::string("dS or dP rounded to ") + name_of(s), 0.6 * unit, 3 * unit,
          [&](field f, std::size_t n) { return f == field::v ? 0 : spread(f, n); });
      add(std::string("probabilities rounded to ") + name_of(s), 0.6 * unit, 1.6 * unit,
          [&](field f, std::size_t n) { return f == field::v ? spread(f, n) : 0; });
    }
    add("logits rounded to 16 bits", fp16 / 32, 4 * bf16, spread);
  }

  /// Keys and values that several heads share get the gradient of only one head.
  void one_head_of_a_group() {
    bool shared = false;
    dense other = exact_;
    std::map<index_t, dense> of_heads;  // by the number of key heads
    for (auto const& [f, x] : given_.all()) {
      index_t const heads = exact_.of(f).extents.head;
      if (side_of(f) != input_side::key || heads == p_.heads) continue;
      shared = true;
      auto found = of_heads.find(heads);
      if (found == of_heads.end()) {
        std::vector<double> out, lse, ground;
        for_each_row([&](index_t b, index_t h, index_t i) {
          bool const taken = h % (p_.heads / heads) == 0;
          for (index_t c = 0; c < p_.value_width; ++c)
            out.push_back(taken && !d_.out.absent() ? d_.out(b, h, i, c) : 0);
          if constexpr (Op::has_lse) lse.push_back(taken ? by_row(d_.lse, b, h, i) : 0);
          if constexpr (Op::has_ground_weight) ground.push_back(taken ? by_row(d_.ground_weight, b, h, i) : 0);
        });
        cotangents<Op, view> d;
        d.out = tensor<double const>(out, {p_.batch, p_.heads, p_.queries, p_.value_width});
        if constexpr (Op::has_lse) d.lse = tensor<double const>(lse, rows());
        if constexpr (Op::has_ground_weight) d.ground_weight = tensor<double const>(ground, rows());
        found = of_heads.emplace(heads, gradients(d, p_)).first;
      }
      other.of(f) = found->second.of(f);
    }
    if (shared) judge("gradients of one head of each group alone", change_to(other));
  }

  /// Element (h, i) of a tensor that should be (B, H, L, D) but is (B, L, H, D).
  void by_position() {
    for (auto const& [f, x] : given_.all()) {
      gradient_array<double> const& exact = exact_.of(f);
      shape const& e = exact.extents;
      if (e.head == 1 || e.position == 1) continue;
      dense other = exact_;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t c = 0; c < e.feature; ++c) {
              index_t const place = h * e.position + i;
              other.of(f)(b, h, i, c) = exact(b, place % e.head, place / e.head, c);
            }
      judge(std::string("head and position of d") + name_of(f) + " transposed", change_to(other));
    }
  }

  Op const& op_;
  inputs<Op, view> const& in_;
  cotangents<Op, view> const& d_;
  gradient_candidate const& given_;
  verdict_options const& how_;
  storage stored_ = storage::fp32;
  precision precision_;
  regions regions_;
  projections seen_;
  std::map<field, int> tensors_;  ///< in regions_
  problem_shape p_;
  dense exact_;
  verdict_report report_;
};

}  // namespace detail

/// Judges the gradients that a kernel computed from these inputs and cotangents. For the meaning of decisions, see
/// testing/verdict.hpp.
/// Limits:     where outputs are narrower than the arithmetic, one `how` applies to all gradients: the narrowest given
///             format counts. In 16 bits the rounding of dS hides small parameter errors: the power says how small.
/// Errors:     attune::error names argument, value and expectation; operators with a candidate set are not supported.
/// Complexity: about 50 vjp(reference<double>) for the bounds, 24 for the rounding of `out` in 16 bits, one or two for
///             each defect.
template <class Op>
verdict_report gradient_verdict(Op const& op, inputs<Op, any_tensor> const& in, cotangents<Op, any_tensor> const& d,
                                gradient_candidate const& given, verdict_options const& how = {}) {
  return detail::gradient_judge<Op>(op, in, d, given, how)();
}

}  // namespace attune::testing
