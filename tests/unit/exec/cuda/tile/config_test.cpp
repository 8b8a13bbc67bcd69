// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Tiles that fit into the shared memory of small devices.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/exec/cuda/tile/config.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../../check.hpp"

namespace attune::test {
namespace {

using namespace exec_cuda;
using softmax = decltype(softmax_attention(mask::causal{}));
using principled = decltype(principled_attention({}, mask::causal{}));

template <class Op, class E, int Width, int Memory>
constexpr int bytes = tile_memory<Op, E, config_of<Op, E, Width, Memory>>::bytes;

template <class Op, class E, int Width>
bool fits() {
  CAPTURE(Width);
  return bytes<Op, E, Width, small_memory> <= small_memory;
}

template <class Op, class E>
void compare(Op const& op, index_t width, double tolerance) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  shape const e{1, 2, 70, width};
  std::vector<E> x[5], of_large(std::size_t(e.size())), of_small(of_large.size());
  for (auto& numbers : x)
    for (index_t n = 0; n < e.size(); ++n) numbers.push_back(E(normal(random)));
  index_t next = 0;
  auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() { return tensor<E const>(x[next++ % 5].data(), e); },
                                                   std::nullopt);
  testing::forward_on_host_warps<widths<64, 128, 256>>(op, in, outputs<Op, E>{.out = tensor<E>(of_large.data(), e)});
  testing::forward_on_host_warps<small_widths<64, 128, 256>>(op, in,
                                                             outputs<Op, E>{.out = tensor<E>(of_small.data(), e)});
  double worst = 0;
  for (std::size_t n = 0; n < of_large.size(); ++n)
    worst = std::fmax(worst, std::fabs(double(float(of_large[n])) - double(float(of_small[n]))));
  CHECK(worst < tolerance);
}

TEST_SUITE_BEGIN("cuda config");

TEST_CASE("tiles of small devices take at most 99 KiB") {
  CHECK(bytes<principled, bfloat16, 128, large_memory> == 163840);  // sm_80
  CHECK(fits<softmax, bfloat16, 64>());
  CHECK(fits<softmax, bfloat16, 128>());
  CHECK(fits<softmax, bfloat16, 256>());
  CHECK(fits<softmax, float, 64>());
  CHECK(fits<softmax, float, 128>());
  CHECK(fits<softmax, float, 256>());
  CHECK(fits<principled, bfloat16, 64>());
  CHECK(fits<principled, bfloat16, 128>());
  CHECK(fits<principled, bfloat16, 256>());
  CHECK(fits<principled, float, 64>());
  CHECK(fits<principled, float, 128>());
  CHECK(!fits<principled, float, 256>());  // refused in words
  static_assert(std::is_same_v<config_of<softmax, bfloat16, 128, small_memory>, config_of<softmax, bfloat16, 128>>);
}

TEST_CASE("which devices have small blocks") {
  for (int n10 : {860, 890, 1200, 1210}) CHECK(has_small_memory(n10));
  for (int n10 : {800, 870, 900, 1000, 1030, 1100}) CHECK(!has_small_memory(n10));
}

TEST_CASE("a device with too little shared memory is refused, with advice") {
  auto const message = [](auto const& call) -> std::string {
    try {
      call();
    } catch (error const& e) {
      return e.what();
    }
    return "";
  };
  auto const large =
      message([] { require_shared_memory<principled, bfloat16, config_of<principled, bfloat16, 128>>(101376); });
  CHECK(large.find("has 101376 bytes of shared memory; expected 163840, for tiles of 128 features") != large.npos);
  CHECK(large.find("small_widths") != large.npos);
  auto const none = message(
      [] { require_shared_memory<principled, float, config_of<principled, float, 256, small_memory>>(101376); });
  CHECK(none.find("a device with more, fewer features, or thrust_on") != none.npos);
  CHECK(message([] { require_shared_memory<principled, bfloat16, config_of<principled, bfloat16, 128>>(166912); }) ==
        "");
}

TEST_CASE("smaller tiles compute the same") {
  auto const of_softmax = softmax_attention(mask::causal{});
  auto const of_principled = principled_attention({}, mask::causal{});
  compare<softmax, float>(of_softmax, 128, 2e-6);
  compare<softmax, float>(of_softmax, 256, 2e-6);
  compare<principled, bfloat16>(of_principled, 128, 4e-2);
  compare<principled, bfloat16>(of_principled, 256, 4e-2);
  compare<principled, float>(of_principled, 128, 4e-6);
}

}  // namespace
}  // namespace attune::test
