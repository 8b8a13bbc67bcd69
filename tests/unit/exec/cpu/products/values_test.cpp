// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Small integers, so that any order of summation is exact. What no query sees is NaN; a NaN that some see must not
// reach the others.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/products/values.hpp>

namespace attune::test {
namespace {

using arch = xsimd::default_arch;

template <class T>
T small_integer(index_t n) {
  return T(n * 7 % 11 - 5);
}

/// What the lanes of a tile see of a block: keys outside [first, last) by their bits.
struct sight {
  char const* name;
  index_t first, last;
  std::vector<std::uint64_t> bits;

  bool of(index_t lane, index_t key) const {
    return (key >= first && key < last) || (bits[std::size_t(key)] >> lane & 1) != 0;
  }
};

std::vector<sight> sights(index_t queries, index_t n) {
  std::uint64_t const everybody = queries == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << queries) - 1;
  std::uint64_t state = 12345;
  auto const random = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 20; };
  auto const made = [&](char const* name, index_t first, index_t last, auto const& bits) {
    sight s{name, first, last, {}};
    for (index_t j = 0; j < n; ++j) s.bits.push_back(bits(j) & everybody);
    return s;
  };
  auto const later = [&](index_t j) {
    return j < queries ? everybody << (j < 0 ? 0 : j) : 0;
  };  // causal: query i sees keys up to i
  auto const earlier = [&](index_t j) {
    return j + 1 < queries ? ~(everybody << (j + 1)) : everybody;
  };  // the end of a window
  auto const twice = [&](index_t j) { return later(j / 2 * 2); };  // two keys that the same queries see
  return {
      made("all", 0, n, later),
      made("causal", 0, 0, later),
      made("causal behind what all see", n / 3, n / 3,
           [&](index_t j) { return j < n / 3 ? everybody : later(j - n / 3); }),
      made("causal, two at a time", 0, 0, twice),
      made("causal, none sees the last", 0, 0, [&](index_t j) { return later(j + queries / 2); }),
      made("the far end of a window", 0, 0, earlier),
      made("both ends of a window", n / 4, n / 2, [&](index_t j) { return j < n / 4 ? earlier(j) : later(j - n / 2); }),
      made("a window within the block", 0, 0, [&](index_t j) { return earlier(j) & ~earlier(j - 3 < 0 ? 0 : j - 3); }),
      made("nobody", 0, 0, [](index_t) { return std::uint64_t(0); }),
      made("some", n / 2, n - 1, [&](index_t) { return random(); })};
}

/// Sums at zero, where nothing else is.
template <class T>
struct sums_of_width {
  using sums = exec_cpu::plain_sums<T, arch>;
  exec_cpu::aligned_buffer<T> memory;
  sums plain;
  explicit sums_of_width(index_t width) : memory(sums::size(width)), plain(memory.data(), width) {}
};

TEST_CASE_TEMPLATE("plain_sums: what each query sees, for every mask and width", T, float, double) {
  constexpr index_t queries = exec_cpu::tiling<T, arch>::queries, n = 40, gap = 3;
  T const nan = std::numeric_limits<T>::quiet_NaN();
  for (sight const& s : sights(queries, n))
    for (index_t width = 1; width <= 70; width += width < 20 ? 1 : 7) {
      index_t const step = width + gap;
      std::vector<T> values(std::size_t(n * step), nan);
      for (index_t j = 0; j < n; ++j) {
        bool seen = false;
        for (index_t l = 0; l < queries; ++l) seen = seen || s.of(l, j);
        if (seen)
          for (index_t d = 0; d < width; ++d) values[std::size_t(j * step + d)] = small_integer<T>(j * width + d);
      }
      sums_of_width<T> made(width);
      auto& plain = made.plain;
      for (int block = 0; block < 2; ++block) plain.add({values.data(), step}, n, s.first, s.last, s.bits.data());
      index_t wrong = 0;
      for (index_t l = 0; l < queries; ++l)
        for (index_t d = 0; d < width; ++d) {
          T sum(0);
          for (index_t j = 0; j < n; ++j)
            if (s.of(l, j)) sum += 2 * small_integer<T>(j * width + d);
          wrong += !(plain(l, d) == sum);
        }
      CHECK_MESSAGE(wrong == 0, wrong, " wrong sums, ", s.name, ", width ", width);
    }
}

TEST_CASE_TEMPLATE("plain_sums: a NaN reaches the queries that see it, and no other", T, float, double) {
  constexpr index_t queries = exec_cpu::tiling<T, arch>::queries, n = 40, width = 19;
  for (sight const& s : sights(queries, n))
    for (index_t bad = 0; bad < n; bad += 3) {
      std::vector<T> values(std::size_t(n * width), T(1));
      values[std::size_t(bad * width + 4)] = std::numeric_limits<T>::quiet_NaN();
      sums_of_width<T> made(width);
      auto& plain = made.plain;
      plain.add({values.data(), width}, n, s.first, s.last, s.bits.data());
      index_t wrong = 0;
      for (index_t l = 0; l < queries; ++l)
        for (index_t d = 0; d < width; ++d) wrong += std::isnan(plain(l, d)) != (d == 4 && s.of(l, bad));
      CHECK_MESSAGE(wrong == 0, wrong, " wrong, ", s.name, ", key ", bad);
    }
}

}  // namespace
}  // namespace attune::test
