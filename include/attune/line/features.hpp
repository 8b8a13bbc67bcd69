// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::fourier_features{tau, 64}     line::nystroem{tau, 64}
//
// Approximations of line::gaussian by features of its kernel, without a certificate. Nothing bounds their effect on a
// row, and a mass may even be negative. docs/reference/line.md lists their measured errors next to the certified forms,
// which cost no more.
#pragma once

#include <cstdint>

#include <attune/line/operators.hpp>

namespace attune::line {

/// Random Fourier features: e^(-d^2 / tau) is the mean of cos(w d) over frequencies w of N(0, 2 / tau). There are
/// `features` frequencies, each with a cosine and a sine. The error of the kernel is about 1 / sqrt(features) at every
/// distance: far keys, whose weight should be nearly 0, get weights of that size and of either sign.
/// tau: shared, per batch element or per head. Full rows only. Cost: O(n r Dv) for r = 2 features.
/// Source: Rahimi and Recht 2007; Scalar Sort, "Training complexity": kernel feature approximations.
struct fourier_features : detail::scalars_and_values {
  static constexpr bool has_lse = true;  ///< outputs have a log-sum-exp
  static constexpr mask::none mask{};    ///< every key is visible
  parameter tau;                         ///< bandwidth
  index_t features;                      ///< number of frequencies
  std::uint64_t seed;                    ///< equal seeds give equal frequencies

  /// `count` frequencies for bandwidth tau, drawn with the seed `draw`.
  constexpr fourier_features(parameter bandwidth = 1, index_t count = 64, std::uint64_t draw = 1)
      : tau(bandwidth), features(count), seed(draw) {}
  /// The operator that this one approximates.
  constexpr auto dense() const { return attention(kernel::scalar_sort{tau}, normalizer::softmax{}); }
};

/// Nystroem: the kernel's projection on its values at `landmarks` places, which are quantiles of the keys. The error is
/// small where landmarks are closer than sqrt(tau), and as large as the kernel elsewhere. A jitter of 1e-13 r keeps the
/// landmarks' matrix definite. It moves a row's sum of kernel values by up to 1.6e-7 r where every key is a landmark: a
/// query far from every key, whose kernel values sum to little, loses that share.
/// vjp: landmarks are keys and count as constants. There is no gradient by tau: it is 0.
/// tau: shared, per batch element or per head. Full rows only. Cost: O(n r (Dv + r)) for r landmarks.
/// Source: Scalar Sort, "Training complexity": Nystroem-style approximations (Skyformer has them for vectors).
struct nystroem : detail::scalars_and_values {
  static constexpr bool has_lse = true;  ///< outputs have a log-sum-exp
  static constexpr mask::none mask{};    ///< every key is visible
  parameter tau;                         ///< bandwidth
  index_t landmarks;                     ///< number of places, quantiles of the keys

  /// `count` landmarks for bandwidth tau.
  constexpr nystroem(parameter bandwidth = 1, index_t count = 64) : tau(bandwidth), landmarks(count) {}
  /// The operator that this one approximates.
  constexpr auto dense() const { return attention(kernel::scalar_sort{tau}, normalizer::softmax{}); }
};

}  // namespace attune::line
