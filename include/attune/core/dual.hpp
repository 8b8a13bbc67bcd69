// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   f(x + sum_n e_n t_n) = f(x) + f'(x) sum_n e_n t_n
//
// Dual numbers with N directions. A policy's own source, run on them, gives its derivatives. T may be any scalar of
// attune: double, 50 digits, a SIMD batch, or a dual again (second derivatives).
#pragma once

#include <type_traits>

#include <attune/core/row.hpp>
#include <attune/core/table.hpp>
#include <attune/core/tiny.hpp>

namespace attune {

/// How the chain rule multiplies. `guarded`: 0 on one side wins over infinity on the other. A constant has derivative
/// exactly 0, and so has a product with a mass that vanished (a key that is switched off has gradient 0, not 0 * inf).
/// `plain`: an ordinary product, for code that checks for NaN afterwards because that is cheaper. Where no NaN appears,
/// both rules give the same numbers except for the sign of zeros.
enum class chain_rule { guarded, plain };

/// A value and its derivatives in N directions. `Rule` says how the chain rule multiplies.
template <class T, int N, chain_rule Rule = chain_rule::guarded>
struct dual {
  using value_type = T;  ///< the scalar of the value and of each tangent
  T value;               ///< f(x)
  T tangent[N];          ///< tangent[n] is the derivative in direction n

  ATTUNE_HD dual() : dual(T(0)) {}
  /// A constant: every tangent is 0.
  ATTUNE_HD dual(T const& x) : value(x) {
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n) tangent[n] = T(0);
  }
  /// A constant.
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, T>)
  ATTUNE_HD dual(Number x) : dual(lift<T>::constant(double(x))) {}

  /// x along direction n.
  ATTUNE_HD static dual variable(T const& x, int n) {
    dual d(x);
    d.tangent[n] = T(1);
    return d;
  }
};

namespace detail {

/// factor * tangent by the given rule.
template <chain_rule Rule = chain_rule::guarded, class T>
ATTUNE_HD ATTUNE_INLINE T chained(T const& factor, T const& tangent) {
  if constexpr (Rule == chain_rule::plain) {
    return factor * tangent;
  } else if constexpr (requires { scalar<T>::chained(factor, tangent); }) {
    return scalar<T>::chained(factor, tangent);
  } else {
    typename scalar<T>::mask nothing = scalar<T>::vanishes(factor);
    nothing = nothing | scalar<T>::vanishes(tangent);
    return math::select(nothing, T(0), T(factor * tangent));
  }
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> chain(T const& value, T const& derivative, dual<T, N, Rule> const& x) {
  dual<T, N, Rule> r(value);
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n) r.tangent[n] = chained<Rule>(derivative, x.tangent[n]);
  return r;
}

}  // namespace detail

template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator-(dual<T, N, Rule> const& x) {
  dual<T, N, Rule> r(T(-x.value));
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n) r.tangent[n] = -x.tangent[n];
  return r;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator+(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  dual<T, N, Rule> r(T(x.value + y.value));
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n) r.tangent[n] = x.tangent[n] + y.tangent[n];
  return r;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator-(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  dual<T, N, Rule> r(T(x.value - y.value));
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n) r.tangent[n] = x.tangent[n] - y.tangent[n];
  return r;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator*(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  dual<T, N, Rule> r(T(x.value * y.value));
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n)
    r.tangent[n] = detail::chained<Rule>(x.value, y.tangent[n]) + detail::chained<Rule>(y.value, x.tangent[n]);
  return r;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator/(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  dual<T, N, Rule> r(detail::quotient(x.value, y.value));
  // (x' - q y') / y: neither 1 / y^2 nor any other power can overflow on its own.
  ATTUNE_UNROLL_FEW
  for (int n = 0; n < N; ++n)
    r.tangent[n] = detail::quotient(T(x.tangent[n] - detail::chained<Rule>(r.value, y.tangent[n])), y.value);
  return r;
}

