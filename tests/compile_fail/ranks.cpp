// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls over ranks.
// needs: mpi.h
#define OMPI_SKIP_MPICXX  // as CMake's target MPI::MPI_CXX does
#define MPICH_SKIP_MPICXX

#include <attune/mpi.hpp>

#include "operators.hpp"

inline auto over_ranks() { return on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu{}); }

// expect-error ranks_of_ranks: on_ranks\(\) takes the CPU executor
auto const exec = on_ranks(mpi::communicator(MPI_COMM_WORLD), over_ranks());

// expect-error ranks_of_16_bits: on_ranks\(\) computes with cpu<float> or cpu<double>
auto const exec = on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu<bfloat16>{});

// expect-error ranks_jvp: this executor \(Exec\) does not offer this call \(Call\)
int main() { jvp(over_ranks(), plain, {.q = {x, y}, .k = {x, y}, .v = {x, y}}); }

// expect-error ranks_candidate_decode: takes no candidate sets
auto const op = attention(kernel::dot_product{}, normalizer::top_k{2});
int main() { decode(over_ranks(), op, {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error ranks_ordered_decode: takes no ordered sums
int main() { decode(over_ranks(), attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error ranks_ordered_statistics: takes no ordered sums
auto op = attention(summed<later>{});
int main() { statistics(over_ranks(), op, {.q = x, .k = x, .v = x}, rows_of_rank<float, decltype(op)>{}); }

// expect-error ranks_fold_statistics: takes no folds
auto const op = fold(plain, {1.0, -0.5});
int main() {
  auto const rows = forward_and_save(over_ranks(), op, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(over_ranks(), op, {.q = x, .k = x, .v = x}, rows);
}

// expect-error ranks_collective_alone: is private within this context|calling a private constructor
void count(exec_mpi::collective& all, std::span<double> x) { all.sum(x); }
int main() {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  exec_mpi::collective all(ranks, "forward");
  count(all, {});
}

// expect-error ranks_collective_without_call: non-const reference|non-const lvalue reference
int main() { exec_mpi::agree_on_numbers(mpi::communicator(MPI_COMM_WORLD), {}); }

// expect-no-error ranks_collective
int main() {
  exec_mpi::together(over_ranks(), "forward", [](exec_mpi::collective& all) { exec_mpi::agree_on_numbers(all, {}); });
}

// expect-no-error ranks
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
