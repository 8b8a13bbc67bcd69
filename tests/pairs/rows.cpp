// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "rows.hpp"

namespace attune::pairs {

#define ATTUNE_PAIRS_ROW(number) \
  template <>                    \
  design_row row_number<number>();
#include "rows.inc"
#undef ATTUNE_PAIRS_ROW

std::vector<design_row> const& design() {
  static std::vector<design_row> const all{
#define ATTUNE_PAIRS_ROW(number) row_number<number>(),
#include "rows.inc"
#undef ATTUNE_PAIRS_ROW
  };
  return all;
}

}  // namespace attune::pairs
