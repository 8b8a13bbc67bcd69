// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tiles of `cuda` on emulated warps: archetypes.
#include <cstring>
#include <optional>

#include <attune/exec/cuda/host/forward.hpp>

#include "check.hpp"

namespace attune::cuda_check {
struct warp_place : host_place {
  template <class Op, class E>
  void forward(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& to) {
    testing::forward_on_host_warps<exec_cuda::widths<64, 128>>(op, in, to);
  }
};
}  // namespace attune::cuda_check

int main() {
  using namespace attune;
  using namespace attune::cuda_check;
  warp_place place;
  check<bfloat16>(place, "softmax", {}, [](auto&) { return softmax_attention(); });
  check<bfloat16>(
      place, "softmax causal", {.queries = 257, .keys = 257, .unseen = 3},
      [](auto&) { return softmax_attention(mask::causal{}); }, 1, -1, -3);
  check<bfloat16>(
      place, "softmax causal, a NaN value", {.queries = 257, .keys = 257},
      [](auto&) { return softmax_attention(mask::causal{}); }, 1, 50);
  sizes const tails{.batch = 2, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 129, .keys = 130};
  check<bfloat16>(place, "negative and positive scales", tails, [](auto& of) {
    return attention(kernel::dot_product{.scale = of.numbers(4, 1, 1)}, mask::causal{});
  });
  sizes wide = tails;
  wide.width = 128, wide.value_width = 72, wide.unseen = 3;
  check<bfloat16>(place, "softmax causal", wide, [](auto&) { return softmax_attention(mask::causal{}); }, 1, -1, -3);
  wide.width = 104, wide.padded = true;
  check<bfloat16>(
      place, "softmax causal, rows apart", wide, [](auto&) { return softmax_attention(mask::causal{}); }, 1, -1, -2);
  check<bfloat16>(place, "principled causal", {.queries = 150, .keys = 257}, [](auto&) {
    return principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  });
  // A ground whose level is off, above every logit, among them, and above most. Its mass is computed from the earned one.
  auto const levels = [](auto& of) {
    float const inf = std::numeric_limits<float>::infinity();
    return tensor<float const>(of.array(std::vector<float>{-inf, inf, 0.1f, 2.5f}), shape{1, 4, 1, 1});
  };
  check<bfloat16>(
      place, "grounded, levels of heads, empty rows", tails,
      [&](auto& of) { return attention(kernel::dot_product{}, normalizer::grounded{levels(of)}, mask::causal{}); }, 1,
      -1, -3);
  check<bfloat16>(
      place, "grounded, levels of heads, capped, a NaN value", tails,
      [&](auto& of) {
        return attention(kernel::dot_product{} | kernel::softcap{10}, normalizer::grounded{levels(of)}, mask::causal{});
      },
      1, 50);
  auto const& t = testing::host_warp::tally;
  bool const conflicts = t.load_waves != 4 * t.loads || t.copy_waves != 4 * t.copies;
  std::printf("%s  rounds of shared memory: %ld of %ld loads, %ld of %ld copies; 4 each without bank conflicts\n",
              conflicts ? "FAIL" : "PASS", t.load_waves, t.loads, t.copy_waves, t.copies);
  return failures + int(conflicts);
}
