// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x in [lower, upper]      one real number, known to be between two numbers of MPFR
//
// A scalar on which policies run as they run on doubles. Its results provably contain the results of exact arithmetic:
// every operation rounds the ends outward (MPFI, with working_precision() bits). A value is one of
//   a number   in [lower, upper]; the ends may be infinite
//   NaN        for certain: infinity minus itself, the logarithm of a negative number
//   unknown    anything, NaN included: a quotient whose divisor may be 0, the logarithm of what may be negative
// An undecided comparison is a decision that may hold and may fail. A choice by it is the hull of both sides (policies
// cannot branch on scores: attention() would not compile).
// Copies are *the same number*: x - x is 0, x == x holds, and max(x, y) is x or y where that is decided. So ties that
// are exact in the inputs (equal scores, a score on its ground level) are decided, and subtracting a maximum from
// itself loses no digits. Intervals that share copies must be used by one thread at a time.
// This uses MPFI itself, not Boost's mpfi_float. There, copies are different numbers, and an undecided comparison is an
// exception or false.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <mpfi.h>

#include <attune/core/math.hpp>

namespace attune::certify {

/// The possible outcomes of a comparison.
struct decision {
  bool may_hold = true,  ///< the comparison is true for some values
      may_fail = true;   ///< the comparison is false for some values

  bool holds() const { return !may_fail; }  ///< certainly true
  bool fails() const { return !may_hold; }  ///< certainly false
  friend decision operator!(decision a) { return {a.may_fail, a.may_hold}; }
  friend decision operator&(decision a, decision b) { return {a.may_hold && b.may_hold, a.may_fail || b.may_fail}; }
  friend decision operator|(decision a, decision b) { return {a.may_hold || b.may_hold, a.may_fail && b.may_fail}; }
};

namespace detail {
inline long& interval_bits() {
  thread_local long bits = 128;
  return bits;
}
}  // namespace detail

/// Sets the number of bits for the ends of intervals made in this thread, during the lifetime of the object. At least
/// 64.
class working_precision {
 public:
  /// Sets the number of bits; the destructor restores the previous number.
  explicit working_precision(long bits) : before_(detail::interval_bits()) {
    detail::interval_bits() = bits < 64 ? 64 : bits;
  }
  working_precision(working_precision const&) = delete;
  working_precision& operator=(working_precision const&) = delete;
  ~working_precision() { detail::interval_bits() = before_; }

 private:
  long before_;
};

/// A real number that is known to lie between two numbers of MPFR, or NaN, or unknown. Copies are the same number.
class interval {
 public:
  /// Exactly 0.
  interval() = default;
  /// Exactly x; NaN for NaN.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  explicit interval(Number x) : interval(of(double(x))) {}
  /// The same number: x - copy is exactly 0. O(1), shares its ends.
  interval(interval const& x) noexcept : at_(x.at_) {
    if (at_ != nullptr) ++at_->uses;
  }
  /// Moves the number; x becomes exactly 0.
  interval(interval&& x) noexcept : at_(std::exchange(x.at_, nullptr)) {}
  interval& operator=(interval x) noexcept {
    std::swap(at_, x.at_);
    return *this;
  }
  ~interval() {
    if (at_ != nullptr && --at_->uses == 0) delete at_;
  }
  /// The interval between two numbers of MPFR.
  static interval between(mpfr_srcptr lower, mpfr_srcptr upper) {
    return made([&](mpfi_ptr to) { mpfi_interv_fr(to, lower, upper); });
  }
  static interval nan() { return interval(new node(kind::nan)); }          ///< certainly NaN
  static interval unknown() { return interval(new node(kind::unknown)); }  ///< any value, NaN included

