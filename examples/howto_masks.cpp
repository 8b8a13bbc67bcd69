// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One rule as an interval, as a rule for every pair and as a table: the same numbers at different cost.
//   howto_masks         compares results
//   howto_masks time    the time of a forward pass with each mask, over the time without a mask (docs/howto/masks.md)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]
#include <attune/policies/mask/expression.hpp>

using namespace attune;

namespace {

std::vector<float> random_numbers(std::size_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& e : x) e = normal(random);
  return x;
}

struct contender {
  char const* name;
  double visible;  ///< the share of pairs that the mask shows
  std::function<void()> run;
  std::vector<float> out;
  std::vector<double> ratios;
};

}  // namespace

int main(int arguments, char** argument) {
  bool const timed = arguments > 1 && std::string(argument[1]) == "time";
  index_t const L = timed ? 2048 : 304, D = 64;
  auto const count = static_cast<std::size_t>(L * D);
  std::vector<float> const q = random_numbers(count), k = random_numbers(count), v = random_numbers(count);
  shape const extents{1, 1, L, D};
  std::vector<float> out(count), same_window(count);
  tensor const Q(q, extents), K(k, extents), V(v, extents);
  tensor O(out, extents);

  // [snippet: window]
  // A query sees itself and the 255 keys before it.
  auto const op = attention(kernel::dot_product{}, mask::causal_window{256});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  // [/snippet]
  forward(cpu{}, attention(kernel::dot_product{}, mask::band{255, 0}), {.q = Q, .k = K, .v = V},
          {.out = tensor(same_window, extents)});

  // [snippet: masks]
  auto rule = [](mask_row const& r, index_t key) { return key <= r.position; };
  std::vector<unsigned char> seen(static_cast<std::size_t>(L * L));  // 1: query i sees key j
  for (index_t i = 0; i < L; ++i)
    for (index_t j = 0; j <= i; ++j) seen[static_cast<std::size_t>(i * L + j)] = 1;
  mask::runtime table;
  table.visible = seen.data();
  table.visible_shape = {1, 1, L, L};

  auto interval = mask::causal{};          // an interval of keys for each query
  auto predicate = mask::predicate(rule);  // the same rule, asked for every pair
  // table: the same rule, read for every pair
  // [/snippet]

  // [snippet: expression]
  mask::expression chosen = mask::causal{};
  if (timed) chosen = chosen & mask::causal_window{256};  // whatever your program decides
  auto composed = chosen.mask();                          // the policy; `chosen` must outlive it
  // [/snippet]

  std::vector<std::int32_t> cu_seqlens{0};
  std::vector<index_t> ids;
  for (index_t i = 0; i < L; ++i) ids.push_back(i / (L / 8));  // 8 documents
  for (index_t s = 1; s <= 8; ++s) cu_seqlens.push_back(std::int32_t(s * (L / 8)));

  std::vector<contender> all;
  auto const add = [&](char const* name, auto const& m) {
    double pairs = 0;
    for (index_t i = 0; i < L; ++i) pairs += double(mask::count(m, {0, 0, i, i, L, L}));
    all.push_back({name, pairs / double(L * L), {}, std::vector<float>(count), {}});
    auto* const to = all.back().out.data();  // moves with the contender
    all.back().run = [=, &q, &k, &v] {
      forward(cpu{serial{}}, attention(kernel::dot_product{}, m),
              {.q = tensor(q, extents), .k = tensor(k, extents), .v = tensor(v, extents)},
              {.out = tensor(to, extents)});
    };
  };
  add("none", mask::none{});
  add("causal", interval);
  add("predicate, causal", predicate);
  add("runtime, a causal table", table);
  add("composed at run time", composed);
  if (timed) {
    add("causal_window{256}", mask::causal_window{256});
    add("ragged, 8 sequences, causal", mask::ragged(cu_seqlens, mask::causal{}));
    add("documents & causal, 8", mask::documents(ids) & mask::causal{});
  }

  int const rounds = timed ? 41 : 1;
  for (int round = 0; round < rounds; ++round) {
    double without = 0;
    for (contender& c : all) {                  // one after the other, so that a busy machine slows all of them alike
      std::clock_t const start = std::clock();  // processor time: other programs count less
      c.run();
      double const ticks = double(std::clock() - start);
      if (&c == &all.front()) without = ticks;
      c.ratios.push_back(ticks / without);
    }
  }
  for (contender& c : all) {
    std::sort(c.ratios.begin(), c.ratios.end());
    auto const at = [&](double share) { return c.ratios[static_cast<std::size_t>(share * double(rounds - 1))]; };
    if (timed)
      std::printf("%-28s visible %5.1f %%   time %.3f (quartiles %.3f to %.3f)\n", c.name, 100 * c.visible, at(0.5),
                  at(0.25), at(0.75));
  }
  bool const windows = out == same_window;
  bool const same = all[1].out == all[2].out && all[1].out == all[3].out && (timed || all[1].out == all[4].out);
  std::printf("causal_window{256} and band{255, 0}: %s\n", windows ? "the same bits" : "DIFFERENT");
  std::printf("interval, predicate, table and expression: %s\n", same ? "the same bits" : "DIFFERENT");
  return windows && same ? 0 : 1;
}
