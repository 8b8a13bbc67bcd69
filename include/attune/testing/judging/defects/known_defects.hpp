// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (known_defect const& d : known_defects) if (d.applies(facts)) ...
//
// The mistakes for which every verdict looks. A PASS says which of them it would have noticed.
#pragma once

#include <attune/testing/judging/defects/defect.hpp>

namespace attune::testing::detail {

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
     "whether the cap's tanh comes before the mask sets -infinity",
     {.cap_after_mask = true},
     [](call_facts const& f) { return f.masked && f.scores && !f.derived; }},
    // ---- where keys and values are read, and out is written
    {"key heads interleaved (h mod Hk)",
     look::heads,
     {.key_head = heads::interleaved, .value_head = heads::interleaved},
     [](call_facts const& f) {
       auto const shared = [&](index_t n) { return n > 1 && n < f.heads; };
       return shared(f.value_heads) || shared(f.key_heads);
     }},
    {"keys and values of the next key head",
     look::heads,
     {.key_head = heads::next, .value_head = heads::next},
     if_::key_heads},
    {"keys and values of the next batch element",
     look::layout,
     {.key_batch = batches::next, .value_batch = batches::next},
     if_::batches},
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
     "keys of zeros that pad the last tile, and a sink that this call should not have",
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
     "which features form a pair: (r, r + R) or (2 r, 2 r + 1)",
     {.other_rotary = true},
     if_::rotary},
};

}  // namespace attune::testing::detail
