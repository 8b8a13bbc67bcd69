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

#include <attune/testing/judging/backward/backward_search.hpp>
#include <attune/testing/judging/backward/gradient_rounding.hpp>
#include <attune/testing/judging/backward/gradients_as_a_whole.hpp>
#include <attune/testing/judging/conclusion.hpp>
#include <attune/testing/judging/defects/known_defects.hpp>
#include <attune/testing/judging/exponential_range.hpp>
#include <attune/testing/judging/factor_words.hpp>
#include <attune/testing/moving_parameter.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class gradient_judge {
  using view = any_tensor;
  using dense = dense_gradients<double>;

 public:
  gradient_judge(Op const& op, inputs<Op, any_tensor> const& in, cotangents<Op, any_tensor> const& d,
                 gradient_candidate const& given, verdict_options const& how)
      : call_(op, in, d, given, how) {}

  verdict_report operator()() {
    auto const all = gradient_error_bound(call_.op, call_.in, call_.d, call_.formats);
    for (auto const& [name, x] : call_.given.all()) {
      bounds_of_gradient& bounds = call_.bounds[name] = bounds_of(all, name);
      shape const& e = bounds.extents;
      if (!(x.extents == e))
        throw error("testing::gradient_verdict", name.text(), "shape " + to_string(x.extents), to_string(e));
      if (!name.is_input() && format_of(x.stored).unit > format_of(call_.formats.arithmetic).unit)
        for (bounded_number& n : bounds.numbers) n = certify::detail::stored_in(format_of(x.stored), n);
      call_.report.elements.push_back(compared(name.text(), e, x.values, bounds.numbers));
      bool const of_keys = name.is_input() && side_of(name.input) == input_side::key;
      call_.tensors[name] = call_.parts.add(name.text(), e, of_keys ? "key" : "query", of_keys ? "key head" : "head");
      // A parameter's sum over all pairs has too wide a bound for this, and one number says nothing of a condition.
      if (name.is_input())
        call_.report.condition =
            std::fmax(call_.report.condition, condition_of(bounds.numbers, accumulation(name), call_.how.gate));
    }
    call_.common_noise();
    compare_sizes();
    if (exceeds_a_limit() && call_.fp32_noise()) compare_sizes();
    std::size_t number = 0;
    for (auto const& [name, x] : call_.given.all()) {
      std::vector<bounded_number> const& bounds = call_.bounds.at(name).numbers;
      shape const& e = x.extents;
      int const tensor = call_.tensors[name];
      call_.seen.shows(call_.report.energies[number], tensor);
      if (call_.report.energies[number++].used > 1) call_.seen.must_explain(tensor, name.text());
      if (!name.is_input()) call_.seen.is_parameter(tensor);
      for (std::size_t n = 0; n < x.values.size(); ++n) {
        if (n % std::size_t(e.feature) == 0) {
          index_t const row = index_t(n) / e.feature;
          std::vector<int> ids;
          call_.parts.of(tensor, row / (e.position * e.head), row / e.position % e.head, row % e.position, ids);
          call_.seen.begin_row(std::move(ids),
                               {row / (e.position * e.head), row / e.position % e.head, row % e.position, 0});
        }
        call_.seen.add(x.values[n], bounds[n], tensor, accumulation(name), call_.together(name, n));
      }
    }
    call_.seen.close(call_.stored);
    call_.exact = call_.gradients(call_.d, call_.p);
    for_each_moving_parameter(
        call_.op, call_.p, [&](finding const& f, Op const& op, lift<dual<double, 1>> const& numbers) {
          auto const moved = attune::detail::dense_vjp<dual<double, 1>>(op, call_.in, call_.p, call_.d, numbers);
          call_.judge(f, call_.along(moved, [](dual<double, 1> const& x) { return x.tangent[0]; }));
        });
    factors();
    mistakes();
    if (any_outside(call_.report) || any_noticed(call_.report, call_.how.gate) || call_.seen.must_explain_any()) {
      by_common_factors(call_);
      by_lost_keys(call_);
      by_places(call_);
      bool const by_rows = by_backward_rows();
      by_numbers_of_rows(call_);
      by_rounded_sums(call_);
      if (!by_rows) by_rounded_pairs(call_);
      by_large_changes();
      by_narrow_arithmetic(call_.report, call_.formats, call_.how.gate, [&](precision const& narrow) {
        auto const b = gradient_error_bound(call_.op, call_.in, call_.d, narrow);
        return std::all_of(call_.given.all().begin(), call_.given.all().end(), [&](auto const& given) {
          return all_within(given.second.values, bounds_of(b, given.first).numbers);
        });
      });
      by_exponentials();
    }
    conclude(call_.report, call_.seen, call_.how,
             1);  // the bounds are looser than for outputs, the projections are not
    return std::move(call_.report);
  }

 private:
  bool by_backward_rows() {
    if constexpr (RecomputesWeights<Op>)
      return backward_search<Op>(call_)();
    else
      return false;
  }
  double accumulation(gradient_name const& name) const {
    return accumulation_of(call_.formats.arithmetic, name.is_input() ? name.input : field::q);
  }
  /// The sizes of the residuals, against what rounding leaves.
  void compare_sizes() {
    call_.report.energies.clear();
    call_.report.false_alarms = 0;
    std::size_t first = 0;
    for (auto const& [name, x] : call_.given.all()) {
      energies energy(name.text(), call_.parts, call_.how.gate, x.extents);
      energy.add(call_.tensors[name], x.values, call_.bounds.at(name).numbers, accumulation(name), call_.seen.common(),
                 first);
      call_.report.energies.push_back(energy.excess());
      call_.report.false_alarms += energy.false_alarms();
      first += x.values.size();
    }
  }
  bool exceeds_a_limit() const {
    return std::any_of(call_.report.energies.begin(), call_.report.energies.end(),
                       [](auto const& e) { return e.used > 1; });
  }
  // ---- possible mistakes --------------------------------------------------------------------------------------------
  /// A factor of one gradient: a missing scale, or truncation.
  void factors() {
    for (auto const& [wanted, unused] : call_.given.all()) {
      finding f;
      f.name = wanted.text();
      f.parameter = f.relative = true;
      std::vector<double> direction;
      for (auto const& [other, x] : call_.given.all())
        for (double y : array_of(call_.exact, other).values) direction.push_back(other == wanted ? y : 0);
      f = call_.seen.judged(f, direction);
      f.hint = words_of_factor(f);
      call_.report.findings.push_back(std::move(f));
    }
    if (call_.given.all().size() < 2) return;
    finding all;
    all.name = "all gradients";
    all.parameter = all.relative = true;
    all = call_.seen.judged(all, call_.along(call_.exact, [](double x) { return x; }), false);
    // Weights are e^(s - lse): an lse that is off is a factor.
    all.hint = " (a factor of all";
    if (Op::has_lse && all.estimate > -1)
      all.hint += ", or a saved lse that is off by " + attune::detail::signed_number_text(-std::log1p(all.estimate), 3);
    all.hint += ")";
    call_.report.findings.push_back(all);
  }

  void mistakes() {
    if constexpr (Op::has_lse) {
      auto const given = [&](index_t b, index_t h, index_t i) { return call_.by_row(call_.d.lse, b, h, i); };
      if (!call_.d.lse.absent()) {
        call_.judge("gradient without its lse term",
                    call_.change_to(call_.with_lse(call_.d, [](index_t, index_t, index_t) { return 0.; })));
        call_.judge(
            "lse term of the gradient has the wrong sign",
            call_.change_to(call_.with_lse(call_.d, [&](index_t b, index_t h, index_t i) { return -given(b, h, i); })));
      }
      // dS = P (dP - D): omitting D is a cotangent of the lse that is larger by D.
      if (!call_.d.out.absent()) {
        altered_rows<Op> const rows(call_.op, call_.in, call_.p);
        call_.judge("row term <dout, out> missing from dS",
                    call_.change_to(call_.with_lse(call_.d, [&](index_t b, index_t h, index_t i) {
                      auto const row = rows.template evaluate<double>({}, b, h, i);
                      double term = given(b, h, i);
                      for (index_t c = 0; c < call_.p.value_width; ++c)
                        term += call_.d.out(b, h, i, c) * row.out[std::size_t(c)];
                      if constexpr (Op::has_ground_weight)
                        term += call_.by_row(call_.d.ground_weight, b, h, i) * row.ground_weight;
                      return term;
                    })));
      }
    }
    if constexpr (Op::has_ground_weight)
      if (!call_.d.ground_weight.absent()) {
        cotangents<Op, view> without = call_.d;
        without.ground_weight = {};
        call_.judge("gradient without its ground weight term", call_.change_to(call_.gradients(without, call_.p)));
      }
    for (known_defect const& d : known_defects) {
      row_change others = d.change;
      others.top_left = false, others.position = 0;
      bool const ignored = d.change.all_keys && std::is_same_v<typename Op::mask_policy, mask::causal>;
      if ((others != row_change{} && !ignored) || d.change == row_change{}) continue;
      problem_shape p = call_.p;
      std::vector<index_t> offsets;
      for (index_t b = 0; b < p.batch; ++b)
        offsets.push_back(ignored ? p.keys : d.change.top_left ? 0 : p.offset_of(b) + d.change.position);
      p.set_offsets(offsets.data());
      finding f;
      f.name = d.name, f.look_at = d.look_at;
      call_.judge(f, call_.change_to(attune::detail::dense_vjp<double>(call_.op, call_.in, p, call_.d)));
    }
    next_key_head();
    unnormalized_values();
    one_head_of_a_group();
    by_position();
  }

  /// Parameters that are far off: their effect is not proportional to it.
  void by_large_changes() {
    for (finding& f : call_.report.findings) {
      auto const change = [&](double by) {
        std::vector<double> to;
        with_moved_parameter(call_.op, call_.p, f, by, [&](Op const& op) {
          to = call_.change_to(attune::detail::dense_vjp<double>(op, call_.in, call_.p, call_.d));
        });
        return to;
      };
      auto const cost = [&](double by) {
        double sum = 0;
        std::vector<double> const all = change(by);
        for (std::size_t n = 0; n < all.size(); ++n) sum += call_.seen.left(n, all[n]);
        return sum;
      };
      refit(f, call_.seen, cost, change);
    }
  }
  /// Exponentials that are not relative to the largest logit of their row.
  void by_exponentials() {
    if constexpr (Op::has_lse) {
      altered_rows<Op> const rows(call_.op, call_.in, call_.p);
      std::vector<double> lse;
      call_.for_each_row(
          [&](index_t b, index_t h, index_t i) { lse.push_back(rows.template evaluate<double>({}, b, h, i).lse); });
      exponential_range range(std::move(lse), call_.formats.arithmetic);
      std::size_t n = 0;
      for (auto const& [name, x] : call_.given.all()) {
        worst_element const& of = call_.report.elements[n++];
        if (name.is_input() && side_of(name.input) == input_side::query && of.extents.head == call_.p.heads)
          range.see_rows(of, x.values);
        else
          range.see_sums(of, x.values);
      }
      if (auto const f = range.found(call_.how.gate)) call_.report.findings.push_back(*f);
    }
  }

  /// The backward pass reads keys and values of the next key head.
  void next_key_head() {
    if constexpr (Op::uses(field::k)) {
      if (call_.p.key_heads < 2 || call_.p.key_heads != call_.p.value_heads) return;
      auto const turned = [](any_tensor const& x) {
        shape const& e = x.extents();
        std::vector<double> to;
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t j = 0; j < e.position; ++j)
              for (index_t c = 0; c < e.feature; ++c) to.push_back(x(b, (h + 1) % e.head, j, c));
        return to;
      };
      std::vector<double> const k = turned(call_.in.k), v = turned(call_.in.v);
      inputs<Op, view> other = call_.in;
      other.k = tensor<double const>(k, call_.in.k.extents());
      other.v = tensor<double const>(v, call_.in.v.extents());
      call_.judge("keys and values of the next key head",
                  call_.change_to(attune::detail::dense_vjp<double>(call_.op, other, call_.p, call_.d)));
    }
  }
  /// dv from e^(s - maximum), which nobody divided by the sum.
  void unnormalized_values() {
    if constexpr (Op::has_lse && !Op::has_ground_weight) {
      if (call_.d.out.absent() || call_.given.all().count(field::v) == 0) return;
      altered_rows<Op> const rows(call_.op, call_.in, call_.p);
      std::vector<double> sums;
      call_.for_each_row([&](index_t b, index_t h, index_t i) {
        double most = 0;
        for (double w : rows.template evaluate<double>({}, b, h, i).weights) most = std::fmax(most, w);
        sums.push_back(most > 0 ? 1 / most : 1);
      });
      dense other = call_.exact;
      other.of(field::v) = call_.scaled(sums).of(field::v);
      call_.judge("dv from weights that are not normalized", call_.change_to(other));
    }
  }
  /// Keys and values that several heads share get the gradient of only one head.
  void one_head_of_a_group() {
    bool shared = false;
    dense other = call_.exact;
    std::map<index_t, dense> of_heads;  // by the number of key heads
    for (auto const& [name, x] : call_.given.all()) {
      field const f = name.input;
      if (!name.is_input() || side_of(f) != input_side::key) continue;
      index_t const heads = call_.exact.of(f).extents.head;
      if (heads == call_.p.heads) continue;
      shared = true;
      auto found = of_heads.find(heads);
      if (found == of_heads.end()) {
        std::vector<double> out, lse, ground;
        call_.for_each_row([&](index_t b, index_t h, index_t i) {
          bool const taken = h % (call_.p.heads / heads) == 0;
          for (index_t c = 0; c < call_.p.value_width; ++c)
            out.push_back(taken && !call_.d.out.absent() ? call_.d.out(b, h, i, c) : 0);
          if constexpr (Op::has_lse) lse.push_back(taken ? call_.by_row(call_.d.lse, b, h, i) : 0);
          if constexpr (Op::has_ground_weight)
            ground.push_back(taken ? call_.by_row(call_.d.ground_weight, b, h, i) : 0);
        });
        cotangents<Op, view> d;
        d.out = tensor<double const>(out, {call_.p.batch, call_.p.heads, call_.p.queries, call_.p.value_width});
        if constexpr (Op::has_lse) d.lse = tensor<double const>(lse, call_.rows());
        if constexpr (Op::has_ground_weight) d.ground_weight = tensor<double const>(ground, call_.rows());
        found = of_heads.emplace(heads, call_.gradients(d, call_.p)).first;
      }
      other.of(f) = found->second.of(f);
    }
    if (shared) call_.judge("gradients of one head of each group alone", call_.change_to(other));
  }

  /// Element (h, i) of a tensor that should be (B, H, L, D) but is (B, L, H, D).
  void by_position() {
    for (auto const& [name, x] : call_.given.all()) {
      if (!name.is_input()) continue;
      field const f = name.input;
      gradient_array<double> const& exact = call_.exact.of(f);
      shape const& e = exact.extents;
      if (e.head == 1 || e.position == 1) continue;
      dense other = call_.exact;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t c = 0; c < e.feature; ++c) {
              index_t const place = h * e.position + i;
              other.of(f)(b, h, i, c) = exact(b, place % e.head, place / e.head, c);
            }
      call_.judge(std::string("head and position of d") + name_of(f) + " transposed", call_.change_to(other));
    }
  }

  gradient_call<Op> call_;
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
