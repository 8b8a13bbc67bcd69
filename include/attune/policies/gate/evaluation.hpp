// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = gate(s, x, y, ...)
//
// How an executor evaluates a score gate: the counterpart of kernel::evaluation.
#pragma once

#include <utility>

#include <attune/policies/concepts.hpp>

namespace attune::gate {

/// `contractions` lists what to compute. `gate` turns a scaled score and the values (x[0], x[1], ... in that order)
/// into the logit. A gate without contractions changes nothing.
template <class G>
struct evaluation {
  /// The contractions of the gate, as a contraction::list.
  using contractions = contraction::named_by<G>;
  template <class B, class T>
  ATTUNE_HD static ATTUNE_INLINE T gate([[maybe_unused]] B const& bound, T const& s, [[maybe_unused]] T const* x) {
    if constexpr (contractions::size == 0)
      return s;
    else if constexpr (contractions::size == 1)
      return bound.gate(s, x[0]);
    else
      return of_all(bound, s, x, std::make_integer_sequence<int, contractions::size>{});
  }

 private:
  template <class B, class T, int... Index>
  ATTUNE_HD static ATTUNE_INLINE T of_all(B const& bound, T const& s, T const* x,
                                          std::integer_sequence<int, Index...>) {
    return bound.gate(s, x[Index]...);
  }
};

}  // namespace attune::gate