// Comparisons compare the values.
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator<(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value < y.value;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator>(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value > y.value;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator<=(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value <= y.value;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator>=(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value >= y.value;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator==(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value == y.value;
}
template <class T, int N, chain_rule Rule>
ATTUNE_HD auto operator!=(dual<T, N, Rule> const& x, dual<T, N, Rule> const& y) {
  return x.value != y.value;
}

template <class T, int N, chain_rule Rule>
struct scalar<dual<T, N, Rule>> {
  using D = dual<T, N, Rule>;
  using mask = typename scalar<T>::mask;

  ATTUNE_HD static D select(mask const& c, D const& a, D const& b) {
    D r(math::select(c, a.value, b.value));
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n) r.tangent[n] = math::select(c, a.tangent[n], b.tangent[n]);
    return r;
  }
  ATTUNE_HD static D larger(D const& a, D const& b) { return select(a.value < b.value, b, a); }
  ATTUNE_HD static D smaller(D const& a, D const& b) { return select(b.value < a.value, b, a); }
  ATTUNE_HD static D as_computed(D const& x) {
    D y(math::as_computed(x.value));
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n) y.tangent[n] = math::as_computed(x.tangent[n]);
    return y;
  }
  ATTUNE_HD static D infinity() { return D(math::infinity<T>()); }
  ATTUNE_HD static D lowest() { return D(scalar<T>::lowest()); }
  ATTUNE_HD static D epsilon() { return D(scalar<T>::epsilon()); }
  ATTUNE_HD static D two_over_sqrt_pi() { return D(scalar<T>::two_over_sqrt_pi()); }
  ATTUNE_HD static D least() { return D(scalar<T>::least()); }
  ATTUNE_HD static bool any(mask const& c) { return scalar<T>::any(c); }
  ATTUNE_HD static bool all(mask const& c) { return scalar<T>::all(c); }
  /// A value of 0 with a nonzero tangent does not vanish: its product with a tangent has a second derivative.
  ATTUNE_HD static mask vanishes(D const& x) {
    mask all = scalar<T>::vanishes(x.value);
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n) all = all & scalar<T>::vanishes(x.tangent[n]);
    return all;
  }
  static constexpr int order = scalar<T>::order + 1;
  /// Derivative 0 at 0.
  ATTUNE_HD static D abs(D const& x) {
    T const zero(0);
    T const sign = math::select(x.value < zero, T(-1), math::select(x.value == zero, zero, T(1)));
    return detail::chain(math::abs(x.value), sign, x);
  }
  ATTUNE_HD static D exp(D const& x) {
    T const e = math::exp(x.value);
    return detail::chain(e, e, x);
  }
  ATTUNE_HD static D exp_nonpositive(D const& x) {
    T const e = math::exp_nonpositive(x.value);
    return detail::chain(e, e, x);
  }
  /// The slopes of what counts as 0 count as 0, too.
  ATTUNE_HD static D zero_if_tiny(D const& x) {
    D y(detail::zero_if_tiny(x.value));
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n) y.tangent[n] = detail::zero_if_tiny(x.tangent[n]);
    return y;
  }
  ATTUNE_HD static D expm1(D const& x) { return detail::chain(math::expm1(x.value), math::exp(x.value), x); }
  ATTUNE_HD static D log(D const& x) { return detail::chain(math::log(x.value), T(T(1) / x.value), x); }
  ATTUNE_HD static D log1p(D const& x) { return detail::chain(math::log1p(x.value), T(T(1) / (T(1) + x.value)), x); }
  ATTUNE_HD static D log1p_unit(D const& x) { return log1p(x); }
  ATTUNE_HD static D sqrt(D const& x) {
    T const r = math::sqrt(x.value);
    return detail::chain(r, T(T(0.5) / r), x);
  }
  ATTUNE_HD static D sin(D const& x) { return detail::chain(math::sin(x.value), math::cos(x.value), x); }
  ATTUNE_HD static D cos(D const& x) { return detail::chain(math::cos(x.value), T(-math::sin(x.value)), x); }
  ATTUNE_HD static D acos(D const& x) {
    T const one(1);
    return detail::chain(math::acos(x.value), T(T(-1) / math::sqrt(T((one - x.value) * (one + x.value)))), x);
  }
  ATTUNE_HD static D erf(D const& x) {
    T const slope = scalar<T>::two_over_sqrt_pi() * math::exp_nonpositive(T(-(x.value * x.value)));
    return detail::chain(math::erf(x.value), slope, x);
  }
  /// d/dx = y x^(y-1), 0 for y = 0;  d/dy = x^y log(x), 0 for x = 0.
  ATTUNE_HD static D pow(D const& x, D const& y) {
    T const zero(0), one(1);
    D r(math::pow(x.value, y.value));
    T const by_x = math::select(y.value == zero, zero, T(y.value * math::pow(x.value, T(y.value - one))));
    typename scalar<T>::mask const at_zero = x.value == zero;
    T const by_y = math::select(at_zero, zero, T(r.value * math::log(T(math::select(at_zero, one, x.value)))));
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n)
      r.tangent[n] = detail::chained<Rule>(by_x, x.tangent[n]) + detail::chained<Rule>(by_y, y.tangent[n]);
    return r;
  }
  ATTUNE_HD static D floor(D const& x) { return D(math::floor(x.value)); }

  /// Inlined explicitly: g++ would otherwise call it for every pair of a gate.
  ATTUNE_HD ATTUNE_INLINE static D softplus(D const& x) {
    return detail::chain(math::softplus(x.value), math::sigmoid(x.value), x);
  }
  /// sigma' = sigma(x) sigma(-x). The form 1 - sigma would cancel.
  ATTUNE_HD static D sigmoid(D const& x) {
    T const s = math::sigmoid(x.value);
    return detail::chain(s, T(s * math::sigmoid(T(-x.value))), x);
  }
  /// tanh' = 4 sigma(2 x) sigma(-2 x). The form 1 - tanh^2 would cancel.
  ATTUNE_HD static D tanh(D const& x) {
    T const twice = x.value + x.value;
    return detail::chain(math::tanh(x.value), T(T(4) * math::sigmoid(twice) * math::sigmoid(T(-twice))), x);
  }
  /// d/dx = 1 / (1 + k x);  d/dk = -x^2 (log(1 + z) - z / (1 + z)) / z^2 at z = k x; the quotient has limit 1/2.
  ATTUNE_HD static D log1p_rate(D const& k, D const& x) {
    T const z = k.value * x.value, one(1);
    D r(math::log1p_rate(k.value, x.value));
    T const by_x = one / (one + z), by_k = -(x.value * x.value) * curvature(z);
    ATTUNE_UNROLL_FEW
    for (int n = 0; n < N; ++n)
      r.tangent[n] = detail::chained<Rule>(by_x, x.tangent[n]) + detail::chained<Rule>(by_k, k.tangent[n]);
    return r;
  }

 private:
  /// (log(1 + z) - z / (1 + z)) / z^2 = sum_n (-z)^n (n + 1) / (n + 2).
  ATTUNE_HD static T curvature(T const& z) {
    if constexpr (requires { scalar<T>::log1p_curvature(z); }) return scalar<T>::log1p_curvature(z);
    T const one(1), limit = T(0.0625);
    T series(0);
    for (int n = 44; n >= 0; --n)
      series = lift<T>::constant(double(n + 1)) / lift<T>::constant(double(n + 2)) - z * series;
    T const safe = math::select(math::abs(z) < limit, one, z);
    T const direct = (math::log1p(safe) - safe / (one + safe)) / (safe * safe);
    return math::select(math::abs(z) < limit, series, direct);
  }
};