  /// Neither NaN nor unknown.
  bool is_number() const { return at_ == nullptr || at_->is == kind::number; }
  bool is_nan() const { return at_ != nullptr && at_->is == kind::nan; }  ///< certainly NaN
  bool is_finite() const { return at_ == nullptr || at_->finite; }        ///< a number with finite ends
  /// An exactly known number, possibly infinite.
  bool is_point() const { return at_ == nullptr || (is_number() && mpfr_equal_p(lower(), upper()) != 0); }
  bool is_zero() const { return at_ == nullptr; }  ///< exactly 0
  /// Whether 0 is a possible value; true if the value is not a number.
  bool may_be_zero() const { return !is_number() || (mpfr_sgn(lower()) <= 0 && mpfr_sgn(upper()) >= 0); }
  /// Whether two intervals are copies of each other, and so the same number, however wide they are.
  bool is_same(interval const& x) const { return at_ == x.at_; }
  /// The ends of a number. Meaningless for NaN and unknown.
  mpfr_srcptr lower() const { return &ends()->left; }
  mpfr_srcptr upper() const { return &ends()->right; }  ///< see lower()
  /// The middle of a finite number, rounded to working_precision(); lies inside it.
  interval middle() const {
    return made([&](mpfi_ptr to) {
      mpfi_mid(&to->left, ends());
      mpfr_set(&to->right, &to->left, MPFR_RNDN);
    });
  }
  /// A number with about the fewest bits in a finite interval. If the exact result is a simple number, it is this one.
  interval simplest() const {
    return made([&](mpfi_ptr to) {
      long const most = detail::interval_bits();
      for (long bits = 4;; bits = (std::min)(2 * bits, most)) {
        mpfr_set_prec(&to->left, bits);
        mpfi_mid(&to->left, ends());
        if (bits == most || (mpfr_greaterequal_p(&to->left, lower()) && mpfr_lessequal_p(&to->left, upper()))) break;
      }
      mpfr_set_prec(&to->right, mpfr_get_prec(&to->left));
      mpfr_set(&to->right, &to->left, MPFR_RNDN);
    });
  }
  /// A number near the middle; NaN if nothing is known.
  explicit operator double() const {
    if (!is_number()) return std::numeric_limits<double>::quiet_NaN();
    if (is_point() || !is_finite()) return mpfr_get_d(lower(), MPFR_RNDN);
    return mpfi_get_d(ends());
  }

  friend interval operator-(interval const& x) {
    if (!x.is_number() || x.is_zero()) return x;
    return made([&](mpfi_ptr to) { mpfi_neg(to, x.ends()); });
  }
  friend interval operator+(interval const& x, interval const& y) {
    if (!x.is_number() || !y.is_number()) return nothing(x, y);
    if (x.is_zero()) return y;
    if (y.is_zero()) return x;
    if (opposed(x.lower(), y.upper()) || opposed(x.upper(), y.lower())) return undefined(x, y);
    return made([&](mpfi_ptr to) { mpfi_add(to, x.ends(), y.ends()); });
  }
  friend interval operator-(interval const& x, interval const& y) {
    if (!x.is_number() || !y.is_number()) return nothing(x, y);
    if (x.is_same(y) && x.is_finite()) return {};
    return x + -y;
  }
  friend interval operator*(interval const& x, interval const& y) {
    if (!x.is_number() || !y.is_number()) return nothing(x, y);
    if (x.is_finite() && y.is_finite()) {
      if (x.is_zero() || y.is_zero()) return {};
      return made([&](mpfi_ptr to) { x.is_same(y) ? mpfi_sqr(to, x.ends()) : mpfi_mul(to, x.ends(), y.ends()); });
    }
    if ((x.may_be_zero() && !y.is_finite()) || (y.may_be_zero() && !x.is_finite())) return undefined(x, y);
    return of_corners(x, y, mpfr_mul);
  }
  friend interval operator/(interval const& x, interval const& y) {
    if (!x.is_number() || !y.is_number()) return nothing(x, y);
    if (y.may_be_zero()) return y.is_zero() && x.is_zero() ? nan() : unknown();
    if (x.is_finite() && y.is_finite()) {
      if (x.is_zero()) return {};
      if (x.is_same(y)) return interval(1);
      return made([&](mpfi_ptr to) { mpfi_div(to, x.ends(), y.ends()); });
    }
    if (!x.is_finite() && !y.is_finite()) return undefined(x, y);
    return of_corners(x, y, mpfr_div);
  }

