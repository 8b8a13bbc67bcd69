// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/products/pack.hpp>

namespace attune::test {
namespace {

/// x(b, h, i, d) = 1000 b + 100 h + 10 i + d, 2 x 2 x 3 x 4, in two layouts.
struct source {
  std::vector<float> dense, scattered = std::vector<float>(200, -1.f);
  shape extents{2, 2, 3, 4};
  strides steps{96, 48, 16, 2};
  source() {
    for (index_t b = 0; b < 2; ++b)
      for (index_t h = 0; h < 2; ++h)
        for (index_t i = 0; i < 3; ++i)
          for (index_t d = 0; d < 4; ++d) {
            float const x = float(1000 * b + 100 * h + 10 * i + d);
            dense.push_back(x);
            scattered[std::size_t(96 * b + 48 * h + 16 * i + 2 * d)] = x;
          }
  }
  tensor<float const> view(bool apart) const {
    return apart ? tensor<float const>(scattered.data(), extents, steps) : tensor<float const>(dense, extents);
  }
};

TEST_CASE("pack_queries: feature-major; lanes past the end repeat the last query") {
  source const s;
  for (bool apart : {false, true}) {
    std::vector<float> packed(16);
    exec_cpu::pack_queries<4>(packed.data(), s.view(apart), 1, 0, 1);                   // queries 1, 2, and 2 twice
    CHECK(packed == std::vector<float>{1010, 1020, 1020, 1020, 1011, 1021, 1021, 1021,  //
                                       1012, 1022, 1022, 1022, 1013, 1023, 1023, 1023});
  }
}

TEST_CASE("pack_pairs: keys [j0, j0 + n), key-major") {
  source const s;
  for (bool apart : {false, true}) {
    std::vector<float> packed(8, -7.f);
    exec_cpu::pack_pairs<2>(packed.data(), s.view(apart), 0, 1, 2, 1, 3);  // query 2, repeated; keys 1, 2, 3
    CHECK(packed == std::vector<float>{121, 121, 122, 122, 123, 123, -7, -7});
  }
}

TEST_CASE("row_block: in place where features are neighbours, else a copy") {
  source const s;
  std::vector<float> scratch(8, -7.f);
  exec_cpu::row_block<float> const in_place(s.view(false), 1, 1, 1, 2, scratch.data());
  CHECK(in_place.data == s.dense.data() + 40);  // ((1 * 2 + 1) * 3 + 1) * 4
  CHECK(in_place.step == 4);
  CHECK(scratch[0] == -7);
  exec_cpu::row_block<float> const copy(s.view(true), 1, 1, 1, 2, scratch.data());
  CHECK(copy.data == scratch.data());
  CHECK(copy.step == 4);
  CHECK(scratch == std::vector<float>{1110, 1111, 1112, 1113, 1120, 1121, 1122, 1123});
}

}  // namespace
}  // namespace attune::test
