// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   points<double> x(data, width);   x[i] is a vector,   norm(x[i]), dot(x[i], x[j]), distance(x[i], x[j])
//
// The inputs of the analysis: contiguous arrays of any scalar, and rows of equal width in such an array. Nothing is
// copied.
#pragma once

#include <ranges>
#include <span>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/math.hpp>
#include <attune/core/tensor.hpp>

namespace attune::analysis {

/// A contiguous array of scalars: std::vector, std::array, std::span, ...
template <class R>
concept numbers = std::ranges::contiguous_range<R const> && std::ranges::sized_range<R const>;

/// The element type of an array.
template <class R>
using number_of = std::ranges::range_value_t<R>;

/// The number of elements of an array.
template <numbers R>
index_t count_of(R const& row) {
  return index_t(std::ranges::size(row));
}

/// L vectors of the same width, one after the other. Does not own them.
template <class T>
class points {
 public:
  /// Throws attune::error unless the data is a whole number of rows.
  points(std::span<T const> values, index_t width) : values_(values), width_(width) {
    if (width < 1 || index_t(values.size()) % width != 0)
      throw error("analysis::points", "width", attune::detail::text("the value ", width),
                  attune::detail::text("a positive divisor of the ", index_t(values.size()), " numbers"));
  }
  /// The same from a vector, which must outlive this object.
  points(std::vector<T> const& values, index_t width) : points(std::span<T const>(values), width) {}
  points(std::vector<T>&&, index_t) = delete;  // it would dangle

  index_t count() const { return index_t(values_.size()) / width_; }  ///< L: the number of vectors
  index_t width() const { return width_; }                            ///< the number of elements of each vector
  /// Vector i; not checked.
  std::span<T const> operator[](index_t i) const {
    return values_.subspan(std::size_t(i * width_), std::size_t(width_));
  }

 private:
  std::span<T const> values_;
  index_t width_;
};

/// sum x_i
template <numbers R, class T = number_of<R>>
T sum(R const& x) {
  T s(0);
  for (T const& value : x) s = s + value;
  return s;
}
/// <x, y>; x and y have equal length.
template <numbers X, numbers Y, class T = number_of<X>>
T dot(X const& x, Y const& y) {
  T s(0);
  auto b = std::ranges::begin(y);
  for (T const& a : x) s = s + a * *b++;
  return s;
}
/// The Euclidean norm. Squares must be in range.
template <numbers R, class T = number_of<R>>
T norm(R const& x) {
  return math::sqrt(dot(x, x));
}
/// |x - y|^2 by differences: accurate for neighbors far from the origin.
template <numbers X, numbers Y, class T = number_of<X>>
T squared_distance(X const& x, Y const& y) {
  T s(0);
  auto b = std::ranges::begin(y);
  for (T const& a : x) {
    T const d = a - *b++;
    s = s + d * d;
  }
  return s;
}
/// |x - y|
template <numbers X, numbers Y, class T = number_of<X>>
T distance(X const& x, Y const& y) {
  return math::sqrt(squared_distance(x, y));
}

namespace detail {

inline void require_length(char const* function, char const* argument, index_t found, index_t expected) {
  if (found != expected)
    throw error(function, argument, attune::detail::text("the length ", found),
                attune::detail::text("length ", expected));
}
template <class T>
void require_positive(char const* function, char const* argument, T const& x) {
  if (!(x > T(0))) throw error(function, argument, attune::detail::text("the value ", double(x)), "a positive number");
}
inline void require_count(char const* function, char const* argument, index_t found, index_t least, index_t most) {
  if (found < least || found > most)
    throw error(function, argument, attune::detail::text("the value ", found),
                attune::detail::text("a value from ", least, " to ", most));
}

}  // namespace detail
}  // namespace attune::analysis
