// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The backward symbols of libattune_bench.so. Tensors are dense, row-major (B, H, L, D).
#include <algorithm>
#include <utility>

#include <attune/attune.hpp>

namespace {

using namespace attune;
using view = tensor<float const>;

template <class T>
void copy(gradient_array<T> const& from, T* to) {
  std::copy(from.values.begin(), from.values.end(), to);
}

/// out and all gradients of an operator of q, k and v; the sum of the parameters' gradients keeps them from being optimised away.
template <class Op, class Inputs>
float train(Op const& op, Inputs const& in, view by_out, tensor<float> out, float* dq, float* dk, float* dv, int threads) {
  cpu<float> const exec(threads);
  auto const rows = forward_and_save(exec, op, in, {.out = out});
  auto const g = vjp(exec, op, in, rows, {.out = by_out});
  copy(g.of(field::q), dq);
  copy(g.of(field::k), dk);
  copy(g.of(field::v), dv);
  float sum = 0;
  for (auto const& p : g.parameters)
    for (float x : p.values.values) sum += x;
  return sum;
}

}  // namespace

extern "C" {

/// Softmax from out and lse, as other libraries save it: with the lse as reference the masses sum to 1.
void attune_backward(float const* q, float const* k, float const* v, float const* out, float const* lse, float const* by_out,
                     float* dq, float* dk, float* dv, int B, int H, int Lq, int Lk, int D, int causal, int threads,
                     float scale) {
  shape const s{B, H, Lq, D}, g{B, H, Lk, D};
  auto const with = [&](auto const& op) {
    using op_type = std::remove_cvref_t<decltype(op)>;
    inputs<op_type, view> const in{.q = view(q, s), .k = view(k, g), .v = view(v, g)};
    saved_rows<float, op_type> rows(op, attune::detail::checked_problem("attune_backward", op, in, s));
    std::copy_n(lse, rows.reference.size(), rows.reference.begin());
    std::fill(rows.earned.begin(), rows.earned.end(), 1.0f);
    std::copy_n(out, rows.acc.size(), rows.acc.begin());
    static dense_gradients<float> grads;
    grads = vjp(cpu<float>(threads), op, in, rows, {.out = view(by_out, s)}, std::move(grads));
    copy(grads.of(field::q), dq);
    copy(grads.of(field::k), dk);
    copy(grads.of(field::v), dv);
  };
  if (causal != 0)
    with(attention(kernel::dot_product{double(scale)}, mask::causal{}));
  else
    with(attention(kernel::dot_product{double(scale)}));
}

/// Forward and all gradients; parameters per head and query.
float attune_train_principled(float const* q, float const* k, float const* v, float const* gate_q, float const* gate_k,
                              float const* v0, float const* alpha, float const* beta, float const* gamma, float const* by_out,
                              float* out, float* dq, float* dk, float* dv, int B, int H, int L, int D, int threads) {
  shape const s{B, H, L, D}, row{B, H, L, 1};
  auto const of = [&](float const* x) { return parameter(view(x, row)); };
  auto const op = principled_attention({.alpha = of(alpha), .beta = of(beta), .gamma = of(gamma)}, mask::causal{});
  inputs<std::remove_const_t<decltype(op)>, view> const in{.q = view(q, s),
                                                           .k = view(k, s),
                                                           .v = view(v, s),
                                                           .gate_q = view(gate_q, s),
                                                           .gate_k = view(gate_k, s),
                                                           .v0 = view(v0, shape{1, H, 1, D})};
  return train(op, in, view(by_out, s), tensor<float>(out, s), dq, dk, dv, threads);
}

float attune_train_affine(float const* q, float const* k, float const* v, float const* alpha, float const* by_out, float* out,
                          float* dq, float* dk, float* dv, int B, int H, int L, int D, int threads) {
  shape const s{B, H, L, D};
  auto const op =
      attention(kernel::dot_product{}, normalizer::affine<>{.alpha = parameter(view(alpha, shape{B, H, L, 1})), .average = 0.6},
                mask::causal{});
  inputs<std::remove_const_t<decltype(op)>, view> const in{.q = view(q, s), .k = view(k, s), .v = view(v, s)};
  return train(op, in, view(by_out, s), tensor<float>(out, s), dq, dk, dv, threads);
}

float attune_train_entmax15(float const* q, float const* k, float const* v, float const* by_out, float* out, float* dq,
                            float* dk, float* dv, int B, int H, int L, int D, int threads) {
  shape const s{B, H, L, D};
  auto const op = attention(kernel::dot_product{}, normalizer::entmax15{}, mask::causal{});
  inputs<std::remove_const_t<decltype(op)>, view> const in{.q = view(q, s), .k = view(k, s), .v = view(v, s)};
  return train(op, in, view(by_out, s), tensor<float>(out, s), dq, dk, dv, threads);
}

}  // extern "C"
