// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (known_defect const& d : known_defects) if (d.applies(facts)) ...      find_defect("mask shifted by +1")
//
// The mistakes that a verdict knows: a row for each, with its name in reports, where to look for it, what a kernel with
// it does otherwise, and when it changes anything. A verdict on gradients takes the same rows.
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

/// Which verdict looks for a defect.
enum class search {
  always,         ///< forward passes; its power is reported
  after_failure,  ///< forward passes that are wrong already
  backward        ///< backward passes that are wrong already
};

struct known_defect {
  std::string_view name;     ///< in reports
  std::string_view look_at;  ///< what to look at in the kernel's source
  row_change change;
  bool (*applies)(call_facts const&);
  search when = search::always;
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
inline constexpr bool keys(facts f) { return f.keys; }
inline constexpr bool rotary(facts f) { return f.rotary; }
}  // namespace if_

/// Advice that several defects share.
namespace look {
inline constexpr std::string_view mask = "look at: the mask's offset; key j is visible to query i if j <= i + Lk - Lq",
                                  tiles = "look at: the loop's bounds over tiles of keys, and the masked last tile",
                                  heads = "look at: the map from query heads to key heads, and strides of heads",
                                  precision = "look at: the type of the accumulator and of the stored tile",
                                  sum = "look at: what is added to the row's sum, and what divides it",
                                  merge = "look at: the merge of splits",
                                  lse = "look at: how lse is computed and in which base",
                                  ground = "look at: the sink's or ground's term of the row's sum",
                                  positions = "look at: the positions that the score takes, not those of the mask",
                                  layout = "look at: strides, the order of axes, and the shared-memory swizzle",
                                  row_term = "look at: the preprocess kernel of D = <dout, out>, and its index",
                                  operators = "look at: whether the call passes this part of the operator at all";
}  // namespace look

