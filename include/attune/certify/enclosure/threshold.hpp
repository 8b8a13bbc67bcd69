// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   level in [low, high],   sum_j expq(a_j - max a - low) >= 1 >= sum_j expq(a_j - max a - high)
//
// The thresholds of candidate sets over intervals. The sum decreases with the level, so its signs at two numbers
// enclose the root, whatever method found these numbers: double precision, the interval Newton iteration
// L <- L and (middle + f(middle) / slope(L)),  or bisection. The iterations of scalars that round
// (policies/candidates.hpp) prove nothing and are not used.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/certify/enclosure/interval.hpp>
#include <attune/core/stable_sort.hpp>
#include <attune/policies/candidates.hpp>

namespace attune {

namespace detail {

/// The sum over a column as a function of the level.
template <class Exponential>
class enclosed_sum {
  using interval = certify::interval;

 public:
  enclosed_sum(Exponential const& exponential, interval const& k, interval const& m,
               candidate_column<interval> const& column)
      : exponential_(exponential), k_(k) {
    for (index_t n = 0; n < column.size(); ++n) distances_.push_back(column.logit(n) - m);
  }
  /// sum p - 1
  interval excess(interval const& level) const {
    interval sum(-1);
    for (interval const& x : distances_) sum = sum + exponential_.terms(k_, interval(x - level)).p;
    return sum;
  }
  /// Minus its derivative, for all levels in a range.
  interval slope(interval const& levels) const {
    interval sum;
    for (interval const& x : distances_) sum = sum + exponential_.terms(k_, interval(x - levels)).slope;
    return sum;
  }

 private:
  Exponential const& exponential_;
  interval const& k_;
  std::vector<interval> distances_;
};

/// A bracket around the level in double precision, if the signs confirm it.
template <class Exponential>
bool guess_level(Exponential const& exponential, certify::interval const& k,
                 candidate_column<certify::interval> const& column, enclosed_sum<Exponential> const& sum,
                 bracket<certify::interval>& to) {
  using certify::interval;
  std::vector<double> logits;
  std::vector<index_t> positions;
  for (index_t n = 0; n < column.size(); ++n) {
    logits.push_back(double(column.logit(n)));
    positions.push_back(n);
  }
  candidate_column<double> rough(logits, positions);
  double const level = deformed_level(exponential, double(k), rough).level;
  if (!std::isfinite(level)) return false;
  double width = 0x1p-44 * (1 + std::fabs(level));
  for (int wider = 0; wider < 5; ++wider, width *= 64) {
    interval const low(level - width), high(level + width);
    if (!(sum.excess(low) >= interval()).holds() || !(sum.excess(high) <= interval()).holds()) continue;
    to = {low, high};
    return true;
  }
  return false;
}

/// bound_deformed::solve calls this overload for intervals. For rows with a NaN or infinite logit the level is
/// arbitrary.
template <class Exponential>
candidate_threshold<certify::interval> deformed_level(Exponential const& exponential, certify::interval const& k,
                                                      candidate_column<certify::interval>& column) {
  using certify::interval;
  auto const point = [](mpfr_srcptr x) { return interval::between(x, x); };
  interval const zero, off = -math::infinity<interval>();
  interval m = column.highest();
  m = math::select(m == off, zero, m);
  for (index_t n = 0; n < column.size(); ++n)
    if (!column.logit(n).is_finite() && !(column.logit(n) == off).holds()) return {m, zero, off, off};

  enclosed_sum<Exponential> const sum(exponential, k, m, column);
  bracket<interval> at = level_bracket(exponential.lead(k), k, column.size());
  at = {point(at.low.lower()), point(at.high.upper())};
  guess_level(exponential, k, column, sum, at);
  // Scores are differences to the level. If the level is relative to the maximum, more bits than these do not help for
  // a level next to 0. Nor do they help for 0 itself, the end of the bracket, where no key has a weight.
  interval const finest =
      exponential.lead(k) * interval(std::ldexp(1.0, -int((std::min)(certify::detail::interval_bits(), 1000L))));
  for (bool shrinks = true; shrinks;) {
    interval const levels = interval::hull(at.low, at.high), width = at.high - at.low, middle = levels.middle();
    interval const f = sum.excess(middle);
    if ((f >= zero).holds()) at.low = middle;
    if ((f <= zero).holds()) at.high = middle;
    if (interval const next = middle + f / sum.slope(levels); next.is_number()) {
      at.low = interval::larger(at.low, point(next.lower()));
      at.high = interval::smaller(at.high, point(next.upper()));
    }
    shrinks = ((at.high - at.low) * interval(1.25) < width).holds() && !(width <= finest).holds();
  }
  // If a number of few bits is exactly the level, scores on the threshold and rounding ties are recognized as such.
  interval const levels = interval::hull(at.low, at.high), simple = levels.simplest();
  return {m, (sum.excess(simple) == zero).holds() ? simple : levels, off, off};
}

}  // namespace detail

/// Top-k over intervals. Where the order at the cut is not decided, the cut is the hull of its possible values, and any
/// key near it may be inside or outside.
template <>
inline void candidate_column<certify::interval>::largest(index_t k, certify::interval& cut,
                                                         certify::interval& last) const {
  using certify::interval;
  interval const off = -math::infinity<interval>();
  std::vector<index_t> order;
  for (index_t n = 0; n < size(); ++n) {
    auto const seen = logit(n) > off;
    if (seen.may_hold && seen.may_fail) {
      cut = last = interval::unknown();
      return;
    }
    if (seen.holds()) order.push_back(n);
  }
  cut = last = off;
  if (index_t(order.size()) < k) return;
  auto const by = [&](auto const& end) {
    attune::detail::sort_stably(
        order, [&](index_t a, index_t b) { return mpfr_greater_p(end(logit(a)), end(logit(b))) != 0; });
    return order[std::size_t(k - 1)];
  };
  index_t const by_upper = by([](interval const& x) { return x.upper(); }),
                by_lower = by([](interval const& x) { return x.lower(); });
  bool decided = true;
  for (std::size_t place = 0; place < order.size(); ++place) {
    index_t const n = order[place];
    bool const higher = place < std::size_t(k - 1);
    if (n == by_lower || (logit(n) == logit(by_lower)).holds())
      continue;  // equal logits are in the order of their positions
    decided = decided && (higher ? logit(n) > logit(by_lower) : logit(n) < logit(by_lower)).holds();
  }
  cut = decided ? logit(by_lower) : interval::between(logit(by_lower).lower(), logit(by_upper).upper());
  last = decided ? position(by_lower) : interval::unknown();
}

}  // namespace attune
