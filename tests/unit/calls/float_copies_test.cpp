// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <attune/calls/float_copies.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("float_copies: rows with any strides become dense floats and return rounded once") {
  // Two heads of two rows of three features; in memory features lie 2 apart.
  std::vector<bfloat16> memory;
  for (int n = 0; n < 24; ++n) memory.push_back(bfloat16(float(n)));
  shape const e{1, 2, 2, 3};
  tensor<bfloat16 const> const apart(memory.data(), e, strides{24, 12, 6, 2});
  detail::float_copies copies;
  auto const wide = copies.of(apart);
  CHECK(wide(0, 0, 0, 2) == 4);
  CHECK(wide(0, 1, 1, 1) == 20);
  CHECK(wide.steps().feature == 1);
  CHECK(copies.of(tensor<bfloat16 const>()).absent());

  std::vector<bfloat16> rounded(24, bfloat16(7.0f));
  tensor<bfloat16> const to(rounded.data(), e, strides{24, 12, 6, 2});
  auto const result = copies.blank(to);
  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 2; ++i)
      for (index_t d = 0; d < 3; ++d) result(0, h, i, d) = 1 + 0x1p-9f;  // half of the last place of bf16: to even
  detail::float_copies::round(result, to);
  CHECK(float(to(0, 1, 0, 2)) == 1);
  CHECK(float(rounded[1]) == 7);  // what lies between stays
}
TEST_CASE("rounded_once: outputs of floats are passed as they are") {
  using op = decltype(softmax_attention());
  std::vector<float> out(1);
  outputs<op, float> const to{.out = tensor<float>(out, shape{1, 1, 1, 1})};
  detail::rounded_once(to, [&](outputs<op, float> const& x) { CHECK(x.out.data() == out.data()); });
  std::vector<float16> narrow(1);
  detail::rounded_once(outputs<op, float16>{.out = tensor<float16>(narrow, shape{1, 1, 1, 1})},
                       [](outputs<op, float> const& x) { x.out(0, 0, 0, 0) = 1.5f; });
  CHECK(float(narrow[0]) == 1.5f);
}

}  // namespace
}  // namespace attune::test
