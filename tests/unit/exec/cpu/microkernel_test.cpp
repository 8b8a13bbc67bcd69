// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Small integers, so that any order of summation is exact, and every remainder of the register blocking.
#include <memory>
#include <new>
#include <vector>

#include <attune/exec/cpu/microkernel.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using arch = xsimd::default_arch;

/// Elements on a cache line's boundary.
template <class T>
struct aligned {
  explicit aligned(index_t count) : memory(std::size_t(count) + 64) {
    void* p = memory.data();
    std::size_t space = memory.size() * sizeof(T);
    data = static_cast<T*>(std::align(64, std::size_t(count) * sizeof(T), p, space));
  }
  std::vector<T> memory;
  T* data;
  T& operator[](index_t n) { return data[n]; }
};

template <class T>
T small_integer(index_t n) {
  return T(n * 7 % 11 - 5);
}

TEST_CASE_TEMPLATE("contract: out[j][query] = <key j, query>, for every remainder", T, float, double) {
  constexpr index_t queries = exec_cpu::tiling<T, arch>::queries, size = 20, gap = 3;
  std::vector<T> keys;
  for (index_t n = 0; n < size * (size + gap); ++n) keys.push_back(small_integer<T>(n));
  aligned<T> packed(size * queries), out(size * queries);
  for (index_t n = 0; n < size * queries; ++n) packed[n] = small_integer<T>(3 * n + 1);
  for (index_t n = 1; n <= size; ++n)
    for (index_t width = 1; width <= size; ++width) {
      index_t const step = width + (n % 2) * gap;
      for (index_t x = 0; x < size * queries; ++x) out[x] = T(777);
      exec_cpu::contract<T, arch>(out.data, keys.data(), step, packed.data, width, n);
      index_t wrong = 0;
      for (index_t j = 0; j < size; ++j)
        for (index_t l = 0; l < queries; ++l) {
          T sum = j < n ? T(0) : T(777);  // rows beyond n are left alone
          for (index_t d = 0; j < n && d < width; ++d) sum += keys[std::size_t(j * step + d)] * packed[d * queries + l];
          wrong += out[j * queries + l] != sum;
        }
      CHECK_MESSAGE(wrong == 0, wrong, " wrong elements, n ", n, ", width ", width);
    }
}

TEST_CASE_TEMPLATE("accumulate: out[d][query] += sum of value[d] weight[query], for every remainder", T, float, double) {
  constexpr index_t queries = exec_cpu::tiling<T, arch>::queries, size = 20, gap = 3;
  std::vector<T> values;
  for (index_t n = 0; n < size * (size + gap); ++n) values.push_back(small_integer<T>(n));
  aligned<T> weights(size * queries), out(size * queries);
  for (index_t n = 0; n < size * queries; ++n) weights[n] = small_integer<T>(3 * n + 1);
  for (index_t n = 0; n <= size; ++n)
    for (index_t width = 1; width <= size; ++width) {
      index_t const step = width + (n % 2) * gap;
      for (index_t x = 0; x < size * queries; ++x) out[x] = T(x % 5);
      exec_cpu::accumulate<T, arch>(out.data, values.data(), step, weights.data, n, width);
      index_t wrong = 0;
      for (index_t d = 0; d < size; ++d)
        for (index_t l = 0; l < queries; ++l) {
          T sum = T((d * queries + l) % 5);
          for (index_t j = 0; d < width && j < n; ++j) sum += values[std::size_t(j * step + d)] * weights[j * queries + l];
          wrong += out[d * queries + l] != sum;
        }
      CHECK_MESSAGE(wrong == 0, wrong, " wrong elements, n ", n, ", width ", width);
    }
}

TEST_CASE_TEMPLATE("contract: garbage beside the keys and NaN in one query stay where they are", T, float, double) {
  constexpr index_t queries = exec_cpu::tiling<T, arch>::queries;
  std::vector<T> const keys{1, 2, T(nan), 3, 4, T(nan)};  // width 2, step 3
  aligned<T> packed(2 * queries), out(2 * queries);
  for (index_t n = 0; n < 2 * queries; ++n) packed[n] = 1;
  packed[1] = T(nan);
  exec_cpu::contract<T, arch>(out.data, keys.data(), 3, packed.data, 2, 2);
  for (index_t l = 0; l < queries; ++l)
    if (l == 1)
      CHECK(std::isnan(out[l]));
    else {
      CHECK(out[l] == 3);
      CHECK(out[queries + l] == 7);
    }
}

}  // namespace
}  // namespace attune::test
