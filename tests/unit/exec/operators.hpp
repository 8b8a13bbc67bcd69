// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The three operators on which executors are tested here: between them they have every input, output and kind of
// contraction. Instantiated once, in operators_test.cpp.
#pragma once

#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/reference/split.hpp>

namespace attune::test {

/// q, k, v
using plain_operator = attention_operator<kernel::dot_product, length_scale::none, gate::none, normalizer::softmax,
                                          gate::no_value_factor, gate::no_output_factor, mask::runtime>;
/// q, k, v, gate_q, gate_k, v0; every parameter of Principled Attention
using principled_operator =
    attention_operator<kernel::dot_product, length_scale::margin, gate::softplus, normalizer::grounded,
                       gate::no_value_factor, gate::no_output_factor, mask::runtime>;
/// scores, gates, v, v0; a sink
using given_operator =
    attention_operator<kernel::given_scores, length_scale::none, gate::given_softplus, normalizer::valued_sink,
                       gate::no_value_factor, gate::no_output_factor, mask::runtime>;

template <class Op>
using cpu_inputs = inputs<Op, tensor<float const>>;
template <class Op>
using reference_inputs = inputs<Op, any_tensor>;

/// Extents of every tensor of a call, consistent unless changed.
struct call_shapes {
  shape q{2, 4, 3, 6}, k{2, 2, 5, 6}, v{2, 1, 5, 7}, gate_q{2, 4, 3, 2}, gate_k{2, 2, 5, 2}, scores{2, 4, 3, 5},
      gates = scores, v0{1, 1, 1, 7}, out{2, 4, 3, 7}, lse{2, 4, 3, 1}, ground_weight = lse;
};

/// Inputs whose tensors come from make(name, extents): tensors, or copies of them in another layout.
template <class View, class Make>
inputs<plain_operator, View> plain_inputs(call_shapes const& s, Make const& make) {
  return {.q = make("q", s.q), .k = make("k", s.k), .v = make("v", s.v)};
}
template <class View, class Make>
inputs<principled_operator, View> principled_inputs(call_shapes const& s, Make const& make) {
  return {.q = make("q", s.q),
          .k = make("k", s.k),
          .v = make("v", s.v),
          .gate_q = make("gate_q", s.gate_q),
          .gate_k = make("gate_k", s.gate_k),
          .v0 = make("v0", s.v0)};
}
template <class View, class Make>
inputs<given_operator, View> given_inputs(call_shapes const& s, Make const& make) {
  return {
      .v = make("v", s.v), .scores = make("scores", s.scores), .gates = make("gates", s.gates), .v0 = make("v0", s.v0)};
}

/// Numbers in [-1, 1), the same on every machine.
inline std::vector<float> numbers(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x;
  for (index_t n = 0; n < count; ++n) x.push_back(float(int(random() % 2048) - 1024) / 1024);
  return x;
}

}  // namespace attune::test

namespace attune {
#define ATTUNE_TEST_INSTANTIATE(prefix, Op)                                                                      \
  prefix template void forward(cpu<float> const&, test::Op const&, test::cpu_inputs<test::Op> const&,            \
                               outputs<test::Op, float> const&);                                                 \
  prefix template void forward(reference<double>, test::Op const&, test::reference_inputs<test::Op> const&,      \
                               outputs<test::Op, double> const&);                                                \
  prefix template states_of<float, test::Op> accumulate(cpu<float> const&, test::Op const&,                      \
                                                        test::cpu_inputs<test::Op> const&, key_interval);        \
  prefix template states_of<double, test::Op> accumulate(reference<double>, test::Op const&,                     \
                                                         test::reference_inputs<test::Op> const&, key_interval); \
  prefix template void finish<float>(test::Op const&, test::cpu_inputs<test::Op> const&,                         \
                                     states_of<float, test::Op> const&, outputs<test::Op, float> const&);        \
  prefix template void finish<double>(test::Op const&, test::reference_inputs<test::Op> const&,                  \
                                      states_of<double, test::Op> const&, outputs<test::Op, double> const&);
ATTUNE_TEST_INSTANTIATE(extern, plain_operator)
ATTUNE_TEST_INSTANTIATE(extern, principled_operator)
ATTUNE_TEST_INSTANTIATE(extern, given_operator)
}  // namespace attune
