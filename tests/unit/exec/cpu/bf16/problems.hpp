// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Problems of bf16 numbers, and the bound of products of bf16 around the reference.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <attune/certify/error_bound.hpp>
#include <attune/exec/cpu/bf16/executor.hpp>

#include "../decode/decoding.hpp"

namespace attune::test {

/// Extents that both calls meet: widths around vectors, odd numbers of keys, grouped heads.
struct few_extents {
  index_t width, value_width, keys, heads, key_heads, value_heads, queries;
  operator problem_extents() const {
    return {.heads = heads,
            .queries = queries,
            .keys = keys,
            .width = width,
            .value_width = value_width,
            .key_heads = key_heads,
            .value_heads = value_heads};
  }
};

/// Products of q and k and of gates, one number per key, a ground.
inline auto const gated_and_grounded =
    attention(kernel::dot_product{} + kernel::scalar_sort{2.0} + kernel::spatial_prior{3.0} + kernel::key_bias{},
              length_scale::margin{-1.0, 0.2}, gate::softplus{0.1}, normalizer::grounded{0.2}, mask::runtime{});
inline auto const soft = attention(kernel::dot_product{}, mask::runtime{});

/// Rounds a problem's numbers to bf16 in both of its storages.
template <class Op>
void round_to_bf16(problem<Op>& p) {
  for (int f = 0; f < int(field_count); ++f)
    p.change(field(f), [](double x, index_t, index_t, index_t) { return double(float(bfloat16(float(x)))); });
}

/// A problem's tensors as bf16, features `apart` numbers from one another.
template <class Op>
class stored_problem {
 public:
  explicit stored_problem(problem<Op> const& p, index_t apart = 1) : apart_(apart) {
    memory_.resize(field_count);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        auto const& from = p.of(F);
        extents_[std::size_t(F)] = from.extents;
        for (double x : from.doubles)
          for (index_t n = 0; n < apart; ++n)
            memory_[std::size_t(F)].push_back(n == 0 ? bfloat16(float(x)) : bfloat16(float(nan)));
      }
    });
  }
  inputs<Op, tensor<bfloat16 const>> operator()() const {
    return make_inputs<Op, tensor<bfloat16 const>>([&]<field F>() {
      shape const e = extents_[std::size_t(F)];
      index_t const row = e.feature * apart_;
      return tensor<bfloat16 const>(memory_[std::size_t(F)].data(), e,
                                    {e.head * e.position * row, e.position * row, row, apart_});
    });
  }

 private:
  index_t apart_;
  std::vector<std::vector<bfloat16>> memory_;
  shape extents_[field_count]{};
};

/// Where results leave their bound (docs/reference/error_bounds.md): the bound of float arithmetic, 2^-8 sum w |v| for
/// each factor that is `rounded`, 2^-126 for each key, and the rounding of `out`, which keeps the order of numbers. ""
/// nowhere.
template <class Stored, class Op>
std::string beyond_bound(written<float, Stored> const& got, Op const& op, problem<Op>& p, int rounded = 1) {
  shape const s = p.extents();
  auto const floats = attune::certify::error_bound(op, p.template inputs<any_tensor>(), attune::certify::storage::fp32);
  auto const size_of = [](double x, index_t, index_t, index_t) { return std::fabs(x); };
  auto const v = p.of(field::v), v0 = p.of(field::v0);
  p.change(field::v, size_of);
  p.change(field::v0, size_of);
  auto const sizes = forward(reference<double>{}, op, p.template inputs<any_tensor>(), s);
  p.of(field::v) = v;
  p.of(field::v0) = v0;
  auto const stored = [](double x) { return float(Stored(float(x))); };
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.head; ++h)
      for (index_t i = 0; i < s.position; ++i) {
        auto const row = std::size_t((b * s.head + h) * s.position + i);
        for (index_t d = 0; d < s.feature; ++d) {
          auto const is = floats.at_out(b, h, i, d);
          double const off =
              is.bound + rounded * 0x1p-8 * std::fabs(sizes.at(b, h).out(i, d)) + double(p.e.keys) * 0x1p-126;
          float const x = float(got.out[row * std::size_t(s.feature) + std::size_t(d)]);
          if (!(x >= stored(is.value - off) && x <= stored(is.value + off)))
            return attune::detail::text("out (", b, ", ", h, ", ", i, ", ", d, "): ", x, ", not ", is.value, " +- ",
                                        off);
        }
        if constexpr (Op::has_lse) {
          auto const is = floats.at_lse(b, h, i);
          if (!(double(got.lse[row]) == is.value || std::fabs(double(got.lse[row]) - is.value) <= is.bound))
            return attune::detail::text("lse (", b, ", ", h, ", ", i, "): ", got.lse[row], ", not ", is.value);
        }
        if constexpr (Op::has_ground_weight) {
          auto const is = floats.at_ground_weight(b, h, i);
          if (!(std::fabs(double(got.ground_weight[row]) - is.value) <= is.bound))
            return attune::detail::text("w0 (", b, ", ", h, ", ", i, "): ", got.ground_weight[row], ", not ", is.value);
        }
      }
  return "";
}

}  // namespace attune::test