/// Which parameters and tables of an operator get tangents, by their numbers. The parameters are [first_number,
/// first_number + count). Without `along`, parameter n has direction first + n - first_number (a gradient with respect
/// to every parameter). With `along`, each moves along its entry in direction 0 (a directional derivative). Tables move
/// along `tables_along`.
struct parameter_seeds {
  int first_number = 0,                 ///< number of the first parameter that gets tangents
      count = 0,                        ///< how many parameters get tangents
      first = 0;                        ///< direction of the first one, without `along`
  parameter const* along = nullptr;     ///< `count` directions; an unset one means a constant parameter
  table const* tables_along = nullptr;  ///< one for each table
  int first_entry = 0,                  ///< number of the first table entry that gets tangents (table::first_entry)
      entries = 0,                      ///< how many entries get tangents
      entry_direction = 0;              ///< direction of the first one
};

/// A row of a table in a row of dual numbers: an entry has the tangent of its direction, or moves along a table.
template <class T, int N, chain_rule Rule>
class table_entries<dual<T, N, Rule>> {
 public:
  ATTUNE_HD table_entries(table_entries<T> const& values, table const& x, row_place const& at, index_t i,
                          parameter_seeds const& seeds)
      : values_(values), along_(moves_along(x, seeds) ? seeds.tables_along[x.number()] : x, at, i),
        moves_(moves_along(x, seeds)) {
    if (seeds.entries == 0 || x.first_entry() < 0) return;
    first_ = seeds.entry_direction + x.first_entry() + i * x.columns() - seeds.first_entry;
    lowest_ = seeds.entry_direction;
    highest_ = seeds.entry_direction + seeds.entries;
  }
  ATTUNE_HD ATTUNE_INLINE dual<T, N, Rule> operator[](index_t n) const {
    dual<T, N, Rule> r(values_[n]);
    if (moves_) r.tangent[0] = lift<T>::constant(along_[n]);
    index_t const direction = first_ + n;
    if (direction >= lowest_ && direction < highest_)
      for (int k = 0; k < N; ++k) r.tangent[k] = k == direction ? T(1) : T(0);
    return r;
  }

