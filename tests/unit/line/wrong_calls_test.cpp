// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random calls, most of them wrong, of the operators on a line of keys and of the sorted cache. Each computes what the
// dense reference computes, or throws attune::error before it writes anything.
#include <cmath>
#include <vector>

#include <support/wild_line.hpp>

namespace attune::test {
namespace {

TEST_SUITE("wrong calls") {
  TEST_CASE("Laplacian on a line") { check_wild_lines("laplacian", line::laplacian{0.5}); }
  TEST_CASE("Gaussian on a line") { check_wild_lines("gaussian", line::gaussian{0.5}); }
  TEST_CASE("sliced ReLU on a line") {
    check_wild_lines("sliced ReLU", line::sliced_relu{normalizer::normalized_relu{}});
  }

  TEST_CASE("sorted cache") {
    tally calls;
    index const count = case_count() < 1000 ? 300 : 10000;
    std::uint64_t const fresh = fresh_seed();
    MESSAGE("cache: fresh calls from seed " << fresh);
    for (index n = 0; n < 2 * count; ++n) {
      std::uint64_t const seed = n < count ? std::uint64_t(n) : fresh + std::uint64_t(n);
      CAPTURE(seed);
      wild_line p(seed);
      line::sorted_cache<float> kv({.heads = p.heads, .value_groups = p.value_heads, .value_width = p.width});
      std::vector<float> sort_k(std::size_t(p.keys * p.heads)), v(std::size_t(p.keys * p.value_heads * p.width));
      for (float& x : sort_k) x = float(p.random.normal());
      for (float& x : v) x = float(p.random.normal());
      for (index_t j = 0; j < p.keys; ++j)
        kv.insert({sort_k.data() + j * p.heads, std::size_t(p.heads)},
                  {v.data() + j * p.value_heads * p.width, std::size_t(p.value_heads * p.width)});
      shape const q{1, p.heads, p.queries, 1};
      auto const what = p.random.chance(0.4) ? mishap(p.random.between(1, 7)) : mishap::none;
      int const victim = int(p.random.between(0, 2));
      wild_tensor const none;
      wild_tensor sort_q(q, victim == 0 ? what : mishap::none, false, p.random);
      wild_tensor out({1, p.heads, p.queries, p.width}, victim == 1 ? what : mishap::none, true, p.random);
      wild_tensor lse(q, victim == 2 ? what : mishap::none, true, p.random);
      if (!comes_back(calls, {&out, &lse}, [&] {
            decode(cpu<float>{1}, line::windowed{0.5, line::certified{1e-5}}, kv, {.sort_q = sort_q.read()},
                   {.out = out.view(), .lse = natural_lse<float>(lse.view())});
          }))
        continue;
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < sort_q.view().extents().position; ++i)
          for (index_t d = 0; d < p.width; ++d) {
            double mass = 0, sum = 0;
            for (index_t j = 0; j < p.keys; ++j) {
              double const e = double(sort_q.view()(0, h, i, 0)) - double(sort_k[std::size_t(j * p.heads + h)]);
              double const w = std::exp(-e * e / 0.5);
              mass += w;
              sum += w * double(v[std::size_t((j * p.value_heads + h / (p.heads / p.value_heads)) * p.width + d)]);
            }
            CHECK(std::fabs(double(out.view()(0, h, i, d)) - (mass == 0 ? 0 : sum / mass)) < 1e-3);
          }
    }
    CHECK(calls.computed > count / 2);
    CHECK(calls.refused > count / 4);
  }
}

}  // namespace
}  // namespace attune::test
