// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x = value (+-) eps (error + rounds size)          |x| <= size, the sum of the |terms| of x
//
// A scalar that carries the effect of rounding on it, to first order, in units of eps (the spacing at 1 of the format
// in use). Policies and contractions run on it as they run on doubles. So the condition of a user's own kernel is known
// without additional code.
// Sums are counted, not followed: in a sum of n terms, each term takes part in at most n - 1 additions, in any order.
// `rounds size` expresses this. A product of sums is a sum of products: rounds add, sizes multiply. Any other operation
// (a quotient, an exponential) ends a sum; its condition is the derivative at the value.
// Costs, in eps: an addition 1/2 (correctly rounded); a multiplication or division 1 (a kernel may fold constants into
//                one another: s log2(e) and 2^x for e^s); an elementary function 2 and a half.
#pragma once

#include <cmath>
#include <limits>

#include <attune/core/math.hpp>
#include <attune/core/row.hpp>

namespace attune::certify {

/// A scalar with the first-order effect of rounding on it, in units of eps.
struct rounded {
  double value = 0;   ///< the value, computed in double
  double size = 0;    ///< sum of |terms|
  double rounds = 0;  ///< roundings that every term went through, in eps
  double error = 0;   ///< error that does not belong to a sum, in eps

  rounded() = default;
  explicit rounded(double x) : value(x), size(std::fabs(x)) {}                           ///< x without an error
  rounded(double x, double absolute) : value(x), size(std::fabs(x)), error(absolute) {}  ///< x with an error, in eps

  /// |computed - exact| <= eps * total(). 0 where the value is not finite: such values are either exact or not reached.
  double total() const { return std::isfinite(value) ? error + (rounds == 0 ? 0 : rounds * size) : 0; }
};

namespace detail {
constexpr double addition = 0.5, multiplication = 1, function = 2.5;

/// factor * error, where an error of 0 wins over an infinite factor.
inline double carried(double factor, double error) { return error == 0 || factor == 0 ? 0 : std::fabs(factor) * error; }
/// A function of x with a known derivative.
inline rounded through(double value, double derivative, rounded const& x, double cost = function) {
  return {value, std::isfinite(value) ? carried(derivative, x.total()) + cost * std::fabs(value) : 0};
}
}  // namespace detail

inline rounded operator-(rounded x) {
  x.value = -x.value;
  return x;
}
inline rounded operator+(rounded const& x, rounded const& y) {
  rounded r;
  r.value = x.value + y.value;
  if (y.size == 0 && y.error == 0) return x;  // adding 0 does not round: the start of every sum
  if (x.size == 0 && x.error == 0) return y;
  r.size = x.size + y.size;
  r.rounds = std::fmax(x.rounds, y.rounds) + detail::addition;
  r.error = x.error + y.error;
  return r;
}
inline rounded operator-(rounded const& x, rounded const& y) { return x + (-y); }
inline rounded operator*(rounded const& x, rounded const& y) {
  rounded r;
  r.value = x.value * y.value;
  r.size = detail::carried(x.size, y.size);
  r.rounds = x.rounds + y.rounds + detail::multiplication;
  r.error = detail::carried(y.size, x.error) + detail::carried(x.size, y.error);
  return r;
}
inline rounded operator/(rounded const& x, rounded const& y) {
  double const q = x.value / y.value;
  if (!std::isfinite(q) || y.value == 0 || std::isinf(y.value)) return rounded(q);
  rounded r;  // a sum divided by one number is still a sum
  double const inverse = 1 / std::fabs(y.value);
  r.value = q;
  r.size = x.size * inverse;
  r.rounds = x.rounds + detail::multiplication;
  r.error = x.error * inverse + detail::carried(q, y.total() * inverse);
  return r;
}
inline bool operator<(rounded const& x, rounded const& y) { return x.value < y.value; }
inline bool operator>(rounded const& x, rounded const& y) { return x.value > y.value; }
inline bool operator<=(rounded const& x, rounded const& y) { return x.value <= y.value; }
inline bool operator>=(rounded const& x, rounded const& y) { return x.value >= y.value; }
inline bool operator==(rounded const& x, rounded const& y) { return x.value == y.value; }
inline bool operator!=(rounded const& x, rounded const& y) { return x.value != y.value; }

}  // namespace attune::certify

