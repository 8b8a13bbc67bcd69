// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto const report = attune::testing::check_gradients(op, {.heads = 2, .queries = 5, .keys = 7, .width = 4}, seed);
//   std::cout << report;
//   return report.passed() ? 0 : 1;
//
// Are the gradients of an operator the derivatives of its forward pass, on every executor? Finite differences of the
// 50-digit forward pass do not use dual numbers. They reveal a tangent that a policy dropped, a branch that duals
// cannot see, a wrong handwritten derivative, and arithmetic that is not done in T.
// Needs attune::testing (xsimd, Eigen, Boost).
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/cpu/gradients.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/multiprecision.hpp>
#include <attune/testing/drawn/varied_extents.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/gradient_report.hpp>

namespace attune::testing {

/// Options of check_gradients.
struct gradient_check_options {
  index_t entries = 64;  ///< of each input, parameter and table, chosen at random and changed one by one
  int directions = 4;    ///< along which all numbers change at once
  int threads = 2;       ///< of the CPU executor
  draw_rule draw = {};   ///< for policies whose inputs have a restricted domain
  bool vary = true;      ///< checks a second, smaller problem, and draws what the extents leave free
};

namespace detail {

/// Numbers whose gradient is checked.
struct checked_numbers {
  std::vector<double>* values = nullptr;
  domain allowed = domain::real;
  std::string still;  ///< the reason why they cannot change; empty if they can
};

/// Whether a normalizer of the operator stops gradients on purpose.
template <class Op>
inline constexpr bool has_detached_ends = Op::normalizer_is.detached_ends;
template <std::size_t N, class... Ops>
inline constexpr bool has_detached_ends<fold_operator<N, Ops...>> = (has_detached_ends<Ops> || ...);

/// A copy of an operator whose parameters and tables are in writable memory, and the list of all numbers that can
/// change: inputs first, in the order of for_each_gradient.
template <class Op>
class movable_operator {
 public:
  movable_operator(Op const& op, drawn_problem<Op>& p) : op_(op) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) numbers_.push_back({&p.of(F).doubles, domain::real, {}});
    });
    // op_ is not const, and these are its members
    for (operator_parameter const& listed : listed_parameters(op_))
      move_parameter(const_cast<parameter&>(*listed.at), listed.values);
    for (operator_table const& t : listed_tables(op_)) {
      table& x = const_cast<table&>(*t.at);
      x = stored(x, domain::real);
    }
    if constexpr (has_detached_ends<Op>)
      for (auto& n : numbers_) n.still = "the ends of the normalizer are detached";
  }
  movable_operator(movable_operator const&) = delete;  // the operator points into this object
  movable_operator& operator=(movable_operator const&) = delete;

  Op const& op() const { return op_; }
  std::vector<checked_numbers> const& numbers() const { return numbers_; }

 private:
  /// Copies a view and adds the copy to the list.
  template <class View>
  tensor<double const> stored(View const& from, domain allowed) {
    shape const e = from.extents();
    return stored(e, allowed, [&](index_t b, index_t h, index_t i, index_t d) { return from(b, h, i, d); });
  }
  template <class Read>
  tensor<double const> stored(shape const& e, domain allowed, Read const& read) {
    std::vector<double>& x = memory_.emplace_back();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d) x.push_back(read(b, h, i, d));
    numbers_.push_back({&x, allowed, {}});
    return {x, e};
  }
  void stays(char const* why) { numbers_.push_back({nullptr, domain::real, why}); }

  void move_parameter(parameter& p, domain allowed) {
    projection const from = p.source();
    if (!p.is_set()) return stays("it is not set, so the policy computes it");
    if (p.is_projected() && !p.is_average()) {
      stays("what it is projected from moves");
      projection moving = from;
      moving.x = stored(from.x, domain::real);
      if (!from.weight.absent()) moving.weight = stored(from.weight, domain::real);
      if (!from.bias.absent()) moving.bias = stored(from.bias, domain::real);
      p = moving;
      return;
    }
    bool const passes = p.is_average() && p.passes_gradient();
    p = stored(p.extents(), allowed,
               [&](index_t b, index_t h, index_t i, index_t) { return p.template value<double>(b, h, i); });
    if (!passes) return;
    stays("the average moves by its value");
    if (!from.weight.absent()) stays("the average moves by its value");
    if (!from.bias.absent()) stays("the average moves by its value");
  }

  Op op_;
  std::deque<std::vector<double>> memory_;
  std::vector<checked_numbers> numbers_;
};

/// Calls visit(name, array) for every gradient.
template <class T, class Visit>
void for_each_gradient(dense_gradients<T> const& g, Visit const& visit) {
  auto const unless_empty = [&](std::string const& name, gradient_array<T> const& x) {
    if (!x.values.empty()) visit(name, x);
  };
  for (int f = 0; f < int(field_count); ++f) unless_empty(std::string("input ") + name_of(field(f)), g.of(field(f)));
  for (auto const& p : g.parameters) {
    visit("parameter " + p.path, p.values);
    unless_empty("parameter " + p.path + ".x", p.x);
    unless_empty("parameter " + p.path + ".weight", p.weight);
    unless_empty("parameter " + p.path + ".bias", p.bias);
  }
  for (auto const& t : g.tables) visit("table " + t.path, t.values);
}

