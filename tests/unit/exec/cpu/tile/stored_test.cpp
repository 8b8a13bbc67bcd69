// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/exec/cpu/tile/stored.hpp>

namespace {

using namespace attune;

/// Random 16-bit tensors and the floats that they stand for, with gaps between the rows.
template <class S>
struct stored_tensor {
  std::vector<S> narrow;
  std::vector<float> wide;
  shape extents;
  index_t gap;

  stored_tensor(shape const& e, std::mt19937& random, double size, index_t gap_of = 3) : extents(e), gap(gap_of) {
    std::normal_distribution<double> draw(0, size);
    index_t const rows = e.batch * e.head * e.position;
    narrow.resize(std::size_t(rows * (e.feature + gap)));
    for (S& x : narrow) x = S(float(draw(random)));
    for (index_t r = 0; r < rows; ++r)
      for (index_t d = 0; d < e.feature; ++d) wide.push_back(float(narrow[std::size_t(r * (e.feature + gap) + d)]));
  }
  tensor<S const> view() const {
    index_t const row = extents.feature + gap;
    return {narrow.data(), extents, {extents.head * extents.position * row, extents.position * row, row, 1}};
  }
  tensor<float const> floats() const { return {wide.data(), extents}; }
};

/// forward(cpu<S>) against forward(cpu<float>) on the widened inputs, rounded: the same bits.
template <class S, class Op, class Fill>
void same_bits(Op const& op, shape const& q, index_t keys, Fill const& fill) {
  CAPTURE(to_string(q));
  CAPTURE(keys);
  std::mt19937 random(7);
  std::vector<stored_tensor<S>> all;
  all.reserve(16);
  auto const in = make_inputs<Op, tensor<S const>>([&]<field F>() {
    shape e = fill(F, q, keys);
    return all.emplace_back(e, random, F == field::spread ? 0.0 : 1.0, F == field::q ? 0 : 3).view();
  });
  std::size_t next = 0;
  auto const wide = make_inputs<Op, tensor<float const>>([&]<field F>() { return all[next++].floats(); });
  shape const out = {q.batch, q.head, q.position, in.v.extents().feature};
  std::vector<S> narrow_out(std::size_t(out.size()), S(9.0f));
  std::vector<float> wide_out(std::size_t(out.size())), narrow_lse(std::size_t(q.batch * q.head * q.position)),
      wide_lse(narrow_lse.size());
  shape const numbers{q.batch, q.head, q.position, 1};
  outputs<Op, S> to{.out = tensor(narrow_out, out)};
  outputs<Op, float> wide_to{.out = tensor(wide_out, out)};
  if constexpr (Op::has_lse) {
    to.lse = natural_lse(tensor(narrow_lse, numbers));
    wide_to.lse = natural_lse(tensor(wide_lse, numbers));
  }
  if constexpr (Op::has_threshold) {
    to.threshold = tensor(narrow_lse, numbers);
    wide_to.threshold = tensor(wide_lse, numbers);
  }
  forward(cpu<S>{2}, op, in, to);
  forward(cpu<float>{1}, op, wide, wide_to);
  index_t different = 0;
  for (std::size_t n = 0; n < wide_out.size(); ++n) different += S(wide_out[n]).bits != narrow_out[n].bits;
  CHECK(different == 0);
  for (std::size_t n = 0; n < wide_lse.size(); ++n)
    different += std::bit_cast<std::uint32_t>(wide_lse[n]) != std::bit_cast<std::uint32_t>(narrow_lse[n]);
  CHECK(different == 0);
}

/// Grouped heads, a width of its own for the gate, one v0 per head.
shape extents_of(field f, shape const& q, index_t keys) {
  index_t const width = f == field::v || f == field::value_gate || f == field::v0 || f == field::output_gate
                            ? q.feature + 3
                        : f == field::gate_q || f == field::gate_k ? 5
                                                                   : q.feature;
  if (f == field::v0) return {1, q.head, 1, width};
  bool const by_query = side_of(f) == input_side::query;
  index_t const heads = by_query ? q.head : f == field::v || f == field::value_gate ? q.head / 2 : 1;
  return {q.batch, heads, by_query ? q.position : keys, width};
}

}  // namespace

