// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s = statistics(forward(reference<T>{}, op, in), {.columns = true})
//
// The statistics of dense logits and weights, each computed by its definition.
#pragma once

#include <attune/exec/reference/compensated.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/statistics.hpp>

namespace attune {

/// The statistics that exec/statistics.hpp describes, of every row of a dense evaluation. Operations: O(B H Lq Lk) of
/// T.
template <class T>
row_statistics<T> statistics(dense_result<T> const& result, statistics_request const& request = {}) {
  detail::check_request("statistics", request);
  problem_shape const& p = result.extents;
  row_statistics<T> to(p, request);
  T const off = -math::infinity<T>();
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      dense_head<T> const& head = result.at(b, h);
      std::vector<detail::compensated<T>> columns(std::size_t(request.columns ? p.keys : 0));
      for (index_t i = 0; i < p.queries; ++i) {
        auto const row = std::size_t(to.at(b, h, i));
        detail::compensated<T> logits, mass, entropy;
        for (index_t j = 0; j < p.keys; ++j) {
          if (!head.visible(i, j)) continue;
          T const a = head.logits(i, j), w = head.weights(i, j);
          to.highest_weight[row] = detail::larger_or_nan(to.highest_weight[row], w);
          mass.add(w);
          if (request.above && w > T(*request.above)) ++to.above[row];
          if (request.columns) columns[std::size_t(j)].add(w);
          if (request.entropy && !(w == T(0))) entropy.add(T(-w * (w < T(0) ? T(off - off) : math::log(w))));
          if (a == off) continue;
          to.highest_logit[row] = detail::larger_or_nan(to.highest_logit[row], a);
          logits.add(a);
          ++to.scored[row];
        }
        to.mass[row] = mass.value();
        if (request.entropy) to.entropy[row] = entropy.value();
        if (to.scored[row] > 0) to.mean_logit[row] = logits.value() / T(double(to.scored[row]));
        if (p.keys > 0 && head.visible(i, 0)) to.first_key[row] = head.weights(i, 0);
        if (head.ground_weight.size() > 0) to.ground_weight[row] = head.ground_weight(i);
      }
      for (std::size_t j = 0; j < columns.size(); ++j)
        to.columns[std::size_t(to.at_key(b, h, index_t(j)))] = columns[j].value();
    }
  return to;
}

}  // namespace attune
