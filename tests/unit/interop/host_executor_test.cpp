// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How calls of bf16 through the C interface multiply, by the twin of AMX, which runs on any machine.
#include <array>
#include <cstring>
#include <vector>

#include <attune/interop/c_operator.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

ATTUNE_C_MAKE(softmax, softmax_attention(m))
ATTUNE_C_MAKE(top, attention(kernel::dot_product{}, normalizer::top_k{index_t(2)}, m))
ATTUNE_C_MAKE(biased, attention(kernel::dot_product{} + kernel::bias{}, normalizer::softmax{}, m))

namespace attune::test {
namespace {

using numbers = std::vector<bfloat16>;

struct gradients_of_call {
  numbers out, by_q, by_k, by_v;
};
bool same_bits(numbers const& x, numbers const& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(bfloat16)) == 0;
}

struct bf16_call {
  static constexpr index_t queries = 70, width = 40;
  shape const rows{1, 2, queries, width};
  numbers q, k, v;

  bf16_call() : q(std::size_t(rows.size())), k(q), v(q) {
    for (std::size_t n = 0; n < q.size(); ++n) {
      q[n] = bfloat16(float(n * 37 % 101) / 50 - 1);
      k[n] = bfloat16(float(n * 53 % 97) / 48 - 1);
      v[n] = bfloat16(float(n * 71 % 89) / 44 - 1);
    }
  }
  attune_tensor dense(numbers& x) const {
    strides const s = strides::dense(rows);
    return {x.data(),
            {rows.batch, rows.head, rows.position, rows.feature},
            {s.batch, s.head, s.position, s.feature},
            attune_bfloat16,
            1};
  }
  /// out and the gradients of |out|^2 / 2.
  gradients_of_call run(attune_operator const* op, std::int32_t products) {
    gradients_of_call to{numbers(q.size()), numbers(q.size()), numbers(q.size()), numbers(q.size())};
    std::array<attune_tensor, 3> fields{dense(q), dense(k), dense(v)};
    std::array<attune_parameter, 3> parameters{};
    std::array<char, 300> text{};
    attune_text const error{text.data(), index_t(text.size())};
    attune_call c{};
    c.fields = fields.data();
    c.parameters = parameters.data();
    c.outputs[0] = dense(to.out);
    c.type = attune_bfloat16;
    c.threads = 1;
    c.products = products;
    REQUIRE(op->forward(&c, nullptr, 0, error) == attune_done);
    numbers again(q.size());
    c.outputs[0] = dense(again);
    int64_t count = 0;
    REQUIRE(op->saved_size(&c, &count, error) == attune_done);
    std::vector<float> saved(static_cast<std::size_t>(count));
    REQUIRE(op->forward(&c, saved.data(), count, error) == attune_done);
    CHECK(same_bits(again, to.out));
    std::array<attune_tensor, 3> by{dense(to.by_q), dense(to.by_k), dense(to.by_v)};
    attune_gradients const g{{dense(to.out), {}, {}}, by.data(), parameters_.data(), nullptr};
    REQUIRE_MESSAGE(op->vjp(&c, saved.data(), count, &g, error) == attune_done, text.data());
    return to;
  }

 private:
  std::array<attune_tensor, 3> parameters_{};
};

}  // namespace

TEST_CASE("bf16 through the C interface: products of the unit, or of floats if the call says so") {
  bf16_call x;
  auto const op = softmax_attention();
  inputs<decltype(softmax_attention()), tensor<bfloat16 const>> const in{
      .q = {x.q.data(), x.rows}, .k = {x.k.data(), x.rows}, .v = {x.v.data(), x.rows}};
  auto const expected = [&](auto const& exec) {
    gradients_of_call to{numbers(x.q.size()), numbers(x.q.size()), numbers(x.q.size()), numbers(x.q.size())};
    tensor<bfloat16> const out(to.out.data(), x.rows);
    std::vector<float> saved(std::size_t(saved_size(op, in)));
    forward_and_save(exec, op, in, {.out = out}, std::span(saved));
    gradient_outputs<decltype(softmax_attention()), bfloat16> by;
    by.of(field::q) = {to.by_q.data(), x.rows};
    by.of(field::k) = {to.by_k.data(), x.rows};
    by.of(field::v) = {to.by_v.data(), x.rows};
    vjp(exec, op, in, std::span<float const>(saved), {.out = tensor<bfloat16 const>(out)}, by);
    return to;
  };
  auto const same = [](gradients_of_call const& a, gradients_of_call const& b) {
    return same_bits(a.out, b.out) && same_bits(a.by_q, b.by_q) && same_bits(a.by_k, b.by_k) &&
           same_bits(a.by_v, b.by_v);
  };
  auto const floats = expected(cpu<bfloat16>(1));
  auto const tiles = expected(cpu_bf16_products<xsimd::default_arch, bfloat16, amx_emulated>(1));
  REQUIRE(!same(floats, tiles));
  attune_operator const* const c = interop::operator_functions<interop::make_softmax, amx_emulated>::get("softmax");
  CHECK(same(x.run(c, attune_products_of_machine), tiles));
  CHECK(same(x.run(c, attune_products_float), floats));
  attune_operator const* const plain =
      interop::operator_functions<interop::make_softmax, interop::no_unit>::get("softmax");
  CHECK(same(x.run(plain, attune_products_of_machine), floats));
}

TEST_CASE("bf16 through the C interface: operators that products of bf16 do not take stay with floats") {
  CHECK(interop::takes_products<amx_emulated, interop::bound_call<interop::make_softmax>::op_type>);
  CHECK(!interop::takes_products<amx_emulated, interop::bound_call<interop::make_top>::op_type>);
  CHECK(!interop::takes_products<amx_emulated, interop::bound_call<interop::make_biased>::op_type>);
}

}  // namespace attune::test
