// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   float_copies copies;   wide = copies.of(in);   ...   float_copies::round(result, out)
//
// The one way to widen 16 and 8 bits to floats, and to round floats to 16 bits, outside of tiles.
#pragma once

#include <deque>
#include <vector>

#include <attune/core/storage.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::detail {

/// Dense memory for floats in place of tensors of fewer bits.
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
  /// The outputs of a call, with memory for `out`. The other outputs are floats already.
  template <class Op, storage_only S>
  outputs<Op, float> blank(outputs<Op, S> const& out) {
    outputs<Op, float> wide{.out = blank(out.out)};
    if constexpr (Op::has_lse) wide.lse = out.lse;
    if constexpr (Op::has_ground_weight) wide.ground_weight = out.ground_weight;
    if constexpr (Op::has_threshold) wide.threshold = out.threshold;
    return wide;
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

/// Calls run(outputs) with float memory for `out` and rounds it once. Outputs of floats are passed as they are.
template <class Op, class S, class Run>
void rounded_once(outputs<Op, S> const& out, Run const& run) {
  if constexpr (storage_only<S>) {
    float_copies copies;
    outputs<Op, float> const wide = copies.blank(out);
    run(wide);
    float_copies::round(wide.out, out.out);
  } else {
    run(out);
  }
}

/// Runs `run(inputs, cotangents, outputs)` on floats and rounds the gradients to `to`.
template <class Op, storage_only S, class Run>
void vjp_of_copies(inputs<Op, tensor<S const>> const& in, cotangents<Op, tensor<S const>> const& d,
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

}  // namespace attune::detail
