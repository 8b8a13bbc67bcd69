// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #include <attune/certify/enclosure.hpp>  certify::enclose(op, inputs),
//       certify::enclose_vjp(op, inputs, {.out = dO})
//
// Intervals that provably contain the exact result, and correctly rounded results. Needs what attune::reference needs,
// and MPFI, MPFR and GMP: link attune::enclosure.
#pragma once

#include <attune/certify/enclosure/enclose.hpp>
