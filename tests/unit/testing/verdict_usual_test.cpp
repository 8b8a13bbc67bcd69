// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The names of usual mistakes. The kernel under test is attune's own, of an operator or with tensors that are wrong.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/verdict.hpp>

#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using testing::candidate;
using testing::judgement;
using testing::verdict_report;

/// Random tensors of a call, and the kernel's results.
struct call {
  shape of_queries, of_keys;
  std::vector<float> q, k, v, out, lse;

  call(shape const& queries, shape const& keys) : of_queries(queries), of_keys(keys) {
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    auto const draw = [&](std::vector<float>& to, shape const& e) {
      for (index_t n = 0; n < e.size(); ++n) to.push_back(normal(random));
    };
    draw(q, queries), draw(k, keys), draw(v, keys);
    out.resize(q.size());
    lse.resize(q.size() / std::size_t(queries.feature));
  }
  template <class Op, class View = any_tensor>
  inputs<Op, View> in(Op const&) const {
    return {.q = tensor<float const>(q, of_queries),
            .k = tensor<float const>(k, of_keys),
            .v = tensor<float const>(v, of_keys)};
  }
  template <class Op>
  void run(Op const& op, inputs<Op, tensor<float const>> const& in) {
    shape rows = of_queries;
    rows.feature = 1;
    forward(cpu{}, op, in, {.out = tensor(out, of_queries), .lse = natural_lse(tensor(lse, rows))});
  }
  template <class Op>
  void run(Op const& op) {
    run(op, in<Op, tensor<float const>>(op));
  }
  template <class Op>
  verdict_report judged(Op const& op, testing::verdict_options const& how = {}) const {
    shape rows = of_queries;
    rows.feature = 1;
    return testing::verdict(
        op, in(op),
        candidate(tensor<float const>(out, of_queries)).with_lse(natural_lse(tensor<float const>(lse, rows))), how);
  }
};
/// The verdict of a right operator on the results of a wrong one, after that on its own.
template <class Right, class Wrong>
verdict_report of(call c, Right const& right, Wrong const& wrong) {
  c.run(right);
  verdict_report const own = c.judged(right);
  INFO(printed(own));
  CHECK(own.decision == judgement::pass);
  c.run(wrong);
  return c.judged(right);
}
bool is_named(verdict_report const& r, std::string const& name) {
  if (r.decision == judgement::fail && names(r, name) && r.share > 0.9) return true;
  MESSAGE(printed(r));
  return false;
}

call const usual({1, 4, 48, 16}, {1, 2, 64, 16});

TEST_SUITE_BEGIN("usual defects");

TEST_CASE("the edges of windows") {
  kernel::dot_product const dot{};
  auto const causal = [&](index_t width) { return attention(dot, mask::causal_window{width}); };
  auto const both = [&](index_t radius) { return attention(dot, mask::window{radius}); };
  call const square({1, 4, 48, 16}, {1, 2, 48, 16});
  CHECK(is_named(of(square, causal(16), causal(15)), "window one key too short at its start"));
  CHECK(is_named(of(usual, causal(16), causal(17)), "one key too many at the start"));
  CHECK(is_named(of(usual, both(8), both(9)), "window one key too long on both sides"));
  CHECK(is_named(of(usual, both(8), both(7)), "window one key too short on both sides"));
}

TEST_CASE("a cap that is applied after the mask lets hidden keys count") {
  auto const right = attention(kernel::dot_product{} | kernel::softcap{5}, mask::causal{});
  auto const wrong = attention((kernel::dot_product{} + kernel::bias{}) | kernel::softcap{5});
  call c = usual;
  std::vector<float> bias;
  for (index_t i = 0; i < 48; ++i)
    for (index_t j = 0; j < 64; ++j) bias.push_back(j <= i + 16 ? 0.f : -1e6f);
  using wrong_type = std::remove_const_t<decltype(wrong)>;
  c.run(wrong, inputs<wrong_type, tensor<float const>>{.q = tensor<float const>(c.q, c.of_queries),
                                                       .k = tensor<float const>(c.k, c.of_keys),
                                                       .v = tensor<float const>(c.v, c.of_keys),
                                                       .bias = tensor<float const>(bias, {1, 1, 48, 64})});
  CHECK(is_named(c.judged(right), "cap applied after the mask"));
}

TEST_CASE("a sink in every split of the keys") {
  auto const sink = [](double logit) { return sink_attention(logit, mask::causal{}); };
  CHECK(is_named(of(usual, sink(0.5), sink(0.5 + std::log(4.))), "sink or ground counted 4 times"));
}

TEST_CASE("ALiBi slopes of another number of heads, or in bf16") {
  auto const slopes = [](double heads) {
    std::vector<double> to;
    for (int h = 0; h < 4; ++h) to.push_back(std::exp2(-8. * (h + 1) / heads));
    return to;
  };
  std::vector<double> const right = slopes(4), wide = slopes(8), odd{0.3, 0.07, 0.013, 0.0031};
  std::vector<double> narrow;
  for (double x : odd) narrow.push_back(certify::rounded_to(certify::storage::bf16, x));
  auto const op = [](std::vector<double> const& x) {
    return attention(kernel::dot_product{} + kernel::alibi{tensor<double const>(x, {1, 4, 1, 1})}, mask::causal{});
  };
  CHECK(is_named(of(usual, op(right), op(wide)), "ALiBi slopes of 8 heads"));
  verdict_report const rounded = of(usual, op(odd), op(narrow));
  REQUIRE(rounded.cause() != nullptr);
  INFO(printed(rounded));
  CHECK(rounded.cause()->name.find("slope rounded to bf16") != std::string::npos);
}

