// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the forbidden calls over ranks are written against.
#pragma once

#define OMPI_SKIP_MPICXX  // as CMake's target MPI::MPI_CXX does
#define MPICH_SKIP_MPICXX

#include <attune/mpi.hpp>

#include "operators.hpp"

inline auto over_ranks() { return on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu{}); }
