// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The attention systems that the demo compares, each from its preset in a line, with the layer's parameters.
#pragma once

#include <cmath>

#include <attune/operators/presets.hpp>

#include "layer.hpp"

namespace demo {

/// What magnifies rounding errors of a row's logits: factor * scores + gate * penalties + level (see condition.hpp).
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
  magnification magnify(layer const& l, index_t h, index_t i, double) const { return {.level = std::fabs(l.sink.at(h, i))}; }
};

struct ssmax_system {
  static constexpr double scale = 0.25;  ///< factor 0.25 log 512 = 1.56 on the longest rows
  template <class Select, class Mask>
  auto op(layer const&, Select const&, Mask m) const {
    return attune::ssmax_attention({.scale = scale, .bias = 0}, m);
  }
  magnification magnify(layer const&, index_t, index_t, double log_count) const { return {.factor = scale * log_count}; }
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

}  // namespace demo
