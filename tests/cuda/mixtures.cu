// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// No presets: heads that run different operators, sums of operators, parameters that are computed.
#include "parity.hpp"

namespace attune::cuda_test {

TEST_CASE("cuda: a mixture") {
  check_parity_of<float, true>([](auto& learned) {
    auto const sink = sink_attention(0.5, visible());
    auto const sparse = sparsemax_attention(visible());
    using mixed = mixture_operator<std::remove_const_t<decltype(sink)>, std::remove_const_t<decltype(sparse)>>;
    return mixed{{sink, sparse}, learned.choice({1, 0, 1, 0}), 4};
  });
}
TEST_CASE("cuda: a fold of two operators") {
  check_parity_of<float, true>([](auto& learned) {
    parameter const by_query = learned.numbers(4, 37, 1);
    return fold({0.75, by_query}, attention(kernel::dot_product{}, visible()), sink_attention(0.5, visible()));
  });
}
TEST_CASE("cuda: a projection and its moving average") {
  check_parity_of<float, true>([](auto& learned) {
    parameter const alpha = projection{
        .x = learned.numbers(4, 37, 3), .weight = learned.numbers(4, 1, 3), .activation = activation::sigmoid};
    return affine_scaled_attention(alpha, parameter::moving_average(alpha, 0.4, 0.9), visible());
  });
}

}  // namespace attune::cuda_test
