// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (known_defect const& d : backward_defects) if (d.applies(facts)) ...
//
// Mistakes of backward passes alone. A verdict looks for them if gradients are wrong already.
#pragma once

#include <attune/testing/judging/defects/defect.hpp>

namespace attune::testing::detail {

inline constexpr known_defect backward_defects[] = {
    {"dv from weights that are not normalized",
     "whether dv is made with e^(a - lse)",
     {.unnormalized = true},
     if_::any},
    {"dP rounded to bf16", look::precision, {.products_stored = storage::bf16}, if_::any},
    {"dP rounded to fp16", look::precision, {.products_stored = storage::fp16}, if_::any},
    {"dS rounded to bf16", look::precision, {.slopes_stored = storage::bf16}, if_::any},
    {"dS rounded to fp16", look::precision, {.slopes_stored = storage::fp16}, if_::any},
    {"gradient through the maximum",
     "whether the row's maximum is a constant in the backward pass",
     {.through_maximum = true},
     if_::any},
    {"row term <dout, out> missing from dS", look::row_term, {.row_term_factor = 0}, if_::any},
    {"row term <dout, out> with the wrong sign", look::row_term, {.row_term_factor = -1}, if_::any},
    {"row term <dout, out> not multiplied by P", look::row_term, {.slopes_by_products = true}, if_::any},
    {"row term <dout, out> rounded to bf16", look::precision, {.row_terms_stored = storage::bf16}, if_::any},
    {"row term <dout, out> rounded to fp16", look::precision, {.row_terms_stored = storage::fp16}, if_::any},
    {"row term <dout, out> of the next query", look::row_term, {.next_row_term = true}, if_::any},
    {"saved lse of the next query", look::lse, {.next_lse = true}, if_::any},
    {"derivative of the cap left out",
     "the factor 1 - tanh^2 of the capped score",
     {.cap_slopes = 0},
     [](call_facts const& f) { return f.capped; }},
    {"derivative of the cap applied twice",
     "the factor 1 - tanh^2 of the capped score",
     {.cap_slopes = 2},
     [](call_facts const& f) { return f.capped; }},
    {"dS rounded to 4 bits, as fp8 e4m3", look::precision, {.slope_bits = 4}, if_::any},
    {"gradients of one head of each group alone",
     look::heads,
     {.one_head_of_group = 1},
     [](call_facts const& f) { return f.keys && f.key_heads < f.heads && f.key_heads == f.value_heads; }},
    {"gradients of the last head of each group alone",
     look::heads,
     {.one_head_of_group = 2},
     [](call_facts const& f) { return f.keys && f.key_heads < f.heads && f.key_heads == f.value_heads; }},
};

}  // namespace attune::testing::detail
