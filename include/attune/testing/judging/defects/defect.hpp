// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   known_defect{"mask ignored", look::mask, {.all_keys = true}, if_::masked}
//
// A mistake that a verdict knows: its name in reports, where to look for it, the change that it makes to a row, and
// when it changes anything.
#pragma once

#include <array>
#include <string_view>

#include <attune/testing/judging/defects/row_change.hpp>

namespace attune::testing::detail {

/// Facts that decide whether a defect changes anything.
struct call_facts {
  bool masked = false,      ///< some mask
      only_causal = false,  ///< and it is causal alone
      ground = false, v0 = false, gate = false, output_gate = false, value_gate = false, length_scale = false,
       lse = false,       ///< the operator has one
      lse_given = false,  ///< the kernel's lse is given
      base_two = false,   ///< in base 2
      keys = false,       ///< the score reads keys
      scores = false,     ///< it has contractions
      derived = false,    ///< some of them are sums over keys
      positions = false,  ///< the score depends on positions
      rotary = false,     ///< it turns pairs of features
      capped = false;     ///< a parameter is a cap of the score
  index_t batch = 1, heads = 1, key_heads = 1, value_heads = 1;
};

struct known_defect {
  std::string_view name;     ///< in reports
  std::string_view look_at;  ///< what to look at in the kernel's source
  row_change change;
  bool (*applies)(call_facts const&);
};

/// When a defect applies.
namespace if_ {
using facts = call_facts const&;
inline constexpr bool any(facts) { return true; }
inline constexpr bool ground(facts f) { return f.ground; }
inline constexpr bool masked(facts f) { return f.masked; }
inline constexpr bool windowed(facts f) { return f.masked && !f.only_causal; }
inline constexpr bool lse(facts f) { return f.lse; }
inline constexpr bool lse_given(facts f) { return f.lse && f.lse_given; }
inline constexpr bool key_heads(facts f) { return f.keys && (f.key_heads > 1 || f.value_heads > 1); }
inline constexpr bool value_heads(facts f) { return f.value_heads > 1; }
inline constexpr bool batches(facts f) { return f.keys && f.batch > 1; }
inline constexpr bool keys(facts f) { return f.keys; }
inline constexpr bool rotary(facts f) { return f.rotary; }
}  // namespace if_

/// Advice that several defects share.
namespace look {
inline constexpr std::string_view mask = "the mask's offset; key j is visible to query i if j <= i + Lk - Lq",
                                  tiles = "the loop's bounds over tiles of keys, and the masked last tile",
                                  heads = "the map from query heads to key heads, and strides of heads",
                                  precision = "the type of the accumulator and of the stored tile",
                                  sum = "what is added to the row's sum, and what divides it",
                                  merge = "the merge of splits", lse = "how lse is computed and in which base",
                                  ground = "the sink's or ground's term of the row's sum",
                                  positions = "the positions that the score takes, not those of the mask",
                                  layout = "strides, the order of axes, and the shared-memory swizzle",
                                  row_term = "the preprocess kernel of D = <dout, out>, and its index",
                                  operators = "whether the call passes this part of the operator at all";
}  // namespace look

/// Whether a backward pass may have a forward pass's change alone: it recomputes logits and weights.
constexpr bool in_backward_alone(known_defect const& d) {
  row_change const& c = d.change;
  return !only_lse(c) && c.count == 0 && !c.count_all && c.ground == ground_mass::right && c.ground_times == 1 &&
         c.not_in_sum == end_key::none && !c.sink_added && c.not_rescaled == stale::none && c.splits == 0 &&
         !c.without_length_scale && !c.without_v0 && !c.without_output_gate && !c.without_value_gate &&
         !c.out_by_position;
}

}  // namespace attune::testing::detail
