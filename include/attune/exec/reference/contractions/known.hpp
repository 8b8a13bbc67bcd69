// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contractions_with(contract, x, b, h, i, j, known)      as contract.all(x, b, h, i, j)
//
// The contractions of a pair, some of which the caller has computed for many pairs at once.
#pragma once

#include <attune/exec/reference/contractions/contraction.hpp>

namespace attune::detail {

/// known(number) points to the value of a contraction, or is null: then it is computed.
template <class T, class Op, class View, class Known>
void contractions_with(reference_contraction<T, Op, View> const& contract, T* to, index_t b, index_t h, index_t i,
                       index_t j, Known const& known) {
  [[maybe_unused]] int n = 0;
  contract.each(typename Op::contractions{}, [&](auto contraction, auto const& owner) {
    T const* const x = known(n++);
    *to++ = x != nullptr ? *x : contract.value(contraction, owner, b, h, i, j);
  });
}

}  // namespace attune::detail
