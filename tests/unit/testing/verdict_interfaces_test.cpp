// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A verdict reads what kernels read and return: caches of 8 bits in pages, packed sequences in (total, H, D), an lse of
// base 2 or in 16 bits, gradients of parameters.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/float8_cache.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/verdict.hpp>

#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::storage;
using testing::candidate;
using testing::judgement;

std::vector<float> drawn(index_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (index_t i = 0; i < n; ++i) x.push_back(normal(random));
  return x;
}
template <class E>
std::vector<E> stored(std::vector<float> const& x) {
  return std::vector<E>(x.begin(), x.end());
}
template <>
std::vector<float8_e4m3fn> stored(std::vector<float> const& x) {
  std::vector<float8_e4m3fn> to;
  for (float y : x) to.push_back(float8_e4m3fn(y));
  return to;
}

TEST_SUITE_BEGIN("verdict interfaces");

TEST_CASE("a candidate takes numbers without a copy, and refuses another count") {
  shape const e{1, 2, 3, 4};
  std::vector<double> numbers(24, 0.5);
  double const* const at = numbers.data();
  candidate const taken(std::move(numbers), e, storage::fp16);
  CHECK(taken.out().data() == at);
  CHECK(taken.extents() == e);
  CHECK(taken.stored() == storage::fp16);
  std::string const text = error_of([&] { candidate(std::vector<double>(23), e, storage::fp16); });
  CHECK_MESSAGE(text.find("out has 23 numbers; expected 24, as many as") != std::string::npos, text);
}

TEST_CASE("a paged cache of 8 bits with scales: attune's own decode is PASS, a wrong scale or page is not") {
  constexpr index_t page = 8, pages = 9, heads = 4, key_heads = 2, width = 16;
  auto const k = stored<float8_e4m3fn>(drawn(pages * page * key_heads * width, 1)),
             v = stored<float8_e4m3fn>(drawn(pages * page * key_heads * width, 2));
  shape const e{pages, key_heads, page, width};
  strides const steps{page * key_heads * width, width, key_heads * width, 1};
  tensor const K(k.data(), e, steps), V(v.data(), e, steps);
  std::vector<float> const scales{0.5f, 0.25f};
  tensor<float const> const S(scales, {1, key_heads, 1, 1});
  std::vector<std::int32_t> const entries{7, 2, 3, 8, 0, -1};
  page_table const table(entries, 2);
  std::vector<index_t> const lengths{21, 13};
  shape const rows{2, heads, 1, width};
  auto const q = drawn(rows.size(), 3);
  std::vector<float> out(q.size());
  auto const op = attention(kernel::dot_product{}, mask::padding(lengths));
  decode(cpu_float8_cache<float8_e4m3fn>{}, op, {.q = tensor(q, rows), .k = {K, S}, .v = {V, 0.125f}}, table,
         {.out = tensor(out, rows)});

  std::vector<float> const one{0.125f};
  tensor<float const> const of_v(one, {1, 1, 1, 1});
  auto const judged = [&](tensor<float const> const& k_scales, page_table const& pages_of) {
    // [snippet: pages]
    // K, V: views (pages, heads, keys of a page, D) of float8 codes
    auto const dense_k = testing::read_tensor(K, {.scales = k_scales, .pages = pages_of, .lengths = &lengths}),
               dense_v = testing::read_tensor(V, {.scales = of_v, .pages = pages_of, .lengths = &lengths});
    auto report =
        testing::verdict(op, {.q = tensor(q, rows), .k = dense_k, .v = dense_v}, candidate(tensor(out, rows)));
    // [/snippet]
    CHECK(dense_k.extents() == shape{2, key_heads, 21, width});
    return report;
  };
  auto const right = judged(S, table);
  INFO(printed(right));
  CHECK(right.decision == judgement::pass);
  std::vector<float> const other{0.5f, 0.5f};
  CHECK(judged(tensor<float const>(other, {1, key_heads, 1, 1}), table).decision == judgement::fail);
  std::vector<std::int32_t> const stale{7, 1, 3, 8, 0, -1};
  CHECK(judged(S, page_table(stale, 2)).decision == judgement::fail);

  std::vector<std::int32_t> const missing{7, 2, -1, 8, 0, -1};
  CHECK(error_of([&] {
          testing::read_tensor(K, {.pages = page_table(missing, 2), .lengths = &lengths});
        }).find("pages(0, 2) has the value -1") != std::string::npos);
  std::vector<index_t> const too_long{25, 13};
  CHECK(error_of([&] { testing::read_tensor(K, {.pages = table, .lengths = &too_long}); }).find("lengths[0]") !=
        std::string::npos);
  CHECK(error_of([&] {
          testing::read_tensor(K, {.scales = tensor<float const>(scales, {1, 1, 2, 1})});
        }).find("scales") != std::string::npos);
}

