// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum_s e^(l_s - |x - x_s| / tau) row_s  =  e^(l - |x - a| / tau) sums        for every x beyond all x_s
//
// Sums of masses on one side of a line are stored relative to one source, the anchor: the source whose mass is largest.
// Two sets, one beyond the other, can be added. This is a monoid, so a scan can take sources one at a time or many at a
// time.
#pragma once

#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

/// The source that sums are relative to: its position and its logit. The default anchor belongs to no source.
template <class W>
struct anchor {
  W at = W(0), logit = initial_max<W>();

  /// The logit that the sums are relative to, at position x.
  template <class Kernel>
  ATTUNE_HD W seen_from(Kernel const& kernel, W const& x) const {
    return logit + kernel.score(x - at, key<W>{W(0)});
  }
};

/// sums = first_factor first + second_factor second, relative to `from`. No factor is above 1, and one of them is 1.
template <class W>
struct joined_anchors {
  anchor<W> from;
  W first_factor, second_factor;
};

/// Joins two sets, the second beyond all of the first.
template <class Kernel, class W>
ATTUNE_HD joined_anchors<W> join(Kernel const& kernel, anchor<W> const& first, anchor<W> const& second) {
  normalizer::softmax::bound<W> const softmax{};
  W const before = first.seen_from(kernel, second.at);
  if (before < second.logit) return {second, softmax.earned(before, second.logit), W(1)};
  return {first, W(1), softmax.earned(second.logit, before)};
}

}  // namespace attune::line::detail
