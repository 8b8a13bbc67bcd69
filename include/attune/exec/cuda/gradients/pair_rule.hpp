// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contractions and h = <do, v> of a pair  ->  its weight, and the gradients by its contractions
//
// The rule of one pair, for tiles of queries and tiles of keys alike. Masses e^(a - m) need no dual number; all others
// follow exec/row_slopes.hpp.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
#include <attune/exec/row_slopes.hpp>

namespace attune::exec_cuda {

/// The numbers of a row that its pairs read: see pair_record. F: the scalar that policies run on.
template <class Op, class F = fast_float>
struct pair_numbers {
  float scale, gap, factor, by_earned, reference, unit, share, by_ground;
  typename gradient_facts<Op, F>::bound f;  ///< not of an affine operator
};

/// The contribution of a pair. Of an affine operator, by[0] is the gradient by the logit: the caller multiplies by the
/// slope of the row.
template <class Op>
struct pulled_pair {
  float weight, by[Op::contractions::size == 0 ? 1 : Op::contractions::size];
};

/// x: the values of the contractions; j: the number of the key; h = <do, v_j>.
/// A row whose factor is NaN has a gap and a reference of NaN, so all its keys get NaN.
template <class Op, class F>
ATTUNE_HD ATTUNE_INLINE pulled_pair<Op> pull_pair(pair_numbers<Op, F> const& row, F const* x, [[maybe_unused]] int j,
                                                  float h) {
  using facts = gradient_facts<Op, F>;
  using D = typename facts::moving;
  pulled_pair<Op> to;
  // e by: a mass of 0 wins over an infinite slope
  auto const fused = [&](float e) {
    to.weight = e * row.factor;
    if constexpr (facts::is::is.uniform_share) to.weight += row.share;
    float by = approximate::fma(h, row.factor, row.by_earned);
    if constexpr (facts::is::is.ground_mass) by -= e < row.unit ? row.by_ground : 0.f;
    return e == 0.f ? 0.f : e * by;
  };
  if constexpr (facts::affine) {
    to.by[0] = fused(approximate::ex2(approximate::fma(float(x[0]), row.scale, row.gap)));
  } else {
    auto const f = facts::with_directions(row.f);
    D moved[facts::contractions + 1];
    ATTUNE_UNROLL
    for (int c = 0; c < facts::contractions; ++c) moved[c] = D::variable(x[c], c);
    D const a = f.logit(moved, key<D>{D(F(float(j)))});
    F by_logit;
    if constexpr (facts::fused) {
      by_logit = fused(approximate::ex2(approximate::fma(float(a.value), approximate::log2e, row.gap)));
    } else {
      attune::detail::mass_pair<F> const pair{row.factor, row.share, row.by_earned, row.by_ground};
      auto const pulled = pair.template pull<Op, D, 1, 0, chain_rule::guarded>(
          f.normalizer, a.value, row.reference, approximate::fma(h, row.factor, row.by_earned), [](int, F) {});
      to.weight = float(pulled.weight);
      by_logit = pulled.by_logit;
    }
    ATTUNE_UNROLL
    for (int c = 0; c < facts::contractions; ++c) to.by[c] = float(attune::detail::chained(by_logit, a.tangent[c]));
  }
  return to;
}

}  // namespace attune::exec_cuda
