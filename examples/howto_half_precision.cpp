// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// bfloat16 tensors of another library, and a cache of keys and values with 8 bits: the result is that of floats.
#include <cstdint>
#include <cstdio>
#include <random>
#include <type_traits>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
#include <attune/float8_cache.hpp>

using namespace attune;
// [/snippet]

int main() {
  constexpr index_t heads = 8, key_heads = 2, keys = 300, width = 64;
  shape const one{1, heads, 1, width}, all{1, key_heads, keys, width};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&](shape const& s, auto of) {
    std::vector<decltype(of(0.0f))> x(static_cast<std::size_t>(s.size()));
    for (auto& e : x) e = of(normal(random));
    return x;
  };
  auto const widened = [](auto const& x, float scale) {
    std::vector<float> to;
    for (auto const& e : x) to.push_back(float(e) * scale);
    return to;
  };
  auto const op = attention(kernel::dot_product{});
  auto const of_floats = [&](std::vector<float> const& q, std::vector<float> const& k, std::vector<float> const& v) {
    std::vector<float> out(q.size());
    decode(cpu<float>{}, op, {.q = tensor(q, one), .k = tensor(k, all), .v = tensor(v, all)},
           {.out = tensor(out, one)});
    return out;
  };

  auto const bits = [](float x) { return bfloat16(x).bits; };
  std::vector<std::uint16_t> const q_bits = make(one, bits), k_bits = make(all, bits), v_bits = make(all, bits);
  std::vector<std::uint16_t> out_bits(q_bits.size());
  // [snippet: bf16]
  // 16-bit words of another library: the bits are the same, so a view is enough.
  tensor Q(reinterpret_cast<bfloat16 const*>(q_bits.data()), one);
  tensor K(reinterpret_cast<bfloat16 const*>(k_bits.data()), all);
  tensor V(reinterpret_cast<bfloat16 const*>(v_bits.data()), all);
  tensor O(reinterpret_cast<bfloat16*>(out_bits.data()), one);
  decode(cpu<bfloat16>{}, op, {.q = Q, .k = K, .v = V}, {.out = O});  // or forward
  // [/snippet]
  auto const numbers = [&](tensor<bfloat16 const> x) {
    std::vector<float> to;
    for (index_t n = 0; n < x.extents().size(); ++n) to.push_back(float(x.data()[n]));
    return to;
  };
  std::vector<float> const q = numbers(Q), wide = of_floats(q, numbers(K), numbers(V));
  bool rounded = true;
  for (std::size_t n = 0; n < wide.size(); ++n) rounded = rounded && bfloat16(wide[n]).bits == out_bits[n];
  std::printf("bfloat16, and floats rounded once: %s\n", rounded ? "the same bits" : "DIFFERENT");

  auto const to_code = [](float x) { return float8_e4m3fn(x); };
  std::vector<float8_e4m3fn> const k_codes = make(all, to_code), v_codes = make(all, to_code);
  std::vector<float> out8(q.size()), scales{0.5f, 2.0f};
  // [snippet: float8]
  // float(code) * scale: one scale for all of k, and one for each head of v.
  tensor K8(k_codes.data(), all), V8(v_codes.data(), all);
  tensor S(scales.data(), {1, key_heads, 1, 1});
  decode(cpu_float8_cache<float8_e4m3fn>{}, op, {.q = tensor(q, one), .k = {K8, 0.02f}, .v = {V8, S}},
         {.out = tensor(out8, one)});
  // [/snippet]
  std::vector<float> v8 = widened(v_codes, 1);
  for (std::size_t n = 0; n < v8.size(); ++n) v8[n] *= scales[n / static_cast<std::size_t>(keys * width)];
  bool const scaled = of_floats(q, widened(k_codes, 0.02f), v8) == out8;
  std::printf("8 bits, and floats: %s\n", scaled ? "the same bits" : "DIFFERENT");

#if defined(__AVX512BF16__)
  // [snippet: products]
  decode(cpu_bf16_products{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  // [/snippet]
  // [snippet: prefill]
  forward(cpu_bf16_products{}, op, {.q = Q, .k = K, .v = V}, {.out = O});
  // [/snippet]
  std::vector<float> const k = numbers(K), v = numbers(V);
  std::vector<float> out(q.size());
  using of_op = std::remove_const_t<decltype(op)>;
  inputs<of_op, tensor<float const>> const in{.q = tensor(q, one), .k = tensor(k, all), .v = tensor(v, all)};
  // [snippet: gradients]
  cpu_bf16_products<xsimd::default_arch, float> const exec;
  auto const rows = forward_and_save(exec, op, in, {.out = tensor(out, one)});
  auto const g = vjp(exec, op, in, rows, {.out = tensor<float const>(out, one)});  // of |out|^2 / 2
  // [/snippet]
  std::printf("%zu gradients by keys\n", g.of(field::k).values.size());
#endif
  return rounded && scaled ? 0 : 1;
}
