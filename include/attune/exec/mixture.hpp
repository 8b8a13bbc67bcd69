// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   the extents of a call whose heads run different operators
#pragma once

#include <attune/exec/problem.hpp>
#include <attune/operators/mixture.hpp>

namespace attune::detail {

/// Checks everything that every operator of the mixture checks, and the number of heads.
template <class... Ops, class View>
problem_shape checked_problem(char const* function, mixture_operator<Ops...> const& mixed,
                              inputs<mixture_operator<Ops...>, View> const& in, shape const& out) {
  if (mixed.heads != out.head) throw error(function, "which", text(mixed.heads, " entries"), text(out.head, ", one per head"));
  problem_shape p;
  for_each_operator(mixed, [&](auto const& op, index_t) {
    p = checked_problem(function, op, narrowed<std::remove_cvref_t<decltype(op)>>(in), out);
  });
  return p;
}

}  // namespace attune::detail
