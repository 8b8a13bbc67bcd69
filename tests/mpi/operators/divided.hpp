// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A problem of the registry on ranks: every rank knows the whole problem, passes its part to attune, and gets the whole
// result back. Nothing here depends on the operator.
#pragma once

#include <string>

#include <attune/exec/mpi/executor.hpp>

#include "../../instances/registry.hpp"
#include "../../support/random.hpp"

namespace attune::mpi_tests {

using instances::array;
using instances::cotangent;
using instances::gradients;
using instances::problem;
using instances::result;

/// All ranks of the program.
mpi::communicator const& ranks();

/// How the calls of the registry divide their problems. Tests set it, on all ranks, before a call.
shards& division();

/// Random shards: contiguous, in zigzag order, or any intervals on any ranks, some of them empty. Never one query on
/// each rank: an input with one position would then be the row of that query.
sharding random_sharding(index_t positions, int count, test::rng& random);
/// Which positions each rank has, for messages.
std::string to_string(shards const& where);

/// The tensors of this rank. Parameters, tables and the mask belong to the whole problem.
problem part_of(problem const& whole);
cotangent part_of(cotangent const& whole);
/// The whole result from the rows of all ranks, on every rank.
result gathered(result const& part);
/// The gradients by whole tensors. Parameters and tables: as they are.
gradients gathered(gradients const& part, problem const& of);

}  // namespace attune::mpi_tests
