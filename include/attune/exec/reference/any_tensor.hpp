// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x(b, h, i, d) as a double, from float or double storage
#pragma once

#include <type_traits>

#include <attune/core/tensor.hpp>

namespace attune {

/// The reference executor's read-only view. Its storage type is chosen at run time: speed does not matter there, and
/// the same reference judges kernels of every storage type. Conversion to double is exact.
class any_tensor {
 public:
  constexpr any_tensor() = default;
  constexpr any_tensor(tensor<double const> x) : doubles_(x), extents_(x.extents()) {}               ///< of doubles
  constexpr any_tensor(tensor<float const> x) : floats_(x), extents_(x.extents()), single_(true) {}  ///< of floats
  constexpr any_tensor(tensor<double> x) : any_tensor(tensor<double const>(x)) {}                    ///< of doubles
  constexpr any_tensor(tensor<float> x) : any_tensor(tensor<float const>(x)) {}                      ///< of floats

  constexpr bool absent() const { return single_ ? floats_.absent() : doubles_.absent(); }  ///< no tensor was given
  constexpr shape const& extents() const { return extents_; }                               ///< of the tensor
  /// One element, as a double; not checked.
  constexpr double operator()(index_t b, index_t h, index_t i, index_t d) const {
    return single_ ? double(floats_(b, h, i, d)) : doubles_(b, h, i, d);
  }

  /// Calls use(pointer to the first feature, stride) with the row's true element type: loops over features stay plain.
  template <class Use>
  constexpr decltype(auto) row(index_t b, index_t h, index_t i, Use const& use) const {
    return single_ ? use(floats_.row(b, h, i), floats_.steps().feature)
                   : use(doubles_.row(b, h, i), doubles_.steps().feature);
  }
  /// The positions of one head: every batch element and head of the view is head h of element b.
  constexpr any_tensor of_head(index_t b, index_t h) const {
    auto const view = [&](auto const& x) {
      auto const steps = x.steps();
      return std::remove_cvref_t<decltype(x)>(&x(b, h, 0, 0), {1, 1, extents_.position, extents_.feature},
                                              {0, 0, steps.position, steps.feature});
    };
    return absent() ? *this : single_ ? any_tensor(view(floats_)) : any_tensor(view(doubles_));
  }

 private:
  tensor<double const> doubles_;
  tensor<float const> floats_;
  shape extents_{0, 0, 0, 0};
  bool single_ = false;
};

/// A tensor and the direction in which it moves; without a direction it is constant. The view of directional
/// derivatives.
struct tangent_tensor {
  any_tensor value,  ///< the tensor
      along;         ///< the direction, of the same shape; absent: constant

  constexpr tangent_tensor() = default;
  constexpr tangent_tensor(any_tensor x) : value(x) {}  ///< constant
  /// A constant tensor of float or double.
  template <class E>
  constexpr tangent_tensor(tensor<E> x) : value(x) {}
  constexpr tangent_tensor(any_tensor x, any_tensor direction) : value(x), along(direction) {}  ///< moves along it
  constexpr bool absent() const { return value.absent(); }                                      ///< no tensor was given
  constexpr shape const& extents() const { return value.extents(); }                            ///< of the tensor
  constexpr bool moves() const { return !along.absent(); }                                      ///< has a direction
};

}  // namespace attune
