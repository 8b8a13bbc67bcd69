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

#include <attune/testing/defect.hpp>
#include <attune/testing/judging/backward/backward_suspects.hpp>
#include <attune/testing/judging/conclusion.hpp>
#include <attune/testing/judging/exponential_range.hpp>
#include <attune/testing/moving_parameter.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class gradient_judge : backward_suspects<Op> {
  using base = backward_suspects<Op>;
  using base::along, base::bounds_, base::by_row, base::change_to, base::d_, base::exact_, base::for_each_row,
      base::given_;
  using base::gradients, base::how_, base::in_, base::judge, base::op_, base::p_, base::precision_, base::regions_;
  using base::report_, base::scaled, base::seen_, base::stored_, base::tensors_, base::with_lse;
  using typename base::dense, typename base::view;

 public:
  gradient_judge(Op const& op, inputs<Op, any_tensor> const& in, cotangents<Op, any_tensor> const& d,
                 gradient_candidate const& given, verdict_options const& how)
      : base(op, in, d, given, how) {}

  verdict_report operator()() {
    auto const all = gradient_error_bound(op_, in_, d_, precision_);
    for (auto const& [name, x] : given_.all()) {
      bounds_of_gradient& bounds = bounds_[name] = bounds_of(all, name);
      shape const& e = bounds.extents;
      if (!(x.extents == e))
        throw error("testing::gradient_verdict", name.text(), "shape " + to_string(x.extents), to_string(e));
      if (!name.is_input() && format_of(x.stored).unit > format_of(precision_.arithmetic).unit)
        for (bounded_number& n : bounds.numbers) n = certify::detail::stored_in(format_of(x.stored), n);
      report_.elements.push_back(compared(name.text(), e, x.values, bounds.numbers));
      bool const of_keys = name.is_input() && side_of(name.input) == input_side::key;
      tensors_[name] = regions_.add(name.text(), e, of_keys ? "key" : "query", of_keys ? "key head" : "head");
      // A parameter's sum over all pairs has too wide a bound for this, and one number says nothing of a condition.
      if (name.is_input())
        report_.condition = std::fmax(report_.condition, condition_of(bounds.numbers, accumulation(name), how_.gate));
    }
    base::common_noise();
    compare_sizes();
    if (exceeds_a_limit() && base::fp32_noise()) compare_sizes();
    std::size_t number = 0;
    for (auto const& [name, x] : given_.all()) {
      std::vector<bounded_number> const& bounds = bounds_.at(name).numbers;
      shape const& e = x.extents;
      int const tensor = tensors_[name];
      seen_.shows(report_.energies[number], tensor);
      if (report_.energies[number++].used > 1) seen_.must_explain(tensor, name.text());
      if (!name.is_input()) seen_.is_parameter(tensor);
      for (std::size_t n = 0; n < x.values.size(); ++n) {
        if (n % std::size_t(e.feature) == 0) {
          index_t const row = index_t(n) / e.feature;
          std::vector<int> ids;
          regions_.of(tensor, row / (e.position * e.head), row / e.position % e.head, row % e.position, ids);
          seen_.begin_row(std::move(ids),
                          {row / (e.position * e.head), row / e.position % e.head, row % e.position, 0});
        }
        seen_.add(x.values[n], bounds[n], tensor, accumulation(name), base::together(name, n));
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
      bool const by_rows = base::by_backward_rows();
      base::by_numbers_of_rows();
      base::by_rounded_sums();
      if (!by_rows) base::by_rounded_pairs();
      by_large_changes();
      by_narrow_arithmetic(report_, precision_, how_.gate, [&](precision const& narrow) {
        auto const b = gradient_error_bound(op_, in_, d_, narrow);
        return std::all_of(given_.all().begin(), given_.all().end(), [&](auto const& given) {
          return all_within(given.second.values, bounds_of(b, given.first).numbers);
        });
      });
      by_exponentials();
    }
    conclude(report_, seen_, how_, 1);  // the bounds are looser than for outputs, the projections are not
    return std::move(report_);
  }

 private:
  double accumulation(gradient_name const& name) const {
    return accumulation_of(precision_.arithmetic, name.is_input() ? name.input : field::q);
  }
  /// The sizes of the residuals, against what rounding leaves.
  void compare_sizes() {
    report_.energies.clear();
    report_.false_alarms = 0;
    std::size_t first = 0;
    for (auto const& [name, x] : given_.all()) {
      energies energy(name.text(), regions_, how_.gate, x.extents);
      energy.add(tensors_[name], x.values, bounds_.at(name).numbers, accumulation(name), seen_.common(), first);
      report_.energies.push_back(energy.excess());
      report_.false_alarms += energy.false_alarms();
      first += x.values.size();
    }
  }
  bool exceeds_a_limit() const {
    return std::any_of(report_.energies.begin(), report_.energies.end(), [](auto const& e) { return e.used > 1; });
  }
  // ---- possible mistakes --------------------------------------------------------------------------------------------
  /// A factor of one gradient: a missing scale, or truncation.
  void factors() {
    for (auto const& [wanted, unused] : given_.all()) {
      finding f;
      f.name = wanted.text();
      f.parameter = f.relative = true;
      std::vector<double> direction;
      for (auto const& [other, x] : given_.all())
        for (double y : array_of(exact_, other).values) direction.push_back(other == wanted ? y : 0);
      judge(f, direction);
    }
    if (!Op::has_lse || given_.all().size() < 2) return;
    finding lse;  // weights are e^(s - lse)
    lse.name = "saved lse";
    lse.parameter = true;
    judge(lse, along(exact_, [](double x) { return -x; }));
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
    auto const standing = [&](char const* name, auto const& offset) {
      problem_shape p = p_;
      std::vector<index_t> offsets;
      for (index_t b = 0; b < p.batch; ++b) offsets.push_back(offset(b));
      p.set_offsets(offsets.data());
      judge(name, change_to(attune::detail::dense_vjp<double>(op_, in_, p, d_)));
    };
    standing("mask aligned top-left", [](index_t) { return index_t(0); });
    standing("mask shifted by +1", [&](index_t b) { return p_.offset_of(b) + 1; });
    standing("mask shifted by -1", [&](index_t b) { return p_.offset_of(b) - 1; });
    if constexpr (std::is_same_v<typename Op::mask_policy, mask::causal>)
      standing("mask ignored", [&](index_t) { return p_.keys; });
    next_key_head();
    unnormalized_values();
    one_head_of_a_group();
    by_position();
  }

  /// Parameters that are far off: their effect is not proportional to it.
  void by_large_changes() {
    for (finding& f : report_.findings) {
      auto const change = [&](double by) {
        std::vector<double> to;
        with_moved_parameter(op_, p_, f, by,
                             [&](Op const& op) { to = change_to(attune::detail::dense_vjp<double>(op, in_, p_, d_)); });
        return to;
      };
      auto const cost = [&](double by) {
        double sum = 0;
        std::vector<double> const all = change(by);
        for (std::size_t n = 0; n < all.size(); ++n) sum += seen_.left(n, all[n]);
        return sum;
      };
      refit(f, seen_, cost, change);
    }
  }
  /// Exponentials that are not relative to the largest logit of their row.
  void by_exponentials() {
    if constexpr (Op::has_lse) {
      altered_rows<Op> const rows(op_, in_, p_);
      std::vector<double> lse;
      for_each_row([&](index_t b, index_t h, index_t i) {
        lse.push_back(rows.template evaluate<double>(defect::none, b, h, i).lse);
      });
      exponential_range range(std::move(lse), precision_.arithmetic);
      std::size_t n = 0;
      for (auto const& [name, x] : given_.all()) {
        worst_element const& of = report_.elements[n++];
        if (name.is_input() && side_of(name.input) == input_side::query && of.extents.head == p_.heads)
          range.see_rows(of, x.values);
        else
          range.see_sums(of, x.values);
      }
      if (auto const f = range.found(how_.gate)) report_.findings.push_back(*f);
    }
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
      judge("keys and values of the next key head", change_to(attune::detail::dense_vjp<double>(op_, other, p_, d_)));
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
  /// Keys and values that several heads share get the gradient of only one head.
  void one_head_of_a_group() {
    bool shared = false;
    dense other = exact_;
    std::map<index_t, dense> of_heads;  // by the number of key heads
    for (auto const& [name, x] : given_.all()) {
      field const f = name.input;
      if (!name.is_input() || side_of(f) != input_side::key) continue;
      index_t const heads = exact_.of(f).extents.head;
      if (heads == p_.heads) continue;
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
        if constexpr (Op::has_lse) d.lse = tensor<double const>(lse, base::rows());
        if constexpr (Op::has_ground_weight) d.ground_weight = tensor<double const>(ground, base::rows());
        found = of_heads.emplace(heads, gradients(d, p_)).first;
      }
      other.of(f) = found->second.of(f);
    }
    if (shared) judge("gradients of one head of each group alone", change_to(other));
  }

  /// Element (h, i) of a tensor that should be (B, H, L, D) but is (B, L, H, D).
  void by_position() {
    for (auto const& [name, x] : given_.all()) {
      if (!name.is_input()) continue;
      field const f = name.input;
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
};

}  // namespace detail

/// Judges the gradients that a kernel computed from these inputs and cotangents. For the meaning of decisions, see
/// testing/verdict.hpp.
/// Limits:     where outputs are narrower than the arithmetic, one `how` applies to all gradients: the narrowest given
///             format counts. In 16 bits the rounding of dS hides small parameter errors: the power says how small.
/// Errors:     attune::error names argument, value and expectation; operators with a candidate set are not supported.
/// Complexity: about 50 vjp(reference<double>) for the bounds, 24 for the rounding of `out` in 16 bits, 16 for rounding
///             in fp32 where the residuals seem too large, one or two for each defect.
template <class Op>
verdict_report gradient_verdict(Op const& op, inputs<Op, any_tensor> const& in, cotangents<Op, any_tensor> const& d,
                                gradient_candidate const& given, verdict_options const& how = {}) {
  return detail::gradient_judge<Op>(op, in, d, given, how)();
}

}  // namespace attune::testing
