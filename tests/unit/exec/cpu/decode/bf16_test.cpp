// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() by dot products of bf16: against its bound around the reference, for every kind of row, and what the
// instructions do.
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <attune/exec/cpu/decode/bf16.hpp>

#include "../bf16/problems.hpp"

namespace attune::test {
namespace {

#if !(defined(__AVX512BF16__) && defined(__AVX512BW__))

TEST_CASE("bf16 products") { MESSAGE("not run: compiled without AVX-512 BF16"); }

#else

static_assert(exec_cpu::multiplies_bf16);

template <class Op>
written<float, bfloat16> decoded_by_products(Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
                                             shape const& extents, int threads = 1) {
  return written_by<bfloat16>(op, extents, [&](auto const& to) { decode(cpu_bf16_products(threads), op, in, to); });
}

/// One problem under every mask: within the bound; the same bits with any threads and strides, and with garbage where
/// nobody looks.
template <class Op>
void check_products(Op op, problem_extents const& e) {
  attune::testing::detail::normal_numbers random(21);
  for (sees kind : every_mask) {
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> p(e, random);
    round_to_bf16(p);
    auto const got = decoded_by_products(op, stored_problem(p)(), p.extents());
    std::string const where =
        attune::detail::text("mask ", int(kind), ", H ", e.heads, "/", e.key_heads, "/", e.value_heads, ", Lq ",
                             e.queries, ", Lk ", e.keys, ", D ", e.width, "/", e.value_width);
    std::string const wrong = beyond_bound(got, op, p);
    CHECK_MESSAGE(wrong == "", where << ": " << wrong);
    CHECK_MESSAGE(got == decoded_by_products(op, stored_problem(p)(), p.extents(), 2), where << ": two threads");
    CHECK_MESSAGE(got == decoded_by_products(op, stored_problem(p, 2)(), p.extents()), where << ": other strides");
    p.poison(mask);
    CHECK_MESSAGE(got == decoded_by_products(op, stored_problem(p)(), p.extents()), where << ": garbage changed bits");
  }
}

TEST_CASE("bf16 products: widths around vectors, odd numbers of keys, groups of 1 to 8 heads") {
  constexpr few_extents all[] = {{1, 33, 1, 1, 1, 1, 1},      {7, 64, 2, 2, 1, 1, 1},    {16, 7, 3, 3, 1, 3, 2},
                                 {31, 80, 63, 4, 1, 1, 1},    {32, 1, 64, 5, 1, 1, 1},   {33, 32, 65, 6, 2, 3, 1},
                                 {64, 64, 129, 7, 1, 7, 1},   {80, 16, 190, 8, 1, 1, 1}, {128, 31, 200, 8, 2, 2, 3},
                                 {64, 128, 1100, 8, 4, 1, 1}, {48, 96, 17, 2, 2, 2, 4}};
  for (few_extents const& x : all) check_products(soft, x);
}

TEST_CASE("bf16 products: gates, ground, one number per key") {
  problem_extents const e{.batch = 2,
                          .heads = 4,
                          .queries = 3,
                          .keys = 131,
                          .width = 20,
                          .value_width = 50,
                          .gate_width = 5,
                          .key_heads = 2};
  check_products(gated_and_grounded, e);
}

TEST_CASE("bf16 products: a uniform share; no divisor and two products; self-adjusted rows of distances") {
  problem_extents const e{.heads = 4, .queries = 2, .keys = 75, .width = 24, .position_width = 9, .key_heads = 2};
  check_products(attention(kernel::dot_product{}, normalizer::affine<>{0.7, 1.2}, mask::runtime{}), e);
  check_products(attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{}), e);
  check_products(
      attention(kernel::l2{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::runtime{}), e);
}

TEST_CASE("bf16 products: pages are one piece, bit for bit where they hold a multiple of 64 keys") {
  attune::testing::detail::normal_numbers random(22);
  problem_extents const e{
      .batch = 2, .heads = 4, .queries = 2, .keys = 192, .width = 40, .key_heads = 2, .value_heads = 2};
  for (index_t size : {16, 64, 192})
    for (sees kind : every_mask) {
      table_mask const mask(kind, e);
      auto op = soft;
      op.mask = mask.mask();
      problem<decltype(op)> p(e, random);
      round_to_bf16(p);
      // Pages (page, key, head, feature), the last sequence first.
      index_t const each = e.keys / size;
      std::vector<bfloat16> k, v;
      std::vector<std::int32_t> numbers;
      for (index_t n = 0; n < e.batch * each; ++n) numbers.push_back(std::int32_t(e.batch * each - 1 - n));
      for (index_t page = 0; page < e.batch * each; ++page)
        for (index_t j = 0; j < size; ++j)
          for (index_t h = 0; h < 2; ++h)
            for (index_t d = 0; d < e.width; ++d) {
              index_t const n = e.batch * each - 1 - page;
              auto const at = std::size_t(((n / each * 2 + h) * e.keys + n % each * size + j) * e.width + d);
              k.push_back(bfloat16(p.of(field::k).floats[at]));
              v.push_back(bfloat16(p.of(field::v).floats[at]));
            }
      shape const pages{e.batch * each, 2, size, e.width};
      strides const steps{size * 2 * e.width, e.width, 2 * e.width, 1};
      stored_problem const one_piece(p);
      auto const got = written_by<bfloat16>(op, p.extents(), [&](auto const& to) {
        decode(cpu_bf16_products{}, op,
               {.q = one_piece().q, .k = {k.data(), pages, steps}, .v = {v.data(), pages, steps}},
               page_table(numbers, e.batch), to);
      });
      CHECK(beyond_bound(got, op, p) == "");
      if (size % 64 == 0) CHECK(got == decoded_by_products(op, one_piece(), p.extents()));
    }
}

TEST_CASE("bf16 products: many chunks of keys, the same bits with any number of threads") {
  attune::testing::detail::normal_numbers random(23);
  problem_extents const e{.heads = 8, .queries = 1, .keys = 5001, .width = 32, .key_heads = 2, .value_heads = 2};
  table_mask const mask(sees::all, e);
  auto op = soft;
  op.mask = mask.mask();
  problem<decltype(op)> p(e, random);
  round_to_bf16(p);
  stored_problem const stored(p);
  auto const one = decoded_by_products(op, stored(), p.extents());
  CHECK(beyond_bound(one, op, p) == "");
  for (int threads : {2, 3, 5}) CHECK(one == decoded_by_products(op, stored(), p.extents(), threads));
  CHECK(one == written_by<bfloat16>(op, p.extents(), [&](auto const& to) {
          decode(cpu_bf16_products(cpu<bfloat16>(serial{})), op, stored(), to);
        }));
}

TEST_CASE("bf16 products: weights are rounded to nearest, masses are not rounded") {
  // One key of weight 1 and many of 0.50384, almost a step of bf16 above 0.5: cut off instead of rounded they lose 2^-7
  // each.
  index_t const keys = 301;
  float const a = std::log(0.5f * (1 + 0.98f * 0x1p-7f));
  bfloat16 const high{a}, low{a - float(high)};
  problem_extents const e{.heads = 1, .queries = 1, .keys = keys, .width = 2};
  table_mask const mask(sees::all, e);
  auto op = attention(kernel::dot_product{1.0}, mask::runtime{});
  op.mask = mask.mask();
  attune::testing::detail::normal_numbers random(24);
  problem<decltype(op)> p(e, random);
  p.change(field::q, [](double, index_t, index_t, index_t) { return 1; });
  p.change(field::v, [](double, index_t, index_t, index_t) { return 1; });
  p.change(field::k,
           [&](double, index_t, index_t j, index_t d) { return j == 0 ? 0 : double(float(d == 0 ? high : low)); });
  auto const got = decoded_by_products(op, stored_problem(p)(), p.extents());
  CHECK(beyond_bound(got, op, p) == "");
  CHECK(std::fabs(float(got.out[0]) - 1) < 0x1p-8f);
}

TEST_CASE("bf16 products: subnormal numbers count as 0, whatever the sign") {
  attune::testing::detail::normal_numbers random(25);
  problem_extents const e{.heads = 2, .queries = 2, .keys = 77, .width = 18, .value_width = 21};
  table_mask const mask(sees::causal, e);
  auto op = soft;
  op.mask = mask.mask();
  problem<decltype(op)> p(e, random), without(e, random);
  round_to_bf16(p);
  // Large queries and small keys, some subnormal: their products are not small.
  auto const tiny = [](double x, index_t j, index_t d) {
    return double(float(bfloat16(float(x * ((j + d) % 3 == 0 ? 0x1p-129 : 0x1p-120)))));
  };
  p.change(field::q, [](double x, index_t, index_t, index_t) { return x * 0x1p119; });
  p.change(field::k, [&](double x, index_t, index_t j, index_t d) { return tiny(x, j, d); });
  p.change(field::v, [&](double x, index_t, index_t j, index_t d) { return tiny(x, j, d) * 4; });
  auto const got = decoded_by_products(op, stored_problem(p)(), p.extents());
  auto const normal = [](double x, index_t, index_t, index_t) { return std::fabs(x) < 0x1p-126 ? 0 : x; };
  p.change(field::k, normal);
  p.change(field::v, normal);
  CHECK(beyond_bound(got, op, p) == "");
  CHECK(got == decoded_by_products(op, stored_problem(p)(), p.extents()));
}

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
std::uint32_t bits_of_number(float x) { return std::isnan(x) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(x); }

TEST_CASE("bf16 products: the instruction adds the odd product, then the even one, each with one rounding") {
  using batch = xsimd::batch<float>;
  std::mt19937 random(26);
  int different = 0;
  for (int n = 0; n < 20000; ++n) {
    alignas(64) bfloat16 a[32], b[32];
    alignas(64) float sum[16], got[16];
    // Any bits; exponents near those of 1; subnormal numbers and products.
    std::uint32_t const keep[] = {0xffff, 0x83ff, 0x8fff}, more[] = {0, 0x3c00, 0};
    for (int l = 0; l < 32; ++l) {
      a[l].bits = std::uint16_t((random() & keep[n % 3]) | more[n % 3]);
      b[l].bits = std::uint16_t((random() & keep[n % 3]) | more[n % 3]);
    }
    for (float& x : sum)
      x = std::bit_cast<float>(std::uint32_t(random() & (keep[n % 3] << 16 | 0xffff)) | more[n % 3] << 16);
    exec_cpu::add_products(batch::load_aligned(sum), exec_cpu::bf16_pairs::at(a), exec_cpu::bf16_pairs::at(b))
        .store_aligned(got);
    for (std::size_t l = 0; l < 16; ++l) {
      auto const product = [&](std::size_t at, float to) {
        return flushed(std::fma(flushed(float(a[at])), flushed(float(b[at])), to));
      };
      different += bits_of_number(got[l]) != bits_of_number(product(2 * l, product(2 * l + 1, flushed(sum[l]))));
    }
  }
  CHECK(different == 0);
}

TEST_CASE("bf16 products: pairs are read, rounded and put in order") {
  bfloat16 numbers[64];
  for (int n = 0; n < 64; ++n) numbers[n] = bfloat16(float(n + 1));
  using batch = xsimd::batch<float>;
  for (index_t n = 0; n <= 32; ++n) {
    alignas(64) bfloat16 read[32];
    _mm512_store_si512(read, exec_cpu::bf16_pairs::at(numbers, n).data);
    for (index_t l = 0; l < 32; ++l) CHECK(float(read[l]) == (l < n ? float(l + 1) : 0));
  }
  for (index_t n = 0; n <= 16; ++n) {
    alignas(64) bfloat16 read[32];
    _mm512_store_si512(read, exec_cpu::bf16_pairs::at_both(numbers, numbers + 16, n).data);
    for (index_t l = 0; l < 32; ++l) CHECK(float(read[l]) == (l % 16 < n ? float(l + 1) : 0));
  }
  // 1 a + 0 b of 32 numbers each.
  std::uint32_t const first = 0x3f80;
  auto const one = exec_cpu::bf16_pairs::everywhere(&first), a = exec_cpu::bf16_pairs::at(numbers),
             b = exec_cpu::bf16_pairs::at(numbers + 32);
  batch low = exec_cpu::add_products(batch(0.0f), pairs_of_first_fours(a, b), one),
        high = exec_cpu::add_products(batch(0.0f), pairs_of_second_fours(a, b), one);
  exec_cpu::in_order(low, high);
  alignas(64) float lanes[32];
  low.store_aligned(lanes);
  high.store_aligned(lanes + 16);
  for (int l = 0; l < 32; ++l) CHECK(lanes[l] == float(l + 1));
}

#endif

}  // namespace
}  // namespace attune::test