inline shape place_of(shape const& e, index_t n) {
  return {n / (e.feature * e.position * e.head), n / (e.feature * e.position) % e.head, n / e.feature % e.position,
          n % e.feature};
}
/// NaN is the largest possible error.
inline void note_error(gradient_error& to, digits50 const& error, shape const& where) {
  double const e = double(math::abs(error));
  ++to.compared;
  if (to.compared > 1 && (e <= to.largest || std::isnan(to.largest))) return;
  to.largest = e;
  to.where = where;
}

/// The objective that the cotangents define. An lse of -inf (no mass) is constant.
template <class Op>
digits50 objective(Op const& op, drawn_problem<Op> const& p) {
  auto const r = forward(reference<digits50>{}, op, p.template inputs<any_tensor>());
  digits50 sum(0);
  std::size_t row = 0;
  for (auto const& head : r.heads)
    for (index_t i = 0; i < r.extents.queries; ++i, ++row) {
      auto const width = std::size_t(r.extents.value_width);
      for (std::size_t d = 0; d < width; ++d)
        sum += digits50(p.by_out().doubles[row * width + d]) * head.out(i, index_t(d));
      if constexpr (Op::has_lse)
        if (head.lse(i) != -math::infinity<digits50>()) sum += digits50(p.by_lse().doubles[row]) * head.lse(i);
      if constexpr (Op::has_ground_weight) sum += digits50(p.by_ground_weight().doubles[row]) * head.ground_weight(i);
    }
  return sum;
}

/// A number changed by +-2^-30 of itself. Both results must be finite and in the domain.
struct step {
  double low, high;
  bool possible;
};
inline step step_of(double x, domain allowed, double along) {
  double const size = (x == 0 ? 1 : x) * 0x1p-30 * along;
  double const low = x - size, high = x + size;
  auto const fits = [&](double y) { return std::isfinite(y) && attune::detail::in_domain(y, allowed); };
  return {low, high, low != high && fits(low) && fits(high)};
}

/// (L(high) - L(low)) / (high - low) for one number at a time.
template <class Objective>
void check_entries(gradient_line& to, checked_numbers const& numbers, gradient_array<digits50> const& g, index_t wanted,
                   normal_numbers& random, Objective const& value) {
  std::vector<double>& x = *numbers.values;
  std::vector<std::size_t> order(x.size());
  for (std::size_t n = 0; n < x.size(); ++n) order[n] = n;
  for (std::size_t n = 0; n < x.size() && n < std::size_t(wanted); ++n) {
    std::swap(order[n], order[n + std::size_t(random.below(index_t(x.size() - n)))]);
    std::size_t const at = order[n];
    double const there = x[at];
    step const s = step_of(there, numbers.allowed, 1);
    if (!s.possible) continue;
    x[at] = s.high;
    digits50 difference = value();
    x[at] = s.low;
    difference -= value();
    x[at] = there;
    note_error(to.differences, digits50(difference / (digits50(s.high) - digits50(s.low)) - g.values[at]),
               place_of(g.extents, index_t(at)));
  }
}

/// The same for all numbers at once, along one random direction.
template <class Objective>
void check_direction(gradient_line& to, std::vector<checked_numbers> const& numbers,
                     std::vector<gradient_array<digits50> const*> const& g, normal_numbers& random,
                     Objective const& value, double bound) {
  struct moved {
    double* x;
    double there, low, high;
  };
  std::vector<moved> all;
  digits50 expected(0), magnitude(0);
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    if (!numbers[n].still.empty()) continue;
    std::vector<double>& x = *numbers[n].values;
    for (std::size_t e = 0; e < x.size(); ++e) {
      step const s = step_of(x[e], numbers[n].allowed, 2 * random.uniform() - 1);
      if (!s.possible) continue;
      all.push_back({&x[e], x[e], s.low, s.high});
      digits50 const part = g[n]->values[e] * (digits50(s.high) - digits50(s.low)) * digits50(0x1p29);
      expected += part;
      magnitude += math::abs(part);
    }
  }
  for (moved const& m : all) *m.x = m.high;
  digits50 difference = value();
  for (moved const& m : all) *m.x = m.low;
  difference -= value();
  for (moved const& m : all) *m.x = m.there;
  to.magnitude = (std::max)(to.magnitude, double(magnitude));
  to.differences.allowed = bound * to.magnitude;
  note_error(to.differences, digits50(difference * digits50(0x1p29) - expected), {0, 0, 0, 0});
}

