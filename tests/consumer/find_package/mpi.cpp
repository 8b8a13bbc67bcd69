// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component mpi.
#include <attune/mpi.hpp>

int ranks_of_world() { return attune::mpi::communicator(MPI_COMM_WORLD).size(); }
