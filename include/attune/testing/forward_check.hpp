// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto const report = attune::testing::check_forward(op, {.heads = 2, .queries = 5, .keys = 300, .width = 16}, seed);
//   std::cout << report;
//   return report.passed() ? 0 : 1;
//
// Does an operator compute what its policies say, on every executor and by every call? The reference runs the same
// source in 50 digits. The operator's own error bound says how far a correct call may be from it.
// Needs attune::testing (xsimd, Eigen, Boost). For Thrust, pass its executors as the last arguments.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/certify/fold_bound.hpp>
#include <attune/exec/cpu/decode.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/multiprecision.hpp>
#include <attune/exec/reference/statistics.hpp>
#include <attune/testing/drawn/varied_extents.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/forward_report.hpp>
#include <attune/testing/mask_bounds.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// Options of check_forward.
struct forward_check_options {
  int threads = 2;      ///< of the CPU executors
  draw_rule draw = {};  ///< for policies whose inputs have a restricted domain
  bool vary = true;     ///< checks a second, smaller problem, and draws what the extents leave free
};

namespace detail {

/// Records errors as shares of what is allowed, and keeps the largest.
class noted_shares {
 public:
  explicit noted_shares(forward_line& to) : to_(to) {}
  /// Calls `where` only for a new largest share. Equal infinities have no error, nor has NaN for NaN.
  template <class Where>
  void operator()(double computed, digits50 const& exact, double allowed, Where const& where) {
    double share = 0;
    double const right = double(exact);
    if (!std::isfinite(computed) || !std::isfinite(right)) {
      bool const same = computed == right || (std::isnan(computed) && std::isnan(right));
      share = same || std::isinf(allowed) ? 0 : math::infinity<double>();
    } else if (double const error = double(math::abs(digits50(digits50(computed) - exact))); error > 0) {
      share = error / allowed;
    }
    if (!(share <= to_.share)) to_.share = share, to_.where = where();
  }

 private:
  forward_line& to_;
};

/// Memory for every output of a call in T.
template <class T, class Op>
struct owned_outputs {
  shape out_extents, row_extents;
  std::vector<T> out, lse, ground_weight, threshold;

  explicit owned_outputs(problem_shape const& p)
      : out_extents{p.batch, p.heads, p.queries, p.value_width}, row_extents{p.batch, p.heads, p.queries, 1},
        out(std::size_t(out_extents.size()), std::numeric_limits<T>::quiet_NaN()),
        lse(std::size_t(row_extents.size()), std::numeric_limits<T>::quiet_NaN()), ground_weight(lse), threshold(lse) {}
  outputs<Op, T> views() {
    outputs<Op, T> to{.out = tensor<T>(out, out_extents)};
    if constexpr (Op::has_lse) to.lse = natural_lse<T>(tensor<T>(lse, row_extents));
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<T>(ground_weight, row_extents);
    if constexpr (Op::has_threshold) to.threshold = tensor<T>(threshold, row_extents);
    return to;
  }
};

/// Allowed error where no bound is known: this many roundings of the largest number of its kind.
constexpr double roundings = 0x1p8;

/// The exact results and the bounds of one problem.
template <class Op>
class forward_truth {
 public:
  forward_truth(Op const& op, drawn_problem<Op> const& p)
      : exact_(forward(reference<digits50>{}, op, p.template inputs<any_tensor>())),
        floats_(error_bound(op, p.template inputs<any_tensor>(), storage::fp32)),
        doubles_(error_bound(op, p.template inputs<any_tensor>(), storage::fp64)) {
    if constexpr (!Fold<Op>) statistics_ = statistics(exact_, {.entropy = true, .columns = true});
  }

  problem_shape const& extents() const { return exact_.extents; }

