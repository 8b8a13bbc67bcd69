// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows.reserve(n);  rows[i] -> width numbers      rows that do not move when more are added
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::line::detail {

/// Rows of `width` numbers in chunks. Growing copies nothing and needs no second copy in memory. If the row size is a
/// multiple of a cache line, every row begins on a cache line.
template <class T>
class row_store {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit row_store(index_t width = 0) : width_(width) {}
  row_store(row_store const& other) : width_(other.width_) {
    reserve(other.capacity());
    for (std::size_t c = 0; c < chunks_.size() && width_ > 0; ++c)
      std::memcpy(chunks_[c].get(), other.chunks_[c].get(), elements() * sizeof(T));
  }
  row_store(row_store&&) noexcept = default;
  row_store& operator=(row_store const& other) {
    row_store copy(other);
    return *this = std::move(copy);
  }
  row_store& operator=(row_store&&) noexcept = default;
  ~row_store() = default;

  index_t width() const { return width_; }
  index_t capacity() const { return index_t(chunks_.size()) * rows; }
  T* operator[](index_t i) { return chunks_[std::size_t(i / rows)].get() + i % rows * width_; }
  T const* operator[](index_t i) const { return chunks_[std::size_t(i / rows)].get() + i % rows * width_; }

  /// Memory for rows 0 .. count - 1; new rows are uninitialized.
  void reserve(index_t count) {
    while (capacity() < count) {
      std::unique_ptr<T[], release> added(
          static_cast<T*>(::operator new(elements() * sizeof(T), std::align_val_t(64))));
      chunks_.push_back(std::move(added));
    }
  }
  std::size_t bytes() const { return chunks_.size() * elements() * sizeof(T); }

 private:
  struct release {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  static constexpr index_t rows = 1024;  ///< per chunk
  std::size_t elements() const { return std::size_t(rows * width_); }

  index_t width_;
  std::vector<std::unique_ptr<T[], release>> chunks_;
};

}  // namespace attune::line::detail