 private:
  ATTUNE_HD static bool moves_along(table const& x, parameter_seeds const& seeds) {
    return seeds.tables_along != nullptr && x.number() >= 0 && seeds.tables_along[x.number()].is_set();
  }
  table_entries<T> values_;
  table_entries<double> along_;
  bool moves_;
  index_t first_ = 0, lowest_ = 0, highest_ = 0;
};

/// A parameter in a row of dual numbers. Its number identifies it (operators/numbering.hpp); copies have the same
/// number.
template <class T, int N, chain_rule Rule>
struct lift<dual<T, N, Rule>> {
  lift<T> numbers{};
  parameter_seeds seeds{};

  ATTUNE_HD static dual<T, N, Rule> constant(double x) { return dual<T, N, Rule>(lift<T>::constant(x)); }
  ATTUNE_HD dual<T, N, Rule> value(parameter const& p, row_place const& at) const {
    dual<T, N, Rule> r(numbers.value(p, at));
    int const n = p.number() - seeds.first_number;
    if (p.number() < 0 || n < 0 || n >= seeds.count) return r;
    if (seeds.along == nullptr)
      r.tangent[seeds.first + n] = T(1);
    else if (seeds.along[n].is_set())
      r.tangent[0] = lift<T>{}.value(seeds.along[n], at);
    return r;
  }
  ATTUNE_HD table_entries<dual<T, N, Rule>> entries(table const& x, row_place const& at, index_t i) const {
    return {numbers.entries(x, at, i), x, at, i, seeds};
  }
  ATTUNE_HD dual<T, N, Rule> entry(table const& x, index_t b, index_t h, index_t i, index_t d) const {
    dual<T, N, Rule> r(numbers.entry(x, b, h, i, d));
    if (seeds.tables_along != nullptr && x.number() >= 0 && seeds.tables_along[x.number()].is_set())
      r.tangent[0] = T(seeds.tables_along[x.number()](b, h, i, d));
    return r;
  }
};

/// A row of dual numbers. All are constants except the parameters that `numbers` gives tangents.
template <class T, int N, chain_rule Rule>
ATTUNE_HD row<dual<T, N, Rule>> lifted(row<T> const& r, lift<dual<T, N, Rule>> const& numbers) {
  using D = dual<T, N, Rule>;
  return {r.place,          D(r.position), D(r.visible), D(r.log_visible), D(r.inverse_sqrt_width),
          D(r.logit_shift), D(r.keys),     numbers};
}

}  // namespace attune
