// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The tables that translate the vocabulary of the golden cases into the names of the operator registry. A new operator
// is a new line in mapping.cpp; nothing else of the golden program knows an operator by name (merge_states excepted).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace attune::golden {

/// How the values of an input lie in a tensor of the registry (B, heads, position, feature).
enum class layout {
  sequence,  ///< [L, width], [heads, L, width]  ->  (1, heads, L, width)
  pairs,     ///< [Lq, Lk] or one number for all pairs  ->  (1, 1, Lq, Lk)
  features,  ///< [width]  ->  (1, 1, 1, width)
  numbers,   ///< [L], [heads, L]  ->  (1, heads, L, 1)
  per_row,   ///< a parameter: [1], [Lq] or a number  ->  (1, 1, 1 | Lq)
  per_head,  ///< a parameter: [heads]  ->  (1, heads, 1)
  table      ///< a table: [columns], [rows, columns]  ->  (1, 1, rows, columns)
};

/// One input or parameter of a case and the tensor, parameter or table of the registry that it becomes. Its gradient
/// comes back under the registry's name.
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
  std::vector<std::pair<std::string_view, std::string_view>> when =
      {};  ///< parameters of the case that must have these values
};

/// The pipeline of the operators whose cases do not spell it out in params.normalizer.
struct implied_pipeline {
  std::string_view operation;
  std::string_view score;
  std::string_view normalizer;
};

std::vector<stage> const& scores();
std::vector<stage> const& lengths();
std::vector<stage> const& gates();        ///< chosen by the first input they read; the golden name is empty
std::vector<stage> const& normalizers();  ///< the first of its name whose conditions hold
std::vector<stage> const& posts();        ///< the registry name is empty where there is none
std::vector<implied_pipeline> const& implied_pipelines();

}  // namespace attune::golden
