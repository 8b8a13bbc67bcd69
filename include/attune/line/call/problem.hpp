// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sort_q (B, H, Lq, 1)   sort_k (B, H', Lk, 1)   v (B, Hv, Lk, Dv)   ->   out (B, H, Lq, Dv)
//
// Inputs and outputs of the operators on a line, and their checks. H' and Hv divide H: grouped keys, and the grouped
// values of Scalar Sort, where every head has its own order over the values that its group shares.
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

namespace attune::line::detail {

template <class T>
struct arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};
};
/// lse (B, H, Lq, 1) is optional. It does not exist where weights are not divided by a sum of exponentials.
template <class T>
struct results {
  tensor<T> out{}, lse{};
};
template <class T>
struct result_cotangents {
  tensor<T const> out{}, lse{};
};
/// Gradients are written, not accumulated. Absent ones are not written.
template <class T>
struct gradient_views {
  tensor<T> sort_q{}, sort_k{}, v{};
};

/// Sums run in double for float tensors: a scan over n keys rounds n times.
template <class T>
using wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// The extents after they were checked.
struct extents {
  index_t batch, heads, key_heads, value_heads, queries, keys, width;
  /// Number of groups of heads that share neither keys nor values. Tasks may split the heads between such groups.
  index_t groups() const { return std::gcd(key_heads, value_heads); }
  ATTUNE_HD index_t key_head(index_t h) const { return h * key_heads / heads; }
  ATTUNE_HD index_t value_head(index_t h) const { return h * value_heads / heads; }
  shape query_side(index_t features) const { return {batch, heads, queries, features}; }
  shape key_side(index_t features) const { return {batch, key_heads, keys, features}; }
  shape value_side() const { return {batch, value_heads, keys, width}; }
};

/// Keys on a line can be sorted only if every number is finite.
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

/// The largest |x| among the finite numbers of a head. Computed for doubles only: floats are far from the limits of a
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

/// Throws unless the tolerance of an approximation is in [1e-12, 1).
inline void check_tolerance(char const* function, double tolerance) {
  if (!(tolerance >= 1e-12 && tolerance < 1))
    throw error(function, "tolerance", attune::detail::text("the value ", tolerance),
                "a number in [1e-12, 1): below, rounding of the sums is larger than what is left out");
}
template <class T>
void clear(tensor<T> const& x) {
  shape const e = x.extents();
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) x(b, h, i, d) = T(0);
}

}  // namespace attune::line::detail
