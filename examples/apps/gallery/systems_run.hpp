// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An attention system of examples/apps/shared on rows of a head, by the reference executor, as statistics of its rows.
#pragma once

#include <attune/exec/reference/statistics.hpp>

#include "shared/systems.hpp"

namespace gallery {

using attune::index_t;

/// Statistics of rows `r` of a head whose text ends after `keys` positions.
template <class System, class Mask>
attune::row_statistics<double> statistics_of(System const& system, Mask mask, apps::layer const& l,
                                             apps::row_range const& r, index_t keys) {
  auto const op = system.op(l, [&](apps::setting const& s) { return s.of(r); }, mask);
  using op_type = std::remove_const_t<decltype(op)>;
  auto const v0 = apps::ground_values<op_type>(system, l, r.head, 1);
  auto const in = apps::inputs_of<attune::any_tensor>(
      op, l, [&](std::vector<float> const& x) { return l.of(x, r); },
      [&](std::vector<float> const& x) { return l.prefix(x, r.head, keys); }, v0);
  return attune::statistics(attune::forward(attune::reference<double>{}, op, in));
}

}  // namespace gallery
