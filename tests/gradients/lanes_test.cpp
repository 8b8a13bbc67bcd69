// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The threshold search of the CPU executor: a batch of rows at once, each lane held to its own column's true threshold.
#include <algorithm>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/tile/candidates.hpp>
#include <attune/policies/normalizer/top_k.hpp>

#include "gradients/thresholds.hpp"

using namespace attune;
using namespace attune::test;

namespace {

using arch = xsimd::default_arch;

/// Columns of equal length side by side, one per lane, as a tile of the executor keeps them.
template <class T>
struct lanes {
  using batch = xsimd::batch<T, arch>;
  static constexpr std::size_t width = batch::size;
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  exec_cpu::aligned_buffer<T> memory;
  std::vector<index_t> positions;
  std::vector<std::int32_t> kept;
  batch highest;

  lanes(std::size_t size, std::uint64_t seed) : memory(index_t(size * width)), positions(size) {
    auto const all = difficult_columns(size, seed);
    alignas(64) T top[width];
    for (std::size_t l = 0; l < width; ++l) {
      columns.push_back(all[(l + seed) % all.size()]);
      auto const& x = columns.back().second;
      for (std::size_t n = 0; n < size; ++n) memory.data()[n * width + l] = T(x[n]);
      top[l] = T(*std::max_element(x.begin(), x.end()));
    }
    std::iota(positions.begin(), positions.end(), index_t(0));
    highest = batch::load_aligned(top);
  }
  exec_cpu::lane_column<T, arch> column() {
    return {memory.data(), index_t(width), positions.data(), index_t(positions.size()), highest, kept};
  }
};

template <class T, class Policy>
void check_search(Policy const& policy, double alpha, std::size_t size, std::uint64_t seed, double tolerance) {
  lanes<T> rows(size, seed);
  auto const bound = policy.bind(row<typename lanes<T>::batch>{});
  auto column = rows.column();
  auto at = bound.solve(column);
  at.reference = typename lanes<T>::batch(T(0));
  alignas(64) T tau[lanes<T>::width];
  bound.reported(at).store_aligned(tau);
  for (std::size_t l = 0; l < lanes<T>::width; ++l) {
    CAPTURE(alpha);
    CAPTURE(size);
    CAPTURE(rows.columns[l].first);
    CHECK(error_of_tau(digits(double(tau[l])), threshold_of(rows.columns[l].second, alpha)) <= tolerance);
  }
}

template <class T, class Policy>
void check_sizes(Policy const& policy, double alpha, std::initializer_list<std::size_t> sizes, double tolerance) {
  for (std::size_t const size : sizes) check_search<T>(policy, alpha, size, size, tolerance);
}

template <class T>
void check_top(index_t k, std::size_t size) {
  lanes<T> rows(size, size);
  using batch = typename lanes<T>::batch;
  auto const bound = normalizer::top_k(k).bind(row<batch>{});
  auto column = rows.column();
  auto const at = bound.solve(column);
  std::vector<std::vector<std::size_t>> found(lanes<T>::width);
  for (std::size_t n = 0; n < size; ++n) {
    alignas(64) T w[lanes<T>::width];
    bound.weight(at, batch::load_aligned(rows.memory.data() + n * lanes<T>::width), key<batch>{batch(T(n))})
        .store_aligned(w);
    // A kept key far below the maximum may have no weight left: its logit tells.
    for (std::size_t l = 0; l < lanes<T>::width; ++l) {
      double const x = rows.columns[l].second[n],
                   top = *std::max_element(rows.columns[l].second.begin(), rows.columns[l].second.end());
      if (w[l] != T(0) || top - x > 80) found[l].push_back(n);
    }
  }
  for (std::size_t l = 0; l < lanes<T>::width; ++l) {
    auto const& x = rows.columns[l].second;
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] > x[b]; });
    order.resize(std::min(size, std::size_t(k)));
    double const top = *std::max_element(x.begin(), x.end());
    std::erase_if(order, [&](std::size_t n) { return top - x[n] > 80; });
    std::erase_if(found[l], [&](std::size_t n) { return top - x[n] > 80; });
    std::sort(order.begin(), order.end());
    CAPTURE(k);
    CAPTURE(size);
    CAPTURE(rows.columns[l].first);
    CHECK(found[l] == order);
  }
}

}  // namespace

TEST_SUITE("thresholds") {
  TEST_CASE("a batch of rows: sparsemax and entmax 1.5 against the sorted closed forms") {
    for (double const alpha : {1.5, 2.0}) {
      auto const check = [&](auto const& policy) {
        check_sizes<float>(policy, alpha, {1, 2, 3, 7, 64, 1000, 4096}, 1e-6);
        check_sizes<double>(policy, alpha, {1, 2, 3, 7, 64, 1000, 4096}, 1e-14);
      };
      if (alpha == 2) check(normalizer::sparsemax{});
      if (alpha == 1.5) check(normalizer::entmax15{});
      check(normalizer::entmax{alpha});
    }
  }
  TEST_CASE("a batch of rows: entmax against bisection in 50 digits") {
    for (double const alpha : {1.0001, 1.25, 1.9, 2.5, 4.0}) {
      check_sizes<float>(normalizer::entmax{alpha}, float(alpha), {1, 3, 24, 100}, 1e-6);
      check_sizes<double>(normalizer::entmax{alpha}, alpha, {1, 3, 24}, 1e-14);
    }
  }
  TEST_CASE("a batch of rows: top-k keeps the sorted set, ties to the lower position") {
    for (index_t const k : {1, 2, 5, 64, 5000})
      for (std::size_t const size : std::initializer_list<std::size_t>{1, 4, 33, 500, 3000}) {
        check_top<float>(k, size);
        check_top<double>(k, size);
      }
  }
}
