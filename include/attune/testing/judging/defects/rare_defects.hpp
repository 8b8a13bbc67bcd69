// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (known_defect const& d : rare_defects) if (d.applies(facts)) ...
//
// Mistakes for which a verdict looks if the result is wrong already.
#pragma once

#include <attune/testing/judging/defects/defect.hpp>

namespace attune::testing::detail {

inline constexpr known_defect rare_defects[] = {
    {"positions of the score without the offset", look::positions, {.query_top_left = true}, if_::any},
    {"keys and values of the key head before",
     look::heads,
     {.key_head = heads::previous, .value_head = heads::previous},
     if_::key_heads},
    {"keys and values of the key heads in reverse order",
     look::heads,
     {.key_head = heads::last_first, .value_head = heads::last_first},
     if_::key_heads},
    {"keys and values of the first key head in all heads",
     look::heads,
     {.key_head = heads::first, .value_head = heads::first},
     if_::key_heads},
    {"keys and values of batch element 0 in all",
     look::layout,
     {.key_batch = batches::first, .value_batch = batches::first},
     if_::batches},
    {"keys of key heads interleaved (h mod Hk)", look::heads, {.key_head = heads::interleaved}, if_::key_heads},
    {"keys of the next key head", look::heads, {.key_head = heads::next}, if_::key_heads},
    {"keys of the key head before", look::heads, {.key_head = heads::previous}, if_::key_heads},
    {"keys of the key heads in reverse order", look::heads, {.key_head = heads::last_first}, if_::key_heads},
    {"keys of the first key head in all heads", look::heads, {.key_head = heads::first}, if_::key_heads},
    {"keys of the next batch element", look::layout, {.key_batch = batches::next}, if_::batches},
    {"keys of batch element 0 in all", look::layout, {.key_batch = batches::first}, if_::batches},
    {"values of key heads interleaved (h mod Hk)", look::heads, {.value_head = heads::interleaved}, if_::key_heads},
    {"values of the next key head", look::heads, {.value_head = heads::next}, if_::key_heads},
    {"values of the key head before", look::heads, {.value_head = heads::previous}, if_::key_heads},
    {"values of the key heads in reverse order", look::heads, {.value_head = heads::last_first}, if_::key_heads},
    {"values of the first key head in all heads", look::heads, {.value_head = heads::first}, if_::key_heads},
    {"values of the next batch element", look::layout, {.value_batch = batches::next}, if_::batches},
    {"values of batch element 0 in all", look::layout, {.value_batch = batches::first}, if_::batches},
    {"keys shifted by one", look::layout, {.key_rows = matrix::one_row_late}, if_::keys},
    {"rows of v in reverse order", look::layout, {.value_rows = matrix::rows_turned}, if_::any},
    {"rows of k in reverse order", look::layout, {.key_rows = matrix::rows_turned}, if_::keys},
    {"k transposed in squares of 16 x 16", look::layout, {.key_rows = matrix::squares}, if_::keys},
    {"v transposed in squares of 16 x 16", look::layout, {.value_rows = matrix::squares}, if_::any},
    {"head and position of k transposed",
     look::layout,
     {.key_rows = matrix::by_position},
     [](call_facts const& f) { return f.keys && f.key_heads > 1; }},
    {"probabilities rounded to 4 bits, as fp8 e4m3", look::precision, {.weight_bits = 4}, if_::any},
    {"probabilities rounded to 3 bits, as fp8 e5m2", look::precision, {.weight_bits = 3}, if_::any},
    {"mask's start ignored", look::mask, {.from_first_key = true}, if_::windowed},
    {"mask's end ignored", look::mask, {.to_last_key = true}, if_::windowed},
    {"mask ends at a multiple of 16: rows see whole tiles of keys", look::tiles, {.whole_tiles = 16}, if_::masked},
    {"mask ends at a multiple of 32: rows see whole tiles of keys", look::tiles, {.whole_tiles = 32}, if_::masked},
    {"mask ends at a multiple of 64: rows see whole tiles of keys", look::tiles, {.whole_tiles = 64}, if_::masked},
    {"mask ends at a multiple of 128: rows see whole tiles of keys", look::tiles, {.whole_tiles = 128}, if_::masked},
};

}  // namespace attune::testing::detail
