// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_PRESETS(PRESET)  calls PRESET(name, call, policies, names, note, operator, tests) for every preset, in the
//                               order of the docs
//
// The one catalogue of presets. The command line's list and its operators, the tests' operators, and the tables of
// docs/reference/operators.md (scripts/operator_tables) come from it; what is known of each policy is in policies.cpp. A new
// preset is its function in attune/operators/presets/, a row here, and a golden case or a gradient test of what is new
// in it.
//
//   name       what the command line calls it
//   call       the function, with its arguments
//   policies   names of policies.cpp
//   names      path=name, where the command line's name of a parameter or table is not its own; policies may have two
//              of one name
//   note       for the docs
//   operator   how it is made: m is the mask, `open` a parameter that is set later, c("k", 8) a constant that is no
//              parameter
//   tests      the operators of tests/instances that stand for it, of policies of tests/instances/policies.hpp
//
// A group is compiled together: three operators or four.
#pragma once

// clang-format off: a row is a table's
#define ATTUNE_PRESETS_softmax(PRESET) \
  PRESET(softmax, "softmax_attention()", "kernel::dot_product normalizer::softmax", "", "", \
    softmax_attention(m), \
    add(to, dot, no_length_scale, no_gate, softmax)) \
  PRESET(off_by_one, "off_by_one_attention()", "kernel::dot_product normalizer::off_by_one", "", "", \
    off_by_one_attention(m), \
    add(to, dot, no_length_scale, no_gate, off_by_one)) \
  PRESET(sink, "sink_attention(t)", "kernel::dot_product normalizer::sink", "", "", \
    sink_attention(open, m), \
    add(to, dot, no_length_scale, no_gate, sink))
#define ATTUNE_PRESETS_principled(PRESET) \
  PRESET(principled, "principled_attention({alpha, beta, gamma})", "kernel::dot_product length_scale::margin gate::softplus normalizer::grounded", "", "`softmax_equivalent` gives its initial parameters", \
    principled_attention({}, m), \
    add(to, dot, margin, softplus_gate, grounded))
#define ATTUNE_PRESETS_length_scales(PRESET) \
  PRESET(ssmax, "ssmax_attention({scale, bias})", "kernel::dot_product length_scale::ssmax normalizer::softmax", "kernel.scale=kernel.scale", "", \
    ssmax_attention({}, m), \
    add(to, dot, ssmax, no_gate, softmax)) \
  PRESET(log_n, "log_n_attention(n0)", "kernel::dot_product length_scale::log_n normalizer::softmax", "", "", \
    log_n_attention(open, m), \
    add(to, dot, logn, no_gate, softmax)) \
  PRESET(margin, "margin_attention(alpha, gamma)", "kernel::dot_product length_scale::margin normalizer::softmax", "", "", \
    margin_attention(open, open, m), \
    add(to, dot, margin, no_gate, softmax)) \
  PRESET(yarn, "yarn_attention(e)", "kernel::dot_product length_scale::yarn normalizer::softmax", "", "", \
    yarn_attention(open, m), \
    add(to, dot, yarn, no_gate, softmax))
#define ATTUNE_PRESETS_affine(PRESET) \
  PRESET(affine_scaled, "affine_scaled_attention<visible>(alpha, average)", "kernel::dot_product normalizer::affine", "", "", \
    affine_scaled_attention(open, open, m), \
    add(to, dot, no_length_scale, no_gate, affine_visible)) \
  PRESET(affine_scaled_total, "affine_scaled_attention<total>(alpha, average)", "kernel::dot_product normalizer::affine", "", "", \
    affine_scaled_attention<normalizer::affine_count::total>(open, open, m), \
    add_affine_variants<affine_count::total>(to, dot, "total"))
#define ATTUNE_PRESETS_affine_gated(PRESET) \
  PRESET(affine_gated, "affine_gated_attention<visible>(alpha, average)", "kernel::dot_product normalizer::affine gate::sigmoid_output", "", "", \
    affine_gated_attention(open, open, m), \
    add_affine_variants<affine_count::visible>(to, dot, "visible", sigmoid_output)) \
  PRESET(affine_gated_total, "affine_gated_attention<total>(alpha, average)", "kernel::dot_product normalizer::affine gate::sigmoid_output", "", "", \
    affine_gated_attention<normalizer::affine_count::total>(open, open, m), \
    )
#define ATTUNE_PRESETS_gates(PRESET) \
  PRESET(gated, "gated_attention()", "kernel::dot_product normalizer::softmax gate::sigmoid_output", "", "", \
    gated_attention(m), \
    add(to, dot, no_length_scale, no_gate, softmax, sigmoid_output)) \
  PRESET(value_gated, "value_gated_attention()", "kernel::dot_product normalizer::softmax gate::sigmoid_value", "", "", \
    value_gated_attention(m), \
    add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value)) \
  PRESET(two_sided, "two_sided_attention(beta)", "kernel::dot_product gate::two_sided normalizer::softmax", "", "", \
    two_sided_attention(open, m), \
    add(to, dot, no_length_scale, two_sided_gate, softmax))
