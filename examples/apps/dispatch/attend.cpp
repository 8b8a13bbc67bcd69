// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled once per instruction set, with ATTEND naming the function. The instruction set is part of every attune type
// that touches SIMD, so those never mix; but inline functions of the standard library, compiled here with AVX-512,
// would be merged with those of the rest of the program by the linker. Hence a shared library each, which exports this
// function and keeps all else.
#include "attend.hpp"

#include <attune/attune.hpp>

extern "C" void ATTEND(float const* q, float const* k, float const* v, float* out, std::ptrdiff_t heads,
                       std::ptrdiff_t positions, std::ptrdiff_t width) {
  using namespace attune;
  shape const s{1, heads, positions, width};
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  forward(cpu{}, op, {.q = {q, s}, .k = {k, s}, .v = {v, s}}, {.out = {out, s}});
}
