// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #include <attune/testing/enclosure.hpp>  testing::enclose(op, inputs),
//       testing::enclose_vjp(op, inputs, {.out = dO})
//
// Intervals that provably contain the exact result, and correctly rounded results. Needs what attune::reference needs,
// and MPFI, MPFR and GMP: link attune::enclosure.
#pragma once

#include <attune/testing/enclosure/enclose.hpp>