#define ATTUNE_PRESETS_scalars(PRESET) \
  PRESET(scalar_sort, "scalar_sort_attention(tau)", "kernel::scalar_sort normalizer::softmax", "", "", \
    scalar_sort_attention(open, m), \
    add(to, scalar_sort, no_length_scale, no_gate, softmax)) \
  PRESET(scalar_laplacian, "scalar_laplacian_attention(tau)", "kernel::scalar_laplacian normalizer::softmax", "", "", \
    scalar_laplacian_attention(open, m), \
    add(to, scalar_laplacian, no_length_scale, no_gate, softmax)) \
  PRESET(hybrid, "hybrid_attention(tau)", "kernel::dot_product kernel::scalar_sort normalizer::softmax", "", "", \
    hybrid_attention(open, m), \
    add(to, hybrid, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_distances(PRESET) \
  PRESET(rbf, "rbf_attention(tau)", "kernel::rbf normalizer::softmax", "", "", \
    rbf_attention(open, m), \
    add(to, rbf, no_length_scale, no_gate, softmax)) \
  PRESET(l2, "l2_attention(scale)", "kernel::l2 normalizer::softmax", "", "", \
    l2_attention(open, m), \
    add(to, l2, no_length_scale, no_gate, softmax)) \
  PRESET(scaled_rbf, "scaled_rbf_attention(gamma)", "kernel::scaled_rbf normalizer::softmax", "", "", \
    scaled_rbf_attention(open, m), \
    add(to, scaled_rbf, no_length_scale, no_gate, softmax)) \
  PRESET(inverse_distance, "inverse_distance_attention(eps)", "kernel::inverse_distance normalizer::softmax", "", "", \
    inverse_distance_attention(open, m), \
    add(to, inverse_distance, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_metrics(PRESET) \
  PRESET(elliptical, "elliptical_attention(metric)", "kernel::elliptical normalizer::softmax", "", "", \
    elliptical_attention({}, m), \
    add(to, elliptical, no_length_scale, no_gate, softmax)) \
  PRESET(bilinear, "bilinear_attention(metric)", "kernel::bilinear normalizer::softmax", "", "", \
    bilinear_attention({}, m), \
    add(to, bilinear, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_biases(PRESET) \
  PRESET(biased, "biased_attention()", "kernel::dot_product kernel::bias normalizer::softmax", "", "", \
    biased_attention(m), \
    add(to, dot_bias, no_length_scale, no_gate, softmax)) \
  PRESET(alibi, "alibi_attention(slope)", "kernel::dot_product kernel::alibi normalizer::softmax", "", "", \
    alibi_attention(open, m), \
    add(to, dot_alibi, no_length_scale, no_gate, softmax)) \
  PRESET(softcap, "softcap_attention(cap)", "kernel::dot_product kernel::softcap normalizer::softmax", "", "", \
    softcap_attention(open, m), \
    add(to, dot_softcap, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_relative(PRESET) \
  PRESET(relative_bias, "relative_bias_attention(values)", "kernel::dot_product kernel::relative_bias normalizer::softmax", "", "", \
    relative_bias_attention({}, m), \
    add(to, dot_relative_bias, no_length_scale, no_gate, softmax)) \
  PRESET(smca, "smca_attention(beta)", "kernel::dot_product kernel::spatial_prior normalizer::softmax", "", "", \
    smca_attention(open, m), \
    add(to, dot_spatial_prior, no_length_scale, no_gate, softmax)) \
  PRESET(t5, "t5_attention(t5_bias)", "kernel::dot_product kernel::t5_bias normalizer::softmax", "", "T5 has no 1/√D: `dot_product{1}`", \
    t5_attention({{}, int(c("max_distance", 128)), c("bidirectional", 1) != 0}, m), \
    add(to, dot_t5_bias, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_positions(PRESET) \
  PRESET(tupe, "tupe_attention()", "kernel::tupe normalizer::softmax", "", "", \
    tupe_attention(m), \
    add(to, tupe, no_length_scale, no_gate, softmax)) \
  PRESET(transformer_xl, "transformer_xl_attention(u, w, r)", "kernel::transformer_xl normalizer::softmax", "kernel.0.bias=u kernel.1.bias=w kernel.1.relative=r", "", \
    transformer_xl_attention({}, {}, {}, m), \
    add(to, transformer_xl, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_priors(PRESET) \
  PRESET(goat, "goat_attention(tau)", "kernel::tempered_dot kernel::log_prior normalizer::softmax", "", "", \
    goat_attention(open, m), \
    add(to, tempered_log_prior, no_length_scale, no_gate, softmax)) \
  PRESET(goat_fourier, "goat_fourier_attention(tau, fourier_prior)", "kernel::tempered_dot kernel::fourier_prior kernel::key_bias normalizer::softmax", "", "", \
    goat_fourier_attention(open, {}, m), \
    add(to, dot_fourier_key_bias, no_length_scale, no_gate, softmax))
#define ATTUNE_PRESETS_unnormalised(PRESET) \
  PRESET(gaussian, "gaussian_attention(tau)", "kernel::rbf normalizer::exponential", "", "", \
    gaussian_attention(open, m), \
    add(to, rbf, no_length_scale, no_gate, exponential)) \
  PRESET(sigmoid, "sigmoid_attention(bias)", "kernel::dot_product normalizer::sigmoid", "", "", \
    sigmoid_attention(open, m), \
    add(to, dot, no_length_scale, no_gate, sigmoid); add(to, dot, no_length_scale, no_gate, sigmoid_negk))
#define ATTUNE_PRESETS_sliced_relu(PRESET) \
  PRESET(sliced_relu_sum, "sliced_relu_attention<sum>()", "kernel::scalar_difference normalizer::relu", "", "", \
    sliced_relu_attention<sliced_relu_form::sum>(m), \
    add(to, scalar_difference, no_length_scale, no_gate, relu)) \
  PRESET(sliced_relu_mean, "sliced_relu_attention<mean>()", "kernel::scalar_difference normalizer::mean_relu", "", "", \
    sliced_relu_attention<sliced_relu_form::mean>(m), \
    add(to, scalar_difference, no_length_scale, no_gate, mean_relu)) \
  PRESET(sliced_relu_centered, "sliced_relu_attention<centered>()", "kernel::scalar_difference normalizer::centered_relu", "", "", \
    sliced_relu_attention<sliced_relu_form::centered>(m), \
    add(to, scalar_difference, no_length_scale, no_gate, centered_relu)) \
  PRESET(sliced_relu_normalized, "sliced_relu_attention<normalized>()", "kernel::scalar_difference normalizer::normalized_relu", "", "", \
    sliced_relu_attention<sliced_relu_form::normalized>(m), \
    add(to, scalar_difference, no_length_scale, no_gate, normalized_relu))
#define ATTUNE_PRESETS_candidates(PRESET) \
  PRESET(sparsemax, "sparsemax_attention()", "kernel::dot_product normalizer::sparsemax", "", "", \
    sparsemax_attention(m), \
    add(to, dot, no_length_scale, no_gate, sparsemax)) \
  PRESET(entmax, "entmax_attention(alpha)", "kernel::dot_product normalizer::entmax", "", "", \
    entmax_attention(open, m), \
    add(to, dot, no_length_scale, no_gate, entmax)) \
  PRESET(entmax15, "entmax15_attention()", "kernel::dot_product normalizer::entmax15", "", "", \
    entmax15_attention(m), \
    add(to, dot, no_length_scale, no_gate, entmax15)) \
  PRESET(top_k, "top_k_attention(k)", "kernel::dot_product normalizer::top_k", "", "", \
    top_k_attention(index_t(c("k", 8)), m), \
    add(to, dot, no_length_scale, no_gate, top_3))
#define ATTUNE_PRESETS_self_adjusted(PRESET) \
  PRESET(self_adjusted, "self_adjusted_attention<with_zero, ends>()", "kernel::dot_product normalizer::self_adjusted", "", "", \
    self_adjusted_attention(m), \
    add(to, dot, no_length_scale, no_gate, adjusted_with_zero); add(to, dot, no_length_scale, no_gate, adjusted_with_zero_detached)) \
  PRESET(self_adjusted_product, "self_adjusted_attention<product, ends>()", "kernel::dot_product normalizer::self_adjusted", "", "", \
    self_adjusted_attention<normalizer::adjusted_form::product>(m), \
    add(to, dot, no_length_scale, no_gate, adjusted_product)) \
  PRESET(self_adjusted_full_range, "self_adjusted_attention<full_range, ends>()", "kernel::dot_product normalizer::self_adjusted", "", "", \
    self_adjusted_attention<normalizer::adjusted_form::full_range>(m), \
    add(to, dot, no_length_scale, no_gate, adjusted_full_range))
#define ATTUNE_PRESETS(PRESET) \
  ATTUNE_PRESETS_softmax(PRESET) \
  ATTUNE_PRESETS_principled(PRESET) \
  ATTUNE_PRESETS_length_scales(PRESET) \
  ATTUNE_PRESETS_affine(PRESET) \
  ATTUNE_PRESETS_affine_gated(PRESET) \
  ATTUNE_PRESETS_gates(PRESET) \
  ATTUNE_PRESETS_scalars(PRESET) \
  ATTUNE_PRESETS_distances(PRESET) \
  ATTUNE_PRESETS_metrics(PRESET) \
  ATTUNE_PRESETS_biases(PRESET) \
  ATTUNE_PRESETS_relative(PRESET) \
  ATTUNE_PRESETS_positions(PRESET) \
  ATTUNE_PRESETS_priors(PRESET) \
  ATTUNE_PRESETS_unnormalised(PRESET) \
  ATTUNE_PRESETS_sliced_relu(PRESET) \
  ATTUNE_PRESETS_candidates(PRESET) \
  ATTUNE_PRESETS_self_adjusted(PRESET)
// clang-format on
