// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// run_cpu() and vjp_cpu() of tests/instances/instance.hpp over ranks: where ATTUNE_INSTANCES_MPI is defined, the backend
// cpu_double of every operator is on_ranks(ranks, cpu<double>). One type is enough: its bounds are the narrow ones, and
// the messages of both types are the same.
#pragma once

#include <attune/mpi.hpp>

#include "../../instances/views.hpp"
#include "divided.hpp"

namespace attune::instances::detail {

inline constexpr bool splits_keys = false;  // ranks split them

template <class T>
auto on_all_ranks(options const& o) {
  return on_ranks(mpi_tests::ranks(), cpu<T>(o.threads), mpi_tests::division());
}

template <class T, class Op>
result run_cpu(Op const& op, problem const& p, options const& o) {
  problem const mine = mpi_tests::part_of(p);
  loaded<T> const from(mine, o.odd_strides);
  auto const in = view_inputs<Op, tensor<T const>>(from, mine);
  results<Op, T> to(attune::detail::output_shape(in), o.odd_strides);
  forward(on_all_ranks<T>(o), op, in, to.views());
  result r = mpi_tests::gathered(to.dense());
  r.average = average_of<T>(op);
  return r;
}

template <class T, class Op>
gradients vjp_cpu(Op const& op, problem const& p, cotangent const& by, slot_names const& names, options const& o) {
  problem const mine = mpi_tests::part_of(p);
  loaded<T> const from(mine, o.odd_strides);
  loaded_cotangents<T> const d(mpi_tests::part_of(by), o.odd_strides);
  auto const g = vjp(on_all_ranks<T>(o), op, view_inputs<Op, tensor<T const>>(from, mine),
                     d.template views<Op, tensor<T const>>());
  return mpi_tests::gathered(named_gradients(g, mine, names), p);
}

}  // namespace attune::instances::detail