namespace attune {

/// Comparisons and choices use the values. The caller must handle a kink within the error of its argument.
template <>
struct scalar<certify::rounded> {
  using T = certify::rounded;
  using mask = bool;
  static T larger(T const& a, T const& b) { return a < b ? b : a; }
  static T smaller(T const& a, T const& b) { return b < a ? b : a; }
  static T select(bool c, T const& a, T const& b) { return c ? a : b; }
  static T infinity() { return T(std::numeric_limits<double>::infinity()); }
  static T lowest() { return T(std::numeric_limits<double>::lowest()); }
  static T epsilon() { return T(std::numeric_limits<double>::epsilon()); }
  static T two_over_sqrt_pi() { return T(scalar<double>::two_over_sqrt_pi()); }
  static T least() { return T((std::numeric_limits<double>::min)()); }
  static T binade(T const& x) { return T(scalar<double>::binade(x.value)); }
  static bool any(bool c) { return c; }
  static bool all(bool c) { return c; }
  /// A difference that happens to be 0 still has an error. Only an exact 0 switches off the other factor of a product.
  static bool vanishes(T const& x) { return x.value == 0 && x.size == 0 && x.error == 0; }
  /// A step of the chain rule ends a sum: the product keeps the error of its factors, and from here on its value
  /// counts.
  static T chained(T const& factor, T const& tangent) {
    if (vanishes(factor) || vanishes(tangent)) return T(0.);
    T const product = factor * tangent;
    return T(product.value, product.total());
  }
  static constexpr int order = 0;

  static T abs(T x) {
    x.value = std::fabs(x.value);
    return x;
  }
  static T exp(T const& x) { return of(std::exp(x.value), std::exp(x.value), x); }
  static T exp_nonpositive(T const& x) { return exp(x); }
  static T expm1(T const& x) { return of(std::expm1(x.value), std::exp(x.value), x); }
  static T log(T const& x) { return of(std::log(x.value), 1 / x.value, x); }
  static T log1p(T const& x) { return of(std::log1p(x.value), 1 / (1 + x.value), x); }
  static T log1p_unit(T const& x) { return log1p(x); }
  static T sqrt(T const& x) { return of(std::sqrt(x.value), x.value == 0 ? 0 : 0.5 / std::sqrt(x.value), x); }
  /// Angles count in full: an argument reduced in the format of the computation loses eps of itself.
  static T sin(T const& x) { return turned(std::sin(x.value), std::cos(x.value), x); }
  static T cos(T const& x) { return turned(std::cos(x.value), std::sin(x.value), x); }
  static T acos(T const& x) { return of(std::acos(x.value), 1 / std::sqrt((1 - x.value) * (1 + x.value)), x); }
  static T erf(T const& x) {
    return of(std::erf(x.value), scalar<double>::two_over_sqrt_pi() * std::exp(-x.value * x.value), x);
  }
  /// The effect of the error of either argument, and the function's own error.
  static T pow(T const& x, T const& y) {
    double const value = std::pow(x.value, y.value);
    T r = of(value, y.value == 0 ? 0 : y.value * std::pow(x.value, y.value - 1), x);
    if (std::isfinite(value) && x.value > 0) r.error += certify::detail::carried(value * std::log(x.value), y.total());
    return r;
  }
  /// Exact: a step within the error of its argument is a kink, like a comparison.
  static T floor(T const& x) { return T(std::floor(x.value)); }
  static T softplus(T const& x) { return of(math::softplus(x.value), math::sigmoid(x.value), x); }
  static T sigmoid(T const& x) {
    double const s = math::sigmoid(x.value);
    return of(s, s * math::sigmoid(-x.value), x);
  }
  static T tanh(T const& x) {
    return of(math::tanh(x.value), 4 * math::sigmoid(2 * x.value) * math::sigmoid(-2 * x.value), x);
  }
  static T log1p_rate(T const& k, T const& x) { return detail::log1p_rate(k, x); }

 private:
  static T of(double value, double derivative, T const& x) { return certify::detail::through(value, derivative, x); }
  static T turned(double value, double derivative, T const& x) {
    T r = of(value, derivative, x);
    r.error += certify::detail::function;
    return r;
  }
};

/// An entry of a table is rounded as a parameter is.
template <>
class table_entries<certify::rounded> {
 public:
  table_entries(table const& x, row_place const& at, index_t i) : values_(x, at, i) {}
  certify::rounded operator[](index_t n) const;

 private:
  table_entries<double> values_;
};

/// A parameter is read once, and is rounded unless it is a float.
template <>
struct lift<certify::rounded> {
  certify::rounded value(parameter const& p, row_place const& at) const { return read(lift<double>{}.value(p, at)); }
  certify::rounded entry(table const& x, index_t b, index_t h, index_t i, index_t d) const {
    return read(lift<double>{}.entry(x, b, h, i, d));
  }
  static certify::rounded constant(double x) { return certify::rounded(x); }
  table_entries<certify::rounded> entries(table const& x, row_place const& at, index_t i) const { return {x, at, i}; }
  static certify::rounded read(double x) {
    certify::rounded r(x);
    if (std::isfinite(x) && double(float(x)) != x) r.rounds = 0.5;
    return r;
  }
};

inline certify::rounded table_entries<certify::rounded>::operator[](index_t n) const {
  return lift<certify::rounded>::read(values_[n]);
}

}  // namespace attune
