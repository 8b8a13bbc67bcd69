// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Symbols of operators whose products are products of bf16 numbers, on a machine that has the instructions.
#include "symbols.hpp"

#if defined(__AVX512BF16__) && defined(__AVX512BW__)

using namespace bench;

namespace {

template <class Unit, class T>
void run_products(call<T> const& c, auto const& more, auto const& make) {
  auto const with = [&]<class Op>(Op const& op) {
    cpu_bf16_products<xsimd::default_arch, T, Unit> const exec(c.threads);
    if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<Unit, bf16_instructions>)
      if (c.q.extents().position == 1) return decode(exec, op, inputs_of<Op>(c, more), {.out = c.out});
    forward(exec, op, inputs_of<Op>(c, more), {.out = c.out});
  };
  if (c.causal != 0)
    with(make(mask::causal{}));
  else
    with(make());
}

}  // namespace

#ifdef ATTUNE_HAS_AMX
#define ATTUNE_BENCH_WITH_AMX(...) __VA_ARGS__
#else
#define ATTUNE_BENCH_WITH_AMX(...)
#endif

/// attune_<name>_bf16_products and, where the processor has AMX, attune_<name>_amx_products.
#define ATTUNE_BENCH_PRODUCTS(name, T, parameters, more, ...)                                  \
  void attune_##name##_bf16_products(ATTUNE_BENCH_CALL(T) parameters) {                        \
    run_products<bf16_instructions>(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__)); \
  }                                                                                            \
  ATTUNE_BENCH_WITH_AMX(void attune_##name##_amx_products(ATTUNE_BENCH_CALL(T) parameters) {   \
    run_products<amx_tiles>(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__));         \
  })
/// The same on float tensors, and with gradients.
#define ATTUNE_BENCH_PRODUCTS_OPERATOR(name, parameters, more, ...)                                                \
  void attune_##name##_bf16_products(ATTUNE_BENCH_CALL(float) parameters) {                                        \
    run_products<bf16_instructions>(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__));                     \
  }                                                                                                                \
  ATTUNE_BENCH_WITH_AMX(void attune_##name##_amx_products(ATTUNE_BENCH_CALL(float) parameters) {                   \
    run_products<amx_tiles>(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__));                             \
  })                                                                                                               \
  void attune_train_##name##_bf16_products(ATTUNE_BENCH_CALL(float) parameters, float const* by_out) {             \
    train(cpu_bf16_products<xsimd::default_arch, float>(threads), ATTUNE_BENCH_DENSE, by_out, more,                \
          ATTUNE_BENCH_MAKE(__VA_ARGS__));                                                                         \
  }                                                                                                                \
  ATTUNE_BENCH_WITH_AMX(                                                                                           \
      void attune_train_##name##_amx_products(ATTUNE_BENCH_CALL(float) parameters, float const* by_out) {          \
        train(cpu_bf16_products<xsimd::default_arch, float, amx_tiles>(threads), ATTUNE_BENCH_DENSE, by_out, more, \
              ATTUNE_BENCH_MAKE(__VA_ARGS__));                                                                     \
      })

extern "C" {

/// On bf16 tensors; few queries take decode().
ATTUNE_BENCH_PRODUCTS(softmax, bfloat16, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
/// On float tensors, as everything below.
ATTUNE_BENCH_PRODUCTS_OPERATOR(softmax_f32, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
ATTUNE_BENCH_PRODUCTS_OPERATOR(sink, ATTUNE_BENCH_PARAMETERS(float const* logit), no_more{}, dot(scale),
                               normalizer::sink{of_heads(logit, H)})
ATTUNE_BENCH_PRODUCTS_OPERATOR(alibi, ATTUNE_BENCH_PARAMETERS(float const* slope), no_more{},
                               dot(scale) + kernel::alibi{of_heads(slope, H)})
ATTUNE_BENCH_PRODUCTS_OPERATOR(softcap, ATTUNE_BENCH_PARAMETERS(float cap), no_more{},
                               dot(scale) | kernel::softcap{double(cap)})
ATTUNE_BENCH_PRODUCTS_OPERATOR(
    principled,
    ATTUNE_BENCH_PARAMETERS(float const* gate_q, float const* gate_k, float const* v0, float const* alpha,
                            float const* beta, float const* gamma),
    (gates_and_ground<float>{{gate_q, {B, H, Lq, D}}, {gate_k, {B, Hk, Lk, D}}, {v0, {1, H, 1, D}}}), dot(scale),
    length_scale::margin{of_queries(alpha, B, H, Lq), of_queries(gamma, B, H, Lq)},
    gate::softplus{of_queries(beta, B, H, Lq)}, normalizer::grounded{of_queries(gamma, B, H, Lq)})

}  // extern "C"

#endif
