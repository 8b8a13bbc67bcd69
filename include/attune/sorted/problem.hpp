// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sort_q (B, H, Lq, 1)   sort_k (B, H', Lk, 1)   v (B, Hv, Lk, Dv)   ->   out (B, H, Lq, Dv)
//
// What the operators on a line of keys take and give, and what they refuse. H' and Hv divide H: grouped keys, and the
// grouped values of Scalar Sort, where every head has an order of its own over the values that its group shares.
#pragma once

#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include <attune/core/distinct.hpp>
#include <attune/core/math.hpp>
#include <attune/core/parameter.hpp>
#include <attune/core/tensor.hpp>
#include <attune/exec/problem.hpp>
#include <attune/sorted/operators.hpp>

namespace attune::sorted {

template <class T>
struct arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};
};
/// lse (B, H, Lq, 1) is optional, and does not exist where weights are not divided by a sum of exponentials.
template <class T>
struct results {
  tensor<T> out{}, lse{};
};
template <class T>
struct cotangents {
  tensor<T const> out{}, lse{};
};
/// Gradients are written, not added. What is absent is not written. tau has one number per head, or one for all: (1, H
/// or 1, 1, 1).
template <class T>
struct gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, tau{};
};

namespace detail {

/// Sums run in double where the tensors are float: a scan over n keys rounds n times.
template <class T>
using wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// Extents, once they fit.
struct extents {
  index_t batch, heads, key_heads, value_heads, queries, keys, width;
  /// Heads that share no keys and no values with others: what tasks may take apart.
  index_t groups() const { return std::gcd(key_heads, value_heads); }
  ATTUNE_HD index_t key_head(index_t h) const { return h * key_heads / heads; }
  ATTUNE_HD index_t value_head(index_t h) const { return h * value_heads / heads; }
  shape query_side(index_t features) const { return {batch, heads, queries, features}; }
  shape key_side(index_t features) const { return {batch, key_heads, keys, features}; }
  shape value_side() const { return {batch, value_heads, keys, width}; }
};

/// Of what is written, no elements may share memory either.
template <class E>
void require_shape(char const* function, char const* argument, tensor<E> const& x, shape const& expected,
                   bool optional) {
  if (optional && x.absent()) return;
  if (!(x.extents() == expected))
    throw error(function, argument, attune::detail::text("shape ", to_string(x.extents())),
                attune::detail::text("shape ", to_string(expected)));
  if constexpr (!std::is_const_v<E>) attune::detail::require_distinct(function, argument, x);
}

/// A line has an order only if every number on it is finite.
template <class T>
void require_finite(char const* function, char const* argument, tensor<T const> const& x) {
  shape const e = x.extents();
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        if (T const value = x(b, h, i, 0); !(value - value == T(0)))
          throw error(function, argument,
                      attune::detail::text("the value ", double(value), " at (batch, head, position) = (", b, ", ", h,
                                           ", ", i, ")"),
                      "finite numbers: they are sorted");
}

/// Numbers in the memory of a device are not looked at.
template <class T>
extents checked(char const* function, arrays<T> const& in, memory_kind where = memory_kind::host) {
  shape const q = in.sort_q.extents(), k = in.sort_k.extents(), v = in.v.extents();
  extents const e{q.batch, q.head, k.head, v.head, q.position, k.position, v.feature};
  require_shape(function, "sort_q", in.sort_q, e.query_side(1), false);
  require_shape(function, "sort_k", in.sort_k, e.key_side(1), false);
  require_shape(function, "v", in.v, e.value_side(), false);
  if (e.key_heads < 1 || e.heads % e.key_heads != 0)
    throw error(function, "sort_k", attune::detail::text(e.key_heads, " heads"),
                attune::detail::text("a divisor of ", e.heads));
  if (e.value_heads < 1 || e.heads % e.value_heads != 0)
    throw error(function, "v", attune::detail::text(e.value_heads, " heads"),
                attune::detail::text("a divisor of ", e.heads));
  if (where == memory_kind::device) return e;
  require_finite(function, "sort_q", in.sort_q);
  require_finite(function, "sort_k", in.sort_k);
  return e;
}
template <class T>
void check_results(char const* function, extents const& e, results<T> const& to) {
  require_shape(function, "out", to.out, e.query_side(e.width), false);
  require_shape(function, "lse", to.lse, e.query_side(1), true);
}
template <class T>
void check_gradients(char const* function, extents const& e, cotangents<T> const& by, gradients<T> const& d) {
  require_shape(function, "by.out", by.out, e.query_side(e.width), false);
  require_shape(function, "by.lse", by.lse, e.query_side(1), true);
  require_shape(function, "d.sort_q", d.sort_q, e.query_side(1), true);
  require_shape(function, "d.sort_k", d.sort_k, e.key_side(1), true);
  require_shape(function, "d.v", d.v, e.value_side(), true);
  if (!d.tau.absent() && d.tau.extents().head != 1) require_shape(function, "d.tau", d.tau, {1, e.heads, 1, 1}, true);
  if (!d.tau.absent() && d.tau.extents().head == 1) require_shape(function, "d.tau", d.tau, {1, 1, 1, 1}, true);
}

/// The largest |x| among the finite numbers of a head; looked for in doubles alone: floats are far from the ends of a
/// double.
template <class T>
double largest_value([[maybe_unused]] tensor<T const> const& x, [[maybe_unused]] index_t b,
                     [[maybe_unused]] index_t h) {
  double most = 0;
  if constexpr (std::is_same_v<T, double>)
    for (index_t j = 0; j < x.extents().position; ++j) {
      double const* const row = x.row(b, h, j);
      for (index_t f = 0; f < x.extents().feature; ++f)
        if (double const a = math::abs(row[f * x.steps().feature]); a <= (std::numeric_limits<double>::max)())
          most = a > most ? a : most;
    }
  return most;
}

/// A bandwidth per head at most: queries that share no bandwidth share no scan and no expansion.
template <class T>
void check_bandwidth(char const* function, extents const& e, parameter const& tau,
                     memory_kind where = memory_kind::host) {
  if (tau.extents().position != 1)
    throw error(
        function, "tau", "one value per query",
        "one value, or one per head: sums over sorted keys serve queries of one bandwidth; for one per query take the "
        "certified window or the dense operator");
  attune::detail::check_parameter<wide<T>>(function, "tau", tau, domain::positive, e.batch, e.heads, e.queries, where);
}

/// What an approximation may leave out of a row.
inline void check_tolerance(char const* function, double tolerance) {
  if (!(tolerance >= 1e-12 && tolerance < 1))
    throw error(function, "tolerance", attune::detail::text("the value ", tolerance),
                "a number in [1e-12, 1): below, rounding of the sums is larger than what is left out");
}
inline void check_lse(char const* function, char const* argument, sliced_relu const& op, bool absent) {
  if (!absent && op.divided_by != divisor::sum)
    throw error(function, argument, "a tensor",
                "none: weights that are not divided by their sum have no lse (divided_by = divisor::sum has)");
}

template <class T>
void check_no_bandwidth(char const* function, gradients<T> const& d) {
  if (!d.tau.absent()) throw error(function, "d.tau", "a tensor", "none: this operator has no bandwidth");
}

template <class T>
void clear(tensor<T> const& x) {
  shape const e = x.extents();
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) x(b, h, i, d) = T(0);
}

/// Sums the gradients of every (batch, head) where one tau serves several.
template <class T>
void write_tau(extents const& e, std::type_identity_t<std::vector<wide<T>>> const& parts, tensor<T> const& to) {
  if (to.absent()) return;
  index_t const heads = to.extents().head;
  std::vector<wide<T>> sums(std::size_t(heads), wide<T>(0));
  for (index_t n = 0; n < e.batch * e.heads; ++n) {
    wide<T>& sum = sums[std::size_t(heads == 1 ? 0 : n % e.heads)];
    sum = sum + parts[std::size_t(n)];
  }
  for (index_t h = 0; h < heads; ++h) to(0, h, 0, 0) = T(sums[std::size_t(h)]);
}

}  // namespace detail
}  // namespace attune::sorted
