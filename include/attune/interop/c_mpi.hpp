// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(mpi, run_on_ranks<make_mine>)
//
// Calls over the ranks of an MPI communicator for other languages, as a separate library: c_abi.h, attune_ranks. Needs
// MPI: compile with the options of MPI's compiler, and link its library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <attune/exec/mpi/agree.hpp>
#include <attune/exec/mpi/calls.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>
#include <attune/interop/c_results.hpp>

namespace attune::interop {

/// Throws if a communicator comes from another MPI than this library's. `theirs`: MPI_Get_library_version() there.
inline void require_same_mpi(std::string_view theirs) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int size = 0;
  MPI_Get_library_version(text, &size);
  std::string_view const ours = text;
  if (ours != theirs)
    throw error("on_ranks", "the communicator", attune::detail::text("the MPI \"", theirs, "\""),
                attune::detail::text("\"", ours, "\", with which this operator was compiled"));
}
/// Which rank holds which positions; nothing if each rank passes its own part in the order of the ranks.
inline std::optional<sharding> sharding_of(attune_sharding const& s) {
  if (s.counts == nullptr) return std::nullopt;
  std::vector<std::vector<key_interval>> shards(std::size_t(s.ranks));
  std::int64_t const* at = s.ends;
  for (std::size_t r = 0; r < shards.size(); ++r)
    for (std::int64_t n = 0; n < s.counts[r]; ++n, at += 2) shards[r].push_back({index_t(at[0]), index_t(at[1])});
  return sharding::of(index_t(s.positions), shards);
}
/// The plan of a call.
inline rank_plan plan_of(attune_ranks const& m) {
  constexpr rank_plan plans[] = {rank_plan::chosen, rank_plan::ring, rank_plan::states};
  if (m.plan < 0 || m.plan > 2)
    throw error("on_ranks", "the plan", attune::detail::text("the value ", m.plan), "0 (chosen), 1 (ring), 2 (states)");
  return plans[m.plan];
}

/// Saved rows of a rank, for calls of one element type.
struct kept_rows {
  int type;                          ///< attune_type
  std::shared_ptr<void const> rows;  ///< rows_of_rank
};

/// The name of a step's function, for errors.
inline char const* function_of(attune_ranks const& m) {
  return m.step == attune_ranks_vjp ? "vjp" : m.step == attune_ranks_save ? "forward_and_save" : "forward";
}

/// One step with a call. Every rank throws the same error.
template <class Make>
void call_on_ranks(attune_call const& c, attune_ranks const& m) {
  using bound = bound_call<Make>;
  using op_type = typename bound::op_type;
  auto const& ranks = *static_cast<mpi::communicator const*>(*m.ranks);
  char const* const function = function_of(m);
  std::optional<bound> call;
  mpi::reach_all(ranks, function, [&] { call.emplace(c); });
  with_type(c, [&]<class T>(T) {
    if constexpr (storage_only<T>) {
      mpi::reach_all(ranks, function,
                     [&] { throw error(function, "the element type", name_of_type(c.type), "float32 or float64"); });
    } else {
      auto const exec = mpi::reach_all(ranks, function, [&] {
        return on_ranks(ranks, cpu<T>(c.threads),
                        {.queries = sharding_of(m.queries), .keys = sharding_of(m.keys), .plan = plan_of(m)});
      });
      auto const in = mpi::reach_all(ranks, function, [&] { return call->template in<T>(); });
      using rows = decltype(forward_and_save(exec, call->op, in, std::declval<outputs<op_type, T> const&>()));
      if (m.step == attune_ranks_vjp) {
        auto const& kept = *static_cast<kept_rows const*>(*m.rows);
        auto const d = mpi::reach_all(ranks, function, [&] {
          if (kept.type != c.type)
            throw error(function, "saved", attune::detail::text("rows of ", name_of_type(kept.type)),
                        name_of_type(c.type));
          auto const read = [](std::string_view name, attune_tensor const& x) { return view<T const>(name, x); };
          return call->template cotangents_by<tensor<T const>>(m.gradients->cotangents, read, read);
        });
        auto const g = attune::vjp(exec, call->op, in, *static_cast<rows const*>(kept.rows.get()), d);
        mpi::reach_all(ranks, function, [&] { write_gradients<op_type, T>(function, *m.gradients, g); });
        return;
      }
      auto const out = mpi::reach_all(ranks, function, [&] { return call->template out<T>(); });
      if (m.step == attune_ranks_save)
        *m.rows = new kept_rows{c.type, std::make_shared<rows const>(forward_and_save(exec, call->op, in, out))};
      else
        attune::forward(exec, call->op, in, out);
    }
  });
}

/// attune_companion::run of calls over ranks. More: attune_ranks.
template <class Make>
int run_on_ranks(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    auto const& m = *static_cast<attune_ranks const*>(more);
    switch (m.step) {
      case attune_ranks_match:
        return require_same_mpi(m.library);
      case attune_ranks_join:
        *m.ranks = new mpi::communicator(MPI_Comm_f2c(m.communicator));
        return;
      case attune_ranks_leave:
        delete static_cast<mpi::communicator*>(*m.ranks);
        return;
      case attune_ranks_forget:
        delete static_cast<kept_rows*>(*m.rows);
        return;
      case attune_ranks_forward:
      case attune_ranks_save:
      case attune_ranks_vjp:
        return call_on_ranks<Make>(*c, m);
      default:
        throw error("on_ranks", "the step", attune::detail::text("the value ", m.step), "one of attune_ranks_step");
    }
  });
}

}  // namespace attune::interop
