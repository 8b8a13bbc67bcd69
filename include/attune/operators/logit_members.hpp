// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto f = along_logit_members<dual<T, pairs + logit_member_count<Op>>>(op, row, pairs);
//   by_member[m] += da * f.logit(x, key).tangent[pairs + m];            for every key of the row
//   add_logit_parameters<T, N>(op, row_of_duals, by_member, gradient);    once a row
//
// The members (policies/bound_members.hpp) of what makes a logit: kernel, length scale and score gate, in this order.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/policies/bound_members.hpp>

namespace attune {

/// Whether kernel, length scale and score gate of an operator are scalars when they are bound to a row.
template <class Op>
inline constexpr bool has_logit_members =
    has_members<typename Op::kernel_policy> && has_members<typename Op::length_scale_policy> &&
    has_members<typename Op::gate_policy>;
/// How many scalars those are.
template <class Op>
  requires has_logit_members<Op>
inline constexpr int logit_member_count =
    member_count<typename Op::kernel_policy> + member_count<typename Op::length_scale_policy> +
    member_count<typename Op::gate_policy>;

/// An operator bound to a row, whose logit moves along its members: member m along direction first + m. Parameters
/// have no direction.
template <class D, class Op, class T>
  requires has_logit_members<Op>
ATTUNE_HD auto along_logit_members(Op const& op, row<T> const& r, int first) {
  auto const still = op.bind(r);
  auto moving = op.bind(lifted(r, lift<D>{r.numbers}));
  moving.kernel = along_members<D>(op.kernel, still.kernel, first);
  first += member_count<typename Op::kernel_policy>;
  moving.length_scale = along_members<D>(op.length_scale, still.length_scale, first);
  first += member_count<typename Op::length_scale_policy>;
  moving.gate = along_members<D>(op.gate, still.gate, first);
  return moving;
}

/// gradient[n] += what the logits of a row, with the gradients `by_member`, contribute to direction n of a row whose
/// parameters have tangents.
template <class T, int N, chain_rule Rule, class Op>
  requires has_logit_members<Op>
ATTUNE_HD void add_logit_parameters(Op const& op, row<dual<T, N, Rule>> const& moving, T const* by_member,
                                    T* gradient) {
  auto const f = op.bind(moving);
  add_by_parameters<typename Op::kernel_policy, T, N, Rule>(op.kernel, f.kernel, by_member, gradient);
  by_member += member_count<typename Op::kernel_policy>;
  add_by_parameters<typename Op::length_scale_policy, T, N, Rule>(op.length_scale, f.length_scale, by_member, gradient);
  by_member += member_count<typename Op::length_scale_policy>;
  add_by_parameters<typename Op::gate_policy, T, N, Rule>(op.gate, f.gate, by_member, gradient);
}

}  // namespace attune
