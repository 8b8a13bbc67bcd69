// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() by products of bf16 pairs: against the bound around the reference, the same bits whatever must not matter,
// and the emulated products against each number's own arithmetic.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <attune/exec/cpu/bf16/forward.hpp>
#include <attune/exec/cpu/products/buffer.hpp>

#include "arithmetic.hpp"
#include "problems.hpp"

namespace attune::test {
namespace {

using exec_cpu::number_pair;

template <class T, class Unit>
using products_of = cpu_bf16_products<xsimd::default_arch, T, Unit>;

template <class T = bfloat16, class Unit, class Op>
written<float, T> forwarded(Unit, Op const& op, inputs<Op, tensor<T const>> const& in, shape const& extents,
                            int threads = 1) {
  return written_by<T>(op, extents,
                       [&](auto const& to) { forward(products_of<T, Unit>(cpu<T>(threads)), op, in, to); });
}

/// One problem under every mask. `rounded`: factors of the value sum that are rounded to bf16.
template <class Unit, class Op>
void check_forward_of(Op op, problem_extents const& e, int rounded) {
  attune::testing::detail::normal_numbers random(31);
  for (sees kind : every_mask) {
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> p(e, random);
    round_to_bf16(p);
    shape const s = p.extents();
    auto const got = forwarded(Unit{}, op, stored_problem(p)(), s);
    std::string const where =
        attune::detail::text("mask ", int(kind), ", H ", e.heads, "/", e.key_heads, "/", e.value_heads, ", Lq ",
                             e.queries, ", Lk ", e.keys, ", D ", e.width, "/", e.value_width);
    std::string const wrong = beyond_bound(got, op, p, rounded);
    CHECK_MESSAGE(wrong == "", where << ": " << wrong);
    CHECK_MESSAGE(got == forwarded(Unit{}, op, stored_problem(p)(), s, 2), where << ": two threads");
    CHECK_MESSAGE(got == forwarded(Unit{}, op, stored_problem(p, 2)(), s), where << ": other strides");
    auto const floats = forwarded<float>(Unit{}, op, p.template inputs<tensor<float const>>(), s);
    for (std::size_t n = 0; n < floats.out.size(); ++n) {
      bfloat16 const rounded_out(floats.out[n]);
      CHECK_MESSAGE((float(rounded_out) == float(got.out[n]) || std::isnan(float(got.out[n]))),
                    where << ": floats at " << n);
    }
    using twin = typename Unit::twin;
    if constexpr (!std::is_same_v<Unit, twin>)
      CHECK_MESSAGE(got == forwarded(twin{}, op, stored_problem(p)(), s), where << ": the twin");
    p.poison(mask);
    CHECK_MESSAGE(got == forwarded(Unit{}, op, stored_problem(p)(), s), where << ": garbage changed bits");
  }
}
template <class Op>
void check_forward(Op const& op, problem_extents const& e, int rounded = 1) {
  check_forward_of<bf16_emulated>(op, e, rounded);
  if constexpr (bf16_instructions::there) check_forward_of<bf16_instructions>(op, e, rounded);
}

}  // namespace

TEST_SUITE("forward by bf16 products") {
  TEST_CASE("widths around vectors, odd numbers of keys, grouped heads") {
    constexpr few_extents all[] = {{1, 33, 1, 1, 1, 1, 1},      {7, 64, 2, 2, 1, 1, 9},   {16, 7, 3, 3, 1, 3, 2},
                                   {31, 80, 63, 4, 1, 1, 33},   {33, 32, 65, 6, 2, 3, 5}, {64, 64, 129, 2, 1, 2, 70},
                                   {128, 31, 200, 4, 2, 2, 31}, {48, 96, 17, 2, 2, 2, 17}};
    for (few_extents const& x : all) {
      check_forward(soft, x);
      check_forward_of<bfdot_emulated>(soft, x, 1);
      check_forward_of<amx_emulated>(soft, x, 1);
      if_there<amx_tiles>([&]<class Unit>(Unit) { check_forward_of<Unit>(soft, x, 1); });
    }
  }

  TEST_CASE("gates, ground, one number per key, two products") {
    problem_extents const e{.batch = 2,
                            .heads = 4,
                            .queries = 19,
                            .keys = 131,
                            .width = 20,
                            .value_width = 50,
                            .gate_width = 5,
                            .key_heads = 2};
    check_forward(gated_and_grounded, e);
    check_forward(attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{}), e);
  }