TEST_CASE("rotary embeddings: pairs of the other layout, positions off by one, not turned") {
  rotary_angles<float> const angles(rotary_frequencies::plain(16), 65);
  auto const op = [&](rotary_layout layout) {
    kernel::rotary k{angles};
    k.layout = layout;
    return attention(k);
  };
  auto const right = op(rotary_layout::half);
  CHECK(is_named(of(usual, right, op(rotary_layout::interleaved)), "rotary pairs of the other layout"));
  CHECK(is_named(of(usual, right, attention(kernel::dot_product{})), "positions of the score ignored"));
  call c = usual;
  auto late = c.in<std::remove_const_t<decltype(right)>, tensor<float const>>(right);
  late.offset = 17;
  c.run(right, late);
  verdict_report const r =
      c.judged(right);  // one mistake by two names: the second also holds where a query is the last
  CHECK((names(r, "positions of the score off by +1") || names(r, "rotary position of q one too late")));
}

TEST_CASE("the scale of a dropout left in") {
  auto const op = attention(kernel::dot_product{}, mask::causal{});
  call c = usual;
  c.run(op);
  for (float& x : c.out) x /= 0.9f;
  verdict_report const r = c.judged(op);
  INFO(printed(r));
  REQUIRE(!r.reasons.empty());
  CHECK(r.reasons[0].find("out were +11.1 % (1 / (1 - 0.1): a dropout scale left in?)") != std::string::npos);
}

TEST_CASE("maps show where the residuals are: by head, by block of queries") {
  auto const op = attention(kernel::dot_product{}, mask::causal{});
  call c = usual;
  c.run(op);
  for (std::size_t n = 0; n < c.out.size(); ++n)
    if (n / (48 * 16) == 2 && n / 16 % 48 >= 44) c.out[n] *= 1.01f;  // head 2, the last of 12 blocks
  verdict_report const r = c.judged(op);
  std::string const text = printed(r);
  INFO(text);
  REQUIRE(r.energies[0].maps.size() == 2);
  testing::energy_map const& heads = r.energies[0].maps[0];
  CHECK(heads.by == "head");
  REQUIRE(heads.times.size() == 4);
  for (std::size_t h = 0; h < 4; ++h) CHECK((heads.times[h] > 100) == (h == 2));
  testing::energy_map const& blocks = r.energies[0].maps[1];
  CHECK(blocks.by == "block of 4 queries");
  for (std::size_t n = 0; n < 12; ++n) CHECK((blocks.times[n] > 100) == (n == 11));
  CHECK(text.find("out, times rounding, by head:") != std::string::npos);
}

/// The verdict on a kernel that reads the keys from `first` on, up to `last`, of batch element `b` from element `from`.
verdict_report of_stale_keys(call c, index_t b, index_t from, index_t first, index_t last, index_t page) {
  auto const op = attention(kernel::dot_product{});
  shape const& e = c.of_keys;
  call wrong = c;
  for (index_t h = 0; h < e.head; ++h)
    for (index_t n = first * e.feature; n < last * e.feature; ++n)
      for (auto x : {&call::k, &call::v})
        (wrong.*x)[std::size_t((b * e.head + h) * e.position * e.feature + n)] =
            (wrong.*x)[std::size_t((from * e.head + h) * e.position * e.feature + n)];
  wrong.run(op);
  c.out = wrong.out, c.lse = wrong.lse;
  return c.judged(op, {.page = page});
}

TEST_CASE("a stale page of a cache, the last and shorter one too, and one of very many") {
  call const c({2, 4, 4, 16}, {2, 2, 44, 16});
  CHECK(is_named(of_stale_keys(c, 1, 0, 16, 24, 8),
                 "page 2 of batch element 1 read as page 2 of batch element 0: a stale page"));
  CHECK(is_named(of_stale_keys(c, 1, 0, 40, 44, 8),
                 "page 5 of batch element 1 read as page 5 of batch element 0: a stale page"));
  call const large({4, 2, 4, 16}, {4, 1, 400, 16});  // 4 * 50 * 5 readings
  CHECK(is_named(of_stale_keys(large, 3, 2, 384, 392, 8),
                 "page 48 of batch element 3 read as page 48 of batch element 2: a stale page"));
}

TEST_CASE("rows without keys") {
  std::vector<index_t> const lengths{30, 0};
  auto const op = attention(kernel::dot_product{}, mask::padding(lengths));
  call c({2, 4, 8, 16}, {2, 4, 40, 16});
  c.run(op);
  CHECK(c.judged(op).decision == judgement::pass);
  std::size_t const half = c.out.size() / 2;
  auto const with = [&](auto const& number) {
    call other = c;
    for (std::size_t n = half; n < other.out.size(); ++n) other.out[n] = number(n - half);
    return other.judged(op);
  };
  CHECK(
      is_named(with([](std::size_t) { return std::numeric_limits<float>::quiet_NaN(); }), "rows without keys are NaN"));
  CHECK(is_named(with([&](std::size_t n) {
                   std::size_t const head = n / (8 * 16), d = n % 16;
                   double sum = 0;
                   for (std::size_t j = 0; j < 40; ++j) sum += c.v[((4 + head) * 40 + j) * 16 + d];
                   return float(sum / 40);
                 }),
                 "rows without keys are the mean of all values"));
  CHECK(is_named(with([](std::size_t) { return 1.f; }), "rows without keys have other numbers"));
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
