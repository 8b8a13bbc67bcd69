// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_accuracy_by_length [SEEDS] >> docs/reference/accuracy_table.md
//
// Bounds and errors of softmax in fp32 as rows grow longer: 1,024 to 65,536 keys.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/certify/error_bound.hpp>

namespace {

using namespace attune;

constexpr index_t queries = 8, width = 64;

void row_of_table(index_t keys, int seeds) {
  double largest_bound = 0, largest_error = 0, largest_share = 0, squared_errors = 0, squared_values = 0, count = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(static_cast<unsigned>(seed));
    std::normal_distribution<float> normal;
    auto const drawn = [&](index_t positions) {
      std::vector<float> x(static_cast<std::size_t>(positions * width));
      for (float& e : x) e = normal(random);
      return x;
    };
    std::vector<float> const q = drawn(queries), k = drawn(keys), v = drawn(keys);
    std::vector<float> out(q.size());
    shape const rows{1, 1, queries, width}, columns{1, 1, keys, width};
    tensor const Q(q, rows), K(k, columns), V(v, columns);
    auto const op = attention(kernel::dot_product{});
    forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = tensor(out, rows)});
    certify::error_bounds const b = certify::error_bound(op, {.q = Q, .k = K, .v = V}, certify::storage::fp32);
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < width; ++d) {
        auto const& exact = b.at_out(0, 0, i, d);
        double const error = std::fabs(double(out[static_cast<std::size_t>(i * width + d)]) - exact.value);
        largest_bound = std::max(largest_bound, exact.bound);
        largest_error = std::max(largest_error, error);
        largest_share = std::max(largest_share, error / exact.bound);
        squared_errors += error * error, squared_values += exact.value * exact.value, count += 1;
      }
  }
  std::printf("| %td | %.2g | %.1e | %.1e | %.1e | %.1e |\n", keys, std::sqrt(squared_values / count), largest_bound,
              std::sqrt(squared_errors / count), largest_error, largest_share);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int const seeds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
    std::printf(
        R"(
## By the number of keys

Softmax in fp32 without a mask, D = 64, inputs from N(0, 1), %td queries, seeds 1 to %d. Usual means the root mean
square. Other inputs may come closer to the bound.

| keys | usual \|out\| | largest bound | usual error | largest error | largest error / bound |
|---|---|---|---|---|---|
)",
        queries, seeds);
    for (index_t const keys : {1024, 8192, 65536}) row_of_table(keys, seeds);
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "attune_accuracy_by_length: %s\n", e.what());
    return 2;
  }
}
