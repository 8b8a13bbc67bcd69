// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x(b, h, i, d) = data[b * strides.batch + h * strides.head + i * strides.position + d * strides.feature]
//
// A strided, non-owning view of a tensor with axes (batch, head, position, feature). Strides count elements and may be
// zero (a broadcast axis) or negative. Views never copy.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/config.hpp>
#include <attune/core/error.hpp>

namespace attune {

/// The signed type of indices, extents and strides.
using index_t = std::ptrdiff_t;

/// Whether the host may read what views, parameters, tables and masks point to.
enum class memory_kind { host, device };

/// Extents of the four axes. Axes that an argument does not have are 1.
struct shape {
  index_t batch = 1,  ///< B: batch elements
      head = 1,       ///< H: heads
      position = 1,   ///< L: queries or keys
      feature = 1;    ///< D: numbers per position
  /// Number of elements: the product of the extents.
  ATTUNE_HD constexpr index_t size() const { return batch * head * position * feature; }
  friend constexpr bool operator==(shape const&, shape const&) = default;
};

/// Distances, in elements, between neighbors along the four axes.
struct strides {
  index_t batch = 0,  ///< from one batch element to the next
      head = 0,       ///< from one head to the next
      position = 0,   ///< from one query or key to the next
      feature = 0;    ///< from one number of a position to the next
  /// Row-major, without gaps.
  static constexpr strides dense(shape const& s) {
    return {s.head * s.position * s.feature, s.position * s.feature, s.feature, 1};
  }
};

/// "(batch, head, position, feature)", as error messages print it.
ATTUNE_NOINLINE inline std::string to_string(shape const& s) {
  return detail::text("(", s.batch, ", ", s.head, ", ", s.position, ", ", s.feature, ")");
}

namespace detail {
[[noreturn]] ATTUNE_NOINLINE inline void refuse_extents(shape const& extents) {
  throw error("tensor", "shape", text("the value ", to_string(extents)),
              "extents >= 0 for (batch, head, position, feature)");
}
[[noreturn]] ATTUNE_NOINLINE inline void refuse_size(shape const& extents) {
  throw error("tensor", "shape", text("the value ", to_string(extents)),
              "extents whose product is a number of elements that index_t holds");
}
[[noreturn]] ATTUNE_NOINLINE inline void refuse_null(shape const& extents) {
  throw error("tensor", "data", "a null pointer", text("memory for the shape ", to_string(extents)));
}

/// The extents, after checking that none is negative and that index_t holds their product.
constexpr shape const& countable(shape const& s) {
  if (s.batch < 0 || s.head < 0 || s.position < 0 || s.feature < 0) refuse_extents(s);
  index_t elements = 1;  // product of the non-empty axes, so that no partial product overflows either
  for (index_t const extent : {s.batch, s.head, s.position, s.feature})
    if (extent > 0 && __builtin_mul_overflow(elements, extent, &elements)) refuse_size(s);
  return s;
}
}  // namespace detail

/// The view. `tensor<float const>` is read-only; a `tensor<float>` converts to it. A default-constructed tensor is
/// absent (an optional argument that was not given).
template <class E>
class tensor {
 public:
  using element = E;                          ///< the element type, const for a read-only view
  using value_type = std::remove_const_t<E>;  ///< the element type without const

  constexpr tensor() = default;

  /// Dense, row-major data at `data`.
  constexpr tensor(E* data, shape const& extents) : tensor(data, extents, strides::dense(detail::countable(extents))) {}

  /// Strided data: `data` is the address of element (0, 0, 0, 0). Throws attune::error on a negative extent, on more
  /// elements than index_t can count, and on a null pointer to a non-empty tensor.
  constexpr tensor(E* data, shape const& extents, strides const& steps)
      : data_(data), shape_(extents), strides_(steps) {
    detail::countable(extents);
    if (data == nullptr && extents.size() > 0) detail::refuse_null(extents);
  }

  /// A whole vector, dense. Throws attune::error unless the vector has exactly as many elements as the shape.
  constexpr tensor(std::vector<value_type>& data, shape const& extents)
    requires(!std::is_const_v<E>)
      : tensor(checked(data.data(), data.size(), extents), extents) {}
  /// The same, for a read-only view.
  constexpr tensor(std::vector<value_type> const& data, shape const& extents)
    requires(std::is_const_v<E>)
      : tensor(checked(data.data(), data.size(), extents), extents) {}

  constexpr tensor(std::vector<value_type> const&&, shape const&) = delete;  // it would dangle

  /// A read-only view of a mutable one.
  template <class Mutable>
    requires(std::is_const_v<E> && std::is_same_v<Mutable, value_type>)
  constexpr tensor(tensor<Mutable> const& other)
      : data_(other.data()), shape_(other.extents()), strides_(other.steps()) {}

  /// Tensors never convert their elements: this constructor only gives a readable error.
  template <class Other>
    requires(!std::is_same_v<std::remove_const_t<Other>, value_type>)
  constexpr tensor(tensor<Other> const&) {
    static_assert(
        std::is_same_v<std::remove_const_t<Other>, value_type>,
        "attune: a tensor has another element type than the executor computes in: cpu<float>{} takes float tensors, "
        "cpu<double>{} double ones");
  }

  /// The address of element (0, 0, 0, 0).
  ATTUNE_HD constexpr E* data() const { return data_; }
  /// Extents of the four axes.
  ATTUNE_HD constexpr shape const& extents() const { return shape_; }
  /// Distances, in elements, between neighbors along the four axes.
  ATTUNE_HD constexpr strides const& steps() const { return strides_; }
  /// True if no tensor was given: default-constructed.
  ATTUNE_HD constexpr bool absent() const { return data_ == nullptr && shape_ == shape{0, 0, 0, 0}; }

  /// First feature of one position.
  ATTUNE_HD constexpr E* row(index_t b, index_t h, index_t i) const {
    return data_ + b * strides_.batch + h * strides_.head + i * strides_.position;
  }
  /// One element. The indices are not checked.
  ATTUNE_HD constexpr E& operator()(index_t b, index_t h, index_t i, index_t d) const {
    return row(b, h, i)[d * strides_.feature];
  }

 private:
  template <class P>
  static constexpr P* checked(P* data, std::size_t count, shape const& extents) {
    if (index_t(count) != detail::countable(extents).size())
      throw error("tensor", "the vector", detail::text(count, " elements"),
                  detail::text(extents.size(), ", the size of the shape ", to_string(extents)));
    return data;
  }

  E* data_ = nullptr;
  shape shape_{0, 0, 0, 0};
  strides strides_{};
};

template <class V>
tensor(std::vector<V>&, shape) -> tensor<V>;
template <class V>
tensor(std::vector<V> const&, shape) -> tensor<V const>;
template <class E>
tensor(E*, shape) -> tensor<E>;
template <class E>
tensor(E*, shape, strides) -> tensor<E>;

namespace detail {
/// The number that `zeros` points to. Executors whose programs cannot read it recognize its address.
template <class T>
inline constexpr T zero = T(0);
}  // namespace detail

/// A (batch, head, position, width) tensor of zeros without memory: every stride is 0. Use it as the ground value
/// "nothing". It works on every executor, also on those that compute in device memory.
template <class T>
tensor<T const> zeros(index_t width) {
  return {&detail::zero<T>, shape{1, 1, 1, width}, strides{}};
}

}  // namespace attune
