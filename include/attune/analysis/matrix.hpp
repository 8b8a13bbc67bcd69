// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   m(r, c),   |m|_2 = the largest singular value
//
// Small dense matrices of any scalar. A solver of Eigen adds half a minute of compile time per file, and the Jacobian
// of a row is small. These few lines of one-sided Jacobi rotations are as accurate.
#pragma once

#include <utility>

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// Row-major, initially zero.
template <class T>
class matrix {
 public:
  /// A matrix of zeros.
  matrix(index_t rows, index_t columns)
      : rows_(rows), columns_(columns), values_(std::size_t(rows) * std::size_t(columns), T(0)) {}
  index_t rows() const { return rows_; }        ///< the number of rows
  index_t columns() const { return columns_; }  ///< the number of columns
  /// The entry in row r and column c; not checked.
  T& operator()(index_t r, index_t c) { return values_[std::size_t(r * columns_ + c)]; }
  /// The entry in row r and column c; not checked.
  T const& operator()(index_t r, index_t c) const { return values_[std::size_t(r * columns_ + c)]; }
  std::vector<T> const& values() const { return values_; }  ///< all entries, row-major

 private:
  index_t rows_, columns_;
  std::vector<T> values_;
};

/// The rows of x as a matrix.
template <class T>
matrix<T> matrix_of(points<T> const& x) {
  matrix<T> m(x.count(), x.width());
  for (index_t i = 0; i < x.count(); ++i)
    for (index_t d = 0; d < x.width(); ++d) m(i, d) = x[i][std::size_t(d)];
  return m;
}

/// max |m_rc|
template <class T>
T largest_entry(matrix<T> const& m) {
  T largest(0);
  for (T const& x : m.values()) largest = math::larger(largest, math::abs(x));
  return largest;
}

/// The largest singular value. Columns (rows, if there are fewer) are rotated in pairs until all are orthogonal; the
/// longest one gives the result. About ten sweeps of O(min(r, c)^2 max(r, c)).
template <class T>
T spectral_norm(matrix<T> const& m) {
  bool const by_rows = m.rows() < m.columns();
  index_t const count = by_rows ? m.rows() : m.columns(), length = by_rows ? m.columns() : m.rows();
  std::vector<std::vector<T>> side(std::size_t(count), std::vector<T>(std::size_t(length), T(0)));
  for (index_t k = 0; k < count; ++k)
    for (index_t i = 0; i < length; ++i) side[std::size_t(k)][std::size_t(i)] = by_rows ? m(k, i) : m(i, k);
  T const zero(0), one(1), two(2), tolerance = T(double(length + 1)) * scalar<T>::epsilon();
  bool turned = true;
  for (int sweep = 0; turned && sweep < 100; ++sweep) {
    turned = false;
    for (std::size_t a = 0; a < side.size(); ++a)
      for (std::size_t b = a + 1; b < side.size(); ++b) {
        T const first = dot(side[a], side[a]), second = dot(side[b], side[b]), both = dot(side[a], side[b]);
        if (math::abs(both) <= tolerance * math::sqrt(T(first * second))) continue;
        turned = true;
        T const cotangent = (second - first) / (two * both);
        T const size = one / (math::abs(cotangent) + math::sqrt(T(one + cotangent * cotangent)));
        T const t = cotangent < zero ? T(-size) : size, c = one / math::sqrt(T(one + t * t)), s = c * t;
        for (std::size_t i = 0; i < side[a].size(); ++i) {
          T const x = side[a][i], y = side[b][i];
          side[a][i] = c * x - s * y;
          side[b][i] = s * x + c * y;
        }
      }
  }
  T longest(0);
  for (auto const& column : side) longest = math::larger(longest, norm(column));
  return longest;
}

}  // namespace attune::analysis
