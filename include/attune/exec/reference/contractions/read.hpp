// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   read<T>(x, b, h, i, d)      an element of an input in any scalar, with its tangent if it has one
#pragma once

#include <attune/core/dual.hpp>
#include <attune/exec/direction.hpp>
#include <attune/exec/reference/any_tensor.hpp>

namespace attune::detail {

/// One element of an input as a T.
template <class T>
T read(any_tensor const& x, index_t b, index_t h, index_t i, index_t d) {
  return T(x(b, h, i, d));
}
/// The same for a tensor with tangents.
template <class T>
dual<T, 1> read_dual(tangent_tensor const& x, index_t b, index_t h, index_t i, index_t d) {
  dual<T, 1> r(T(x.value(b, h, i, d)));
  if (x.moves()) r.tangent[0] = T(x.along(b, h, i, d));
  return r;
}
template <class D>
D read(tangent_tensor const& x, index_t b, index_t h, index_t i, index_t d) {
  return read_dual<typename D::value_type>(x, b, h, i, d);
}

/// The same; axes of extent 1 are shared.
template <class T, class View>
T read_shared(View const& x, index_t b, index_t h, index_t i, index_t d) {
  row_index const at = broadcast(x, b, h, i);
  return read<T>(x, at.batch, at.head, at.position, d);
}

}  // namespace attune::detail
