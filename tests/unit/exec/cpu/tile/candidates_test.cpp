// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows share the passes that look for their thresholds; none shall notice.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>

namespace attune {
namespace {

template <class Op>
struct rows_of {
  Op op;
  index_t queries, keys, width = 8;
  std::vector<double> q, k, v;

  rows_of(Op const& of, unsigned seed) : op(of), queries(1 + index_t(seed % 40)), keys(1 + index_t(seed * 7 % 300)) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    auto const fill = [&](std::vector<double>& x, index_t rows, double size) {
      x.resize(std::size_t(rows * width));
      for (double& e : x) e = size * normal(random);
    };
    fill(q, queries, 0.3 + seed % 5), fill(k, keys, 1), fill(v, keys, 1);
  }
  static std::vector<double> zeros(index_t n) { return std::vector<double>(static_cast<std::size_t>(n), 0.0); }
  /// A row of outputs and the threshold, for each query.
  std::vector<double> operator()(std::vector<double> const& of) const {
    std::vector<double> out = zeros(queries * width), threshold = zeros(queries), all;
    shape const wide{1, 1, queries, width}, of_keys{1, 1, keys, width};
    forward(cpu<double>{1}, op, {.q = tensor<double const>(of, wide), .k = tensor(k, of_keys), .v = tensor(v, of_keys)},
            {.out = tensor(out, wide), .threshold = tensor(threshold, shape{1, 1, queries, 1})});
    for (std::size_t i = 0; i < threshold.size(); ++i) {
      all.insert(all.end(), out.begin() + index_t(i) * width, out.begin() + index_t(i + 1) * width);
      all.push_back(threshold[i]);
    }
    return all;
  }
};

template <class Op>
int changed_bits_of_neighbours(Op const& op, unsigned seed) {
  rows_of<Op> const rows(op, seed);
  std::vector<double> const before = rows(rows.q);
  index_t const at = index_t(seed / 3) % rows.queries, step = rows.width + 1;
  int changed = 0;
  for (double const x : {std::numeric_limits<double>::quiet_NaN(), 1e3, 0.0}) {
    std::vector<double> q = rows.q;
    for (index_t d = 0; d < rows.width; ++d) q[std::size_t(at * rows.width + d)] = x * double(1 - d % 2 * 2);
    std::vector<double> const after = rows(q);
    for (index_t n = 0; n < index_t(after.size()); ++n)
      if (n / step != at) changed += std::memcmp(&before[std::size_t(n)], &after[std::size_t(n)], sizeof(double)) != 0;
  }
  return changed;
}

TEST_CASE("candidate sets: what one row holds never changes a bit of another") {
  auto const of = [](auto const& normalizer) { return attention(kernel::dot_product{}, normalizer); };
  for (unsigned seed = 1; seed < 120; ++seed) {
    CAPTURE(seed);
    CHECK(changed_bits_of_neighbours(of(normalizer::entmax15{}), seed) == 0);
    CHECK(changed_bits_of_neighbours(of(normalizer::sparsemax{}), seed) == 0);
    CHECK(changed_bits_of_neighbours(of(normalizer::top_k{3}), seed) == 0);
  }
}

}  // namespace
}  // namespace attune
