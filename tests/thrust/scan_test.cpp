// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The scan in chunks, with a product that is exact, does not commute and shows every factor that is missing or doubled.
#include <cmath>
#include <cstdint>
#include <vector>

#include <omp.h>
#include <thrust/system/omp/execution_policy.h>

#include <attune/exec/thrust/scan.hpp>

#include "../unit/check.hpp"

namespace attune::test {
namespace {

/// x -> factor x + shift modulo 2^64, then another: the first acts first.
struct affine_map {
  std::uint64_t factor, shift;
  bool operator==(affine_map const&) const = default;
};
struct then {
  affine_map operator()(affine_map const& a, affine_map const& b) const {
    return {b.factor * a.factor, b.factor * a.shift + b.shift};
  }
};

std::vector<affine_map> maps(index_t n) {
  std::vector<affine_map> x;
  for (index_t i = 0; i < n; ++i) x.push_back({2 * std::uint64_t(i) + 3, 7 * std::uint64_t(i) + 1});
  return x;
}

TEST_SUITE("full scan on thrust") {
  TEST_CASE("thrust: every length, about the borders of chunks and of chunks of chunks") {
    constexpr index_t c = exec_thrust::scan_chunk;
    auto const exec = thrust_on<double>(::thrust::omp::par);
    for (index_t const n : {index_t(0), index_t(1), c - 1, c, c + 1, 2 * c, 2 * c + 1, c * c - 1, c * c, c * c + 1,
                            c * c + c, c * c + c + 1, 3 * c * c + 5}) {
      CAPTURE(n);
      auto got = maps(n), right = got;
      for (std::size_t i = 1; i < right.size(); ++i) right[i] = then{}(right[i - 1], right[i]);
      index_t const room = exec_thrust::scan_scratch(n);
      affine_map const untouched{11, 12};
      std::vector<affine_map> scratch(std::size_t(room + 1), untouched);
      affine_map const all = exec_thrust::product_of(exec, got.data(), n, then{}, affine_map{1, 0});
      CHECK(all == (n == 0 ? affine_map{1, 0} : right.back()));
      exec_thrust::scan(exec, got.data(), n, then{}, scratch.data());
      CHECK((got == right));
      CHECK((scratch.back() == untouched));
    }
  }

  TEST_CASE("thrust: sums of numbers that round have the same bits for any number of threads") {
    std::vector<double> x(20000), scratch(std::size_t(exec_thrust::scan_scratch(20000)));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i)) * std::exp(10 * std::cos(double(i)));
    auto const sum = [](double a, double b) { return a + b; };
    auto const bits = [&](auto const& exec) {
      auto y = x;
      exec_thrust::scan(exec, y.data(), index_t(y.size()), sum, scratch.data());
      return y;
    };
    auto const right = bits(thrust_on<double>(::thrust::host));
    int const before = omp_get_max_threads();
    for (int const threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      CHECK((bits(thrust_on<double>(::thrust::omp::par)) == right));
    }
    omp_set_num_threads(before);
  }
}

}  // namespace
}  // namespace attune::test