TEST_CASE("packed sequences in (total, H, D): strides and mask::ragged") {
  constexpr index_t heads = 2, width = 8;
  std::vector<index_t> const cu_q{0, 5, 6, 18}, cu_k{0, 7, 20, 36};
  auto const packed = [&](auto* x, index_t total) {
    return tensor(x, shape{1, heads, total, width}, strides{0, width, heads * width, 1});
  };
  auto const q = drawn(18 * heads * width, 4), k = drawn(36 * heads * width, 5), v = drawn(36 * heads * width, 6);
  std::vector<float> out(q.size());
  auto const run = [&](auto const& op) {
    forward(cpu{}, op, {.q = packed(q.data(), 18), .k = packed(k.data(), 36), .v = packed(v.data(), 36)},
            {.out = packed(out.data(), 18)});
  };
  auto const op = attention(kernel::dot_product{}, mask::ragged(cu_q, cu_k, mask::causal{}));
  auto const judged = [&] {
    return testing::verdict(op, {.q = packed(q.data(), 18), .k = packed(k.data(), 36), .v = packed(v.data(), 36)},
                            candidate(packed(out.data(), 18)));
  };
  run(op);
  CHECK(judged().decision == judgement::pass);
  run(attention(kernel::dot_product{}));
  auto const wrong = judged();
  INFO(printed(wrong));
  CHECK(names(wrong, "mask ignored"));
}

TEST_CASE("an lse of base 2, and an lse in 16 bits") {
  shape const s{1, 2, 40, 16}, rows{1, 2, 40, 1};
  auto const q = drawn(s.size(), 7), k = drawn(s.size(), 8), v = drawn(s.size(), 9);
  std::vector<float> out(q.size()), lse(std::size_t(rows.size()));
  auto const op = attention(kernel::dot_product{});
  forward(cpu{}, op, {.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)},
          {.out = tensor(out, s), .lse = natural_lse(tensor(lse, rows))});
  auto const judged = [&](candidate const& given) {
    return testing::verdict(op, {.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)}, given);
  };
  auto const changed = [&](auto const& f) {
    std::vector<float> to;
    for (float x : lse) to.push_back(f(x));
    return to;
  };
  auto const binary = changed([](float x) { return float(double(x) * 1.4426950408889634); });
  candidate const plain(tensor(out, s));
  CHECK(judged(candidate(plain).with_base_two_lse(tensor(binary, rows))).decision == judgement::pass);
  CHECK(names(judged(candidate(plain).with_lse(natural_lse(tensor(binary, rows)))), "lse in base 2"));
  CHECK(names(judged(candidate(plain).with_base_two_lse(tensor(lse, rows))), "lse in base e"));
  auto const narrow = stored<bfloat16>(lse), late = stored<bfloat16>(changed([](float x) { return x + 0.02f; }));
  CHECK(judged(candidate(plain).with_lse(natural_lse(tensor(narrow, rows)))).decision == judgement::pass);
  auto const off = judged(candidate(plain).with_lse(natural_lse(tensor(late, rows))));
  INFO(printed(off));
  CHECK(names(off, "lse"));
  auto const as_floats = changed([](float x) { return float(bfloat16(x)); });  // the kernel says float, and rounded
  CHECK(judged(candidate(plain).with_lse(natural_lse(tensor(as_floats, rows)))).decision == judgement::fail);
}

TEST_CASE("gradients of parameters: each head's sink, judged by name and by path") {
  shape const s{2, 4, 24, 16};
  auto const q = drawn(s.size(), 10), k = drawn(s.size(), 11), v = drawn(s.size(), 12), by = drawn(s.size(), 13);
  std::vector<double> const sinks{0.5, -1, 2, 0};
  auto const op = sink_attention(tensor<double const>(sinks, {1, 4, 1, 1}), mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  auto const g =
      vjp(cpu<float>{}, op, {.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)}, {.out = tensor(by, s)});
  auto const judged = [&](std::vector<float> const& by_sink, std::string const& name, bool with_q) {
    testing::gradient_candidate given;
    given.with(name, tensor(by_sink, {1, 4, 1, 1}));
    if (with_q) given.with(field::q, tensor(g.of(field::q).values, s));
    return testing::gradient_verdict(
        op, inputs<op_type, any_tensor>{.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)},
        cotangents<op_type, any_tensor>{.out = tensor(by, s)}, given);
  };
  std::string const path = testing::gradient_name(g.parameters.back().path).path;
  std::vector<float> const right = g.parameter(path).values;
  auto const good = judged(right, path, true);
  INFO(printed(good));
  CHECK(good.decision == judgement::pass);
  CHECK(judged(right, "logit", false).decision == judgement::pass);
  std::vector<float> wrong = right;
  wrong[2] *= 1.01f;
  auto const bad = judged(wrong, path, true);
  INFO(printed(bad));
  CHECK(bad.decision == judgement::fail);
  CHECK(std::any_of(bad.reasons.begin(), bad.reasons.end(),
                    [&](std::string const& x) { return x.find("in head 2 of d" + path) != std::string::npos; }));
  CHECK(error_of([&] { judged(right, "gamma", false); }).find("one of ") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
