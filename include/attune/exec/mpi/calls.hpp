// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(on_ranks(ranks, cpu{}), op, {.q = my_Q, .k = my_K, .v = my_V}, {.out = my_O})
//   rows = forward_and_save(exec, op, in, {.out = O});   g = vjp(exec, op, in, rows, {.out = dO})
//   decode(exec, op, {.q = Q, .k = my_K, .v = my_V}, {.out = O})
//
// The calls of on_ranks(), of operators, folds and mixtures. Their checks are collective, so they stand apart from
// attune/calls/.
#pragma once

#include <attune/exec/direction.hpp>
#include <attune/exec/moving_tensor.hpp>
#include <attune/exec/mpi/composite.hpp>
#include <attune/exec/mpi/statistics.hpp>

namespace attune {

/// forward() over the ranks of a communicator. Each rank passes its queries, keys and values and gets its rows of the
/// output. Mask, K, positions, offsets, parameters and tables belong to the whole problem.
/// Shapes:      as for cpu{}, with the positions of this rank in place of Lq and Lk. Inputs with a number for each pair
///              have the rank's rows and all Lk columns. Where the whole input may have position extent 1, it has it
///              on every rank: all queries share the row. If every rank has one query, it is the row of that query.
/// Errors:      attune::error, with the same text on every rank. Everything is compared before a tensor is sent. An
///              exception in a user's policy on one rank reaches all ranks when the call ends.
/// Complexity:  the products of forward() divided by the ranks; per step of the plan one block in each direction.
/// Memory:      two blocks of another rank, and a state for each own row.
/// Determinism: bitwise the same on every run and for any number of threads; the same as accumulate() and merge() of
///              the same shards in the order of exec/mpi/plans.hpp.
template <class T, class Arch, class Op>
void forward(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
             outputs<Op, T> const& out) {
  exec_mpi::together(exec, "forward", [&](auto& all) {
    if constexpr (Fold<Op>)
      exec_mpi::forward_of_fold(all, op, in, out);
    else if constexpr (detail::is_mixture<Op>)
      exec_mpi::forward_of_mixture(all, op, in, out);
    else
      exec_mpi::forward_of_heads(all, op, in, out, detail::heads_served{}, exec_mpi::no_more_facts);
  });
}

/// forward() over ranks, which also returns what vjp() needs of this rank's rows.
template <class T, class Arch, class Op>
rows_of_rank<T, Op> forward_and_save(across_ranks<cpu<T, Arch>> const& exec, Op const& op,
                                     inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  if constexpr (!detail::offered<call_kind::forward_and_save, across_ranks<cpu<T, Arch>>, Op>())
    return {};
  else
    return exec_mpi::together(exec, "forward_and_save", [&](auto& all) {
      if constexpr (Fold<Op>)
        return exec_mpi::save_of_fold(all, op, in, out);
      else
        return exec_mpi::rows_of_heads(all, op, in, out.out.extents(), &out, detail::heads_served{},
                                       exec_mpi::no_more_facts);
    });
}

/// vjp() over the ranks of a communicator. `saved` is the result of forward_and_save() for the same operator, inputs
/// and shardings. Each rank gets the gradients by its part of every tensor. Parameters, tables and inputs that all
/// queries share are the same on all ranks. Every rank gets their gradients, summed over all ranks.
/// Of several keys with the same extreme logit, the first in the order of the ring gets the gradient through it: the
/// own keys of a rank come first, then the keys of the rank before it. Candidate sets take two rounds of the ring,
/// ordered sums three.
/// Errors:      as for forward() over ranks.
/// Memory:      two blocks of keys of another rank, three of gradients by keys.
/// Determinism: bitwise the same on every run and for any number of threads.
template <class T, class Arch, class Op>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                       rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d) {
  return exec_mpi::together(exec, "vjp", [&](auto& all) {
    if constexpr (Fold<Op>)
      return exec_mpi::gradients_of_fold(all, op, in, &saved, d);
    else
      return exec_mpi::gradients_of_heads(all, op, in, saved, d, detail::heads_served{}, exec_mpi::no_more_facts);
  });
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, class Op>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  return exec_mpi::together(exec, "vjp", [&](auto& all) {
    if constexpr (Fold<Op>) {
      return exec_mpi::gradients_of_fold(all, op, in, static_cast<rows_of_rank<T, Op> const*>(nullptr), d);
    } else if constexpr (detail::is_mixture<Op>) {
      return exec_mpi::gradients_of_mixture(all, op, in, d);
    } else {
      detail::heads_served const every_head;
      auto const saved = exec_mpi::rows_for_vjp(all, op, in, d, every_head, exec_mpi::no_more_facts);
      return exec_mpi::gradients_of_heads(all, op, in, saved, d, every_head, exec_mpi::no_more_facts);
    }
  });
}

