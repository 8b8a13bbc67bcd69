// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_GROUP_<name>      registers operators of the policies of policies.hpp: those that stand for no preset
//
// The others are in the catalogue (tools/catalogue/presets.hpp). A group is compiled together. Groups of archetypes are
// for scopes that have no time for all operators (tests/CMakeLists.txt): one operator for each kind of row, of input
// and of contraction.
#pragma once

#include "../../tools/catalogue/presets.hpp"

/// What the catalogue says of a preset's tests.
#define ATTUNE_TESTED(name, call, policies, names, note, operator_, ...) __VA_ARGS__;

// clang-format off: a line, an operator
#define ATTUNE_GROUP_given \
  add(to, given, no_length_scale, no_gate, softmax); \
  add(to, given, ssmax, no_gate, softmax); \
  add(to, elementwise, no_length_scale, no_gate, softmax); \
  add(to, given, no_length_scale, given_two_sided_gate, softmax);
#define ATTUNE_GROUP_sink \
  add(to, given, no_length_scale, no_gate, sink); \
  add(to, dot_alibi, no_length_scale, no_gate, sink); \
  add(to, dot, no_length_scale, no_gate, sink_value);
#define ATTUNE_GROUP_principled \
  add(to, dot, margin, no_gate, grounded); \
  add(to, dot_alibi, margin, no_gate, grounded);
#define ATTUNE_GROUP_softcap \
  add(to, given_softcap, no_length_scale, no_gate, softmax); \
  add(to, dot_alibi_softcap, no_length_scale, no_gate, softmax);
#define ATTUNE_GROUP_off_by_one \
  add(to, given, no_length_scale, no_gate, off_by_one); \
  add(to, dot_alibi, no_length_scale, no_gate, off_by_one); \
  add(to, given, no_length_scale, no_gate, off_by_one_value);
#define ATTUNE_GROUP_principled_given \
  add(to, given, margin, no_gate, grounded); \
  add(to, given, margin, given_softplus_gate, grounded); \
  add(to, dot, margin, given_softplus_gate, grounded); \
  add(to, given, margin, softplus_gate, grounded);
#define ATTUNE_GROUP_grounded \
  add(to, given, no_length_scale, no_gate, grounded); \
  add(to, dot, no_length_scale, no_gate, grounded); \
  add(to, dot_alibi, margin, softplus_gate, grounded);
#define ATTUNE_GROUP_sigmoid \
  add(to, dot, no_length_scale, no_gate, exponential); \
  add(to, given, no_length_scale, no_gate, sigmoid); \
  add(to, given, no_length_scale, no_gate, sigmoid_negk); \
  add(to, given, no_length_scale, no_gate, exponential);
#define ATTUNE_GROUP_affine \
  add_affine_variants<affine_count::visible>(to, dot, "visible"); \
  add_affine_variants<affine_count::visible>(to, given, "visible"); \
  add_affine_variants<affine_count::total>(to, given, "total"); \
  add(to, given, no_length_scale, no_gate, affine_visible);
#define ATTUNE_GROUP_affine_top_k \
  add(to, dot, no_length_scale, no_gate, free_affine); \
  add(to, given, no_length_scale, no_gate, free_affine); \
  add(to, given, no_length_scale, no_gate, top_3);
#define ATTUNE_GROUP_sparse \
  add(to, given, no_length_scale, no_gate, sparsemax); \
  add(to, given, no_length_scale, no_gate, entmax15); \
  add(to, given, no_length_scale, no_gate, entmax);
#define ATTUNE_GROUP_adjusted_given \
  add(to, given, no_length_scale, no_gate, adjusted_product); \
  add(to, given, no_length_scale, no_gate, adjusted_with_zero); \
  add(to, given, no_length_scale, no_gate, adjusted_with_zero_detached); \
  add(to, given, no_length_scale, no_gate, adjusted_full_range);
#define ATTUNE_GROUP_hybrid \
  add(to, hybrid, no_length_scale, no_gate, off_by_one); \
  add(to, hybrid, no_length_scale, no_gate, sink); \
  add_affine_variants<affine_count::visible>(to, hybrid, "visible");
#define ATTUNE_GROUP_composed \
  add(to, hybrid, no_length_scale, no_gate, sparsemax); \
  add(to, hybrid, no_length_scale, no_gate, entmax); \
  add(to, hybrid, margin, softplus_gate, grounded); \
  add(to, dot_alibi, no_length_scale, no_gate, sparsemax);
#define ATTUNE_GROUP_archetypes \
  add(to, dot, no_length_scale, no_gate, softmax); \
  add(to, dot, margin, softplus_gate, grounded);
#define ATTUNE_GROUP_archetypes_sets \
  add(to, hybrid, no_length_scale, no_gate, entmax); \
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
#define ATTUNE_GROUP_archetypes_more \
  add(to, given, no_length_scale, no_gate, softmax); \
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value); \
  add(to, dot, no_length_scale, no_gate, sink_value); \
  add(to, dot, no_length_scale, no_gate, affine_visible); \
  add(to, given, no_length_scale, no_gate, sparsemax); \
  add(to, dot, no_length_scale, no_gate, top_3); \
  add(to, transformer_xl, no_length_scale, no_gate, sigmoid); \
  add(to, dot_relative_bias, no_length_scale, no_gate, softmax, sigmoid_output);
#define ATTUNE_GROUP_archetypes_kernels \
  add(to, dot_bias, no_length_scale, no_gate, softmax); \
  add(to, dot_spatial_prior, no_length_scale, no_gate, softmax); \
  add(to, dot_fourier_key_bias, no_length_scale, no_gate, softmax); \
  add(to, tupe, no_length_scale, no_gate, softmax); \
  add(to, elementwise, no_length_scale, no_gate, softmax); \
  add(to, bilinear, no_length_scale, no_gate, softmax); \
  add(to, elliptical, no_length_scale, no_gate, softmax);
// clang-format on
