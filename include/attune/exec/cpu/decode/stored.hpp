// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu<bfloat16>{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// 16-bit tensors for the float rows: half the memory to read; keys and values become floats in registers.
#pragma once

#include <array>
#include <vector>

#include <attune/exec/cpu/decode/decode.hpp>

namespace attune {

namespace exec_cpu {

/// The inputs without a row per key, as floats, and the extents of the others.
template <class Op, class View>
class widened_resident {
 public:
  explicit widened_resident(inputs<Op, View> const& in)
      : in_(make_inputs<Op, tensor<float const>>(
            [&]<field F>() {
              View const& x = member<F>(in);
              if constexpr (side_of(F) == input_side::key)
                return unread(x);
              else
                return whole(x, memory_[static_cast<std::size_t>(F)]);
            },
            in.offset, in.offsets)) {}
  inputs<Op, tensor<float const>> const& operator()() const { return in_; }

 private:
  static tensor<float const> whole(View const& x, std::vector<float>& to) {
    shape const e = x.extents();
    to.resize(std::size_t(e.size()) + 1);
    float* row = to.data();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h) {
        widened(row, x, b, h, h, 0, e.position);
        row += e.position * e.feature;
      }
    return {to.data(), e};
  }

  std::array<std::vector<float>, field_count> memory_;
  inputs<Op, tensor<float const>> in_;
};

/// Runs a decode into floats, then rounds `out` once.
template <class Op, class S, class Run>
void narrowed(outputs<Op, S> const& out, Run const& run) {
  shape const e = out.out.extents();
  std::vector<float> rows(std::size_t(e.size()));
  outputs<Op, float> wide{.out = tensor<float>(rows, e)};
  if constexpr (Op::has_lse) wide.lse = out.lse;
  if constexpr (Op::has_ground_weight) wide.ground_weight = out.ground_weight;
  run(wide);
  index_t const step = out.out.steps().feature;
  float const* row = rows.data();
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i, row += e.feature) {
        S* const to = out.out.row(b, h, i);
        if (step == 1)
          attune::detail::narrow(row, to, e.feature);
        else
          for (index_t d = 0; d < e.feature; ++d) to[d * step] = S(row[d]);
      }
}

template <class Op>
constexpr void require_no_pairs() {
  static_assert(!Op::uses(field::scores) && !Op::uses(field::gates) && !Op::uses(field::bias),
                "attune: scores, gates and biases given for each pair are not read from 16 or 8 bits: use cpu<float>");
}

/// Decodes 16-bit tensors into float outputs.
template <class Products = float_products, class S, class Arch, class Op, class Source>
void decode_widened(cpu<S, Arch> const& exec, Op const& op, Source const& keys, problem_shape const& p,
                    outputs<Op, float> const& out) {
  exec_cpu::require_no_pairs<Op>();
  widened_resident<Op, tensor<S const>> const resident(keys.resident());
  stored_keys<Op, S, Source> const stored(keys, resident(), p, decode_tiling<float, Arch>::block);
  decode<Products>(of_floats(exec), op, stored, p, out);
}
template <class Products = float_products, class S, class Arch, class Op, class Source>
void decode_stored(cpu<S, Arch> const& exec, Op const& op, Source const& keys, problem_shape const& p,
                   outputs<Op, S> const& out) {
  exec_cpu::narrowed(
      out, [&](outputs<Op, float> const& wide) { exec_cpu::decode_widened<Products>(exec, op, keys, p, wide); });
}

}  // namespace exec_cpu

/// The same for 16-bit tensors. The results are bitwise the same as from decode(cpu<float>{}, ...) for the widened
/// inputs, with `out` rounded once; the other outputs are floats. Scores, gates and biases given per pair need
/// cpu<float>.
template <storage_only S, class Arch, class Op>
void decode(cpu<S, Arch> exec, Op const& op, inputs<Op, tensor<S const>> const& in, outputs<Op, S> const& out) {
  exec_cpu::require_decodable<Op>();
  problem_shape const p = detail::checked_problem("decode", op, in, out.out.extents());
  detail::check_outputs("decode", out, p);
  exec_cpu::decode_stored(exec, op, exec_cpu::contiguous_keys<Op, S>(in), p, out);
}

}  // namespace attune