TEST_SUITE("16-bit storage") {
  TEST_CASE_TEMPLATE("forward is float's, rounded once", S, bfloat16, float16) {
    for (shape const q : {shape{1, 2, 1, 8}, shape{2, 4, 37, 20}, shape{1, 2, 130, 64}})
      for (index_t const keys : {0, 1, 63, 200}) {
        same_bits<S>(attention(kernel::dot_product{}), q, keys, extents_of);
        same_bits<S>(attention(kernel::dot_product{} + kernel::alibi{0.1}, gate::softplus{0.5},
                               normalizer::grounded{0.3}, mask::causal{}),
                     q, keys, extents_of);
        same_bits<S>(attention(kernel::dot_product{}, normalizer::entmax15{}, mask::causal{}), q, keys, extents_of);
      }
    same_bits<S>(attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}), {2, 4, 37, 20}, 77,
                 extents_of);
    same_bits<S>(attention(kernel::dot_product{}, gate::sigmoid_value{}, normalizer::sparsemax{}), {2, 4, 37, 20}, 77,
                 extents_of);
  }

  TEST_CASE("every float16 widens and comes back") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      float16 x;
      x.bits = std::uint16_t(bits);
      float const wide(x);
      bool const nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
      int const exponent = int(bits >> 10 & 31);
      double const fraction = double(bits & 0x3ff) / 1024, sign = (bits & 0x8000) != 0 ? -1 : 1;
      if (nan) {
        REQUIRE(std::isnan(wide));
        REQUIRE(std::isnan(float(float16(wide))));
        continue;
      }
      double const value = exponent == 31  ? INFINITY
                           : exponent == 0 ? std::ldexp(fraction, -14)
                                           : std::ldexp(1 + fraction, exponent - 15);
      REQUIRE(double(wide) == sign * value);
      REQUIRE(std::signbit(wide) == (sign < 0));
      REQUIRE(float16(wide).bits == bits);
    }
  }

  TEST_CASE("rounding: to nearest, ties to even, overflow to infinity") {
    CHECK(float16(65519.0f).bits == 0x7bff);
    CHECK(float16(65520.0f).bits == 0x7c00);
    CHECK(float16(1.0f + 0x1p-11f).bits == 0x3c00);
    CHECK(float16(1.0f + 0x3p-11f).bits == 0x3c02);
    CHECK(float16(0x1p-25f).bits == 0);
    CHECK(float16(0x1.8p-25f).bits == 1);
    CHECK(float16(0x1.ff8p-15f).bits == 0x3ff);
    CHECK(float16(0x1.ffcp-15f).bits == 0x400);
    CHECK(float16(-0.0f).bits == 0x8000);
    CHECK(bfloat16(1.0f + 0x1p-8f).bits == 0x3f80);
    CHECK(bfloat16(1.0f + 0x3p-8f).bits == 0x3f82);
    CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
    CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  }

  TEST_CASE("blocks of numbers widen as single ones") {
    std::mt19937 random(3);
    for (index_t n = 0; n < 70; ++n) {
      std::vector<float16> halves(std::size_t(n), float16{});
      std::vector<bfloat16> brains(std::size_t(n), bfloat16{});
      for (auto& x : halves) x.bits = std::uint16_t(random() & 0xbfffu);  // no NaN: a copy may quiet it
      for (auto& x : brains) x.bits = std::uint16_t(random() & 0xbfffu);
      std::vector<float> wide(std::size_t(n), 0.0f);
      attune::detail::widen(halves.data(), wide.data(), n);
      for (std::size_t c = 0; c < wide.size(); ++c) REQUIRE(wide[c] == float(halves[c]));
      attune::detail::widen(brains.data(), wide.data(), n);
      for (std::size_t c = 0; c < wide.size(); ++c) REQUIRE(wide[c] == float(brains[c]));
    }
  }
}
