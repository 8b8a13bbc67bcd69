// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x(b, h, i, d) as a double, from float or double storage; axes of extent 1 are broadcast
//
// A reference to numbers that a policy does not own. One type serves both storage types, so policies need not be
// templates. It holds plain pointers, so it is the same object on a device.
#pragma once

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// A read-only view of float or double numbers that must outlive it. Default-constructed, it is absent.
class stored_view {
 public:
  constexpr stored_view() = default;
  /// A view of double numbers.
  constexpr stored_view(tensor<double const> x) : doubles_(x.data()), extents_(x.extents()), steps_(broadcast(x)) {}
  /// A view of float numbers.
  constexpr stored_view(tensor<float const> x) : floats_(x.data()), extents_(x.extents()), steps_(broadcast(x)) {}
  /// A view of mutable double numbers.
  constexpr stored_view(tensor<double> x) : stored_view(tensor<double const>(x)) {}
  /// A view of mutable float numbers.
  constexpr stored_view(tensor<float> x) : stored_view(tensor<float const>(x)) {}

  /// True if no tensor was given.
  ATTUNE_HD constexpr bool absent() const {
    return doubles_ == nullptr && floats_ == nullptr && extents_ == shape{0, 0, 0, 0};
  }
  /// Extents as stored: 1 along a broadcast axis; all 0 if absent.
  ATTUNE_HD constexpr shape const& extents() const { return extents_; }
  /// Distances between neighbors in elements; 0 along axes of extent 1.
  ATTUNE_HD constexpr strides const& steps() const { return steps_; }

  /// The address of double numbers; null if the view has floats or is absent.
  ATTUNE_HD constexpr double const* doubles() const { return doubles_; }
  /// The address of float numbers; null if the view has doubles or is absent.
  ATTUNE_HD constexpr float const* floats() const { return floats_; }

  /// One number as a double. The index of a broadcast axis has no effect; other indices are not checked.
  ATTUNE_HD constexpr double operator()(index_t b, index_t h, index_t i, index_t d) const {
    index_t const at = b * steps_.batch + h * steps_.head + i * steps_.position + d * steps_.feature;
    return doubles_ != nullptr ? doubles_[at] : double(floats_[at]);
  }

 private:
  template <class E>
  static constexpr strides broadcast(tensor<E> const& x) {
    shape const e = x.extents();
    strides s = x.steps();
    if (e.batch == 1) s.batch = 0;
    if (e.head == 1) s.head = 0;
    if (e.position == 1) s.position = 0;
    if (e.feature == 1) s.feature = 0;
    return s;
  }

  double const* doubles_ = nullptr;
  float const* floats_ = nullptr;
  shape extents_{0, 0, 0, 0};
  strides steps_{};
};

}  // namespace attune
