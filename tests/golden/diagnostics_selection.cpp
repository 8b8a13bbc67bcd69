// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json: Corollary 1, the distance of Theorem 1 and the separability of Theorem 2.
#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/weights.hpp>

#include "diagnostics.hpp"

namespace attune::golden {
namespace {

template <class T>
results vanishing(reader<T> const& in) {
  auto const q = in("q"), k = in("k");
  analysis::points<T> const keys(k, in.width("k"));
  std::vector<T> scores;
  for (index j = 0; j < keys.count(); ++j) scores.push_back(analysis::dot(q, keys[j]));
  T const delta = analysis::score_bound(q, keys);
  auto const range = analysis::vanishing_softmax(delta, in.one("T"), keys.count());
  return {{"alpha", plain(analysis::softmax(scores, in.one("T")))},
          {"Delta", plain(delta)},
          {"lower", plain(range.lower)},
          {"upper", plain(range.upper)},
          {"lower_tight", plain(range.sharp_lower)},
          {"upper_tight", plain(range.sharp_upper)}};
}

template <class T>
results distances(reader<T> const& in, index n) {
  auto const alpha = in("alpha"), data = in("x");
  analysis::points<T> const x(data, in.width("x"));
  auto const fixed = analysis::bound_fixed_set(alpha, x, n);
  auto const random = analysis::bound_random_set(alpha, x, n);
  return {{"topN", {fixed.chosen.chosen.begin(), fixed.chosen.chosen.end()}},
          {"d_tilde", plain(fixed.chosen.distance)},
          {"alpha_bar", plain(fixed.mass)},
          {"d1", plain(fixed.farthest)},
          {"theorem1_fixed_bound", plain(fixed.printed)},
          {"theorem1_fixed_bound_subnormalized", plain(fixed.bound)},
          {"E_exact_enumerated", plain(analysis::expected_distance(alpha, x, n))},
          {"theorem1_random_main_printed", plain(random.printed)},
          {"theorem1_random_main_corrected", plain(random.lower)},
          {"theorem1_eps_bound", plain(random.gap)},
          {"theorem1_random_upper_variance", plain(random.upper)},
          {"cor2_sum_alpha_norm", plain(analysis::distance_of_long_rows(alpha, x, n).printed)}};
}

template <class T>
results geometry(reader<T> const& in, index n) {
  auto const alpha = in("alpha"), data = in("x");
  analysis::points<T> const x(data, in.width("x"));
  auto const y = analysis::weighted(alpha, x);
  auto const chosen = analysis::select(analysis::points<T>(y, x.width()), analysis::largest(alpha, n));
  T const r = in.has("r") ? in.one("r") : analysis::separation_radius(chosen);
  std::vector<T> w;
  for (index const i : chosen.chosen) w.push_back(alpha[static_cast<std::size_t>(i)]);
  auto const bounds = analysis::bound_separability(w, analysis::sphere<T>{in.one("M"), in.one("delta"), x.width()}, r);
  T const inside = T(static_cast<double>(analysis::separable(chosen, r)));
  return {{"r", plain(r)},
          {"dist_selected", plain(chosen.chosen_distance)},
          {"N_s", plain(inside)},
          {"ratio", plain(T(inside / T(static_cast<double>(n))))},
          {"xi", plain(bounds.spread)},
          {"theorem2_lower", plain(bounds.lower)},
          {"theorem2_upper_printed", plain(bounds.printed)},
          {"upper_corrected_mcdiarmid_iid", plain(bounds.upper)}};
}

}  // namespace

results diagnose_selection(golden_case const& c, instances::backend executor) {
  return in_scalar_of(executor, [&]<class T>(T const&) {
    reader<T> const in(c);
    if (c.operation == "cor1_bounds") return vanishing(in);
    if (c.operation == "distance_theorem1") return distances(in, c.params.at("N").get<index>());
    if (c.operation == "geometric_theorem2") return geometry(in, c.params.at("N").get<index>());
    return results{};
  });
}

}  // namespace attune::golden
