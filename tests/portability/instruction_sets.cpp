// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls whose code differs by instruction set, compiled for sets that this machine may lack. Nothing here ever runs.
#include <attune/attune.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/float8_cache.hpp>

namespace attune::test {

using softmax = decltype(attention(kernel::dot_product{}, mask::runtime{}));
using arch = xsimd::default_arch;

template <class T>
using readings = inputs<softmax, tensor<T const>>;
template <class T>
using writings = outputs<softmax, T>;

void in_floats(softmax const& op, readings<float> const& in, writings<float> const& out) {
  forward(cpu<float>{}, op, in, out);
  decode(cpu<float>{}, op, in, out);
  vjp(cpu<float>{}, op, in, {.out = tensor<float const>(out.out)});
}

void from_fewer_bits(softmax const& op, readings<bfloat16> const& in, readings<float8_e4m3fn> const& codes,
                     writings<bfloat16> const& out, writings<float> const& floats, tensor<float const> const& q) {
  decode(cpu<bfloat16>{}, op, in, out);
  decode(cpu_float8_cache<float8_e4m3fn>{}, op, {.q = q, .k = {codes.k, 1.0f}, .v = {codes.v, 1.0f}}, floats);
}

#if defined(ATTUNE_TEST_BF16)
static_assert(bf16_instructions::there);
template <class Unit>
void by_products(softmax const& op, readings<float> const& in, writings<float> const& out) {
  cpu_bf16_products<arch, float, Unit> const exec;
  forward(exec, op, in, out);
  vjp(exec, op, in, {.out = tensor<float const>(out.out)});
}
template void by_products<bf16_instructions>(softmax const&, readings<float> const&, writings<float> const&);
#endif

#if defined(ATTUNE_TEST_AMX)
static_assert(amx_tiles::there);
template void by_products<amx_tiles>(softmax const&, readings<float> const&, writings<float> const&);
void decoded(softmax const& op, readings<bfloat16> const& in, writings<bfloat16> const& out) {
  decode(cpu_bf16_products{}, op, in, out);
}
#endif

}  // namespace attune::test
