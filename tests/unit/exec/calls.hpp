// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls of both executors from the same floats, results as plain arrays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operators.hpp"

namespace attune::test {

using arrays = std::map<std::string, std::vector<float>>;

/// Dense views of the arrays.
inline auto dense(arrays const& from) {
  return [&from](char const* name, shape const& s) { return tensor<float const>(from.at(name), s); };
}

/// Random arrays for every tensor of a call.
inline arrays random_arrays(call_shapes const& s) {
  return {{"q", numbers(s.q.size(), 1)},           {"k", numbers(s.k.size(), 2)},
          {"v", numbers(s.v.size(), 3)},           {"gate_q", numbers(s.gate_q.size(), 4)},
          {"gate_k", numbers(s.gate_k.size(), 5)}, {"scores", numbers(s.scores.size(), 6)},
          {"gates", numbers(s.gates.size(), 7)},   {"v0", numbers(s.v0.size(), 8)}};
}

/// A call with B batches, H heads over Hk and Hv, Lq and Lk positions; widths 6, 7 and 2.
inline call_shapes call_of(index_t batch, index_t heads, index_t key_heads, index_t value_heads, index_t queries,
                           index_t keys) {
  call_shapes s;
  s.q = {batch, heads, queries, 6};
  s.k = {batch, key_heads, keys, 6};
  s.v = {batch, value_heads, keys, 7};
  s.gate_q = {batch, heads, queries, 2};
  s.gate_k = {batch, key_heads, keys, 2};
  s.scores = s.gates = {batch, heads, queries, keys};
  s.out = {batch, heads, queries, 7};
  s.lse = s.ground_weight = {batch, heads, queries, 1};
  return s;
}

template <class T>
struct results {
  std::vector<T> out, lse, ground_weight;
  explicit results(call_shapes const& s)
      : out(std::size_t(s.out.size())), lse(std::size_t(s.lse.size())),
        ground_weight(std::size_t(s.ground_weight.size())) {}
  template <class Op>
  outputs<Op, T> views(call_shapes const& s) {
    outputs<Op, T> to{.out = tensor<T>(out.data(), s.out), .lse = natural_lse(tensor<T>(lse.data(), s.lse))};
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<T>(ground_weight.data(), s.ground_weight);
    return to;
  }
  friend bool operator==(results const&, results const&) = default;
};

template <class Executor, class Op, class In>
results<typename Executor::value_type> run(Executor const& exec, Op const& op, In const& in, call_shapes const& s) {
  results<typename Executor::value_type> r(s);
  forward(exec, op, in, r.template views<Op>(s));
  return r;
}

}  // namespace attune::test
