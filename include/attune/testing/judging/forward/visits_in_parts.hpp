// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   add_visits_in_parts(suspicions)    "sum not rescaled when the maximum grows, tiles of 64 keys"
//
// Mistakes of kernels that visit the keys in tiles or splits: a sum keeps an old maximum, or parts are merged wrongly.
// And caps that the operator does not have.
#pragma once

#include <attune/testing/judging/forward/suspicion.hpp>

namespace attune::testing::detail {

template <class Op>
void add_visits_in_parts(suspicions<Op>& all) {
  using attune::detail::text;
  constexpr std::string_view rescale = "where e^(old maximum - new maximum) multiplies sum and out";
  if constexpr (Op::has_lse) {
    struct forgotten {
      stale what;
      char const* name;
    };
    for (index_t tile : {16, 32, 64, 128})
      for (auto const& [what, name] : {forgotten{stale::sum, "sum"}, forgotten{stale::out, "accumulator of out"},
                                       forgotten{stale::both, "sum and accumulator"}})
        all.add(text(name, " not rescaled when the maximum grows, tiles of ", tile, " keys"), rescale,
                row_change{.tile = tile, .not_rescaled = what});
    struct power {
      double by;
      char const* name;
    };
    for (index_t splits : {2, 4, 8})
      for (auto const& [by, name] :
           {power{0, "without their lse"}, power{0.6931471805599453, "by 2^lse of a natural lse"},
            power{1.4426950408889634, "by e^lse of an lse in base 2"}, power{2, "by their lse twice"}})
        all.add(text(splits, " splits of the keys merged ", name), look::merge,
                row_change{.splits = splits, .merge_power = by});
  }
  for (double cap : {10., 15., 20., 30., 50.})
    all.add(text("a cap of ", cap, " that the operator does not have"), look::operators, row_change{.cap = cap});
}

}  // namespace attune::testing::detail
