// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal calls over ranks.
// needs: mpi.h
#include "../ranks.hpp"

int main() {
  auto const exec = over_ranks();
  auto const saved = forward_and_save(exec, plain, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(exec, plain, {.q = x, .k = x, .v = x}, saved);
  decode(exec, plain, {.q = x, .k = x, .v = x}, {.out = y});
  gradient_outputs<std::remove_const_t<decltype(plain)>, float> to;
  to.of(field::q) = y;
  vjp(exec, plain, {.q = x, .k = x, .v = x}, saved, {.out = x}, to);
  auto const folded = fold(plain, {1.0, -0.5});
  forward(exec, folded, {.q = x, .k = x, .v = x}, {.out = y});
  forward(on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu<double>{}), plain, {.q = wide, .k = wide, .v = wide},
          {.out = wide});
}
