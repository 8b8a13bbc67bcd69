// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A window of rows has the bits of the same rows in the whole problem, wherever it begins and ends.
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>

using namespace attune;

namespace {

constexpr index_t batch = 2, heads = 2, queries = 100, keys = 150, width = 17, value_width = 13;

std::vector<float> numbers(index_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& y : x) y = normal(bits);
  return x;
}
bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// The states of rows in windows, and of the same rows in one call, over some of the keys.
template <class Op>
void check_windows(Op const& op) {
  std::vector<float> const q = numbers(batch * heads * queries * width, 1),
                           k = numbers(batch * heads * keys * width, 2),
                           v = numbers(batch * heads * keys * value_width, 3);
  inputs<Op, tensor<float const>> const in{.q = {q.data(), {batch, heads, queries, width}},
                                           .k = {k.data(), {batch, heads, keys, width}},
                                           .v = {v.data(), {batch, heads, keys, value_width}}};
  problem_shape const whole = detail::checked_problem("test", op, in, {batch, heads, queries, value_width});
  key_interval const some{10, keys - 3};
  auto const all = accumulate(cpu{2}, op, in, some);
  for (key_interval const rows : {key_interval{0, 7}, {5, 90}, {33, 34}, {40, queries}}) {
    CAPTURE(rows.first);
    problem_shape const p = whole.window(rows);
    states_of<float, Op> part(op, p);
    exec_cpu::stream(
        cpu{1}, op, in, p, some, [](index_t) { return true; }, [&](auto& tile, auto const&) { tile.states(part); });
    REQUIRE(index_t(part.earned.size()) == batch * heads * rows.size());
    for (index_t b = 0; b < batch; ++b)
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = rows.first; i < rows.last; ++i) {
          auto const x = all.load(all.at(b, h, i)), y = part.load(part.at(b, h, i));
          bool equal = same(x.reference, y.reference) && same(x.earned, y.earned) && same(x.ground, y.ground) &&
                       same(x.lowest, y.lowest) && x.second.size() == y.second.size();
          for (std::size_t d = 0; d < x.acc.size(); ++d) equal = equal && same(x.acc[d], y.acc[d]);
          for (std::size_t d = 0; d < x.second.size(); ++d) equal = equal && same(x.second[d], y.second[d]);
          CHECK(equal);
        }
  }
}

}  // namespace

TEST_CASE("windows of rows: softmax, causal") {
  check_windows(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}));
}
TEST_CASE("windows of rows: two sums of values") {
  check_windows(attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                          mask::causal{}));
}
TEST_CASE("windows of rows: a uniform share, random numbers") {
  check_windows(attention(kernel::dot_product{}, gate::dropout{.rate = 0.2, .seed = 3}, normalizer::affine<>{0.4, 0.7},
                          mask::causal_window{40}));
}
TEST_CASE("windows of rows: K, Lq and positions belong to the whole problem") {
  problem_shape p;
  p.batch = p.heads = 1, p.queries = 10, p.keys = 20, p.set_offset(10);
  problem_shape const w = p.window({4, 7}).window({5, 6});
  CHECK(w.row_count() == 1);
  CHECK(w.whole_queries() == 10);
  CHECK(w.row(0, 0, 5).position == 15);
  CHECK(w.row(0, 0, 5).queries == 10);
}
TEST_CASE("a task of a single row: the gradient of a parameter per query belongs to its query") {
  // The last task of vjp has one row: of the first length with AVX2, of the second with AVX-512.
  for (index_t const rows : {15361, 65665}) {
    std::vector<float> const q = numbers(rows, 4), k = numbers(3, 5), v = numbers(3, 6), d = numbers(rows, 7);
    std::vector<double> const level(std::size_t(rows), 0.2);
    auto const gradient = [&](index_t first, index_t last) {
      index_t const n = last - first;
      auto const here =
          attention(kernel::dot_product{}, normalizer::grounded{tensor<double const>(level.data(), {1, 1, n, 1})});
      return vjp(cpu{1}, here,
                 {.q = {q.data() + first, {1, 1, n, 1}},
                  .k = {k.data(), {1, 1, 3, 1}},
                  .v = {v.data(), {1, 1, 3, 1}},
                  .v0 = zeros<float>(1)},
                 {.out = tensor<float const>(d.data() + first, {1, 1, n, 1})})
          .parameter("gamma");
    };
    auto const whole = gradient(0, rows), last = gradient(rows - 1, rows), first = gradient(0, 1);
    CHECK(whole(0, 0, rows - 1, 0) == doctest::Approx(last.values[0]));
    CHECK(whole(0, 0, 0, 0) == doctest::Approx(first.values[0]));
  }
}
