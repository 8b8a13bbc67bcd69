// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   scratch for SIMD
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>
#if ATTUNE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace attune::exec_cpu {

/// Elements of scratch, rounded up so that each part stays aligned.
template <class T>
constexpr index_t padded(index_t elements) {
  constexpr index_t unit = 64 / index_t(sizeof(T));
  return (elements + unit - 1) / unit * unit;
}

/// The bytes behind each piece of an arena, whole cache lines. Under AddressSanitizer nothing may touch them,
/// nor the padding before them: code that runs past its piece is reported.
inline constexpr index_t arena_gap = ATTUNE_ADDRESS_SANITIZER ? 64 : 0;

/// Hands out pieces of memory, one after the other. Code that uses memory describes it in one struct, constructed from
/// an arena and whatever else the sizes depend on. Constructed from an arena without memory, the struct only counts its
/// elements. Other structs may be placed in the same memory later.
template <class T>
class arena {
 public:
  arena() = default;
  explicit arena(T* memory) : next_(memory) {}
  T* take(index_t elements) {
    T* const piece = next_;
    index_t const room = padded<T>(elements) + arena_gap / index_t(sizeof(T));
    used_ += room;
    if (next_ != nullptr) {
      next_ += room;
#if ATTUNE_ADDRESS_SANITIZER
      ASAN_UNPOISON_MEMORY_REGION(piece, std::size_t(elements) * sizeof(T));
      ASAN_POISON_MEMORY_REGION(piece + elements, std::size_t(room - elements) * sizeof(T));
#endif
    }
    return piece;
  }
  index_t used() const { return used_; }

  /// The number of elements that a struct takes.
  template <class Memory, class... With>
  static index_t size_of(With const&... with) {
    arena counts;
    Memory(counts, with...);
    return counts.used();
  }
  /// The struct, placed in this memory.
  template <class Memory, class... With>
  static Memory in(T* memory, With const&... with) {
    arena from(memory);
    return Memory(from, with...);
  }

 private:
  T* next_ = nullptr;
  index_t used_ = 0;
};

/// Uninitialized elements, aligned to a cache line.
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