/// Compares gradients of the CPU executor with the 50-digit gradients.
template <class T, class Op>
void check_cpu(gradient_report& to, gradient_error gradient_line::* route, Op const& op, drawn_problem<Op> const& p,
               std::vector<gradient_array<digits50> const*> const& exact, int threads) {
  using view = tensor<T const>;
  auto const g = vjp(cpu<T>{threads}, op, p.template inputs<view>(), p.template cotangents<view>());
  std::size_t n = 0;
  for_each_gradient(g, [&](std::string const&, gradient_array<T> const& x) {
    gradient_error& e = to.lines[n].*route;
    e.allowed = 0x1p12 * double(std::numeric_limits<T>::epsilon()) * to.magnitude;
    for (std::size_t i = 0; i < x.values.size(); ++i)
      note_error(e, digits50(digits50(double(x.values[i])) - exact[n]->values[i]), place_of(x.extents, index_t(i)));
    ++n;
  });
}

/// Checks the gradients of one problem.
template <class Op>
void check_problem(gradient_report& report, Op const& op, drawn_problem<Op>& p, gradient_check_options const& options,
                   normal_numbers& random) {
  auto const g = vjp(reference<digits50>{}, op, p.template inputs<any_tensor>(), p.template cotangents<any_tensor>());
  report.directions.name = "all of them, along random directions";
  std::vector<gradient_array<digits50> const*> exact;
  detail::for_each_gradient(g, [&](std::string const& name, gradient_array<digits50> const& x) {
    gradient_line& line = report.lines.emplace_back();
    line.name = name;
    exact.push_back(&x);
    for (digits50 const& y : x.values) line.magnitude = (std::max)(line.magnitude, double(math::abs(y)));
    report.magnitude = (std::max)(report.magnitude, line.magnitude);
  });
  detail::check_cpu<double>(report, &gradient_line::cpu_double, op, p, exact, options.threads);
  detail::check_cpu<float>(report, &gradient_line::cpu_float, op, p, exact, options.threads);

  detail::movable_operator<Op> const movable(op, p);
  auto const& numbers = movable.numbers();
  auto const value = [&] { return detail::objective(movable.op(), p); };
  bool moves = false;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    gradient_line& line = report.lines[n];
    line.note = numbers[n].still;
    if (!line.note.empty()) continue;
    line.differences.allowed = 1e-9 * line.magnitude + 1e-12 * report.magnitude;
    detail::check_entries(line, numbers[n], *exact[n], options.entries, random, value);
    if (line.differences.compared == 0) line.note = "infinite, or at the edge of the domain";
    moves = moves || line.differences.compared > 0;
  }
  for (int t = 0; t < options.directions && moves; ++t)
    detail::check_direction(report.directions, numbers, exact, random, value, 1e-9);
}

}  // namespace detail

/// Checks the gradients of an operator on a random problem of these extents, by three routes:
///   differences                 vjp(reference<digits50>) against central differences of the 50-digit forward pass:
///                               entry by entry, and along directions in which all inputs, parameters and tables change
///                               at once; to 1e-9 of the largest entry of a gradient, 1e-12 of the largest entry of all
///   cpu<double>, cpu<float>     vjp against the same gradients; to 2^12 roundings of the largest entry of all
/// A second problem draws what the extents leave free, as check_forward does, with lengths up to 8, 4 entries and one
/// direction.
/// Cotangents of out, and of lse and ground weight where they exist, are random as well. Parameters and tables keep
/// their values, so their granularity must fit the extents.
/// Kinks:       where one-sided derivatives differ (a tie, max(a, 0) at 0), a gradient is one of them, and a difference
///              is neither. Random inputs avoid such points. You must avoid parameters that lie on one (yarn at
///              extension 1).
/// Constant:    parameters that are unset, infinite, or at the edge of their domain. A moving average changes by its
///              value, or not at all where gradients are stopped on purpose (adjusted_ends::detached). The report says
///              so.
/// Errors:      attune::error as vjp; extents below 1.
/// Complexity:  two 50-digit forward passes per entry: seconds at the default extents.
template <class Op>
gradient_report check_gradients(Op const& op, problem_extents const& extents, std::uint64_t seed,
                                gradient_check_options const& options = {}) {
  detail::normal_numbers random(seed);
  gradient_report report;
  report.seed = seed;
  {
    drawn_problem<Op> p(extents, random, options.draw, "check_gradients");
    detail::check_problem(report, op, p, options, random);
  }
  if (!options.vary) return report;
  gradient_check_options few = options;
  few.entries = (std::min<index_t>)(options.entries, 4);
  few.directions = (std::min)(options.directions, 1);
  detail::with_variation<Op>(extents, seed, 8, [&](detail::varied_extents const& v) {
    drawn_problem<Op> p(v.extents, v.inputs, random, options.draw, "check_gradients");
    gradient_report second;
    detail::check_problem(second, op, p, few, random);
    report.varied = v.text;
    report.varied_lines = std::move(second.lines);
    report.varied_lines.push_back(std::move(second.directions));
  });
  return report;
}

}  // namespace attune::testing
