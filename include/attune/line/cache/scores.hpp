// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   -(q - k)^2 / tau + (q - n)^2 / tau  =  (n - k) ((q - k) + (q - n)) / -tau      n: the key nearest to q
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <attune/core/simd_math.hpp>
#include <attune/core/xsimd.hpp>

ATTUNE_INTRINSICS_BEGIN
namespace attune::line::detail {

/// a - b and its rounding error (Knuth's TwoSum).
template <class X>
struct exact_difference {
  X high, low;
  ATTUNE_INLINE exact_difference(X const& a, X const& b) : high(math::as_computed(X(a - b))), low(lost(a, b, high)) {}

 private:
  ATTUNE_INLINE static X lost(X const& a, X const& b, X const& s) {
    X const t = math::as_computed(X(s - a));
    return (a - math::as_computed(X(s - t))) - (b + t);
  }
};

/// Scores of kernel::scalar_sort relative to the score of the nearest key. This keeps digits where a query is far from
/// all keys, and makes tau -> 0 (scores of -inf) and tau -> inf ordinary cases. 1 / sqrt(tau) is multiplied into both
/// factors, so that overflow or underflow creates neither false ties nor NaN.
/// Numerics: at most 14 u |score| away from the exact score, u = 2^-53, for keys and queries as stored.
class relative_scores {
 public:
  relative_scores() = default;
  relative_scores(double query, double nearest_key, double tau)
      : query_(query), nearest_(nearest_key), root_(1 / std::sqrt(tau)), to_nearest_(query, nearest_key) {}

  /// <= 0 up to rounding, for every key.
  template <class X>
  ATTUNE_INLINE X operator()(X const& key) const {
    exact_difference<X> const e(X(query_), key);
    X const sum = (e.high + X(to_nearest_.high)) + (e.low + X(to_nearest_.low));
    return -(clamped(X((X(nearest_) - key) * X(root_))) * clamped(X(sum * X(root_))));
  }
  /// The largest possible score of a key in [first, last].
  double best_of(double first, double last) const {
    if (query_ < first) return (std::min)(0.0, (*this)(first));
    if (query_ > last) return (std::min)(0.0, (*this)(last));
    return 0;
  }
  /// -(q - n)^2 / tau: the score of the nearest key, which the scores are relative to.
  double best() const {
    double const e = to_nearest_.high * root_;
    return -(e * e);
  }

 private:
  /// Clamps x far beyond any value that matters, so that the product stays finite.
  template <class X>
  ATTUNE_INLINE static X clamped(X const& x) {
    X const most(0x1p500);
    return math::smaller(math::larger(x, X(-most)), most);
  }

  double query_ = 0, nearest_ = 0, root_ = 1;
  exact_difference<double> to_nearest_{0.0, 0.0};
};

/// Loads stored numbers into a register of doubles.
template <class Arch, class T>
ATTUNE_INLINE xsimd::batch<double, Arch> load_wide(T const* from) {
  using batch = xsimd::batch<double, Arch>;
  if constexpr (std::is_same_v<T, double>) {
    return batch::load_unaligned(from);
  } else {
#if XSIMD_WITH_AVX512F
    if constexpr (std::is_base_of_v<xsimd::avx512f, Arch> && batch::size == 8)
      return _mm512_cvtps_pd(_mm256_loadu_ps(from));
#endif
#if XSIMD_WITH_AVX
    if constexpr (std::is_base_of_v<xsimd::avx, Arch> && batch::size == 4) return _mm256_cvtps_pd(_mm_loadu_ps(from));
#endif
    alignas(64) double wide[batch::size];
    for (std::size_t i = 0; i < batch::size; ++i) wide[i] = double(from[i]);
    return batch::load_aligned(wide);
  }
}

}  // namespace attune::line::detail
ATTUNE_INTRINSICS_END
