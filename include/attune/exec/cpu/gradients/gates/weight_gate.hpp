// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = sum_j f_j w_j v_j, g_j = <do, v_j>:   h_j = f_j g_j for the row,   df_j = w_j g_j for the gate
//
// The weight gate in the backward pass of a tile: its factor with derivatives, and the gradients of its parameters. The
// rest of the row sees h_j in place of <do, v_j>.
#pragma once

#include <array>

#include <attune/exec/cpu/gradients/tile.hpp>
#include <attune/exec/cpu/tile/gates/weight_gate.hpp>

namespace attune::exec_cpu {

/// Nothing, for operators without a weight gate.
template <class T, class Arch, class Op, class Products = full_products, bool Present = Op::has_weight_gate>
struct weight_gate_gradients {
  explicit weight_gate_gradients(gradient_tile<T, Arch, Op, Products> const&) {}
};

template <class T, class Arch, class Op, class Products>
class weight_gate_gradients<T, Arch, Op, Products, true> {
  using tile = gradient_tile<T, Arch, Op, Products>;
  using batch = typename tile::batch;
  using counts = slots_of<Op>;
  using gate = typename Op::weight_gate_policy;
  static constexpr bool contracts = attune::detail::contracts_weights<Op>;
  static constexpr int vectors = tile::vectors, lanes = tile::lanes, first_slot = counts::logit + counts::normalizer;

 public:
  static constexpr int parameters = counts::weight_gate;
  /// Directions of a factor: the contraction, if the gate reads one, then the parameters.
  template <chain_rule Rule>
  using factor_dual = dual<batch, (std::max)(1, int(contracts) + parameters), Rule>;
  using sums = std::array<batch, std::size_t((std::max)(1, parameters))>;

  explicit weight_gate_gradients(tile const& t) {
    for (int v = 0; v < vectors; ++v) by[v].fill(batch(T(0)));
    static_cast<void>(t);
  }

  /// The gate of batch v of the rows.
  template <chain_rule Rule>
  static auto bind(tile const& t, int v) {
    return t.rows.op->weight_gate.bind(
        moving_row<factor_dual<Rule>>(t.facts[v], first_slot, parameters, int(contracts)));
  }
  /// The factors of key j. u: the gate's number.
  template <chain_rule Rule, class Bound>
  ATTUNE_INLINE static factor_dual<Rule> factor(Bound const& bound, batch const& u, index_t j) {
    using D = factor_dual<Rule>;
    D number(u);
    if constexpr (contracts) number.tangent[0] = batch(T(1));
    return attune::detail::weight_factor<gate>(bound, number, key<D>{D(batch(T(j)))});
  }
  /// Adds the gradients of the parameters to `to`. by_factor: w_j g_j, 0 where the key is not seen.
  template <chain_rule Rule>
  ATTUNE_INLINE static void add(sums& to, factor_dual<Rule> const& f, batch const& by_factor) {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s) {
      batch const slope = f.tangent[int(contracts) + s];
      to[std::size_t(s)] =
          to[std::size_t(s)] + attune::detail::chained<Rule>(attune::detail::zero_if_tiny(by_factor, slope), slope);
    }
  }

  /// Passes the gradients of the parameters to the call.
  void flush(tile const& t, index_t first_of_task, gradient_sinks<T>& to) const {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s)
      t.add_parameter(first_slot + s, first_of_task, to, [&](int v) { return by[v][std::size_t(s)]; });
  }

  sums by[std::size_t(vectors)];
};

}  // namespace attune::exec_cpu
