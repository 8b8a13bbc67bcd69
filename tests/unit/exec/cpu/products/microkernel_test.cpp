// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Small integers, so that any order of summation is exact, and every remainder of the register blocking.
#include <memory>
#include <new>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/products/microkernel.hpp>

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

/// The single rows that are left of n behind blocks of `Most` and of 4; that the stretches follow each other is checked
/// on the way.
template <int Most>
index_t single_rows(index_t n) {
  index_t next = 0, single = 0;
  exec_cpu::in_register_blocks<Most>(n, [&](auto rows, index_t first, index_t last) {
    CHECK(first == next);
    CHECK(first < last);
    CHECK((last - first) % rows() == 0);
    if (rows() == 1) single += last - first;
    next = last;
  });
  CHECK(next == n);
  return single;
}

TEST_CASE("in_register_blocks: no more single rows than blocks of 6 (8) and 4 must leave") {
  index_t const least[] = {0, 1, 2, 3, 0, 1, 0, 1, 0, 1, 0, 1};  // of 6 and 4: odd numbers leave one, 2 and 3 all
  for (index_t n = 0; n < 80; ++n) {
    CHECK_MESSAGE(single_rows<6>(n) == (n < 12 ? least[n] : n % 2), "n ", n);
    CHECK_MESSAGE(single_rows<8>(n) == n % 4, "n ", n);
  }
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

TEST_CASE_TEMPLATE("accumulate: out[d][query] += sum of value[d] weight[query], for every remainder", T, float,
                   double) {
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
          for (index_t j = 0; d < width && j < n; ++j)
            sum += values[std::size_t(j * step + d)] * weights[j * queries + l];
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
