// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   find level with   sum_j expq(a_j - max a - level) = 1,      expq(x) = [1 + (alpha - 1) x]_+^(1 / (alpha - 1))
//
// The threshold search, which the normalizers with a candidate set share. Sparsemax (alpha = 2), entmax and softmax
// (alpha = 1) form one family, the deformed exponentials. In units of the logits nothing cancels as alpha -> 1; the
// printed form [(alpha-1) a - tau]_+ does cancel.
//
// A column gives a normalizer access to the logits of a row, or of the rows in the lanes of a batch. A logit is -inf
// where a lane does not see the key.
//   index_t size()            number of stored logits
//   T logit(n), position(n)   logit and key position
//   T highest()               the largest logit, -inf if there is none
//   void keep(f)              drops the entries n with f(logit) <= 0 in every lane: they cannot enter the support
//   void largest(k, cut, last)   the k-th largest logit and the position of the last key = cut that belongs to the k
//                                largest; ties go to lower positions; cut = -inf where there are fewer than k keys
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <attune/policies/concepts.hpp>

namespace attune {

/// A column of plain scalars.
template <class T>
class candidate_column {
 public:
  /// Logits and their key positions, of the same size.
  candidate_column(std::vector<T> logits, std::vector<index_t> positions)
      : logits_(std::move(logits)), positions_(std::move(positions)) {}
  /// Number of stored logits.
  index_t size() const { return index_t(logits_.size()); }
  /// Logit n.
  T const& logit(index_t n) const { return logits_[std::size_t(n)]; }
  /// Key position of logit n, as a T.
  T position(index_t n) const { return T(double(positions_[std::size_t(n)])); }
  /// The largest logit; -inf if there is none.
  T highest() const {
    T m = -math::infinity<T>();
    for (T const& a : logits_) m = math::larger(m, a);
    return m;
  }
  /// Drops every entry whose interest(logit) is not positive in any lane; the others keep their order.
  template <class Interest>
  void keep(Interest const& interest) {
    std::size_t kept = 0;
    for (std::size_t n = 0; n < logits_.size(); ++n)
      if (scalar<T>::any(interest(logits_[n]) > T(0))) {
        logits_[kept] = logits_[n];
        positions_[kept++] = positions_[n];
      }
    logits_.erase(logits_.begin() + index_t(kept), logits_.end());
    positions_.resize(kept);
  }
  /// Sets `cut` to the k-th largest logit and `last` to the position of the last key with that logit among the k
  /// largest. Ties go to lower positions. With fewer than k logits above -inf, both are -inf. Linear time on average.
  void largest(index_t k, T& cut, T& last) const {
    std::vector<index_t> order;
    for (index_t n = 0; n < size(); ++n)
      if (logit(n) > -math::infinity<T>()) order.push_back(n);
    if (index_t(order.size()) < k) {
      cut = -math::infinity<T>();
      last = -math::infinity<T>();
      return;
    }
    std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), [&](index_t a, index_t b) {
      if (logit(a) > logit(b)) return true;
      if (logit(b) > logit(a)) return false;
      return positions_[std::size_t(a)] < positions_[std::size_t(b)];
    });
    index_t const kth = order[std::size_t(k - 1)];
    cut = logit(kth);
    last = position(kth);
  }

 private:
  std::vector<T> logits_;
  std::vector<index_t> positions_;
};

