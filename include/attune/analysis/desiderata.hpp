// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   wishes_of(length_scale::ssmax{1.0}, normalizer::entmax15{}):  length-adaptive?  sparse?  gradient-stable?
//
// The three desiderata of "Limitations of Normalization" for a normalizer, as numbers, for any length scale with any
// normalizer.
#pragma once

#include <attune/analysis/jacobian.hpp>

namespace attune::analysis {

/// The row that a normalizer is tested with.
template <class T>
struct wish_probe {
  T gap = T(1);      ///< by which one key leads all others
  index_t few = 16,  ///< the smaller number of keys to compare, at least 2
      many = 512;    ///< the larger number of keys to compare, at least `few`
  T size = T(3);     ///< of the largest logits at which the Jacobian is computed
};

/// The three desiderata as numbers: how far weights adapt to the length, are sparse, and have a stable gradient.
template <class T>
struct wishes {
  /// Weight of the leading key at `many` keys divided by its weight at `few`: 1 is length-adaptive, few / many is
  /// dilution.
  T kept_weight;
  T empty_share;      ///< share of `many` keys of evenly spaced logits in [-size, size] whose weight is exactly 0
  T gradient_norm;    ///< largest |dw/ds|_2 over pairs tied at 0 to size among 6 keys: 1/2 for softmax
  T gradient_growth;  ///< the same for scores of size 16 size, divided by gradient_norm: 1 is stable
};

/// The weights of scores after a length scale, bound to their number, and a normalizer.
template <class LengthScale, class Normalizer, numbers R, class T = number_of<R>>
std::vector<T> scaled_weights(LengthScale const& length_scale, Normalizer const& normalizer, R const& scores) {
  row<T> r{};
  r.visible = r.keys = T(double(count_of(scores)));
  r.log_visible = count_of(scores) > 0 ? math::log(r.visible) : T(0);
  auto const bound = length_scale.bind(r);
  std::vector<T> logits;
  for (T const& s : scores) logits.push_back(bound.scale(s));
  return weights(normalizer, logits);
}

namespace detail {

/// The norm |dw/ds|_2 for two scores tied at `height` and four scores spread below, no two closer than 1.
template <class LengthScale, class Normalizer, class T>
T tied_norm(LengthScale const& length_scale, Normalizer const& normalizer, T const& height) {
  using D = dual<T, 1>;
  std::vector<D> s;
  for (int j = 0; j < 6; ++j) s.push_back(D(j < 2 ? height : T(height - T(double(j)))));
  matrix<T> m(6, 6);
  for (index_t c = 0; c < 6; ++c) {
    s[std::size_t(c)].tangent[0] = T(1);
    std::vector<D> const w = scaled_weights(length_scale, normalizer, s);
    for (index_t i = 0; i < 6; ++i) m(i, c) = w[std::size_t(i)].tangent[0];
    s[std::size_t(c)].tangent[0] = T(0);
  }
  return spectral_norm(m);
}
template <class LengthScale, class Normalizer, class T>
T worst_norm(LengthScale const& length_scale, Normalizer const& normalizer, T const& size) {
  T worst(0);
  for (int step = 0; step <= 4; ++step)
    worst = math::larger(worst, tied_norm(length_scale, normalizer, T(size * T(double(step)) / T(4))));
  return worst;
}

}  // namespace detail

/// Measures the three desiderata for a length scale and a normalizer, on the rows that `probe` describes.
/// Throws attune::error unless 2 <= probe.few <= probe.many.
/// Source: Limitations of Normalization, section 5 (future directions).
template <class LengthScale, class Normalizer, class T = double>
wishes<T> wishes_of(LengthScale const& length_scale, Normalizer const& normalizer, wish_probe<T> const& probe = {}) {
  detail::require_count("analysis::wishes_of", "few", probe.few, 2, probe.many);
  auto const leading = [&](index_t keys) {
    std::vector<T> s(std::size_t(keys), T(0));
    s[0] = probe.gap;
    return scaled_weights(length_scale, normalizer, s)[0];
  };
  std::vector<T> even;
  for (index_t j = 0; j < probe.many; ++j)
    even.push_back(probe.size * (T(2) * T(double(j)) / T(double(probe.many - 1)) - T(1)));
  index_t empty = 0;
  for (T const& w : scaled_weights(length_scale, normalizer, even))
    if (w == T(0)) ++empty;
  T const norm = detail::worst_norm(length_scale, normalizer, probe.size);
  return {leading(probe.many) / leading(probe.few), T(double(empty)) / T(double(probe.many)), norm,
          detail::worst_norm(length_scale, normalizer, T(T(16) * probe.size)) / norm};
}

}  // namespace attune::analysis
