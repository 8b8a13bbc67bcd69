// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   view(matrix)          (positions, features)           as (1, 1, positions, features)
//   view(matrix, heads)   (positions, heads * features)   as (1, heads, positions, features)
//
// Eigen matrices, arrays, maps and blocks as tensors, without a copy, for any storage order and strides.
#pragma once

#include <Eigen/Core>

#include <attune/core/tensor.hpp>

namespace attune {

namespace detail {

template <class E, class Matrix>
tensor<E> eigen_view(E* data, Matrix const& x, index_t heads) {
  if (heads < 1 || x.cols() % heads != 0)
    throw error("view", "the matrix", text(x.cols(), " columns for ", heads, " heads"),
                "a multiple of a positive number of heads");
  index_t const down = x.rowStride(), across = x.colStride(), width = x.cols() / heads;
  return {data, shape{1, heads, x.rows(), width}, strides{x.rows() * down, width * across, down, across}};
}

}  // namespace detail

/// A writable view. The matrix must outlive it and keep its size. Throws attune::error unless the number of columns is
/// divisible by `heads`.
template <class Derived>
auto view(Eigen::PlainObjectBase<Derived>& x, index_t heads = 1) {
  return detail::eigen_view(x.data(), x.derived(), heads);
}
/// A read-only view.
template <class Derived>
auto view(Eigen::PlainObjectBase<Derived> const& x, index_t heads = 1) {
  return detail::eigen_view(x.data(), x.derived(), heads);
}
/// A view of a map, a reference or a block, writable if the argument is.
template <class Derived, int Access>
auto view(Eigen::MapBase<Derived, Access> const& x, index_t heads = 1) {
  // Eigen's const is shallow for maps; a map of const data has no non-const data().
  using scalar_type =
      std::conditional_t<Access == Eigen::WriteAccessors, typename Derived::Scalar, typename Derived::Scalar const>;
  return detail::eigen_view(const_cast<scalar_type*>(x.data()), x.derived(), heads);
}

}  // namespace attune