  friend decision operator<(interval const& x, interval const& y) {
    if (x.is_nan() || y.is_nan()) return {false, true};
    if (!x.is_number() || !y.is_number()) return {};
    if (x.is_same(y)) return {false, true};
    return {mpfr_less_p(x.lower(), y.upper()) != 0, mpfr_less_p(x.upper(), y.lower()) == 0};
  }
  friend decision operator<=(interval const& x, interval const& y) {
    if (x.is_nan() || y.is_nan()) return {false, true};
    if (!x.is_number() || !y.is_number()) return {};
    if (x.is_same(y)) return {true, false};
    return {mpfr_lessequal_p(x.lower(), y.upper()) != 0, mpfr_lessequal_p(x.upper(), y.lower()) == 0};
  }
  friend decision operator==(interval const& x, interval const& y) {
    if (x.is_nan() || y.is_nan()) return {false, true};
    if (!x.is_number() || !y.is_number()) return {};
    if (x.is_same(y)) return {true, false};
    bool const apart = mpfr_less_p(x.upper(), y.lower()) != 0 || mpfr_less_p(y.upper(), x.lower()) != 0;
    return {!apart, !(x.is_point() && y.is_point() && !apart)};
  }
  friend decision operator>(interval const& x, interval const& y) { return y < x; }
  friend decision operator>=(interval const& x, interval const& y) { return y <= x; }
  friend decision operator!=(interval const& x, interval const& y) { return !(x == y); }

  /// The smallest interval that contains both.
  static interval hull(interval const& x, interval const& y) {
    if (x.is_same(y)) return x;
    if (x.is_nan() && y.is_nan()) return x;
    if (!x.is_number() || !y.is_number()) return unknown();
    return made([&](mpfi_ptr to) { mpfi_union(to, x.ends(), y.ends()); });
  }
  /// max(x, y): one of them if the comparison is decided.
  static interval larger(interval const& x, interval const& y) {
    return chosen(x < y, x, y, [&](mpfi_ptr to) {
      mpfr_max(&to->left, x.lower(), y.lower(), MPFR_RNDD);
      mpfr_max(&to->right, x.upper(), y.upper(), MPFR_RNDU);
    });
  }
  /// min(x, y): one of them if the comparison is decided.
  static interval smaller(interval const& x, interval const& y) {
    return chosen(y < x, x, y, [&](mpfi_ptr to) {
      mpfr_min(&to->left, x.lower(), y.lower(), MPFR_RNDD);
      mpfr_min(&to->right, x.upper(), y.upper(), MPFR_RNDU);
    });
  }
  /// f(x), by a function of MPFI that is defined for all numbers.
  template <class F>
  static interval through(interval const& x, F const& f) {
    if (!x.is_number()) return x;
    return made([&](mpfi_ptr to) { f(to, x.ends()); });
  }
  /// The same for a non-decreasing function of MPFR.
  template <class F>
  static interval through_rising(interval const& x, F const& f) {
    if (!x.is_number()) return x;
    return made([&](mpfi_ptr to) {
      f(&to->left, x.lower(), MPFR_RNDD);
      f(&to->right, x.upper(), MPFR_RNDU);
    });
  }
  /// x^y. For x >= 0 it is monotone in each argument. For x < 0, y must be an exactly known integer.
  static interval power(interval const& x, interval const& y) {
    interval const one(1);
    if ((y.is_number() && y.is_zero()) || (x == one).holds()) return one;
    if (!x.is_number() || !y.is_number()) return nothing(x, y);
    if (mpfr_sgn(x.lower()) >= 0) return of_corners(x, y, raised);
    bool const whole = y.is_point() && mpfr_integer_p(y.lower()) != 0;
    if (!whole) return y.is_point() && y.is_finite() && x.is_finite() && mpfr_sgn(x.upper()) < 0 ? nan() : unknown();
    interval const size = through(x, mpfi_abs);
    if (!is_odd(y.lower())) return of_corners(size, y, raised);
    if (mpfr_sgn(x.upper()) < 0) return -of_corners(size, y, raised);
    if (mpfr_sgn(y.lower()) < 0) return unknown();  // there is a pole inside
    return of_corners(x, y, raised);
  }
  /// The same for a function that is NaN below `from`.
  template <class F>
  static interval through_above(double from, interval const& x, F const& f) {
    if (!x.is_number()) return x;
    if (mpfr_cmp_d(x.upper(), from) < 0) return nan();
    if (mpfr_cmp_d(x.lower(), from) < 0) return unknown();
    return through(x, f);
  }

