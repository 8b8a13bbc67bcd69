// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() of cpu<bfloat16> and cpu<float16>. 16-bit tensors for the float rows: half the memory to read; keys and
// values become floats in registers.
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include <attune/calls/float_copies.hpp>
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

/// Decodes 16-bit tensors. `out`: floats, or rounded once.
template <class Products = float_products, class S, class Arch, class Op, class Cache, class T>
void decode_stored(cpu<S, Arch> const& exec, Op const& op, Cache const& cache, problem_shape const& p,
                   outputs<Op, T> const& out) {
  auto const keys = keys_of(cache);
  attune::detail::rounded_once(out, [&](outputs<Op, float> const& wide) {
    widened_resident<Op, tensor<S const>> const resident(keys.resident());
    stored_keys<Op, S, std::remove_const_t<decltype(keys)>> const stored(keys, resident(), p,
                                                                         decode_tiling<float, Arch>::block);
    decode_from<Products>(cpu_like<float>(exec), op, stored, p, wide);
  });
}
template <storage_only S, class Arch, class Op, class Cache, class T>
void decode_rows(engine, cpu<S, Arch> const& exec, Op const& op, Cache const& cache, problem_shape const& p,
                 outputs<Op, T> const& out) {
  decode_stored(exec, op, cache, p, out);
}

}  // namespace exec_cpu
}  // namespace attune
