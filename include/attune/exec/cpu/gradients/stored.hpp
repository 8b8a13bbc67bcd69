// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward_and_save(cpu<bfloat16>{}, op, in, out, memory);   vjp(cpu<bfloat16>{}, op, in, memory, {.out = dO}, to);
//
// Gradients for 16-bit tensors: float inside, rounded once.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include <attune/core/storage.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>

namespace attune {

namespace exec_cpu {

/// Dense memory for floats in place of 16-bit tensors.
class float_copies {
 public:
  /// A view of a copy.
  template <storage_only S>
  tensor<float const> of(tensor<S const> const& x) {
    if (x.absent()) return {};
    shape const& e = x.extents();
    float* to = room(e).data();
    tensor<float const> const copy(to, e);
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i, to += e.feature) {
          S const* const row = x.row(b, h, i);
          if (x.steps().feature == 1)
            attune::detail::widen(row, to, e.feature);
          else
            for (index_t d = 0; d < e.feature; ++d) to[d] = float(row[d * x.steps().feature]);
        }
    return copy;
  }
  /// Copies of all inputs. Axes that the caller shares by a stride of 0 are copied as if they were not.
  template <class Op, storage_only S>
  inputs<Op, tensor<float const>> of(inputs<Op, tensor<S const>> const& in) {
    return make_inputs<Op, tensor<float const>>([&]<field F>() { return of(member<F>(in)); }, in.offset, in.offsets);
  }
  /// Memory for a result that is rounded to `x` later; absent if x is.
  template <storage_only S>
  tensor<float> blank(tensor<S> const& x) {
    if (x.absent()) return {};
    tensor<float> const copy(room(x.extents()).data(), x.extents());
    return copy;
  }
  /// Rounds a result to the memory of the caller.
  template <storage_only S>
  static void round(tensor<float> const& from, tensor<S> const& to) {
    shape const& e = to.extents();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) {
          float const* const row = from.row(b, h, i);
          S* const narrow = to.row(b, h, i);
          if (to.steps().feature == 1)
            attune::detail::narrow(row, narrow, e.feature);
          else
            for (index_t d = 0; d < e.feature; ++d) narrow[d * to.steps().feature] = S(row[d]);
        }
  }

 private:
  std::vector<float>& room(shape const& e) { return memory_.emplace_back(std::size_t(e.size())); }
  std::deque<std::vector<float>> memory_;
};

/// Runs `run(inputs, cotangents, outputs)` on floats and rounds the gradients to `to`.
template <class Op, storage_only S, class Run>
void vjp_of_copies(Op const&, inputs<Op, tensor<S const>> const& in, cotangents<Op, tensor<S const>> const& d,
                   gradient_outputs<Op, S> const& to, Run const& run) {
  float_copies copies;
  cotangents<Op, tensor<float const>> by;
  by.out = copies.of(d.out);
  if constexpr (Op::has_lse) by.lse = d.lse;
  if constexpr (Op::has_ground_weight) by.ground_weight = d.ground_weight;
  gradient_outputs<Op, float> wide;
  for (std::size_t f = 0; f < to.fields.size(); ++f) wide.fields[f] = copies.blank(to.fields[f]);
  wide.parameters = to.parameters;
  wide.tables = to.tables;
  run(copies.of(in), by, wide);
  for (std::size_t f = 0; f < to.fields.size(); ++f)
    if (!to.fields[f].absent()) float_copies::round(wide.fields[f], to.fields[f]);
}

/// Runs `run(inputs, outputs)` on floats and rounds `out`.
template <class Op, storage_only S, class Run>
void save_of_copies(Op const& op, inputs<Op, tensor<S const>> const& in, outputs<Op, S> const& out, Run const& run) {
  attune::detail::check_outputs("forward_and_save", out,
                                attune::detail::checked_problem("forward_and_save", op, in, out.out.extents()));
  float_copies copies;
  outputs<Op, float> wide{.out = copies.blank(out.out)};
  if constexpr (Op::has_lse) wide.lse = out.lse;
  if constexpr (Op::has_ground_weight) wide.ground_weight = out.ground_weight;
  if constexpr (Op::has_threshold) wide.threshold = out.threshold;
  run(copies.of(in), wide);
  float_copies::round(wide.out, out.out);
}

}  // namespace exec_cpu

/// forward() of 16-bit tensors, which also writes what vjp() needs to `memory`: saved_size(op, in) floats. Every input
/// may have 16 bits, also one per pair. Memory: copies of all inputs as floats while it runs.
template <storage_only S, class Arch, class Op>
void forward_and_save(cpu<S, Arch> exec, Op const& op, inputs<Op, tensor<S const>> const& in, outputs<Op, S> const& out,
                      std::span<float> memory) {
  exec_cpu::save_of_copies(op, in, out, [&](auto const& wide, auto const& results) {
    forward_and_save(exec_cpu::of_floats(exec), op, wide, results, memory);
  });
}

/// Gradients of 16-bit tensors, computed in float from the widened inputs and rounded once. Gradients by parameters and
/// tables, and cotangents of outputs with one number per row, are floats. `saved`: the numbers from
/// forward_and_save().
/// Memory: copies of all inputs and requested gradients as floats while it runs.
template <storage_only S, class Arch, class Op>
void vjp(cpu<S, Arch> exec, Op const& op, inputs<Op, tensor<S const>> const& in, std::span<float const> saved,
         cotangents<Op, tensor<S const>> const& d, gradient_outputs<Op, S> const& to) {
  exec_cpu::vjp_of_copies(op, in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
    vjp(exec_cpu::of_floats(exec), op, wide, saved, by, results);
  });
}
/// Overload that runs the forward pass itself.
template <storage_only S, class Arch, class Op>
void vjp(cpu<S, Arch> exec, Op const& op, inputs<Op, tensor<S const>> const& in,
         cotangents<Op, tensor<S const>> const& d, gradient_outputs<Op, S> const& to) {
  exec_cpu::vjp_of_copies(op, in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
    vjp(exec_cpu::of_floats(exec), op, wide, by, results);
  });
}

}  // namespace attune
