// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_PAIRS_DESIGN(ROW)     calls ROW(number, executor, policies...) for every operator of the design
//
// A covering design: every pair of features that the library accepts is in some row, and so is every call of an executor
// with every feature that it accepts. Each row reaches a pair that no other row reaches. The first rows reach most: the
// quick tier compiles them alone. The executor is the one that the row calls beside cpu<double>. The program `pairs` says
// what is missing: add it to a row, or add a row.
#pragma once

// clang-format off: a line, an operator
#define ATTUNE_PAIRS_DESIGN(ROW) \
  ROW(1, cpu_float, bias, tupe, transformer_xl, spatial_prior, given_scores, bent_map, margin, decay_gate, weight_sigmoid, crowded_unshifted, output_sigmoid, lengths) \
  ROW(2, thrust_double, learned_keys, tupe, key_bias, spatial_prior, cope, softcap, ssmax, given_gate, weight_sigmoid, crowded, value_sigmoid, bounded_predicate) \
  ROW(3, cpu_bfloat16, bias_by_pair, relative_bias, l2, elliptical, fourier_prior, bent_map, decay_gate, weight_decay, crowded, output_sigmoid, causal_lengths) \
  ROW(4, cpu_float16, bilinear, key_bias, elementwise, learned_keys, rotary, bent_map, ssmax, decay_gate, dropout, counted, output_sigmoid, bounded_predicate) \
  ROW(5, thrust_double, later_count, scalar_sort, given_scores, cope, transformer_xl, softcap, retention, value_sigmoid, output_sigmoid, sink_window) \
  ROW(6, float8_cache, bilinear, fourier_prior, tupe, spatial_prior, rotary, bent_map, softplus_gate, dropout, adjusted, causal_or_lengths) \
  ROW(7, cpu_float, key_bias, transformer_xl, given_scores, learned_keys, bias, bent_map, given_gate, weight_decay, top_3, value_sigmoid, bounded_predicate) \
  ROW(8, cpu_float16, spatial_prior, elementwise, earlier_count, earlier_count_with_own, bias_by_pair, softcap, margin, weight_sigmoid, softmax, value_sigmoid, lengths) \
  ROW(9, cpu_bfloat16, spatial_prior, elliptical, tupe, relative_bias, l2, bent_map, margin, softplus_gate, adjusted_detached, bounded_predicate) \
  ROW(10, thrust_double, bias, relative_bias, l2, elliptical, rotary, bent_map, ssmax, given_gate, dropout, sparsemax, value_sigmoid, output_sigmoid, lengths) \
  ROW(11, float8_cache, bilinear, key_bias, transformer_xl, learned_keys, rotary, bent_map, margin, crowded, output_sigmoid, lengths) \
  ROW(12, cpu_float, later_count, fourier_prior, bias_by_pair, bias, cope, margin, given_gate, weight_decay, counted, causal_or_lengths) \
  ROW(13, cpu_float, given_scores, bias_by_pair, transformer_xl, elementwise, scalar_sort, ssmax, given_gate, dropout, adjusted_detached, output_sigmoid, blocks) \
  ROW(14, float8_cache, earlier_count, spatial_prior, earlier_count_with_own, fourier_prior, tupe, ssmax, decay_gate, weight_decay, retention, value_sigmoid, output_sigmoid, bounded_predicate) \
  ROW(15, thrust_double, tupe, scalar_sort, spatial_prior, bias_by_pair, elementwise, softcap, margin, softplus_gate, weight_decay, sparsemax, bounded_predicate) \
  ROW(16, cpu_float, bilinear, bias, given_scores, l2, elliptical, bent_map, ssmax, softmax, output_sigmoid, bounded_predicate) \
  ROW(17, cpu_bfloat16, learned_keys, l2, relative_bias, key_bias, transformer_xl, bent_map, ssmax, dropout, retention, sink_window) \
  ROW(18, cpu_float16, tupe, learned_keys, transformer_xl, fourier_prior, elliptical, bent_map, weight_decay, adjusted, output_sigmoid, lengths) \
  ROW(19, cpu_bfloat16, elementwise, relative_bias, cope, bilinear, later_count, softcap, softplus_gate, dropout, crowded, value_sigmoid, lengths) \
  ROW(20, cpu_float, relative_bias, bias, earlier_count, earlier_count_with_own, given_scores, given_gate, crowded, output_sigmoid, blocks) \
  ROW(21, thrust_double, fourier_prior, elementwise, given_scores, key_bias, bias, ssmax, decay_gate, adjusted, value_sigmoid, bounded_predicate) \
  ROW(22, float8_cache, l2, later_count, spatial_prior, elliptical, cope, ssmax, softplus_gate, counted, value_sigmoid, bounded_predicate) \
  ROW(23, thrust_double, key_bias, earlier_count_with_own, learned_keys, earlier_count, transformer_xl, softcap, decay_gate, dropout, softmax, value_sigmoid, output_sigmoid, blocks) \
  ROW(24, thrust_double, bilinear, scalar_sort, spatial_prior, tupe, bias_by_pair, softcap, margin, softplus_gate, top_3, output_sigmoid, blocks) \
  ROW(25, cpu_float16, relative_bias, bias_by_pair, l2, spatial_prior, key_bias, margin, softplus_gate, crowded, blocks) \
  ROW(26, cpu_float, key_bias, bias_by_pair, rotary, learned_keys, bilinear, margin, given_gate, weight_decay, retention, lengths) \
  ROW(27, float8_cache, fire, scalar_sort, elementwise, elliptical, key_bias, softcap, ssmax, softplus_gate, retention, bounded_predicate) \
  ROW(28, cpu_float16, tupe, rotary, cope, alibi, later_count, margin, softplus_gate, dropout, softmax, output_sigmoid, causal) \
  ROW(29, thrust_double, bias, given_scores, key_bias, learned_keys, rotary, bent_map, weight_decay, adjusted_detached, value_sigmoid, causal) \
  ROW(30, cpu_float, key_bias, fourier_prior, given_scores, learned_keys, transformer_xl, bent_map, sparsemax, output_sigmoid, causal_or_lengths) \
  ROW(31, cpu_bfloat16, tupe, rotary, bilinear, earlier_count_with_own, earlier_count, dropout, counted, value_sigmoid, output_sigmoid, causal) \
  ROW(32, float8_cache, l2, elementwise, fourier_prior, relative_bias, elliptical, softcap, ssmax, dropout, top_3, output_sigmoid, causal) \
  ROW(33, cpu_float, fourier_prior, relative_bias, bias_by_pair, scalar_sort, l2, given_gate, weight_sigmoid, adjusted, sink_window) \
  ROW(34, thrust_double, transformer_xl, given_scores, elliptical, earlier_count_with_own, earlier_count, softplus_gate, dropout, counted, causal_or_lengths) \
  ROW(35, float8_cache, l2, bias_by_pair, relative_bias, fourier_prior, margin, softmax, output_sigmoid, sink_window) \
  ROW(36, cpu_bfloat16, bilinear, elementwise, rotary, margin, adjusted, lengths) \
  ROW(37, cpu_float16, bias, later_count, bias_by_pair, key_bias, learned_keys, ssmax, retention, output_sigmoid, bounded_predicate) \
  ROW(38, float8_cache, l2, earlier_count, earlier_count_with_own, dot_product, softcap, ssmax, given_gate, weight_decay, softmax, causal_lengths) \
  ROW(39, float8_cache, fourier_prior, bilinear, bent_map, margin, softplus_gate, weight_decay, adjusted_detached, output_sigmoid, predicate) \
  ROW(40, cpu_float16, elementwise, rotary, softcap, margin, top_3, sink_window) \
  ROW(41, cpu_bfloat16, learned_keys, bilinear, bent_map, sparsemax, lengths) \
  ROW(42, cpu_bfloat16, relative_bias, alibi, key_bias, tupe, elliptical, bent_map, margin, softplus_gate, weight_sigmoid, counted, lengths) \
  ROW(43, cpu_float16, bilinear, fire, softcap, margin, weight_decay, adjusted_detached, causal_or_lengths) \
  ROW(44, cpu_bfloat16, key_bias, bias_by_pair, alibi, decay_gate, softmax, bounded_predicate) \
  ROW(45, cpu_float16, rotary, l2, spatial_prior, softcap, ssmax, weight_sigmoid, retention, output_sigmoid, causal) \
  ROW(46, cpu_float16, elliptical, transformer_xl, bent_map, margin, softplus_gate, weight_sigmoid, softmax, blocks) \
  ROW(47, float8_cache, transformer_xl, tupe, bias_by_pair, elementwise, bent_map, ssmax, softplus_gate, weight_sigmoid, sparsemax, value_sigmoid, blocks) \
  ROW(48, float8_cache, fourier_prior, spatial_prior, elementwise, bilinear, key_bias, margin, softplus_gate, counted, lengths) \
  ROW(49, cpu_float16, alibi, learned_keys, spatial_prior, softcap, ssmax, softplus_gate, dropout, sparsemax, lengths) \
  ROW(50, cpu_float, dot_product, bilinear, ssmax, given_gate, weight_sigmoid, counted, causal) \
  ROW(51, cpu_float, elliptical, l2, fourier_prior, bent_map, decay_gate, weight_sigmoid, crowded, output_sigmoid, blocks) \
  ROW(52, cpu_bfloat16, spatial_prior, bias_by_pair, softcap, margin, dropout, top_3, causal)
// clang-format on
