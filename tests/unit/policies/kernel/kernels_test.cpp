// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <attune/policies/kernel/alibi.hpp>
#include <attune/policies/kernel/compose.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/given_scores.hpp>
#include <attune/policies/kernel/softcap.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

/// The score of a kernel, as an executor computes it.
template <class K>
double score(K const& k, std::vector<double> const& x, double query_position, double key_position) {
  return kernel::evaluation<K>::score(k.bind(row_with(0, query_position)), x.data(), key<double>{key_position});
}

TEST_CASE("dot_product: 1 / sqrt(D) unless a scale is set") {
  CHECK(score(kernel::dot_product{}, {6}, 0, 0) == 3);  // 6 / sqrt(4)
  CHECK(score(kernel::dot_product{2.0}, {6}, 0, 0) == 12);
  CHECK(score(kernel::dot_product{0.0}, {6}, 0, 0) == 0);
}

TEST_CASE("given_scores: as they are") {
  CHECK(score(kernel::given_scores{}, {-7.5}, 3, 4) == -7.5);
  CHECK(score(kernel::given_scores{}, {-inf}, 3, 4) == -inf);
}

TEST_CASE("alibi: minus slope times distance, on both sides") {
  CHECK(score(kernel::alibi{0.5}, {}, 7, 3) == -2);
  CHECK(score(kernel::alibi{0.5}, {}, 7, 9) == -1);
  CHECK(score(kernel::alibi{0.5}, {}, 7, 7) == 0);
  CHECK(score(kernel::alibi{}, {}, 7, 3) == 0);
  CHECK(score(kernel::alibi{0.5}, {}, -2, 1) == -1.5);  // queries may stand before the first key
}

TEST_CASE("alibi: one slope per head") {
  std::vector<double> const slopes{1, 0.25};
  kernel::alibi const k{per_head(slopes)};
  row<double> r = row_with(0, 8);
  CHECK(k.bind(r).score({0}) == -8);
  r.place.head = 1;
  CHECK(k.bind(r).score({0}) == -2);
}

TEST_CASE("softcap: cap tanh(s / cap)") {
  auto const f = kernel::softcap{2.0}.bind(row_with(0));
  CHECK(near(f.map(2 * ln2), 1.2));  // 2 tanh(log 2) = 2 (4 - 1) / (4 + 1)
  CHECK(near(f.map(-2 * ln2), -1.2));
  CHECK(f.map(0.0) == 0);
  CHECK(f.map(1e-200) == 1e-200);
  CHECK(f.map(1e30) == 2);
  CHECK(f.map(inf) == 2);
  CHECK(f.map(-inf) == -2);  // a cap makes it finite
  CHECK(std::isnan(f.map(nan)));
  CHECK(near(kernel::softcap{}.bind(row_with(0)).map(30 * ln2), 18));  // the default cap is 30: 30 * 0.6
}

TEST_CASE("kernels add, in any order") {
  CHECK(score(kernel::dot_product{} + kernel::alibi{0.5}, {6}, 7, 3) == 1);  // 3 - 2
  CHECK(score(kernel::alibi{0.5} + kernel::dot_product{}, {6}, 7, 3) == 1);
  CHECK(score(kernel::dot_product{} + kernel::given_scores{}, {6, 100}, 0, 0) == 103);  // x[0] is the first kernel's
  CHECK(score(kernel::given_scores{} + kernel::dot_product{}, {6, 100}, 0, 0) == 56);   // 6 + 100 / 2
  CHECK(score(kernel::alibi{1.0} + kernel::given_scores{} + kernel::dot_product{}, {6, 100}, 2, 0) == 54);
}

TEST_CASE("a map caps everything on its left") {
  // 0.5 (4 log 2 + 4) - 0.5 * 4 = 2 log 2, capped: 1.2
  std::vector<double> const x{4 * ln2 + 4};
  CHECK(near(score((kernel::dot_product{} + kernel::alibi{0.5}) | kernel::softcap{2.0}, x, 7, 3), 1.2));
  // and nothing on its right: 2 tanh(2 log 2 / 2) - 2
  std::vector<double> const y{4 * ln2};
  CHECK(near(score((kernel::dot_product{} | kernel::softcap{2.0}) + kernel::alibi{0.5}, y, 7, 3), -0.8));
  // and can be repeated: tanh(2 tanh(1e9)) = tanh 2
  CHECK(near(score(kernel::given_scores{} | kernel::softcap{2.0} | kernel::softcap{1.0}, {1e9}, 0, 0), std::tanh(2)));
}

}  // namespace
}  // namespace attune::test
