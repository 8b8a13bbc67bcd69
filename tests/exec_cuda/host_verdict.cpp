// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The verdict on outputs of `cuda` on emulated warps: PASS. With one head that is 2 % off: FAIL.
#include <cstdio>
#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cuda/host/forward.hpp>
#include <attune/testing/verdict.hpp>

namespace {
using namespace attune;
int failures = 0;

void require(testing::judgement expected, char const* name, testing::verdict_report const& r) {
  bool const right = r.decision == expected;
  failures += right ? 0 : 1;
  std::printf("%s  %-24s %s\n", right ? "PASS" : "FAIL", name, testing::name_of(r.decision));
}

template <class E, class Op>
void check(char const* name, Op const& op) {
  index_t const heads = 4, width = 64;
  shape const of_queries{2, heads, 70, width}, of_keys{2, 2, 150, width}, of_ground{1, heads, 1, width};
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<E> numbers[field_count];
  shape extents[field_count];
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      extents[int(F)] = side_of(F) == input_side::ground ? of_ground
                        : side_of(F) == input_side::key  ? of_keys
                                                         : of_queries;
      for (index_t n = 0; n < extents[int(F)].size(); ++n) numbers[int(F)].push_back(E(normal(random)));
    }
  });
  auto const in = make_inputs<Op, tensor<E const>>(
      [&]<field F>() { return tensor<E const>(numbers[int(F)].data(), extents[int(F)]); });
  std::vector<E> out(std::size_t(of_queries.size()));
  testing::forward_on_host_warps<exec_cuda::widths<64>>(op, in, outputs<Op, E>{.out = tensor<E>(out, of_queries)});

  std::vector<float> wide[field_count];
  for (std::size_t f = 0; f < field_count; ++f)
    for (E const x : numbers[f]) wide[f].push_back(float(x));
  auto const exact = make_inputs<Op, any_tensor>(
      [&]<field F>() { return any_tensor(tensor<float const>(wide[int(F)], extents[int(F)])); });
  auto const judged = [&] { return testing::verdict(op, exact, testing::candidate(tensor<E const>(out, of_queries))); };
  require(testing::judgement::pass, name, judged());
  for (index_t b = 0; b < of_queries.batch; ++b)
    for (index_t n = 0; n < of_queries.position * width; ++n) {
      E& x = out[std::size_t((b * heads + 1) * of_queries.position * width + n)];
      x = E(1.02f * float(x));
    }
  require(testing::judgement::fail, "  one head 2 % off", judged());
}

}  // namespace

int main() {
  check<bfloat16>("softmax, bf16", softmax_attention(mask::causal{}));
  check<float16>("softmax, fp16", softmax_attention());
  check<bfloat16>("Principled, bf16", principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}));
  std::printf("%d failures\n", failures);
  return failures != 0;
}
