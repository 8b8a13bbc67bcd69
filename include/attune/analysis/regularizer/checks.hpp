// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The checks that all regularizers apply to their tensors.
#pragma once

#include <string>
#include <type_traits>

#include <attune/core/math.hpp>
#include <attune/core/tensor.hpp>

namespace attune::regularizer::detail {

/// The number type behind a view, const or not.
template <class E>
using number = std::remove_const_t<E>;

template <class E>
void require_shape(char const* function, char const* argument, tensor<E> const& x, shape const& expected) {
  if (!(x.extents() == expected))
    throw error(function, argument, "shape " + to_string(x.extents()),
                attune::detail::text("shape ", to_string(expected)));
}

/// Checks a gradient unless it is absent.
template <class E>
void require_gradient(char const* function, char const* argument, tensor<E> const& x, shape const& expected) {
  if (!x.absent()) require_shape(function, argument, x, expected);
}

/// Requires one number per position; the keys belong to `heads` heads (a divisor of the query heads).
template <class E>
void require_scalars(char const* function, char const* argument, tensor<E> const& x) {
  shape const e = x.extents();
  if (x.absent() || e.size() == 0 || e.feature != 1)
    throw error(function, argument, "shape " + to_string(e), "(batch, head, position, 1), not empty");
}

template <class T>
bool is_finite(T const& x) {
  return x - x == T(0);
}

}  // namespace attune::regularizer::detail
