// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   host_fuzz [problems]        default 50; bf16 and fp16, or ATTUNE_ELEMENT
//
// Random problems of awkward sizes on emulated warps: tails of every length, grouped heads, rows apart, offsets that leave
// rows without keys, NaN in keys that no row sees, a NaN value; masks that are intervals, lists and predicates.
#include <cstdlib>
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
struct checkered {
  index_t step;
  ATTUNE_HD bool operator()(mask_row const& r, index_t j) const { return (r.query + j) % step != 0; }
};
}  // namespace attune::cuda_check

int main(int count, char** arguments) {
  using namespace attune;
  using namespace attune::cuda_check;
  int const problems = count > 1 ? std::atoi(arguments[1]) : 50;
  quiet = true;
  std::mt19937 random(20261127);
  auto const one_of = [&](int low, int high) { return index_t(low + int(random() % unsigned(high - low + 1))); };
  for (int n = 0; n < problems; ++n) {
    warp_place place;
    sizes s;
    s.batch = one_of(1, 2);
    index_t const pack = one_of(1, 3);
    s.key_heads = one_of(1, 2);
    s.value_heads = random() % 2 == 0 ? 1 : s.key_heads;
    s.heads = s.key_heads * pack;
    s.queries = one_of(1, 140);
    s.keys = one_of(1, 200);
    s.width = random() % 2 == 0 ? 8 * one_of(1, 16) : one_of(1, 100);
    s.value_width = random() % 2 == 0 ? 8 * one_of(1, 16) : one_of(1, 100);
    s.gate_width = one_of(1, 64);
    s.padded = random() % 2 == 0;
    s.query_scale = random() % 3 == 0 ? 4 : 1;
    index_t const offset = one_of(-5, int(s.keys));
    index_t const poison = random() % 4 == 0 ? one_of(0, int(s.keys) - 1) : -1;
    double const scale = (random() % 2 == 0 ? 1 : -1) * 0.01 * double(one_of(0, 30));
    index_t const reach = one_of(1, 90), step = one_of(1, 5);
    int const before = failures, kind = int(random() % 7);
    auto const run = [&](char const* name, auto const& make) {
#if defined(ATTUNE_ELEMENT)
      check<ATTUNE_ELEMENT>(place, name, s, make, 1, poison, offset);
#else
      if (random() % 4 == 0)
        check<float16>(place, name, s, make, 1, poison, offset);
      else
        check<bfloat16>(place, name, s, make, 1, poison, offset);
#endif
    };
    auto const softmax = [&](auto const& mask) {
      return [=](auto&) { return attention(kernel::dot_product{.scale = scale}, mask); };
    };
    if (kind == 0) run("softmax", softmax(mask::none{}));
    if (kind == 1) run("causal", softmax(mask::causal{}));
    if (kind == 2) run("causal window", softmax(mask::causal_window{reach}));
    if (kind == 3) run("sinks and window", softmax(mask::sink_window{step, reach}));
    if (kind == 4) run("predicate", softmax(mask::predicate{checkered{step}}));
    if (kind == 5)
      run("principled",
          [](auto&) { return principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}); });
    if (kind == 6) run("sigmoid window", [=](auto&) { return sigmoid_attention({}, mask::causal_window{reach}); });
    if (failures != before)
      std::printf("      problem %d: scale %g, offset %d, poison %d, reach %d, step %d\n", n, scale, int(offset),
                  int(poison), int(reach), int(step));
  }
  std::printf("%s  %d problems, %d failures\n", failures == 0 && cases == problems ? "PASS" : "FAIL", cases, failures);
  return failures != 0 || cases != problems;
}
