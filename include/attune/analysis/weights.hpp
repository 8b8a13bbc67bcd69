// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w = weights(normalizer::sparsemax{}, logits),   p = softmax(logits, T)
//
// One row of logits through a normalizer policy, with every key visible. The analysis gets its weights from here. Runs
// the policies' own source, in any scalar, including dual numbers.
#pragma once

#include <utility>

#include <attune/analysis/numbers.hpp>
#include <attune/core/dual.hpp>
#include <attune/exec/reference/row.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::analysis {

/// The results of a normalizer for a row: .weights, .ground_weight, .lse, .threshold. Parameters are read at (0, 0, 0).
template <class Normalizer, numbers R, class T = number_of<R>>
attune::detail::weighed_row<T> weigh(Normalizer const& normalizer, R const& logits) {
  index_t const keys = count_of(logits);
  T const visible = T(double(keys));
  row<T> r{};
  r.visible = visible;
  r.log_visible = keys > 0 ? math::log(visible) : T(0);
  r.keys = visible;
  attune::detail::visible_keys<T> all;
  for (index_t j = 0; j < keys; ++j) all.keys.push_back(j);
  all.logits.assign(std::ranges::begin(logits), std::ranges::end(logits));
  return attune::detail::weigh<Normalizer>(normalizer.bind(r), all, visible);
}

/// Only the weights.
template <class Normalizer, numbers R, class T = number_of<R>>
std::vector<T> weights(Normalizer const& normalizer, R const& logits) {
  return std::move(weigh(normalizer, logits).weights);
}

/// l / T. Throws attune::error unless T > 0.
template <numbers R, class T = number_of<R>>
std::vector<T> tempered(R const& logits, T const& temperature) {
  detail::require_positive("analysis::tempered", "temperature", temperature);
  std::vector<T> divided;
  for (T const& l : logits) divided.push_back(l / temperature);
  return divided;
}

/// softmax(l / T)
template <numbers R, class T = number_of<R>>
std::vector<T> softmax(R const& logits, T const& temperature = T(1)) {
  return weights(normalizer::softmax{}, tempered(logits, temperature));
}

/// log sum e^l
template <numbers R, class T = number_of<R>>
T log_sum_exp(R const& logits) {
  return weigh(normalizer::softmax{}, logits).lse;
}

}  // namespace attune::analysis
