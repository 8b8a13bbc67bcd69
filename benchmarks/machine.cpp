// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The limits of the machine as C symbols, so that a script can measure them in the same rounds as everything else.
#include "machine.hpp"

extern "C" {

/// GFLOP/s of fused multiply-adds in registers, right now.
double peak_fma(int threads) { return bench::fma_rate<float>(threads) / 1e9; }
double peak_fma_f64(int threads) { return bench::fma_rate<double>(threads) / 1e9; }

/// GB/s of reading memory that no cache holds, right now.
double peak_bw(int threads) { return bench::read_rate(threads) / 1e9; }

}  // extern "C"
