// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cstdint>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/products/buffer.hpp>

namespace attune::test {
namespace {

using exec_cpu::aligned_buffer;
using exec_cpu::arena;

/// Rows of `width` elements, nothing, and five elements.
template <class T>
struct pieces {
  T *rows, *none, *few;
  static constexpr index_t few_count = 5;
  pieces(arena<T>& from, index_t count, index_t width)
      : rows(from.take(count * width)), none(from.take(0)), few(from.take(few_count)) {}
};
template <class T>
struct one_piece {
  T* all;
  one_piece(arena<T>& from, index_t count) : all(from.take(count)) {}
};

/// Whether AddressSanitizer reports an access to this byte.
[[maybe_unused]] bool forbidden([[maybe_unused]] void const* byte) {
#if ATTUNE_ADDRESS_SANITIZER
  return __asan_address_is_poisoned(byte) != 0;
#else
  return false;
#endif
}
/// The bytes of these elements that AddressSanitizer reports.
template <class T>
index_t forbidden_bytes(T const* first, index_t elements) {
  auto const* const bytes = reinterpret_cast<unsigned char const*>(first);
  return index_t(
      std::count_if(bytes, bytes + elements * index_t(sizeof(T)), [](auto& byte) { return forbidden(&byte); }));
}

TEST_CASE_TEMPLATE("arena: each piece begins a cache line, and none overlaps the next", T, float, double) {
  for (index_t count : {0, 1, 7, 16, 33}) {
    CAPTURE(count);
    index_t const size = arena<T>::template size_of<pieces<T>>(count, index_t(3));
    aligned_buffer<T> const memory(size);
    auto const p = arena<T>::template in<pieces<T>>(memory.data(), count, index_t(3));
    for (T const* piece : {p.rows, p.none, p.few}) CHECK(reinterpret_cast<std::uintptr_t>(piece) % 64 == 0);
    CHECK(p.rows == memory.data());
    CHECK(p.few - p.rows >= count * 3);
    CHECK(p.few - p.none >= 0);
    CHECK(memory.data() + size - p.few >= p.few_count);
    std::fill_n(p.rows, count * 3, T(1));
    std::fill_n(p.few, p.few_count, T(2));
    CHECK(std::count(p.rows, p.rows + count * 3, T(1)) == count * 3);
  }
}

TEST_CASE_TEMPLATE("arena: a struct takes as many elements in memory as it counts without", T, float, double) {
  for (index_t count : {0, 1, 7, 16, 33}) {
    index_t const size = arena<T>::template size_of<pieces<T>>(count, index_t(3));
    aligned_buffer<T> const memory(size);
    arena<T> placed(memory.data()), counted;
    pieces<T> const p(placed, count, 3), null(counted, count, 3);
    CHECK(placed.used() == size);
    CHECK(counted.used() == size);
    CHECK(null.rows == nullptr);
    CHECK(null.few == nullptr);
    CHECK(p.few + (size - (p.few - p.rows)) == memory.data() + size);
    if (!ATTUNE_ADDRESS_SANITIZER) CHECK(size == exec_cpu::padded<T>(count * 3) + exec_cpu::padded<T>(p.few_count));
  }
}

#if ATTUNE_ADDRESS_SANITIZER
TEST_CASE_TEMPLATE("arena: AddressSanitizer reports what lies behind a piece", T, float, double) {
  for (index_t count : {0, 1, 7, 16, 33}) {
    CAPTURE(count);
    index_t const size = arena<T>::template size_of<pieces<T>>(count, index_t(3));
    aligned_buffer<T> const memory(size);
    auto const p = arena<T>::template in<pieces<T>>(memory.data(), count, index_t(3));
    CHECK(forbidden_bytes(p.rows, count * 3) == 0);
    CHECK(forbidden_bytes(p.few, p.few_count) == 0);
    CHECK(forbidden_bytes(p.rows, size) == (size - count * 3 - p.few_count) * index_t(sizeof(T)));
    CHECK(p.none - (p.rows + count * 3) >= 64 / index_t(sizeof(T)));
    CHECK(p.few - p.none >= 64 / index_t(sizeof(T)));
  }
}

TEST_CASE("arena: memory that another struct had is usable, to the end of each piece") {
  index_t const size = arena<float>::size_of<pieces<float>>(index_t(9), index_t(3));
  aligned_buffer<float> const memory(size);
  arena<float>::in<pieces<float>>(memory.data(), index_t(9), index_t(3));
  index_t const all = size - exec_cpu::arena_gap / index_t(sizeof(float));
  for (index_t count : {all, all - 1, index_t(3), index_t(6), all}) {
    CAPTURE(count);
    auto const p = arena<float>::in<one_piece<float>>(memory.data(), count);
    CHECK(forbidden_bytes(p.all, count) == 0);
    CHECK(forbidden(p.all + count));
  }
}

TEST_CASE("aligned_buffer: memory with forbidden bytes can be released, and is usable when it comes back") {
  for (int n = 0; n < 1000; ++n) {
    index_t const size = arena<float>::size_of<pieces<float>>(index_t(9), index_t(3));
    aligned_buffer<float> const memory(size);
    CHECK(forbidden_bytes(memory.data(), size) == 0);
    arena<float>::in<pieces<float>>(memory.data(), index_t(9), index_t(3));
  }
}
#endif

}  // namespace
}  // namespace attune::test