namespace detail {

/// p = expq(x) and the sums for the root of f(level) = sum p - 1: slope = -dp/dlevel, bend = d2p/dlevel2.
template <class T>
struct deformed_terms {
  T p, slope, bend;
};

/// The first two members of deformed_terms.
template <class T>
struct deformed_rise {
  T p, slope;
};

/// alpha = 2, fixed: expq(x) = [lead + k (x - level)]_+^(1 / k) with k = 1.
struct linear_exponential {
  template <class T>
  ATTUNE_HD T lead(T const&) const {
    return T(0);
  }
  template <class T>
  ATTUNE_HD ATTUNE_INLINE deformed_terms<T> terms(T const&, T const& y) const {
    T const zero(0);
    auto const inside = y > zero;
    return {math::select(inside, y, zero), math::select(inside, T(1), zero), zero};
  }
  template <class T>
  ATTUNE_HD ATTUNE_INLINE deformed_rise<T> rise(T const& y) const {
    return {math::larger(y, T(0)), math::select(y > T(0), T(1), T(0))};
  }
  /// Newton's step for sum p = 1.
  template <class T>
  ATTUNE_HD ATTUNE_INLINE T step(T const& sum, T const& slope) const {
    return (sum - T(1)) / slope;
  }
};

/// alpha = 3/2, fixed.
struct square_exponential {
  template <class T>
  ATTUNE_HD T lead(T const&) const {
    return T(0);
  }
  template <class T>
  ATTUNE_HD ATTUNE_INLINE deformed_terms<T> terms(T const&, T const& x) const {
    T const y = T(0.5) * x, zero(0);
    auto const inside = y > zero;
    return {math::select(inside, T(y * y), zero), math::select(inside, y, zero), math::select(inside, T(0.5), zero)};
  }
  template <class T>
  ATTUNE_HD ATTUNE_INLINE deformed_rise<T> rise(T const& x) const {
    T const y = math::larger(T(T(0.5) * x), T(0));
    return {y * y, y};
  }
  /// Newton's step for sqrt(sum p) = 1.
  template <class T>
  ATTUNE_HD ATTUNE_INLINE T step(T const& sum, T const& slope) const {
    return T(2) * (sum - math::sqrt(sum)) / slope;
  }
};

/// Any alpha; k = alpha - 1, 0 included. For small k the level is relative to the maximum (lead = 1), so that k -> 0 is
/// the exponential. For larger k the level is relative to the point where the maximum has no weight (lead = 0), so that
/// many small weights keep their digits.
struct deformed_exponential {
  template <class T>
  ATTUNE_HD T lead(T const& k) const {
    return math::select(k < T(0.5), T(1), T(0));
  }
  template <class T>
  ATTUNE_HD ATTUNE_INLINE deformed_terms<T> terms(T const& k, T const& x) const {
    T const zero(0), one(1), half(0.5);
    auto const below_half = k < half;
    T const y = math::select(below_half, one, zero) + k * x;
    auto const inside = y > zero;
    T const safe = math::select(inside, y, one);
    T power = zero;
    if (scalar<T>::any(below_half))
      power = math::select(below_half,
                           math::log1p_rate(k, math::select(inside, math::select(below_half, x, zero), zero)), zero);
    if (scalar<T>::any(k >= half))
      power = math::select(below_half, power, T(math::log(safe) / math::select(below_half, one, k)));
    T const p = math::select(inside, math::exp_nonpositive(power), zero);
    T const slope = p / safe;
    return {p, slope, T((one - k) * slope / safe)};
  }
};

/// The range of the level for n keys: from the level where one key has all the weight to the level where all keys share
/// it.
template <class T>
struct bracket {
  T low, high;
};
template <class T>
ATTUNE_HD bracket<T> level_bracket(T const& lead, T const& k, index_t n) {
  T const zero(0), one(1), log_n = math::log(lift<T>::constant(double(n > 0 ? n : 1)));
  T const safe_k = math::select(k == zero, one, k);
  auto const leads = lead > zero;
  return {math::select(leads, zero, T(-(one / safe_k))),
          math::select(leads, math::select(k == zero, log_n, T(-(math::expm1(T(-k * log_n)) / safe_k))),
                       T(-(math::exp(T(-k * log_n)) / safe_k)))};
}

/// Bound on the relative error of a plain sum of n numbers.
template <class T>
ATTUNE_HD T rounding_of_sums(index_t n) {
  return lift<T>::constant(double(2 * n + 16)) * scalar<T>::epsilon();
}

/// A level left of the root and near it, by Newton's iteration on (sum p)^k - 1. That function is convex, so the
/// iteration stays on the left; it is close to linear, so few steps are needed. Plain sums suffice here, at a third of
/// the work of compensated sums. Drops the keys that can no longer enter the support.
template <class Exponential, class T, class Column>
ATTUNE_HD T approached_level(Exponential const& exponential, T const& m, Column& column, T level) {
  T const zero(0), one(1), least = one - rounding_of_sums<T>(column.size());
  constexpr int most = 8;
  T moving = one;  // a lane that has converged stays where it is, whatever the other lanes do
  for (int iteration = 0; iteration < most && scalar<T>::any(moving > zero); ++iteration) {
    T sum = zero, slope = zero;
    for (index_t n = 0; n < column.size(); ++n) {
      auto const t = exponential.rise(T((column.logit(n) - m) - level));
      sum = sum + t.p;
      slope = slope + t.slope;
    }
    sum = sum * least;
    T const step = math::select(moving > zero, math::select(sum > one, exponential.step(sum, slope), zero), zero);
    level = level + step;
    moving = math::select(step > T(0.015625), one, zero);
    if (iteration < 3) column.keep([&](T const& a) { return T((a - m) - level); });
  }
  return level;
}

/// Halley's iteration inside a bracket, all lanes at once, for sum_j [lead + k (a_j - m - level)]_+^(1 / k) = 1. From
/// the left the iteration is monotone for alpha <= 2. For alpha > 2 the sum is infinitely steep where a key leaves the
/// support, and a step can be tiny far from the root. There a tiny step is accepted only if the sum changes sign right
/// behind it, and bisection replaces slow progress. The sum is compensated: its error does not grow with n. For rows
/// with a NaN or infinite logit the level is arbitrary.
template <class Exponential, class T, class Column>
ATTUNE_HD candidate_threshold<T> deformed_level(Exponential const& exponential, T const& k, Column& column) {
  T const zero(0), one(1), two(2), off = -math::infinity<T>();
  T m = column.highest();
  m = math::select(m == off, zero, m);
  T const lead = exponential.lead(k);
  bracket<T> const within = level_bracket(lead, k, column.size());
  T low = within.low, high = within.high;
  bool approached = false;
  if constexpr (requires { exponential.rise(m); }) {  // a p costs few operations
    approached = !scalar<T>::any(rounding_of_sums<T>(column.size()) > T(0.015625));
    if (approached) low = approached_level(exponential, m, column, low);
  }
  T level = low, moving = one, probed = zero, last_f = math::infinity<T>();
  constexpr int most = 400, orders = scalar<T>::order;
  int polish = 0;
  for (int iteration = 0; iteration < most && polish <= orders; ++iteration) {
    T sum = zero, lost = zero, slope = zero, bend = zero;
    for (index_t n = 0; n < column.size(); ++n) {
      auto const t = exponential.terms(k, T((column.logit(n) - m) - level));
      T const next = math::as_computed(T(sum + t.p)), part = math::as_computed(T(next - sum));
      lost = lost + ((sum - math::as_computed(T(next - part))) + (t.p - part));
      sum = next;
      slope = slope + t.slope;
      bend = bend + t.bend;
    }
    T const f = (sum - one) + lost;
    auto const below = f >= zero;
    low = math::select(below, level, low);
    high = math::select(below, high, level);
    // Where the sum is convex, a Newton step from the left end stays on the left. It rules out most keys for good.
    bool const first = !approached && iteration == 0;
    T const step = first ? T(f / slope) : T(two * f * slope / (two * slope * slope - f * bend));
    T next = level + step;
    if (!scalar<T>::any(moving > zero)) {  // converged: further steps only carry the derivatives through
      level = next;
      ++polish;
      continue;
    }
    T const middle = (low + high) / two, tolerance = two * scalar<T>::epsilon() * (lead + math::abs(level));
    next = math::select(next >= low, math::select(next <= high, next, middle), middle);
    auto const steep = k > one;
    if (scalar<T>::any(steep)) {
      auto const tiny = math::abs(step) <= tolerance;
      T const probe = math::smaller(
          high, math::larger(low, T(level + math::select(below, T(two * tolerance), T(-two * tolerance)))));
      T const careful = math::select(tiny, math::select(probed > zero, middle, probe),
                                     math::select(math::abs(f) > last_f / two, middle, next));
      probed = math::select(tiny, T(one - probed), zero);
      last_f = math::abs(f);
      next = math::select(steep, careful, next);
    }
    T const width = high - low, moved = math::abs(T(next - level));
    level = math::select(moving > zero, next, level);
    moving = math::select(math::select(steep, width, moved) > math::select(steep, T(two * tolerance), tolerance),
                          moving, zero);
    if (orders == 0 && !scalar<T>::any(moving > zero)) break;
    if (first) low = math::select(steep, low, level);
    if (first || iteration == 3) column.keep([&](T const& a) { return T(lead + k * ((a - m) - low)); });
  }
  return {m, level, off, off};
}

/// A normalizer made of a deformed exponential, bound to a row.
template <class Exponential, class T>
struct bound_deformed {
  T k, shift;

  template <class Column>
  ATTUNE_HD candidate_threshold<T> solve(Column& column) const {
    return deformed_level(Exponential{}, k, column);
  }
  ATTUNE_HD ATTUNE_INLINE T weight(candidate_threshold<T> const& at, T const& a, key<T> const&) const {
    return Exponential{}.terms(k, T((a - at.reference) - at.level)).p;
  }
  /// tau of the papers: weights are [(alpha - 1) a - tau]_+^(1 / (alpha - 1)), with a the true logit (row constant
  /// included).
  ATTUNE_HD T reported(candidate_threshold<T> const& at) const {
    return k * ((at.reference + shift) + at.level) - Exponential{}.lead(k);
  }
};

}  // namespace detail
}  // namespace attune
