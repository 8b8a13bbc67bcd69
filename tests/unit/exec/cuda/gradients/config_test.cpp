// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Tiles of gradients of 256 features, their memory and their bank conflicts.
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/gradients/config.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../../check.hpp"
#include "../gradients.hpp"

namespace attune::test {
namespace {

using namespace exec_cuda;
using softmax = decltype(softmax_attention(mask::causal{}));
using principled = decltype(principled_attention({}, mask::causal{}));

template <class Op, class E, int Width>
bool fits() {
  using configs = gradient_configs<Op, E, Width>;
  CAPTURE(Width);
  CHECK(query_tile_memory<Op, E, typename configs::queries>::bytes <= large_memory);
  CHECK(key_tile_memory<Op, E, typename configs::keys>::bytes <= large_memory);
  return configs::queries::warps >= 4 && configs::keys::warps >= 4;
}
template <class Op, class E, int Width>
bool fits_small() {
  using configs = gradient_configs<Op, E, Width, small_memory>;
  CAPTURE(Width);
  return query_tile_memory<Op, E, typename configs::queries>::bytes <= small_memory &&
         key_tile_memory<Op, E, typename configs::keys>::bytes <= small_memory;
}
/// Rounds of shared memory above the fewest that loads and copies need, in a call.
template <int Width, class E, class Op>
long conflicts(Op const& op, gradient_extents n) {
  n.width = n.value_width = Width;
  testing::host_warp::tally = {};
  CHECK(gradients_of<E, Width>(op, n) == "");
  auto const t = testing::host_warp::tally;
  CHECK(t.loads > 0);
  CHECK(t.copies > 0);
  return t.load_waves - 4 * t.loads + t.copy_waves - 4 * t.copies;
}

TEST_CASE("gradients of tiles: the memory of every width is there") {
  CHECK(fits<softmax, bfloat16, 64>());
  CHECK(fits<softmax, bfloat16, 128>());
  CHECK(fits<softmax, bfloat16, 256>());
  CHECK(fits<principled, bfloat16, 64>());
  CHECK(fits<principled, bfloat16, 128>());
  CHECK(fits<principled, bfloat16, 256>());
  CHECK(gradient_configs<softmax, bfloat16, 256>::keys::parts == 2);
}
TEST_CASE("gradients of tiles: small devices have smaller tiles") {
  CHECK(fits_small<softmax, bfloat16, 64>());
  CHECK(fits_small<softmax, bfloat16, 128>());
  CHECK(fits_small<principled, bfloat16, 64>());
  CHECK(fits_small<principled, bfloat16, 128>());
  using large = gradient_configs<softmax, bfloat16, 128>;
  using small = gradient_configs<softmax, bfloat16, 128, small_memory>;
  std::string const words =
      error_of([] { require_gradient_memory<softmax, bfloat16, large::queries, large::keys>(small_memory); });
  CHECK(words.find("vjp: a block of the device has 101376 bytes of shared memory; expected 135168") != words.npos);
  CHECK(words.find("small_widths") != words.npos);
  CHECK(error_of([] { require_gradient_memory<softmax, bfloat16, small::queries, small::keys>(small_memory); }) == "");
}
TEST_CASE("gradients of tiles: smaller tiles keep the bound") {
  auto const op = softmax_attention(mask::causal{});
  gradient_problem<softmax, bfloat16> p(op, {.heads = 2, .queries = 70, .keys = 150, .width = 128, .value_width = 128});
  CHECK(p.beyond_bound(p.on_host<small_widths<128>>()) == "");
}
TEST_CASE("gradients of tiles: no bank conflict in any width, and 256 features") {
  auto const op = softmax_attention(mask::causal{});
  CHECK(conflicts<64, bfloat16>(op, {.heads = 2, .queries = 40, .keys = 70, .offset = 30}) == 0);
  CHECK(conflicts<128, bfloat16>(op, {.heads = 2, .queries = 40, .keys = 70, .offset = 30}) == 0);
  CHECK(conflicts<256, bfloat16>(op, {.heads = 4, .key_heads = 2, .queries = 40, .keys = 70, .offset = 30}) == 0);
}
TEST_CASE("gradients of tiles: 256 features, tails, in fp16 too") {
  auto const op = softmax_attention(mask::causal{});
  CHECK(gradients_of<bfloat16, 256>(op, {.queries = 70, .keys = 77, .width = 200, .value_width = 132, .offset = 7}) ==
        "");
  CHECK(gradients_of<float16, 256>(op, {.queries = 33, .keys = 90, .width = 256, .value_width = 256, .offset = 57}) ==
        "");
}
TEST_CASE("gradients of tiles: 256 features and a list of tiles") {
  std::vector<index_t> ids;
  for (index_t n = 0; n < 100; ++n) ids.push_back(n / 37);
  CHECK(gradients_of<bfloat16, 256>(
            softmax_attention(mask::documents(ids)),
            {.heads = 2, .value_heads = 2, .queries = 100, .keys = 100, .width = 256, .value_width = 256}) == "");
}
TEST_CASE("gradients of tiles: two products of 256 features") {
  auto const op = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  CHECK(conflicts<256, bfloat16>(op, {.heads = 2, .queries = 40, .keys = 70, .offset = 30}) == 0);
}
TEST_CASE("gradients of tiles: NaN in 256 features that no query sees") {
  auto const op = softmax_attention(mask::causal{});
  gradient_problem<softmax, bfloat16> p(op, {.queries = 40, .keys = 60, .width = 256, .value_width = 256, .offset = 5});
  for (index_t j : {46, 59}) p.spoil(field::k, j), p.spoil(field::v, j);
  CHECK(p.beyond_bound(p.on_host<widths<256>>()) == "");
}

}  // namespace
}  // namespace attune::test
