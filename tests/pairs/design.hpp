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
  ROW(1, cpu_float, bias, spatial_prior, tupe, scalar_sort, key_bias, transformer_xl, bent_map, ssmax, given_gate, weight_sigmoid, crowded, output_sigmoid, relative_values, sink_window) \
  ROW(2, thrust_double, cope, learned_keys, tupe, given_scores, spatial_prior, scalar_sort, softcap, softplus_gate, weight_decay, crowded_unshifted, value_sigmoid, relative_values, bounded_predicate) \
  ROW(3, float8_cache, relative_bias, fourier_prior, tupe, bilinear, rotary, bias_by_pair, bent_map, margin, softplus_gate, dropout, counted, output_sigmoid, relative_values, lengths) \
  ROW(4, cpu_bfloat16, warped, by_pair, l2, spatial_prior, fading, gatv2, bent_map, margin, crowded, output_sigmoid, bounded_predicate) \
  ROW(5, cpu_float16, spatial_prior, elliptical, elementwise, cauchy, learned_keys, tupe, bent_map, decay_gate, weight_sigmoid, adjusted, output_sigmoid, relative_values, lengths) \
  ROW(6, thrust_double, later_count, given_scores, transformer_xl, key_bias, cope, bias, softcap, margin, given_gate, retention, value_sigmoid, output_sigmoid, relative_values, lengths) \
  ROW(7, cpu_float, earlier_count_with_own, earlier_count, learned_keys, elementwise, transformer_xl, rotary, softcap, ssmax, given_gate, dropout, softmax, value_sigmoid, relative_values, bounded_predicate) \
  ROW(8, cpu_bfloat16, l2, gatv2, fading, tupe, by_pair, warped, bent_map, decay_gate, weight_sigmoid, top_3, value_sigmoid, relative_values, blocks) \
  ROW(9, cpu_float, fourier_prior, bias, given_scores, key_bias, bilinear, learned_keys, bent_map, weight_decay, adjusted_detached, relative_values, bounded_predicate) \
  ROW(10, cpu_float16, relative_bias, cope, elliptical, later_count, bias_by_pair, cauchy, ssmax, dropout, crowded, value_sigmoid, blocks) \
  ROW(11, thrust_double, bias_by_pair, bilinear, relative_bias, fourier_prior, scalar_sort, spatial_prior, bent_map, given_gate, dropout, sparsemax, value_sigmoid, output_sigmoid, relative_values, bounded_predicate) \
  ROW(12, thrust_double, elementwise, given_scores, earlier_count_with_own, warped, fading, earlier_count, ssmax, decay_gate, weight_decay, counted, output_sigmoid, causal_lengths) \
  ROW(13, float8_cache, by_pair, spatial_prior, learned_keys, transformer_xl, rotary, gatv2, softcap, margin, decay_gate, adjusted_detached, causal_or_lengths) \
  ROW(14, cpu_float, key_bias, by_pair, cauchy, elliptical, l2, gatv2, bent_map, margin, given_gate, weight_decay, retention, lengths) \
  ROW(15, cpu_float16, bilinear, key_bias, transformer_xl, fourier_prior, rotary, warped, softcap, weight_decay, crowded, lengths) \
  ROW(16, cpu_bfloat16, transformer_xl, fading, relative_bias, bias_by_pair, key_bias, learned_keys, softcap, ssmax, decay_gate, dropout, adjusted, lengths) \
  ROW(17, float8_cache, tupe, earlier_count_with_own, relative_bias, key_bias, earlier_count, spatial_prior, softplus_gate, softmax, value_sigmoid, output_sigmoid, lengths) \
  ROW(18, thrust_double, l2, bias, elliptical, cauchy, rotary, given_scores, bent_map, ssmax, dropout, top_3, output_sigmoid, bounded_predicate) \
  ROW(19, float8_cache, spatial_prior, cope, elementwise, later_count, tupe, scalar_sort, weight_sigmoid, retention, output_sigmoid, bounded_predicate) \
  ROW(20, cpu_float, later_count, bilinear, cope, fourier_prior, gatv2, fading, softcap, ssmax, given_gate, counted, value_sigmoid, sink_window) \
  ROW(21, cpu_float, bias, relative_bias, gatv2, warped, given_scores, bias_by_pair, margin, given_gate, weight_decay, adjusted, value_sigmoid, output_sigmoid, bounded_predicate) \
  ROW(22, cpu_float16, elliptical, learned_keys, elementwise, key_bias, l2, transformer_xl, bent_map, margin, softplus_gate, sparsemax, lengths) \
  ROW(23, float8_cache, l2, warped, fading, cauchy, bilinear, elliptical, bent_map, ssmax, decay_gate, weight_decay, softmax, bounded_predicate) \
  ROW(24, thrust_double, elementwise, earlier_count_with_own, gatv2, earlier_count, bias, by_pair, margin, dropout, crowded, output_sigmoid, causal_lengths) \
  ROW(25, cpu_bfloat16, spatial_prior, cauchy, elliptical, tupe, fourier_prior, transformer_xl, softplus_gate, weight_decay, counted, bounded_predicate) \
  ROW(26, cpu_float16, by_pair, l2, relative_bias, bias_by_pair, fourier_prior, fading, softcap, ssmax, retention, bounded_predicate) \
  ROW(27, cpu_bfloat16, warped, cope, later_count, l2, by_pair, rotary, margin, weight_decay, softmax, causal_or_lengths) \
  ROW(28, cpu_float16, gatv2, warped, learned_keys, relative_bias, tupe, l2, softcap, ssmax, softplus_gate, dropout, adjusted_detached, output_sigmoid, sink_window) \
  ROW(29, cpu_float, tupe, given_scores, alibi, bias, by_pair, fading, ssmax, dropout, sparsemax, output_sigmoid, sink_window) \
  ROW(30, cpu_float, learned_keys, fire, key_bias, transformer_xl, spatial_prior, relative_bias, margin, given_gate, top_3, causal) \
  ROW(31, float8_cache, fourier_prior, elementwise, bilinear, learned_keys, key_bias, relative_bias, weight_sigmoid, crowded, predicate) \
  ROW(32, cpu_bfloat16, bias_by_pair, cauchy, earlier_count, earlier_count_with_own, bilinear, fourier_prior, margin, softplus_gate, retention, value_sigmoid, sink_window) \
  ROW(33, thrust_double, bilinear, fading, bias_by_pair, elementwise, elliptical, by_pair, margin, given_gate, adjusted_detached, value_sigmoid, causal) \
  ROW(34, cpu_float, bias, bias_by_pair, given_scores, elementwise, warped, fourier_prior, softcap, softmax, output_sigmoid, sink_window) \
  ROW(35, cpu_float, key_bias, learned_keys, rotary, l2, fading, bias, softcap, ssmax, dropout, counted, predicate) \
  ROW(36, cpu_bfloat16, fourier_prior, bilinear, elementwise, rotary, by_pair, l2, bent_map, adjusted, relative_values, sink_window) \
  ROW(37, cpu_float16, earlier_count_with_own, l2, by_pair, scalar_sort, elliptical, earlier_count, margin, weight_decay, counted, value_sigmoid, blocks) \
  ROW(38, cpu_bfloat16, warped, later_count, learned_keys, cauchy, rotary, ssmax, dropout, retention, causal_lengths) \
  ROW(39, float8_cache, rotary, warped, gatv2, cauchy, ssmax, decay_gate, dropout, sparsemax, value_sigmoid, output_sigmoid, lengths) \
  ROW(40, cpu_float16, fourier_prior, bias_by_pair, bilinear, elementwise, bent_map, margin, softplus_gate, top_3, causal_lengths) \
  ROW(41, cpu_float16, gatv2, rotary, bilinear, softcap, margin, softplus_gate, weight_sigmoid, softmax, sink_window) \
  ROW(42, cpu_float, warped, by_pair, relative_bias, given_scores, tupe, bilinear, softcap, margin, given_gate, weight_sigmoid, crowded, predicate) \
  ROW(43, cpu_bfloat16, spatial_prior, by_pair, cauchy, ssmax, decay_gate, dropout, adjusted_detached, sink_window) \
  ROW(44, thrust_double, key_bias, l2, bias_by_pair, gatv2, fire, bent_map, weight_decay, softmax, predicate) \
  ROW(45, float8_cache, cauchy, tupe, alibi, margin, decay_gate, weight_sigmoid, adjusted, lengths) \
  ROW(46, thrust_double, tupe, scalar_sort, softcap, weight_sigmoid, adjusted, value_sigmoid, predicate) \
  ROW(47, float8_cache, dot_product, fading, fourier_prior, elliptical, by_pair, ssmax, decay_gate, weight_sigmoid, retention, output_sigmoid, causal) \
  ROW(48, cpu_bfloat16, dot_product, key_bias, bent_map, ssmax, softplus_gate, dropout, retention, output_sigmoid, blocks) \
  ROW(49, cpu_float16, rotary, elliptical, ssmax, decay_gate, dropout, counted, output_sigmoid, predicate) \
  ROW(50, cpu_bfloat16, rotary, by_pair, scalar_sort, margin, softplus_gate, weight_decay, softmax, output_sigmoid, sink_window) \
  ROW(51, cpu_float, rotary, given_scores, softcap, given_gate, weight_sigmoid, adjusted, causal_lengths) \
  ROW(52, float8_cache, spatial_prior, warped, tupe, margin, softplus_gate, dropout, top_3, output_sigmoid, blocks) \
  ROW(53, cpu_bfloat16, bilinear, fourier_prior, bent_map, ssmax, sparsemax, output_sigmoid, causal)
// clang-format on