  /// Allows `slack` times the bounds.
  template <class T>
  void compare(forward_line& to, owned_outputs<T, Op> const& got, double slack) const {
    noted_shares note(to);
    error_bounds const& bounds = std::is_same_v<T, float> ? floats_ : doubles_;
    problem_shape const& p = exact_.extents;
    double largest = 0;
    if constexpr (Op::has_threshold)
      for (auto const& head : exact_.heads)
        for (index_t i = 0; i < p.queries; ++i) largest = std::fmax(largest, std::fabs(double(head.threshold(i))));
    std::size_t row = 0;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i, ++row) {
          auto const& head = exact_.at(b, h);
          auto const place = [&](char const* what, index_t d) {
            return [=] { return std::string(what) + " " + to_string(shape{b, h, i, d}); };
          };
          for (index_t d = 0; d < p.value_width; ++d)
            note(double(got.out[row * std::size_t(p.value_width) + std::size_t(d)]), head.out(i, d),
                 slack * bounds.at_out(b, h, i, d).bound, place("out", d));
          if constexpr (Op::has_lse)
            note(double(got.lse[row]), head.lse(i), slack * bounds.at_lse(b, h, i).bound, place("lse", 0));
          if constexpr (Op::has_ground_weight)
            note(double(got.ground_weight[row]), head.ground_weight(i), slack * bounds.at_ground_weight(b, h, i).bound,
                 place("ground weight", 0));
          if constexpr (Op::has_threshold)
            note(double(got.threshold[row]), head.threshold(i),
                 roundings * double(std::numeric_limits<T>::epsilon()) * (1 + largest), place("threshold", 0));
        }
  }
  template <class T>
  void compare(forward_line& to, row_statistics<T> const& got) const {
    noted_shares note(to);
    auto const all = [&](char const* name, auto const& computed, auto const& exact) {
      double largest = 1;
      for (auto const& x : exact)
        if (std::isfinite(double(x))) largest = std::fmax(largest, std::fabs(double(x)));
      for (std::size_t n = 0; n < exact.size(); ++n)
        note(double(computed[n]), digits50(exact[n]), roundings * double(std::numeric_limits<T>::epsilon()) * largest,
             [&] { return std::string(name) + " " + std::to_string(n); });
    };
    all("highest_logit", got.highest_logit, statistics_.highest_logit);
    all("mean_logit", got.mean_logit, statistics_.mean_logit);
    all("highest_weight", got.highest_weight, statistics_.highest_weight);
    all("mass", got.mass, statistics_.mass);
    all("first_key", got.first_key, statistics_.first_key);
    all("ground_weight", got.ground_weight, statistics_.ground_weight);
    all("entropy", got.entropy, statistics_.entropy);
    all("columns", got.columns, statistics_.columns);
    for (std::size_t n = 0; n < got.scored.size(); ++n)
      note(double(got.scored[n]), digits50(double(statistics_.scored[n])), 0.5,
           [&] { return "scored " + std::to_string(n); });
  }

 private:
  dense_result<digits50> exact_;
  error_bounds floats_, doubles_;
  row_statistics<digits50> statistics_;
};

/// The reason why decode() does not support an operator on an executor; empty if it does.
template <class Exec, class Op>
std::string why_not_decoded() {
  if constexpr (attune::detail::is_cpu<Exec>) {
    if constexpr (offers_call<cpu<>, call_kind::decode, Op>) return {};
    return "decode() serves no candidate set, no value gate and no ordered sum";
  }
  return "this executor has no decode()";
}

/// Whether the states of an operator's rows can be merged.
template <class Op>
inline constexpr bool has_states = true;
template <std::size_t N, class... Ops>
inline constexpr bool has_states<fold_operator<N, Ops...>> = sizeof...(Ops) == 1;

/// Whether a logit of an operator, or of one of a fold, depends on other keys of the row.
template <class Op>
inline constexpr bool needs_all_keys = Op::contractions::has_derived;
template <std::size_t N, class... Ops>
inline constexpr bool needs_all_keys<fold_operator<N, Ops...>> = (Ops::contractions::has_derived || ...);

/// Checks every call of this executor.
template <class Op, class Exec>
void check_executor(forward_report& to, std::string const& name, Exec const& exec, Op const& op,
                    drawn_problem<Op> const& p, forward_truth<Op> const& truth) {
  using T = typename Exec::value_type;
  using view = typename Exec::view;
  problem_shape const& extents = truth.extents();
  auto const in = p.template inputs<view>();
  auto const line = [&](char const* call) -> forward_line& {
    forward_line& l = to.lines.emplace_back();
    l.executor = name;
    l.call = call;
    return l;
  };
  auto const computed = [&](char const* call, double slack, auto const& run) {
    forward_line& l = line(call);
    owned_outputs<T, Op> memory(extents);
    run(memory.views());
    truth.compare(l, memory, slack);
  };

  computed("forward", 1, [&](outputs<Op, T> const& out) { forward(exec, op, in, out); });

  if (std::string const why = why_not_decoded<Exec, Op>(); !why.empty())
    line("decode").left_out = why;
  else if constexpr (attune::detail::is_cpu<Exec>)
    if constexpr (offers_call<cpu<>, call_kind::decode, Op>)
      computed("decode", 2, [&](outputs<Op, T> const& out) { decode(exec, op, in, out); });

  if constexpr (needs_all_keys<Op>) {
    line("split and merge").left_out = "the states of an operator with an ordered sum do not merge";
  } else if constexpr (!has_states<Op>) {
    line("split and merge").left_out = "a fold of several operators has no states";
  } else if constexpr (requires { accumulate(exec, op, in, key_interval{}); }) {
    computed("split and merge", 2, [&](outputs<Op, T> const& out) {
      index_t const first = extents.keys / 3, second = extents.keys - extents.keys / 4;
      auto states = accumulate(exec, op, in, {second, extents.keys});
      states = merge(std::move(states), accumulate(exec, op, in, {0, first}));
      states = merge(std::move(states), accumulate(exec, op, in, {first, second}));
      finish(exec, op, in, states, out);
    });
  } else {
    line("split and merge").left_out = "this executor has no accumulate()";
  }

  if constexpr (Fold<Op>) {
    if constexpr (attune::detail::is_cpu<Exec>)
      computed("forward_and_save", 1, [&](outputs<Op, T> const& out) { forward_and_save(exec, op, in, out); });
    line("statistics").left_out = "a fold has none";
  } else if constexpr (requires(saved_rows<T, Op> const& rows) {
                         statistics(exec, op, in, rows, statistics_request{});
                       }) {
    owned_outputs<T, Op> memory(extents);
    auto const rows = forward_and_save(exec, op, in, memory.views());
    truth.compare(line("forward_and_save"), memory, 1);
    truth.compare(line("statistics"), statistics(exec, op, in, rows, {.entropy = true, .columns = true}));
  } else {
    line("statistics").left_out = "this executor has no statistics()";
  }
}

