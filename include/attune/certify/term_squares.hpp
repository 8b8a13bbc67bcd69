// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   value = sum of terms,  square = sum of (term)^2,  fourth = sum of (term)^4
//
// A scalar that knows the terms of its last sum. A product is one term; a sum has the terms of both sides. If each term
// has an independent relative error of deviation u, then x has one of deviation u sqrt(square): the effect of
// probabilities and dS that are rounded before they enter a product. square^2 / fourth is the number of terms, if they
// are equal, and 1 if one of them is much larger than the rest.
#pragma once

#include <cmath>

#include <attune/core/math.hpp>
#include <attune/core/row.hpp>
#include <attune/exec/reference/compensated.hpp>

namespace attune::certify {

/// A number with the sum of the squares of its terms.
struct term_squares {
  double value = 0,  ///< the number
      square = 0,    ///< sum of the squares of its terms
      fourth = 0;    ///< sum of their fourth powers

  term_squares() = default;
  explicit term_squares(double x) : value(x), square(x * x), fourth(square * square) {}  ///< one term
  /// a sum
  term_squares(double x, double squares, double fourths) : value(x), square(squares), fourth(fourths) {}
  /// How many terms of equal size would have such a sum of squares and of fourth powers; 1 without any.
  double count() const { return fourth > 0 && std::isfinite(square) ? square * square / fourth : 1; }
};

inline term_squares operator-(term_squares const& x) { return {-x.value, x.square, x.fourth}; }
inline term_squares operator+(term_squares const& x, term_squares const& y) {
  return {x.value + y.value, x.square + y.square, x.fourth + y.fourth};
}
inline term_squares operator-(term_squares const& x, term_squares const& y) { return x + -y; }
inline term_squares operator*(term_squares const& x, term_squares const& y) { return term_squares(x.value * y.value); }
inline term_squares operator/(term_squares const& x, term_squares const& y) { return term_squares(x.value / y.value); }
inline bool operator<(term_squares const& x, term_squares const& y) { return x.value < y.value; }
inline bool operator>(term_squares const& x, term_squares const& y) { return x.value > y.value; }
inline bool operator<=(term_squares const& x, term_squares const& y) { return x.value <= y.value; }
inline bool operator>=(term_squares const& x, term_squares const& y) { return x.value >= y.value; }
inline bool operator==(term_squares const& x, term_squares const& y) { return x.value == y.value; }
inline bool operator!=(term_squares const& x, term_squares const& y) { return x.value != y.value; }

}  // namespace attune::certify

namespace attune {

/// Everything but a sum is a function of the value.
template <>
struct scalar<certify::term_squares> {
  using T = certify::term_squares;
  using S = scalar<double>;
  using mask = bool;
  static T larger(T const& a, T const& b) { return a < b ? b : a; }
  static T smaller(T const& a, T const& b) { return b < a ? b : a; }
  static T select(bool c, T const& a, T const& b) { return c ? a : b; }
  static T infinity() { return T(S::infinity()); }
  static T lowest() { return T(S::lowest()); }
  static T epsilon() { return T(S::epsilon()); }
  static T two_over_sqrt_pi() { return T(S::two_over_sqrt_pi()); }
  static T least() { return T(S::least()); }
  static T binade(T const& x) { return T(S::binade(x.value)); }
  static bool any(bool c) { return c; }
  static bool all(bool c) { return c; }
  static bool vanishes(T const& x) { return x.value == 0; }
  static T chained(T const& factor, T const& tangent) {
    return vanishes(factor) || vanishes(tangent) ? T(0.) : factor * tangent;
  }
  static constexpr int order = 0;

  static T abs(T const& x) { return {std::fabs(x.value), x.square, x.fourth}; }
  static T exp(T const& x) { return T(std::exp(x.value)); }
  static T exp_nonpositive(T const& x) { return exp(x); }
  static T expm1(T const& x) { return T(std::expm1(x.value)); }
  static T log(T const& x) { return T(std::log(x.value)); }
  static T log1p(T const& x) { return T(std::log1p(x.value)); }
  static T log1p_unit(T const& x) { return log1p(x); }
  static T sqrt(T const& x) { return T(std::sqrt(x.value)); }
  static T sin(T const& x) { return T(std::sin(x.value)); }
  static T cos(T const& x) { return T(std::cos(x.value)); }
  static T acos(T const& x) { return T(std::acos(x.value)); }
  static T erf(T const& x) { return T(std::erf(x.value)); }
  static T pow(T const& x, T const& y) { return T(std::pow(x.value, y.value)); }
  static T floor(T const& x) { return T(std::floor(x.value)); }
  static T softplus(T const& x) { return T(math::softplus(x.value)); }
  static T sigmoid(T const& x) { return T(math::sigmoid(x.value)); }
  static T tanh(T const& x) { return T(math::tanh(x.value)); }
  static T log1p_rate(T const& k, T const& x) { return detail::log1p_rate(k, x); }
};

template <>
class table_entries<certify::term_squares> {
 public:
  table_entries(table const& x, row_place const& at, index_t i) : values_(x, at, i) {}
  certify::term_squares operator[](index_t n) const { return certify::term_squares(values_[n]); }

 private:
  table_entries<double> values_;
};

template <>
struct lift<certify::term_squares> {
  using T = certify::term_squares;
  T value(parameter const& p, row_place const& at) const { return T(lift<double>{}.value(p, at)); }
  T entry(table const& x, index_t b, index_t h, index_t i, index_t d) const {
    return T(lift<double>{}.entry(x, b, h, i, d));
  }
  static T constant(double x) { return T(x); }
  table_entries<T> entries(table const& x, row_place const& at, index_t i) const { return {x, at, i}; }
};

/// A sum with its terms.
template <>
class detail::compensated<certify::term_squares> {
 public:
  void add(certify::term_squares const& x) { sum_ = sum_ + x; }
  certify::term_squares value() const { return sum_; }

 private:
  certify::term_squares sum_;
};

}  // namespace attune
