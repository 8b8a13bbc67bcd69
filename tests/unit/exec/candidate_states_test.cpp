// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/tile/split.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/split.hpp>
#include <attune/operators/attention.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

/// Forward of all keys against merged parts of them. Logits of three keys: the second is `above` roundings above the
/// threshold that the first has alone, the third is far below.
template <class Executor>
void barely_supported(Executor const& exec, int above) {
  using T = typename Executor::value_type;
  T const lone = T(-1) / T(3), step = std::nextafter(T(1) / 3, T(1)) - T(1) / 3;
  std::array<T, 3> const logits{T(0), lone + T(above) * step, T(-2)};
  std::array<T, 3> const values{T(1), T(2), T(3)};
  auto const op = attention(kernel::given_scores{}, normalizer::entmax{4});
  using view = typename Executor::view;
  inputs<std::remove_const_t<decltype(op)>, view> const in{.v = tensor<T const>(values.data(), {1, 1, 3, 1}),
                                                           .scores = tensor<T const>(logits.data(), {1, 1, 1, 3})};
  std::array<T, 2> threshold{}, out{};
  auto const to = [&](std::size_t n) {
    return outputs<std::remove_const_t<decltype(op)>, T>{.out = tensor<T>(&out[n], {1, 1, 1, 1}),
                                                         .threshold = tensor<T>(&threshold[n], {1, 1, 1, 1})};
  };
  forward(exec, op, in, to(0));
  finish(exec, op, in, merge(accumulate(exec, op, in, {0, 2}), accumulate(exec, op, in, {2, 3})), to(1));
  INFO("the second key is ", above, " roundings above");
  CHECK(std::fabs(threshold[1] - threshold[0]) <= 16 * std::numeric_limits<T>::epsilon());
}

TEST_CASE("merge: a key that is barely in the support of its part stays") {
  for (int above = 1; above <= 40; ++above) {
    barely_supported(cpu<float>{1}, above);
    barely_supported(cpu<double>{1}, above);
    barely_supported(reference<float>{}, above);
    barely_supported(reference<double>{}, above);
  }
}

}  // namespace
}  // namespace attune::test
