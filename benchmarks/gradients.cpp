// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The backward pass of softmax alone, and the gradients that the last training symbol left.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "symbols.hpp"

namespace {

using namespace bench;

using backward = std::function<void(float const*)>;
backward saved_backward, saved_bf16_products, saved_amx_products;

template <class T>
void copy(gradient_array<T> const& from, T* to) {
  std::copy(from.values.begin(), from.values.end(), to);
}

gradient_array<float> gradient_called(std::string const& name) {
  for (std::size_t f = 0; f < last_gradients.fields.size(); ++f)
    if (name == name_of(field(f))) return last_gradients.fields[f];
  return last_gradients.parameter(name);
}

template <class Exec>
void save(backward& to, Exec const& exec, float const* q, float const* k, float const* v, float const* out,
          float const* lse, int B, int H, int Lq, int Lk, int D, int causal, float scale) {
  shape const s{B, H, Lq, D}, g{B, H, Lk, D};
  using view = tensor<float const>;
  auto const with = [&]<class Op>(Op const& op) {
    inputs<Op, view> const in{.q = view(q, s), .k = view(k, g), .v = view(v, g)};
    saved_rows<float, Op> rows(op, attune::detail::checked_problem("attune_save", op, in, s));
    std::copy_n(lse, rows.reference.size(), rows.reference.begin());
    std::fill(rows.earned.begin(), rows.earned.end(), 1.0f);
    std::copy_n(out, rows.acc.size(), rows.acc.begin());
    to = [=, rows = std::move(rows)](float const* by_out) {
      last_gradients = vjp(exec, op, in, rows, {.out = view(by_out, s)}, std::move(last_gradients));
    };
  };
  if (causal != 0)
    with(attention(dot(scale), mask::causal{}));
  else
    with(attention(dot(scale)));
}

}  // namespace

#define ATTUNE_BENCH_SAVED                                                                                          \
  float const *q, float const *k, float const *v, float const *out, float const *lse, int B, int H, int Lq, int Lk, \
      int D, int causal, int threads, float scale
#define ATTUNE_BENCH_SAVED_ARGUMENTS q, k, v, out, lse, B, H, Lq, Lk, D, causal, scale

extern "C" {

/// What a forward pass of softmax would have saved, from out and lse as other libraries save it: with the lse as
/// reference the masses sum to 1. Reads q, k and v again in attune_backward.
void attune_save(ATTUNE_BENCH_SAVED) { save(saved_backward, cpu<float>(threads), ATTUNE_BENCH_SAVED_ARGUMENTS); }
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
/// The same for products of bf16.
void attune_save_bf16_products(ATTUNE_BENCH_SAVED) {
  save(saved_bf16_products, cpu_bf16_products<xsimd::default_arch, float>(threads), ATTUNE_BENCH_SAVED_ARGUMENTS);
}
/// The backward pass of the rows that attune_save_bf16_products saved last.
void attune_backward_bf16_products(float const* by_out) { saved_bf16_products(by_out); }
#endif
#ifdef ATTUNE_HAS_AMX
/// The same by tiles of AMX.
void attune_save_amx_products(ATTUNE_BENCH_SAVED) {
  save(saved_amx_products, cpu_bf16_products<xsimd::default_arch, float, amx_tiles>(threads),
       ATTUNE_BENCH_SAVED_ARGUMENTS);
}
void attune_backward_amx_products(float const* by_out) { saved_amx_products(by_out); }
#endif
/// The backward pass of the rows that attune_save saved last; attune_gradient has the gradients.
void attune_backward(float const* by_out) { saved_backward(by_out); }

/// Copies a gradient of the last training or backward call, by the name of the input or parameter, if it has `size`
/// numbers. Returns how many it has; 0: there is none of that name.
long attune_gradient(char const* name, float* to, long size) {
  try {
    auto const g = gradient_called(name);
    if (long(g.values.size()) == size) copy(g, to);
    return long(g.values.size());
  } catch (attune::error const&) {
    return 0;
  }
}

}  // extern "C"
