// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto exec = on_ranks(ranks, cpu{}, {.queries = sharding::zigzag(L, ranks.size()), .keys = ...});
//   forward(exec, op, {.q = my_Q, .k = my_K, .v = my_V}, {.out = my_O});
//
// An executor around another: one call whose queries and keys lie on several ranks.
#pragma once

#include <optional>
#include <utility>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/mpi/communicator.hpp>
#include <attune/exec/mpi/sharding.hpp>

namespace attune {

/// The plans of a call: the tensors that travel between ranks.
enum class rank_plan {
  chosen,  ///< the plan of the two that sends fewer bytes; depends on extents, mask and shardings alone
  ring,    ///< blocks of keys and values visit the ranks whose queries see them
  states,  ///< queries visit the ranks whose keys they see, and the states of their rows travel back
};

/// Which rank holds which positions.
struct shards {
  /// Of the queries. If it is not given: in the order of the ranks, as many as each rank passes.
  std::optional<sharding> queries = std::nullopt;
  /// Of the keys. If it is not given: in the order of the ranks, as many as each rank passes.
  std::optional<sharding> keys = std::nullopt;
  rank_plan plan = rank_plan::chosen;  ///< what travels
};

/// Runs calls on all ranks of a communicator. All ranks make the same calls in the same order; each passes its part of
/// every tensor. `on_ranks` makes it.
template <class Exec>
struct across_ranks {
  static_assert(detail::is_cpu<Exec>, "attune: on_ranks() takes the CPU executor: on_ranks(ranks, cpu{})");
  static_assert(!storage_only<typename Exec::value_type>,
                "attune: on_ranks() computes with cpu<float> or cpu<double>: widen 16-bit tensors before the call");
  using value_type = typename Exec::value_type;  ///< element type of the tensors
  using view = typename Exec::view;              ///< read-only view of an input
  using instead = Exec;                          ///< what offers more: gather the tensors
  /// The calls.
  static constexpr call_table offers = [] {
    call_table x = Exec::offers;
    x.jvp = x.accumulate = {};
    x.statistics = without(x.statistics, &offer::ordered_sums);
    return x;
  }();

  mpi::communicator ranks;  ///< the ranks
  Exec each;                ///< computes on each rank
  shards where;             ///< which rank holds what
};

/// An executor for the ranks of `ranks`. `each` computes on each rank: cpu<float> or cpu<double>.
template <class Exec>
across_ranks<Exec> on_ranks(mpi::communicator const& ranks, Exec each, shards where = {}) {
  return {ranks, std::move(each), std::move(where)};
}

}  // namespace attune
