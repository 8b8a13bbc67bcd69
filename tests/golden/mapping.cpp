// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "mapping.hpp"

namespace attune::golden {

std::vector<stage> const& scores() {
  static std::vector<stage> const table{
      {"dot", "dot", {{"q", "q", layout::sequence}, {"k", "k", layout::sequence}, {"scale", "scale", layout::per_row, false}}},
      {"given", "given", {{"s", "scores", layout::pairs}}},
      {"alibi",
       "dot+alibi",
       {{"q", "q", layout::sequence},
        {"k", "k", layout::sequence},
        {"scale", "scale", layout::per_row, false},
        {"slope", "slope", layout::per_row}}},
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
  static std::vector<stage> const table{
      {"softmax", "softmax", {}},
      {"off_by_one", "off_by_one", {}},
      {"sink", "sink", {{"sink", "sink", layout::per_row}}},
      {"principled",
       "grounded",
       {{"alpha", "alpha", layout::per_row}, {"gamma", "gamma", layout::per_row}, {"v0", "v0", layout::features}},
       "margin"},
  };
  return table;
}

std::vector<implied_pipeline> const& implied_pipelines() {
  static std::vector<implied_pipeline> const table{
      {"gqa", "dot", "softmax"},
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
