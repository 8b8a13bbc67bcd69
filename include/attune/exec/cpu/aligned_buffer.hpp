// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   scratch for SIMD
#pragma once

#include <memory>
#include <new>

#include <attune/core/tensor.hpp>

namespace attune::exec_cpu {

/// Elements of scratch, rounded so that each part stays aligned.
template <class T>
constexpr index_t padded(index_t elements) {
  constexpr index_t unit = 64 / index_t(sizeof(T));
  return (elements + unit - 1) / unit * unit;
}

/// Uninitialised elements on a cache line's boundary.
template <class T>
class aligned_buffer {
 public:
  explicit aligned_buffer(index_t elements)
      : data_(static_cast<T*>(::operator new(std::size_t(elements) * sizeof(T), std::align_val_t(64)))) {}
  T* data() const { return data_.get(); }

 private:
  struct release {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, release> data_;
};

}  // namespace attune::exec_cpu
