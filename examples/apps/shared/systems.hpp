// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The attention systems that are compared, each from its preset in a line, with the layer's parameters; and their
// inputs.
#pragma once

#include <cmath>

#include <attune/operators/inputs.hpp>
#include <attune/operators/presets.hpp>

#include "layer.hpp"

namespace apps {

/// What magnifies rounding errors of a row's logits: factor * scores + gate * penalties + level (demo/condition.hpp).
struct magnification {
  double factor = 1, gate = 0, level = 0;
};

/// Each system has op(layer, select, mask), where select(setting) is the parameter for all heads or for one;
/// ground_value(layer), where it takes one; and magnify(layer, head, query, log K).
struct softmax_system {
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::softmax_attention(m);
  }
  magnification magnify(layer const&, index_t, index_t, double) const { return {}; }
};

struct off_by_one_system {
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::off_by_one_attention(m);
  }
  magnification magnify(layer const&, index_t, index_t, double) const { return {}; }
};

struct sink_system {
  template <class Select, class Mask>
  auto op(layer const& l, Select const& select, Mask m) const {
    return attune::sink_attention(select(l.sink), m);
  }
  magnification magnify(layer const& l, index_t h, index_t i, double) const {
    return {.level = std::fabs(l.sink.at(h, i))};
  }
};

struct ssmax_system {
  static constexpr double scale = 0.25;  ///< factor 0.25 log 512 = 1.56 on the longest rows
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::ssmax_attention({.scale = scale, .bias = 0}, m);
  }
  magnification magnify(layer const&, index_t, index_t, double log_count) const {
    return {.factor = scale * log_count};
  }
};

struct principled_system {
  principled_choice choice;
  template <class Select, class Mask>
  auto op(layer const& l, Select const& select, Mask m) const {
    return attune::principled_attention({.alpha = select(l.alpha[int(choice.alpha)]),
                                         .beta = select(l.beta[int(choice.beta)]),
                                         .gamma = select(l.gamma[int(choice.gamma)])},
                                        m);
  }
  std::vector<float> const& ground_values(layer const& l) const { return choice.ground_value ? l.mean_value : l.zero; }
  magnification magnify(layer const& l, index_t h, index_t i, double log_count) const {
    double const kappa = attune::math::softplus(l.alpha[int(choice.alpha)].at(h, i)) * log_count;
    double const gamma = l.gamma[int(choice.gamma)].at(h, i);
    return {.factor = 1 + kappa,
            .gate = attune::math::softplus(l.beta[int(choice.beta)].at(h, i)),
            .level = std::isfinite(gamma) ? (1 + kappa) * std::fabs(gamma) : 0};
  }
};

/// alpha per head and query, average that of the layer. N counts the visible keys, or all of them.
template <attune::normalizer::affine_count Count>
struct affine_system {
  template <class Select, class Mask>
  auto op(layer const& l, Select const& select, Mask m) const {
    return attune::affine_scaled_attention<Count>(select(l.affine_alpha), select(l.affine_average), m);
  }
};

struct sparsemax_system {
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::sparsemax_attention(m);
  }
};

struct entmax15_system {
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::entmax15_attention(m);
  }
};

/// Ground values (1, heads, 1, width) of a system, or nothing.
template <class Op, class System>
auto ground_values([[maybe_unused]] System const& system, [[maybe_unused]] layer const& l,
                   [[maybe_unused]] index_t first, [[maybe_unused]] index_t heads) {
  if constexpr (Op::uses(attune::field::v0))
    return attune::tensor<float const>(system.ground_values(l).data() + first * l.width, {1, heads, 1, l.width});
  else
    return 0;
}

/// The inputs of an operator: queries(x) and keys(x) view x as the executor shall see it.
template <class View, class Op, class Queries, class Keys, class V0>
attune::inputs<Op, View> inputs_of(Op const&, layer const& l, Queries const& queries, Keys const& keys,
                                   [[maybe_unused]] V0 const& v0) {
  if constexpr (Op::uses(attune::field::v0))
    return {.q = queries(l.q),
            .k = keys(l.k),
            .v = keys(l.v),
            .gate_q = queries(l.gate_q),
            .gate_k = keys(l.gate_k),
            .v0 = v0};
  else
    return {.q = queries(l.q), .k = keys(l.k), .v = keys(l.v)};
}

}  // namespace apps
