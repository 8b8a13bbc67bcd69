// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tables that translate the vocabulary of the golden cases into the names of the operator registry. A new operator is
// a new line in mapping.cpp; nothing else of the golden program knows an operator by name (merge_states excepted).
#pragma once

#include <string_view>
#include <vector>

namespace attune::golden {

/// How the values of an input lie in a tensor of the registry (B, heads, position, feature).
enum class layout {
  sequence,  ///< [L, width], [heads, L, width]  ->  (1, heads, L, width)
  pairs,     ///< [Lq, Lk] or one number for all pairs  ->  (1, 1, Lq, Lk)
  features,  ///< [width]  ->  (1, 1, 1, width)
  per_row    ///< a parameter: [1], [Lq] or a number  ->  (1, 1, 1 | Lq)
};

/// One input or parameter of a case and the tensor or parameter of the registry that it becomes.
struct binding {
  std::string_view source;  ///< looked up among the inputs, then among the params
  std::string_view target;
  layout as;
  bool required = true;
};

/// One stage of the attention pipeline: its golden name, its registry name, and the inputs it reads.
struct stage {
  std::string_view golden;
  std::string_view registry;
  std::vector<binding> reads;
  std::string_view length = {};  ///< normalizers that contain a length scale: its registry name
};

/// The pipeline of the operators whose cases do not spell it out in params.normalizer.
struct implied_pipeline {
  std::string_view operation;
  std::string_view score;
  std::string_view normalizer;
};

std::vector<stage> const& scores();
std::vector<stage> const& lengths();
std::vector<stage> const& gates();  ///< chosen by the first input they read; the golden name is empty
std::vector<stage> const& normalizers();
std::vector<implied_pipeline> const& implied_pipelines();

}  // namespace attune::golden
