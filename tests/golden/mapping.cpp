// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "mapping.hpp"

#include <iterator>

namespace attune::golden {

std::vector<stage> const& scores() {
  static std::vector<stage> const table{
      {"dot",
       "dot",
       {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"scale", "scale", layout::per_row, false}}},
      {"given", "given", {{"s", "scores", layout::pairs}}},
      {"alibi",
       "dot+alibi",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"slope", "slope", layout::per_row}}},
      {"rbf", "rbf", {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"tau", "tau", layout::per_row}}},
      {"l2",
       "l2",
       {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"scale", "scale", layout::per_row, false}}},
      {"scaled_rbf",
       "scaled_rbf",
       {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"gamma_rbf", "rbf_gamma", layout::per_row}}},
      {"idw",
       "inverse_distance",
       {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"eps", "eps", layout::per_row}}},
      {"elliptical_bilinear",
       "bilinear",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"m", "metric", layout::table},
        {"scale", "scale", layout::per_row, false}}},
      {"elliptical_mahalanobis",
       "elliptical",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"m", "metric", layout::table},
        {"scale", "scale", layout::per_row, false}}},
      {"scalar",
       "scalar_sort",
       {{"qs", "sort_q", layout::numbers}, {"ks", "sort_k", layout::numbers}, {"tau", "tau", layout::per_row}}},
      {"scalar of each head",
       "scalar_sort",
       {{"qs", "sort_q", layout::numbers}, {"ks", "sort_k", layout::numbers}, {"tau", "tau", layout::per_head}}},
      {"none_", "scalar_difference", {{"qs", "sort_q", layout::numbers}, {"ks", "sort_k", layout::numbers}}},
      {"hybrid",
       "dot+scalar_sort",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"qs", "sort_q", layout::numbers},
        {"ks", "sort_k", layout::numbers},
        {"tau", "tau", layout::per_row}}},
      {"bias",
       "dot+bias",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"bias", "bias", layout::pairs}}},
      {"goat",
       "tempered_dot+log_prior",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"tau", "tau", layout::per_row},
        {"prior", "bias", layout::pairs}}},
      {"smca",
       "dot+spatial_prior",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"center", "center", layout::sequence},
        {"width", "spread", layout::sequence},
        {"kpos", "place", layout::sequence},
        {"beta_smca", "spatial_beta", layout::per_row}}},
      {"txl",
       "transformer_xl",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"u", "bias_u", layout::table},
        {"vb", "bias_w", layout::table},
        {"r", "relative", layout::table}}},
      {"tupe",
       "tupe",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"pq", "position_q", layout::sequence},
        {"pk", "position_k", layout::sequence}}},
  };
  return table;
}

std::vector<stage> const& lengths() {
  static std::vector<stage> const table{
      {"", "none", {}},
      {"ssmax", "ssmax", {{"ss_s", "ss_scale", layout::per_row}, {"ss_b", "ss_bias", layout::per_row, false}}},
      {"logn", "logn", {{"n0", "length0", layout::per_row}}},
      {"margin", "margin", {{"alpha", "alpha", layout::per_row}, {"gamma", "gamma", layout::per_row}}},
  };
  return table;
}

std::vector<stage> const& gates() {
  static std::vector<stage> const table{
      {"",
       "softplus",
       {{"qg", "gate_q", layout::sequence}, {"kg", "gate_k", layout::sequence}, {"beta", "beta", layout::per_row}}},
      {"", "given_softplus", {{"g", "gates", layout::pairs}, {"beta", "beta", layout::per_row}}},
      {"", "none", {}},
  };
  return table;
}

std::vector<stage> const& normalizers() {
  static std::vector<stage> const table = [] {
    std::vector<stage> all{
        {"softmax", "softmax", {}},
        {"off_by_one", "off_by_one", {}},
        {"sink", "sink", {{"sink", "sink", layout::per_row}}},
        {"principled",
         "grounded",
         {{"alpha", "alpha", layout::per_row}, {"gamma", "gamma", layout::per_row}, {"v0", "v0", layout::features}},
         "margin"},
        {"sparsemax", "sparsemax", {}},
        {"entmax", "entmax", {{"ent_alpha", "ent_alpha", layout::per_row}}},
        {"sigmoid", "sigmoid_negk", {}, "", {{"bias", "neg_log_n"}}},
        {"sigmoid", "sigmoid", {{"sig_b", "sig_bias", layout::per_row}}},
        {"self_adjust_x", "adjusted_product", {}},
        {"self_adjust_norm0", "adjusted_with_zero_detached", {}, "", {{"grad_minmax", "false"}}},
        {"self_adjust_norm0", "adjusted_with_zero", {}},
        {"self_adjust_minmax", "adjusted_full_range", {}},
        {"exp_unnormalized", "exponential", {}},
        {"sliced_relu", "relu", {}, "", {{"sr_mode", "sum"}}},
        {"sliced_relu", "mean_relu", {}, "", {{"sr_mode", "mean"}}},
        {"sliced_relu", "normalized_relu", {}, "", {{"sr_mode", "normalized"}}},
        {"sliced_relu", "centered_relu", {}, "", {{"sr_mode", "centered"}}},
    };
    std::vector<binding> const affine{{"apre", "alpha_pre", layout::per_row},
                                      {"alpha_ma", "average", layout::per_row},
                                      {"rho", "momentum", layout::per_row, false}};
    std::string_view const names[2][2][3] = {
        {{"affine_visible_sigmoid_given", "affine_visible_sigmoid_update_stop", "affine_visible_sigmoid_update_grad"},
         {"affine_visible_clipping_given", "affine_visible_clipping_update_stop",
          "affine_visible_clipping_update_grad"}},
        {{"affine_total_sigmoid_given", "affine_total_sigmoid_update_stop", "affine_total_sigmoid_update_grad"},
         {"affine_total_clipping_given", "affine_total_clipping_update_stop", "affine_total_clipping_update_grad"}}};
    std::string_view const counts[] = {"visible", "total"}, activations[] = {"sigmoid", "linear_clipping"},
                           averages[] = {"given", "update_stopgrad", "update_grad"};
    for (std::size_t n = 0; n < std::size(counts); ++n)
      for (std::size_t f = 0; f < std::size(activations); ++f)
        for (std::size_t a = 0; a < std::size(averages); ++a)
          all.push_back({"affine",
                         names[n][f][a],
                         affine,
                         "",
                         {{"N", counts[n]}, {"phi", activations[f]}, {"ema", averages[a]}}});
    return all;
  }();
  return table;
}

std::vector<stage> const& posts() {
  static std::vector<stage> const table{
      {"", "", {}},
      {"gate_elementwise", "sigmoid_output", {{"gate", "output_gate", layout::sequence}}},
      {"gate_headwise", "sigmoid_output", {{"gate", "output_gate", layout::sequence}}},
  };
  return table;
}

std::vector<implied_pipeline> const& implied_pipelines() {
  static std::vector<implied_pipeline> const table{
      {"gqa", "dot", "softmax"},
      {"grouped_value", "scalar of each head", "softmax"},
      // edge.json
      {"softmax", "given", "softmax"},
      {"off_by_one", "given", "off_by_one"},
      {"principled", "given", "principled"},
      {"sparsemax", "given", "sparsemax"},
      {"entmax", "given", "entmax"},
      {"sigmoid", "given", "sigmoid"},
  };
  return table;
}

}  // namespace attune::golden
