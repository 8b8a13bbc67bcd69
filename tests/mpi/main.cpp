// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// doctest's main for programs that run on several ranks of MPI. Rank 0 reports; the others print only what failed. The
// exit status is the same on all ranks.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>

#include <doctest/doctest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (level < MPI_THREAD_FUNNELED) {
    std::fprintf(stderr, "MPI does not offer MPI_THREAD_FUNNELED\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  doctest::Context context(argc, argv);
  context.setOption("minimal", rank != 0);
  context.setOption("no-breaks", true);
  context.setOption("no-colors", true);
  int const mine = context.run();
  if (mine != 0) std::fprintf(stderr, "the failures above are those of rank %d\n", rank);
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