  TEST_CASE("a uniform share, self-adjusted rows, gated values") {
    problem_extents const e{.heads = 4, .queries = 20, .keys = 75, .width = 24, .position_width = 9, .key_heads = 2};
    check_forward(attention(kernel::dot_product{}, normalizer::affine<>{0.7, 1.2}, mask::runtime{}), e);
    check_forward(attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                            mask::runtime{}),
                  e);
    check_forward(attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}, mask::runtime{}), e,
                  2);
  }

  TEST_CASE("16 rows of pairs are transposed") {
    std::mt19937 random(33);
    for (index_t n : {1, 15, 16, 17, 48}) {
      std::vector<number_pair> from(std::size_t(16 * n)), to(std::size_t(19 * n), 7u);
      for (number_pair& x : from) x = number_pair(random());
      exec_cpu::transpose_16_rows(to.data(), 19, from.data(), n);
      for (index_t d = 0; d < n; ++d)
        for (index_t c = 0; c < 19; ++c)
          CHECK(to[std::size_t(d * 19 + c)] == (c < 16 ? from[std::size_t(c * n + d)] : 7u));
    }
  }

  TEST_CASE("tiles add 16 pairs together, lower and upper products apart") {
    using tile = exec_cpu::tiling<float, xsimd::default_arch>;
    std::mt19937 random(34);
    std::normal_distribution<float> normal;
    auto const pair = [&] { return exec_cpu::paired(bfloat16(normal(random)), bfloat16(normal(random))); };
    auto const half = [](number_pair x, int shift) { return std::bit_cast<float>(x >> shift << 16); };
    auto const check = [&]<class Unit>(Unit, index_t rows, index_t pairs) {
      index_t const step = pairs + 3;
      std::vector<number_pair> a(std::size_t(rows * step));
      exec_cpu::aligned_buffer<number_pair> b(pairs * tile::queries);
      exec_cpu::aligned_buffer<float> got(rows * tile::queries), onto(rows * tile::queries);
      for (number_pair& x : a) x = pair();
      for (index_t n = 0; n < pairs * tile::queries; ++n) b.data()[n] = pair();
      for (index_t n = 0; n < rows * tile::queries; ++n) onto.data()[n] = normal(random);
      std::vector<float> const start(onto.data(), onto.data() + rows * tile::queries);
      using multiplier = exec_cpu::pair_multiplier<Unit>;
      multiplier::template contract<xsimd::default_arch>(got.data(), a.data(), step, b.data(), pairs, rows);
      multiplier::template accumulate<xsimd::default_arch>(onto.data(), {a.data(), 1, step}, b.data(), pairs, rows);
      int wrong = 0;
      for (index_t r = 0; r < rows; ++r)
        for (index_t l = 0; l < tile::queries; ++l) {
          auto const at = std::size_t(r * tile::queries + l);
          float sum = 0, added = start[at];
          for (index_t first = 0; first < pairs; first += 16) {
            float lower = 0, upper = 0;
            for (index_t c = first; c < (std::min)(first + 16, pairs); ++c) {
              number_pair const x = a[std::size_t(r * step + c)], y = b.data()[c * tile::queries + l];
              lower = std::fma(half(x, 0), half(y, 0), lower);
              upper = std::fma(half(x, 16), half(y, 16), upper);
            }
            sum += lower + upper, added += lower + upper;
          }
          wrong += got.data()[at] != sum || onto.data()[at] != added;
        }
      CHECK_MESSAGE(wrong == 0, rows << " rows, " << pairs << " pairs");
      if (pairs > tile::lanes) return;
      // outer(): rows of sums lie apart, rows of weights hold the pairs of a tile.
      index_t const apart = tile::queries + 5;
      std::vector<float> sums(std::size_t(rows * apart), 1.0f), same = sums;
      std::vector<number_pair> weights(std::size_t(rows * tile::lanes));
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < pairs; ++c) weights[std::size_t(r * tile::lanes + c)] = a[std::size_t(r * step + c)];
      multiplier::template outer<xsimd::default_arch>(sums.data(), apart, weights.data(), b.data(), pairs, rows);
      for (index_t r = 0; r < rows; ++r)
        for (index_t l = 0; l < tile::queries; l += tile::lanes) {
          typename multiplier::template sum<xsimd::default_arch> sum(&same[std::size_t(r * apart + l)]);
          for (index_t c = 0; c < pairs; ++c)
            sum.add(c, xsimd::batch<number_pair>(a[std::size_t(r * step + c)]),
                    xsimd::batch<number_pair>::load_aligned(b.data() + c * tile::queries + l));
          sum.finish(pairs);
        }
      CHECK_MESSAGE(sums == same, "outer: " << rows << " rows, " << pairs << " pairs");
    };
    for (index_t rows : {1, 16, 23})
      for (index_t pairs : {1, 16, 17, 64}) {
        check(amx_emulated{}, rows, pairs);
        if_there<amx_tiles>([&]<class Unit>(Unit unit) {
          Unit::enter("the test");
          check(unit, rows, pairs);
        });
      }
  }

  TEST_CASE("NaN and infinities of values reach the rows that see them, and no others") {
    auto const check = []<class Unit>(Unit) {
      problem_extents const e{.heads = 1, .queries = 140, .keys = 140, .width = 8, .value_width = 5};
      for (sees kind : {sees::causal, sees::window, sees::sink_and_window})
        for (index_t bad : {37, 64, 129}) {
          attune::testing::detail::normal_numbers random(32);
          table_mask const mask(kind, e);
          auto op = soft;
          op.mask = mask.mask();
          problem<decltype(op)> p(e, random);
          round_to_bf16(p);
          auto const clean = forwarded(Unit{}, op, stored_problem(p)(), p.extents());
          auto const values = p.of(field::v);
          for (double x : {double(nan), HUGE_VAL, -HUGE_VAL}) {
            p.change(field::v, [&](double y, index_t, index_t j, index_t d) { return j == bad && d == 2 ? x : y; });
            auto const got = forwarded(Unit{}, op, stored_problem(p)(), p.extents());
            p.of(field::v) = values;
            int wrong = 0;
            for (index_t i = 0; i < 140; ++i)
              for (index_t d = 0; d < 5; ++d) {
                float const is = float(got.out[std::size_t(i * 5 + d)]), was = float(clean.out[std::size_t(i * 5 + d)]);
                if (visible(kind, 0, i, e.keys, bad) && d == 2)
                  wrong += std::isnan(x) ? !std::isnan(is) : double(is) != x;
                else
                  wrong += is != was;
              }
            CHECK_MESSAGE(wrong == 0, "mask " << int(kind) << ", key " << bad << ", value " << x);
          }
        }
    };
    check(bf16_emulated{});
    check(amx_emulated{});
    if_there<bf16_instructions>(check);
    if_there<amx_tiles>(check);
  }

  TEST_CASE("each unit adds products as its processor's manual says, and rounds to nearest") {
    using batch = xsimd::batch<float>;
    using pairs = xsimd::batch<number_pair>;
    constexpr int lanes = int(batch::size);
    auto const bits_of_number = [](float x) { return std::isnan(x) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(x); };
    each_pair_unit([&]<class Unit>(Unit) {
      std::mt19937 random(26);
      int different = 0, differently_rounded = 0, from_floats = 0;
      for (int n = 0; n < 20000; ++n) {
        alignas(64) number_pair a[lanes], b[lanes], rounded[lanes];
        alignas(64) float sum[lanes], got[lanes], of_floats[lanes];
        // Any bits; exponents near those of 1; subnormal numbers and products; products near the largest number; the
        // largest number and products near half its last digit.
        std::uint32_t const keep[] = {0xffff, 0x83ff, 0x8fff, 0x80ff, 0x807f}, more[] = {0, 0x3c00, 0, 0x5f00, 0x5900};
        int const kind = n % 5;
        auto const number = [&] { return std::uint32_t((random() & keep[kind]) | more[kind]); };
        for (int l = 0; l < lanes; ++l) a[l] = number() | number() << 16, b[l] = number() | number() << 16;
        for (float& x : sum) {
          std::uint32_t const of_sum = kind == 3 ? number() | 0x7f00u : number();
          x = std::bit_cast<float>(of_sum << 16 | std::uint32_t(random() & 0xffff));
          if (kind == 4) x = std::copysign((std::numeric_limits<float>::max)(), x);
        }
        auto const x = pairs::load_aligned(a), y = pairs::load_aligned(b);
        Unit::add_products(batch::load_aligned(sum), x, y).store_aligned(got);
        using two = exec_cpu::two_floats<xsimd::default_arch>;
        auto const half = [&](number_pair of, int shift) { return std::bit_cast<float>(of >> shift << 16); };
        Unit::add_floats(batch::load_aligned(sum), two::of(x), two::of(y)).store_aligned(of_floats);
        for (int l = 0; l < lanes; ++l) {
          float const expected =
              pair_sum_of<Unit>::add(sum[l], half(a[l], 0), half(b[l], 0), half(a[l], 16), half(b[l], 16));
          different += bits_of_number(got[l]) != bits_of_number(expected);
          // Factors of add_floats() are not subnormal, the sum so far is not either.
          bool const normal = flushed_number(sum[l]) == sum[l] && flushed_number(half(a[l], 0)) == half(a[l], 0) &&
                              flushed_number(half(a[l], 16)) == half(a[l], 16);
          from_floats += normal && bits_of_number(of_floats[l]) != bits_of_number(expected);
        }
        Unit::rounded(batch::load_aligned(sum), batch::load_aligned(got)).store_aligned(rounded);
        for (int l = 0; l < lanes; ++l) {
          number_pair const expected =
              exec_cpu::paired(bfloat16(flushed_number(sum[l])), bfloat16(flushed_number(got[l])));
          differently_rounded += rounded[l] != expected;
        }
      }
      CHECK(different == 0);
      CHECK(from_floats == 0);
      CHECK(differently_rounded == 0);
    });
  }

  TEST_CASE("rows become pairs: contiguous or not, rounded to nearest, the last one with zero") {
    std::mt19937 random(27);
    for (index_t n : {1, 2, 15, 16, 17, 33}) {
      std::vector<float> x(std::size_t(3 * n));
      for (float& e : x) e = std::bit_cast<float>(std::uint32_t(random()));
      for (index_t step : {1, 3}) {
        std::vector<bfloat16> to(std::size_t(2 * exec_cpu::pairs_of(n)), bfloat16(7.0f));
        exec_cpu::pair_row(to.data(), x.data(), step, n);
        for (index_t c = 0; c < index_t(to.size()); ++c)
          CHECK(to[std::size_t(c)].bits == (c < n ? bfloat16(x[std::size_t(c * step)]).bits : 0));
      }
      std::vector<bfloat16> first(static_cast<std::size_t>(n)), second(first);
      for (index_t c = 0; c < n; ++c)
        first[std::size_t(c)].bits = std::uint16_t(random()), second[std::size_t(c)].bits = std::uint16_t(random());
      std::vector<number_pair> both(static_cast<std::size_t>(n));
      exec_cpu::pair_rows(both.data(), first.data(), second.data(), n);
      for (index_t c = 0; c < n; ++c)
        CHECK(both[std::size_t(c)] == exec_cpu::paired(first[std::size_t(c)], second[std::size_t(c)]));
    }
    CHECK(exec_cpu::finite_or_zero(0x7f803f80u) == 0x3f80u);
    CHECK(exec_cpu::finite_or_zero(0x3f80ffc0u) == 0x3f800000u);
    number_pair const numbers[] = {0x3f803f80u, 0x7f7f7f7fu, 0xff80u};
    CHECK(exec_cpu::finite_pairs(numbers, 2));
    CHECK(!exec_cpu::finite_pairs(numbers, 3));
  }
}

}  // namespace attune::test
