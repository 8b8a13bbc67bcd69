// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the C symbols of libattune_bench.so share. Tensors are dense, row-major (B, H, L, D).
//   attune_<operator>(q, k, v, out, B, H, Hk, Lq, Lk, D, causal, threads, scale, parameters...)            forward
//   attune_train_<operator>(the same, by_out)
//       forward and all gradients, causal; attune_gradient() hands them out
#pragma once

#include <map>
#include <type_traits>
#include <utility>

#include <attune/attune.hpp>

namespace bench {

using namespace attune;

/// The arguments that every symbol begins with.
template <class T>
struct call {
  tensor<T const> q, k, v;
  tensor<T> out;
  int causal, threads;
};
template <class T>
call<T> dense(T const* q, T const* k, T const* v, T* out, int B, int H, int Hk, int Lq, int Lk, int D, int causal,
              int threads) {
  shape const queries{B, H, Lq, D}, keys{B, Hk, Lk, D};
  return {{q, queries}, {k, keys}, {v, keys}, {out, queries}, causal, threads};
}

/// Inputs beside q, k and v.
struct no_more {};
template <class T>
struct gates_and_ground {
  tensor<T const> gate_q, gate_k, v0;
};
template <class T>
struct sort_keys {
  tensor<T const> sort_q, sort_k;
};

template <class Op, class T>
inputs<Op, tensor<T const>> inputs_of(call<T> const& c, no_more) {
  return {.q = c.q, .k = c.k, .v = c.v};
}
template <class Op, class T>
inputs<Op, tensor<T const>> inputs_of(call<T> const& c, gates_and_ground<T> const& more) {
  return {.q = c.q, .k = c.k, .v = c.v, .gate_q = more.gate_q, .gate_k = more.gate_k, .v0 = more.v0};
}
template <class Op, class T>
inputs<Op, tensor<T const>> inputs_of(call<T> const& c, sort_keys<T> const& more) {
  return {.q = c.q, .k = c.k, .v = c.v, .sort_q = more.sort_q, .sort_k = more.sort_k};
}

/// Angles of rotary positions, made once per width and length as a model does.
inline rotary_angles<float> const& rope_angles(int D, int L) {
  static std::map<std::pair<int, int>, rotary_angles<float>> made;
  return made.try_emplace({D, L}, rotary_frequencies::plain(D), L).first->second;
}

inline kernel::dot_product dot(double scale) { return {scale}; }
template <class T>
parameter of_heads(T const* x, int H) {
  return tensor<T const>(x, {1, H, 1, 1});
}
template <class T>
parameter of_queries(T const* x, int B, int H, int Lq) {
  return tensor<T const>(x, {B, H, Lq, 1});
}

/// A call whose queries and keys have `terms` heads for each head of values: the terms of a fold.
template <class T>
call<T> of_terms(index_t terms, call<T> c) {
  auto const parted = [&](shape s) { return s.head /= terms, s; };
  c.v = {c.v.data(), parted(c.v.extents())};
  c.out = {c.out.data(), parted(c.out.extents())};
  return c;
}

/// make(masks...): the operator with these masks, one or none.
template <class T, class More, class Make>
void run(call<T> const& c, More const& more, Make const& make) {
  auto const with = [&]<class Op>(Op const& op) {
    cpu<T> const exec{c.threads};
    if constexpr (offers_call<cpu<>, call_kind::decode, Op>)
      if (reads_like_decode(c.out.extents())) return decode(exec, op, inputs_of<Op>(c, more), {.out = c.out});
    forward(exec, op, inputs_of<Op>(c, more), {.out = c.out});
  };
  if (c.causal != 0)
    with(make(mask::causal{}));
  else
    with(make());
}

/// Where the gradients of the last call stay. They are not copied out while the clock runs: no other library does.
inline dense_gradients<float> last_gradients;

template <class Exec, class More, class Make>
void train(Exec const& exec, call<float> const& c, float const* by_out, More const& more, Make const& make) {
  if (c.causal == 0)
    throw error("attune_train", "causal", "the value 0", "1: only causal operators are compiled for training");
  auto const op = make(mask::causal{});
  auto const in = inputs_of<std::remove_const_t<decltype(op)>>(c, more);
  auto const rows = forward_and_save(exec, op, in, {.out = c.out});
  tensor<float const> const along(by_out, c.out.extents());
  if constexpr (Fold<std::remove_const_t<decltype(op)>>)
    last_gradients = vjp(exec, op, in, rows, {.out = along});
  else
    last_gradients = vjp(exec, op, in, rows, {.out = along}, std::move(last_gradients));
}

}  // namespace bench

// C has no templates: macros say once what all symbols have in common, so that one operator is one line.
#define ATTUNE_BENCH_CALL(T)                                                                                        \
  T const *q, T const *k, T const *v, T *out, int B, int H, int Hk, int Lq, int Lk, int D, int causal, int threads, \
      attune::arithmetic_t<T> scale
#define ATTUNE_BENCH_DENSE bench::dense(q, k, v, out, B, H, Hk, Lq, Lk, D, causal, threads)
/// The parameters of an operator, as arguments of its symbols; may be empty.
#define ATTUNE_BENCH_PARAMETERS(...) __VA_OPT__(, ) __VA_ARGS__
/// What run() and train() want: attention(policies..., masks...).
#define ATTUNE_BENCH_MAKE(...) [&](auto... masks) { return attention(__VA_ARGS__, masks...); }
/// ATTUNE_BENCH_FORWARD(name, T, ATTUNE_BENCH_PARAMETERS(...), further inputs, policies...)
#define ATTUNE_BENCH_FORWARD(name, T, parameters, more, ...)              \
  void attune_##name(ATTUNE_BENCH_CALL(T) parameters) {                   \
    bench::run(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__)); \
  }
/// The same in float, and training. (Not by way of the macro above: the commas of the parameters would part its
/// arguments.)
#define ATTUNE_BENCH_OPERATOR(name, parameters, more, ...)                                               \
  void attune_##name(ATTUNE_BENCH_CALL(float) parameters) {                                              \
    bench::run(ATTUNE_BENCH_DENSE, more, ATTUNE_BENCH_MAKE(__VA_ARGS__));                                \
  }                                                                                                      \
  void attune_train_##name(ATTUNE_BENCH_CALL(float) parameters, float const* by_out) {                   \
    bench::train(cpu<float>(threads), ATTUNE_BENCH_DENSE, by_out, more, ATTUNE_BENCH_MAKE(__VA_ARGS__)); \
  }
