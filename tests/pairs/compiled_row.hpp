// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_PAIRS_COMPILE(3)      defines row_number<3>(): row 3 of the design, with its calls
#pragma once

#include "design.hpp"
#include "row.hpp"

namespace attune::pairs::choice {

#define ATTUNE_PAIRS_TYPE(number, on, ...) using row_##number = row_of<executor::on, __VA_ARGS__>;
ATTUNE_PAIRS_DESIGN(ATTUNE_PAIRS_TYPE)
#undef ATTUNE_PAIRS_TYPE

}  // namespace attune::pairs::choice

#define ATTUNE_PAIRS_COMPILE(number)                \
  namespace attune::pairs {                         \
  template <>                                       \
  design_row row_number<number>() {                 \
    return choice::row_##number::described(number); \
  }                                                 \
  }