 private:
  enum class kind { number, nan, unknown };
  struct node {
    mpfi_t ends;
    long uses = 1;
    kind is = kind::number;
    bool finite = false;
    node() { mpfi_init2(ends, detail::interval_bits()); }
    explicit node(kind k) : is(k) { mpfi_init2(ends, 64); }
    node(node const&) = delete;
    node& operator=(node const&) = delete;
    ~node() { mpfi_clear(ends); }
  };
  explicit interval(node* at) : at_(at) {}

  mpfi_srcptr ends() const {
    if (at_ != nullptr) return at_->ends;
    struct zero_node : node {
      zero_node() { mpfi_set_si(this->ends, 0); }
    };
    thread_local zero_node const zero;
    return zero.ends;
  }
  static interval of(double x) {
    if (x == 0) return {};
    if (std::isnan(x)) return nan();
    return made([&](mpfi_ptr to) { mpfi_set_d(to, x); });
  }
  /// The interval that compute(ends) writes; unknown if an end is NaN.
  template <class Compute>
  static interval made(Compute const& compute) {
    interval r(new node);
    mpfi_ptr const to = r.at_->ends;
    compute(to);
    if (mpfi_nan_p(to)) {
      r.at_->is = kind::unknown;
      return r;
    }
    if (mpfr_zero_p(&to->left) && mpfr_zero_p(&to->right)) return {};
    r.at_->finite = mpfr_number_p(&to->left) != 0 && mpfr_number_p(&to->right) != 0;
    return r;
  }
  template <class Compute>
  static interval chosen(decision second, interval const& x, interval const& y, Compute const& both) {
    if (second.holds()) return y;
    if (second.fails()) return x;
    return x.is_number() && y.is_number() ? made(both) : unknown();
  }
  static interval nothing(interval const& x, interval const& y) { return x.is_nan() || y.is_nan() ? nan() : unknown(); }
  /// The result of an operation without a value at some of the ends.
  static interval undefined(interval const& x, interval const& y) {
    return x.is_point() && y.is_point() ? nan() : unknown();
  }
  /// x^y; an end that is zero counts as positive zero.
  static int raised(mpfr_ptr to, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
    if (mpfr_zero_p(x) == 0) return mpfr_pow(to, x, y, round);
    mpfr_t zero;
    mpfr_init2(zero, MPFR_PREC_MIN);
    mpfr_set_zero(zero, 1);
    int const inexact = mpfr_pow(to, zero, y, round);
    mpfr_clear(zero);
    return inexact;
  }
  static bool is_odd(mpfr_srcptr whole) {
    mpfr_t half;
    mpfr_init2(half, mpfr_get_prec(whole));
    mpfr_div_2ui(half, whole, 1, MPFR_RNDN);
    bool const odd = mpfr_integer_p(half) == 0;
    mpfr_clear(half);
    return odd;
  }
  static bool opposed(mpfr_srcptr x, mpfr_srcptr y) {
    return mpfr_inf_p(x) && mpfr_inf_p(y) && mpfr_sgn(x) != mpfr_sgn(y);
  }
  /// A function that is monotone in each argument: its extremes are at the corners.
  template <class F>
  static interval of_corners(interval const& x, interval const& y, F const& f) {
    return made([&](mpfi_ptr to) {
      mpfr_t z;
      mpfr_init2(z, detail::interval_bits());
      bool first = true;
      for (mpfr_srcptr a : {x.lower(), x.upper()})
        for (mpfr_srcptr b : {y.lower(), y.upper()}) {
          f(z, a, b, MPFR_RNDD);
          if (first || mpfr_less_p(z, &to->left)) mpfr_set(&to->left, z, MPFR_RNDD);
          f(z, a, b, MPFR_RNDU);
          if (first || mpfr_greater_p(z, &to->right)) mpfr_set(&to->right, z, MPFR_RNDU);
          first = false;
        }
      mpfr_clear(z);
    });
  }

  node* at_ = nullptr;  ///< null is exactly 0
};

}  // namespace attune::certify
