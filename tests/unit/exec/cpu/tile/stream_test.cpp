// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstring>
#include <random>
#include <vector>

#include <unit/check.hpp>

#include <attune/attune.hpp>

namespace attune::test {
namespace {

template <class Op>
std::vector<float> run(Op const& op, shape const& s, std::vector<float> const& q, std::vector<float> const& k,
                       std::vector<float> const& v, index_t b) {
  auto const view = [&](std::vector<float> const& x) {
    return tensor<float const>(x.data() + b * s.head * s.position * s.feature, s);
  };
  std::vector<float> out(std::size_t(s.size()));
  forward(cpu<float>(1), op, {.q = view(q), .k = view(k), .v = view(v)}, {.out = tensor<float>(out, s)});
  return out;
}

TEST_CASE("a sequence's bits do not depend on how many others are in the batch") {
  // 600 queries are two to five tasks of a head, of as many tiles as the number of tasks allows.
  index_t const batch = 20, length = 600, width = 16;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> q(std::size_t(batch * length * width)), k(q.size()), v(q.size());
  for (auto* x : {&q, &k, &v})
    for (float& y : *x) y = normal(random);
  auto const check = [&](auto const& op) {
    auto const all = run(op, {batch, 1, length, width}, q, k, v, 0);
    for (index_t b : {index_t(0), index_t(7), batch - 1}) {
      auto const one = run(op, {1, 1, length, width}, q, k, v, b);
      CHECK(std::memcmp(one.data(), all.data() + b * length * width, one.size() * sizeof(float)) == 0);
    }
  };
  check(softmax_attention());
  check(softmax_attention(mask::causal{}));
  check(softmax_attention(mask::causal_window{100}));
  check(softmax_attention(mask::window{37}));
}

}  // namespace
}  // namespace attune::test
