// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal form of each forbidden call beside this folder.
#include "../operators.hpp"

int main() {
  forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y});
  forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)});
  forward(cpu{}, gated, {.q = x, .k = x, .v = x, .gate_q = x, .gate_k = x}, {.out = y});
  forward(cpu{}, with_ground, {.q = x, .k = x, .v = x, .v0 = x}, {.out = y, .ground_weight = y});
  forward(cpu{}, scored, {.v = x, .scores = x}, {.out = y});
  forward(cpu{}, undivided, {.q = x, .k = x, .v = x}, {.out = y});
  forward(cpu<double>{}, plain, {.q = wide, .k = wide, .v = wide}, {.out = wide});
  auto const folded = fold(plain, {1.0, -0.5});
  forward(cpu{}, folded, {.q = x, .k = x, .v = x}, {.out = y});
  finish(cpu{}, folded, {.q = x, .k = x, .v = x}, accumulate(cpu{}, folded, {.q = x, .k = x, .v = x}, {0, 1}),
         {.out = y});
  auto const saved = forward_and_save(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(cpu{}, plain, {.q = x, .k = x, .v = x}, saved);
  (void)fold({1.0, -0.5}, plain, gated);
  (void)attention(kernel::dot_product{} + kernel::alibi{1});
  (void)attention(kernel::dot_product{} | kernel::softcap{30});
  (void)attention(kernel::dot_product{}, mask::causal{} & mask::window{3});
}