inline constexpr known_defect known_defects[] = {
    // ---- parts of the operator that are left out
    {"sink or ground ignored", look::ground, {.ground = ground_mass::ignored}, if_::ground},
    {"ground value v0 ignored", look::operators, {.without_v0 = true}, [](call_facts const& f) { return f.v0; }},
    {"score gate ignored", look::operators, {.without_gate = true}, [](call_facts const& f) { return f.gate; }},
    {"output gate ignored",
     look::operators,
     {.without_output_gate = true},
     [](call_facts const& f) { return f.output_gate; }},
    {"value gate ignored",
     look::operators,
     {.without_value_gate = true},
     [](call_facts const& f) { return f.value_gate; }},
    {"length scale ignored",
     look::operators,
     {.without_length_scale = true},
     [](call_facts const& f) { return f.length_scale; }},
    // ---- the number of visible keys
    {"K one too large", look::sum, {.count = +1}, if_::any},
    {"K one too small", look::sum, {.count = -1}, if_::any},
    {"Lk taken for K", look::sum, {.count_all = true}, if_::any},
    // ---- the mask
    {"mask aligned top-left", look::mask, {.top_left = true}, if_::any},
    {"mask shifted by +1", look::mask, {.position = +1}, if_::any},
    {"mask shifted by -1", look::mask, {.position = -1}, if_::any},
    {"one key too many at the end", look::tiles, {.last = +1}, if_::any},
    {"last visible key missing", look::tiles, {.last = -1}, if_::any},
    {"one key too many at the start", look::tiles, {.first = -1}, if_::any},
    {"first visible key missing", look::tiles, {.first = +1}, if_::any},
    {"first visible key doubled", look::tiles, {.twice = end_key::first}, if_::any},
    {"last visible key doubled", look::tiles, {.twice = end_key::last}, if_::any},
    {"mask ignored", look::mask, {.all_keys = true}, if_::masked},
    {"window one key too short at its start", look::mask, {.first = +1, .inner = true}, if_::windowed},
    {"window one key too short at its end", look::mask, {.last = -1, .inner = true}, if_::windowed},
    {"window one key too long on both sides", look::mask, {.first = -1, .last = +1}, if_::windowed},
    {"window one key too short on both sides", look::mask, {.first = +1, .last = -1, .inner = true}, if_::windowed},
    {"cap applied after the mask: hidden keys count",
     "look at: whether the cap's tanh comes before the mask sets -infinity",
     {.cap_after_mask = true},
     [](call_facts const& f) { return f.masked && f.scores && !f.derived; }},
    // ---- where keys and values are read, and out is written
    {"key heads interleaved (h mod Hk)",
     look::heads,
     {.head = heads::interleaved},
     [](call_facts const& f) {
       auto const shared = [&](index_t n) { return n > 1 && n < f.heads; };
       return shared(f.value_heads) || shared(f.key_heads);
     }},
    {"keys and values of the next key head", look::heads, {.head = heads::next}, if_::key_heads},
    {"keys and values of the next batch element",
     look::layout,
     {.next_batch = true},
     [](call_facts const& f) { return f.keys && f.batch > 1; }},
    {"head and position of v transposed", look::layout, {.value_rows = matrix::by_position}, if_::value_heads},
    {"head and position of out transposed",
     look::layout,
     {.out_by_position = true},
     [](call_facts const& f) { return f.heads > 1; }},
    {"values shifted by one key", look::layout, {.value_rows = matrix::one_row_late}, if_::any},
    // ---- precision
    {"probabilities rounded to bf16", look::precision, {.weights_stored = storage::bf16}, if_::any},
    {"probabilities rounded to fp16", look::precision, {.weights_stored = storage::fp16}, if_::any},
    {"logits rounded to bf16", look::precision, {.logits_stored = storage::bf16}, if_::any},
    {"logits rounded to fp16", look::precision, {.logits_stored = storage::fp16}, if_::any},
    // ---- the lse
    {"lse in base 2", look::lse, {.lse_factor = 1.4426950408889634}, if_::lse_given},
    {"lse in base e",
     look::lse,
     {.lse_factor = 0.6931471805599453},
     [](call_facts const& f) { return f.lse && f.lse_given && f.base_two; }},
    {"scale missing from lse",
     look::lse,
     {.lse_without_scale = true},
     [](call_facts const& f) { return f.lse && f.lse_given && f.scores; }},
    {"sink or ground missing from lse",
     look::lse,
     {.ground = ground_mass::not_in_lse},
     [](call_facts const& f) { return f.ground && f.lse_given; }},
    // ---- the sum of weights
    {"weights not divided by the sink's or ground's mass",
     look::ground,
     {.ground = ground_mass::not_in_sum},
     if_::ground},
    {"first visible key missing from the sum of weights", look::sum, {.not_in_sum = end_key::first}, if_::lse},
    {"last visible key missing from the sum of weights", look::sum, {.not_in_sum = end_key::last}, if_::lse},
    {"sink or ground counted 2 times, as once per split", look::merge, {.ground_times = 2}, if_::ground},
    {"sink or ground counted 4 times, as once per split", look::merge, {.ground_times = 4}, if_::ground},
    {"sink or ground counted 8 times, as once per split", look::merge, {.ground_times = 8}, if_::ground},
    {"a sink of logit 0 that the operator does not have",
     "look at: keys of zeros that pad the last tile, and a sink that this call should not have",
     {.sink_added = true},
     [](call_facts const& f) { return f.lse && !f.ground; }},
    // ---- positions of the score
    {"positions of the score off by +1", look::positions, {.query = +1}, if_::rotary},
    {"positions of the score off by -1", look::positions, {.query = -1}, if_::rotary},
    {"positions of the score ignored",
     look::positions,
     {.without_positions = true},
     [](call_facts const& f) { return f.positions && !f.derived; }},
    {"rotary pairs of the other layout",
     "look at: which features form a pair: (r, r + R) or (2 r, 2 r + 1)",
     {.other_rotary = true},
     if_::rotary},
    // ---- after a failure
    {"positions of the score without the offset",
     look::positions,
     {.query_top_left = true},
     if_::any,
     search::after_failure},
    {"keys and values of the key head before",
     look::heads,
     {.head = heads::previous},
     if_::key_heads,
     search::after_failure},
    {"key heads in reverse order", look::heads, {.head = heads::last_first}, if_::key_heads, search::after_failure},
    {"keys shifted by one", look::layout, {.key_rows = matrix::one_row_late}, if_::keys, search::after_failure},
    {"rows of k in reverse order", look::layout, {.key_rows = matrix::rows_turned}, if_::keys, search::after_failure},
    {"rows of v in reverse order", look::layout, {.value_rows = matrix::rows_turned}, if_::any, search::after_failure},
    {"k transposed in squares of 16 x 16",
     look::layout,
     {.key_rows = matrix::squares},
     if_::keys,
     search::after_failure},
    {"v transposed in squares of 16 x 16",
     look::layout,
     {.value_rows = matrix::squares},
     if_::any,
     search::after_failure},
    {"head and position of k transposed",
     look::layout,
     {.key_rows = matrix::by_position},
     [](call_facts const& f) { return f.keys && f.key_heads > 1; },
     search::after_failure},
    // ---- backward passes
    {"dv from weights that are not normalized",
     "look at: whether dv is made with e^(a - lse)",
     {.unnormalized = true},
     if_::any,
     search::backward},
    {"dP rounded to bf16", look::precision, {.products_stored = storage::bf16}, if_::any, search::backward},
    {"dP rounded to fp16", look::precision, {.products_stored = storage::fp16}, if_::any, search::backward},
    {"dS rounded to bf16", look::precision, {.slopes_stored = storage::bf16}, if_::any, search::backward},
    {"dS rounded to fp16", look::precision, {.slopes_stored = storage::fp16}, if_::any, search::backward},
    {"gradient through the maximum",
     "look at: whether the row's maximum is a constant in the backward pass",
     {.through_maximum = true},
     if_::any,
     search::backward},
    {"row term <dout, out> missing from dS", look::row_term, {.row_term_factor = 0}, if_::any, search::backward},
    {"row term <dout, out> with the wrong sign", look::row_term, {.row_term_factor = -1}, if_::any, search::backward},
    {"row term <dout, out> not multiplied by P",
     look::row_term,
     {.slopes_by_products = true},
     if_::any,
     search::backward},
    {"row term <dout, out> rounded to bf16",
     look::precision,
     {.row_terms_stored = storage::bf16},
     if_::any,
     search::backward},
    {"row term <dout, out> rounded to fp16",
     look::precision,
     {.row_terms_stored = storage::fp16},
     if_::any,
     search::backward},
    {"row term <dout, out> of the next query", look::row_term, {.next_row_term = true}, if_::any, search::backward},
    {"saved lse of the next query", look::lse, {.next_lse = true}, if_::any, search::backward},
    {"derivative of the cap left out",
     "look at: the factor 1 - tanh^2 of the capped score",
     {.cap_slopes = 0},
     [](call_facts const& f) { return f.capped; },
     search::backward},
    {"derivative of the cap applied twice",
     "look at: the factor 1 - tanh^2 of the capped score",
     {.cap_slopes = 2},
     [](call_facts const& f) { return f.capped; },
     search::backward},
    {"gradients of one head of each group alone",
     look::heads,
     {.one_head_of_group = true},
     [](call_facts const& f) { return f.keys && f.key_heads < f.heads && f.key_heads == f.value_heads; },
     search::backward},
};

/// The row of that name; null if there is none.
constexpr known_defect const* find_defect(std::string_view name) {
  for (known_defect const& d : known_defects)
    if (d.name == name) return &d;
  return nullptr;
}

/// Whether a backward pass may have a forward pass's change alone: it recomputes logits and weights.
constexpr bool in_backward_alone(known_defect const& d) {
  row_change const& c = d.change;
  return d.when != search::backward && !only_lse(c) && c.count == 0 && !c.count_all && c.ground == ground_mass::right &&
         c.ground_times == 1 && c.not_in_sum == end_key::none && !c.sink_added && c.not_rescaled == stale::none &&
         c.splits == 0 && !c.without_length_scale && !c.without_v0 && !c.without_output_gate && !c.without_value_gate &&
         !c.out_by_position;
}

}  // namespace attune::testing::detail