/// The same gradients, of the inputs, parameters and tables that `to` names, in the caller's memory. All ranks name the
/// same ones; a rank without positions passes a tensor without elements. Gradients by keys that `to` does not name are
/// neither computed nor sent. Old contents do not matter. Throws also for memory that does not fit, as for cpu{}.
template <class T, class Arch, class Op>
void vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
         rows_of_rank<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d,
         gradient_outputs<Op, T> const& to) {
  exec_mpi::together(exec, "vjp", [&](auto& all) {
    if constexpr (Fold<Op>)
      exec_mpi::write_fold(all, op, in, &saved, d, to);
    else
      exec_mpi::write_gradients(all, op, in, saved, d, detail::heads_served{}, exec_mpi::facts_of(to, op),
                                [&] { return detail::views_of(to, op, in); });
  });
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, class Op>
void vjp(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
         cotangents<Op, tensor<T const>> const& d, gradient_outputs<Op, T> const& to) {
  exec_mpi::together(exec, "vjp", [&](auto& all) {
    if constexpr (Fold<Op>) {
      exec_mpi::write_fold(all, op, in, static_cast<rows_of_rank<T, Op> const*>(nullptr), d, to);
    } else {
      auto const facts = exec_mpi::facts_of(to, op);
      auto const saved = exec_mpi::rows_for_vjp(all, op, in, d, detail::heads_served{}, facts);
      exec_mpi::write_gradients(all, op, in, saved, d, detail::heads_served{}, facts,
                                [&] { return detail::views_of(to, op, in); });
    }
  });
}

/// decode() over the ranks of a communicator. Every rank passes the same inputs without a row per key, and its own part
/// of the others. The sharding of the queries must not be given.
/// Memory:      the states of all rows, once for each rank on a rank that answers.
/// Errors:      as for forward() over ranks.
/// Determinism: bitwise the same on every run, for any number of threads and on every rank that answers.
template <class T, class Arch, class Op>
void decode(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
            outputs<Op, T> const& out, answer_on answer = answer_on::every_rank()) {
  if constexpr (detail::offered<call_kind::decode, across_ranks<cpu<T, Arch>>, Op>()) {
    exec_mpi::together(exec, "decode", [&](auto& all) {
      if constexpr (Fold<Op>)
        exec_mpi::decode_fold(all, op, in, out.out, answer, 0, [&]<class Part>(Part const& part, auto const& to) {
          exec_mpi::decode_operator(all, part, detail::narrowed<Part>(in), to, answer);
        });
      else
        exec_mpi::decode_operator(all, op, in, out, answer);
    });
  }
}

/// decode() over ranks from a cache in pages, as decode(cpu{}) describes it. `pages` lists the pages of this rank's
/// keys, which must be one interval of positions.
template <class T, class Arch, class Op>
void decode(across_ranks<cpu<T, Arch>> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
            page_table const& pages, outputs<Op, T> const& out, answer_on answer = answer_on::every_rank()) {
  if constexpr (detail::offered<call_kind::paged_decode, across_ranks<cpu<T, Arch>>, Op>()) {
    exec_mpi::together(exec, "decode", [&](auto& all) {
      if constexpr (Fold<Op>) {
        inputs<Op, tensor<T const>> one_piece = in;  // clang 14 does not compile an optional of inputs
        all.agreed([&] { one_piece = detail::in_one_piece(in, pages); });
        exec_mpi::decode_fold(all, op, one_piece, out.out, answer, in.v.extents().position,
                              [&]<class Part>(Part const& part, auto const& to) {
                                exec_mpi::decode_operator(all, part, detail::narrowed<Part>(in), pages, to, answer);
                              });
      } else {
        exec_mpi::decode_operator(all, op, in, pages, out, answer);
      }
    });
  }
}

/// statistics() over the ranks of a communicator. Each rank gets the statistics of its rows over all keys. If columns
/// are requested, it gets the columns of its keys over all queries. Indices of rows and keys are local. `saved` is the
/// result of forward_and_save() for the same operator, inputs and shardings.
/// Errors:      as for forward() over ranks.
/// Determinism: bitwise the same on every run and for any number of threads.
template <class T, class Arch, class Op>
row_statistics<T> statistics(across_ranks<cpu<T, Arch>> const& exec, Op const& op,
                             inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const& saved,
                             statistics_request const& request = {}) {
  if constexpr (detail::offered<call_kind::statistics, across_ranks<cpu<T, Arch>>, Op>())
    return exec_mpi::together(exec, "statistics",
                              [&](auto& all) { return exec_mpi::statistics_of_rank(all, op, in, saved, request); });
  else
    return {};
}

/// Does not compile: there is no jvp() over ranks.
template <class Exec, class Op>
void jvp(across_ranks<Exec> const&, Op const&, inputs<Op, moving_tensor<typename Exec::value_type>> const&,
         policy_direction const& = {}) {
  static_cast<void>(detail::offered<call_kind::jvp, across_ranks<Exec>, Op>());
}

}  // namespace attune
