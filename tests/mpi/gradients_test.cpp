// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() over ranks: the gradients of vjp(cpu{}), the same on every run.
#include "compare.hpp"

using namespace attune;
using namespace attune::test;

TEST_CASE("mpi vjp: softmax, causal") {
  compare_with_one_process("softmax", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 150,
                           150);
}
TEST_CASE("mpi vjp: grounded, margin, a gate, a parameter per query") {
  static std::vector<double> level(70);
  for (std::size_t n = 0; n < level.size(); ++n) level[n] = 0.1 * double(n % 7) - 0.3;
  compare_with_one_process(
      "grounded",
      attention(kernel::dot_product{}, length_scale::margin{.gamma = tensor<double const>(level, {1, 1, 70, 1})},
                gate::softplus{}, normalizer::grounded{0.3}, mask::causal_window{40}),
      70, 90);
}
TEST_CASE("mpi vjp: self-adjusted") {
  compare_with_one_process(
      "adjusted",
      attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                mask::causal{}),
      90, 90);
}
TEST_CASE("mpi vjp: uniform share, a gate on values and one on the output") {
  compare_with_one_process("affine",
                           attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{},
                                     normalizer::affine<>{0.4, 0.7}, mask::none{}),
                           70, 130);
}
TEST_CASE("mpi vjp: sparsemax") {
  compare_with_one_process("sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{}), 90,
                           90);
}
TEST_CASE("mpi vjp: entmax, a gate on the output") {
  compare_with_one_process(
      "entmax",
      attention(kernel::dot_product{}, gate::sigmoid_output{}, normalizer::entmax{1.3}, mask::causal_window{50}), 60,
      90);
}
TEST_CASE("mpi vjp: top-k") {
  compare_with_one_process(
      "top_k", attention(kernel::dot_product{}, gate::sigmoid_value{}, normalizer::top_k{5}, mask::none{}), 50, 90);
}