/// Checks that predicates with bounds show no key outside; no line if the mask has none.
template <class Op>
void check_mask_bounds(forward_report& to, [[maybe_unused]] Op const& op, [[maybe_unused]] problem_shape const& p) {
  if constexpr (requires { requires has_bounds<typename Op::mask_policy>; }) {
    forward_line& l = to.lines.emplace_back();
    l.executor = "mask";
    l.call = "may_see";
    l.where = broken_bounds(op.mask, p);
    l.share = l.where.empty() ? 0 : std::numeric_limits<double>::infinity();
  }
}

/// A name for an executor other than cpu.
template <class Exec>
std::string name_of_executor(Exec const&) {
  std::string const number = std::is_same_v<typename Exec::value_type, float> ? "float" : "double";
  return (requires(Exec const& e) { e.policy; } ? "thrust_on<" : "executor<") + number + ">";
}

/// Checks every call of every executor.
template <class Op, class... Others>
void check_executors(forward_report& to, Op const& op, drawn_problem<Op> const& p, forward_truth<Op> const& truth,
                     int threads, Others const&... others) {
  detail::check_executor(to, "cpu<float>", cpu<float>{threads}, op, p, truth);
  detail::check_executor(to, "cpu<double>", cpu<double>{threads}, op, p, truth);
  (detail::check_executor(to, detail::name_of_executor(others), others, op, p, truth), ...);
}

}  // namespace detail

/// Checks the results of an operator on a random problem of these extents, by every call of every executor, against the
/// reference in 50 digits. The executors are cpu<float>, cpu<double> and `others`, for example
/// thrust_on<float>(thrust::host). They must use host memory.
///   forward, forward_and_save    out, lse and ground weight within the operator's error_bound in the executor's type
///   decode, split and merge      within twice the bound, because partial sums are rescaled when they merge; three
///                                parts of unequal size
///   thresholds, statistics       to 2^8 roundings of the largest number of their kind
///   may_see                      of predicates with bounds: contains every key that the predicate shows
/// A second problem draws what the extents leave free: heads of each input with a row per key, axes that inputs share,
/// an offset for each of two batch elements, and lengths up to 48. Offsets, batch and lengths stay where the operator
/// refuses others, or where its mask has members that no call checks. The report says what was drawn. `vary` switches
/// the second problem off.
/// The report names the calls that it skipped. Parameters and tables keep their values: their granularity must fit the
/// extents.
/// Errors:      attune::error as forward; extents below 1.
/// Complexity:  two 50-digit forward passes: 0.1 s for 10^4 pairs of queries and keys with 16 features.
template <class Op, class... Others>
forward_report check_forward(Op const& op, problem_extents const& extents, std::uint64_t seed,
                             forward_check_options const& options = {}, Others const&... others) {
  detail::normal_numbers random(seed);
  forward_report report;
  report.seed = seed;
  {
    drawn_problem<Op> const p(extents, random, options.draw, "check_forward");
    detail::forward_truth<Op> const truth(op, p);
    detail::check_mask_bounds(report, op, truth.extents());
    detail::check_executors(report, op, p, truth, options.threads, others...);
  }
  if constexpr (sizeof...(Others) == 0) {
    forward_line& thrust = report.lines.emplace_back();
    thrust.executor = "Thrust";
    thrust.call = "every call";
    thrust.left_out = "hand its executor over, as thrust_on<float>(thrust::host)";
  }
  if (!options.vary) return report;
  detail::with_variation<Op>(extents, seed, 48, [&](detail::varied_extents const& v) {
    drawn_problem<Op> const p(v.extents, v.inputs, random, options.draw, "check_forward");
    detail::forward_truth<Op> const truth(op, p);
    forward_report second;
    detail::check_executors(second, op, p, truth, options.threads, others...);
    report.varied = v.text;
    report.varied_lines = std::move(second.lines);
  });
  return report;
}

}  // namespace attune::testing
