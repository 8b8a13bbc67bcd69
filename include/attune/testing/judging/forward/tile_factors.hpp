// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_tile_factors(call, rows)     "weights of whole tiles of 32 keys off, by other factors in each row: ..."
//
// For a verdict that is already FAIL: does each row weigh the tiles of keys wrongly, and the keys in a tile rightly? A
// maximum that is stale, a sum that is not rescaled, and splits that are merged wrongly do that.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <Eigen/QR>

#include <attune/testing/judging/forward/sampled_call.hpp>

namespace attune::testing::detail {

/// Fits out = sum over the tiles of f_t (sum of w v over the keys of tile t), with other f_t in each row. Needs twice
/// as many features as tiles.
/// Complexity: O(rows Dv (Lk + tiles^2)) for each of seven tiles.
template <class Op>
void by_tile_factors(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  if constexpr (Op::has_lse && Op::has_plain_values && !Op::has_output_gate && !Op::has_ground_weight) {
    problem_shape const& p = call.p;
    if (!call.seen.must_be_explained(0) || of.empty()) return;
    auto const width = Eigen::Index(p.value_width);
    for (index_t tile : {256, 128, 96, 64, 48, 32, 16}) {
      index_t const tiles = (p.keys + tile - 1) / tile;
      if (tiles < 2 || 2 * tiles > p.value_width) continue;
      std::vector<double> along(call.seen.size(), 0);
      double left = 0, all = 0, left_by_one = 0;  // by_one: one factor for the whole row, which is another finding
      for (std::size_t n : of) {
        sampled_row const& r = call.sampled[n];
        auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
        index_t const head = p.group(r.head, p.value_heads);
        Eigen::MatrixXd parts = Eigen::MatrixXd::Zero(width, tiles);
        Eigen::VectorXd got(width), unit(width);
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          for (Eigen::Index d = 0; d < width && row.weights[k] != 0; ++d)
            parts(d, row.keys[k] / tile) += row.weights[k] * call.in.v(r.batch, head, row.keys[k], d);
        for (Eigen::Index d = 0; d < width; ++d) {
          std::size_t const at = n * call.step() + std::size_t(d);
          unit(d) = std::sqrt(call.seen.metric(at));
          got(d) = unit(d) * (row.out[std::size_t(d)] + call.seen.residual(at));
        }
        if (!parts.allFinite() || !got.allFinite()) return;
        Eigen::MatrixXd const weighted = unit.asDiagonal() * parts;
        Eigen::VectorXd const fitted = parts * weighted.colPivHouseholderQr().solve(got);
        Eigen::VectorXd const whole = weighted.rowwise().sum();
        double const one = whole.squaredNorm() > 0 ? whole.dot(got) / whole.squaredNorm() : 1;
        left_by_one += (got - one * whole).squaredNorm();
        for (Eigen::Index d = 0; d < width; ++d) {
          std::size_t const at = n * call.step() + std::size_t(d);
          along[at] = fitted(d) - row.out[std::size_t(d)];
          left += call.seen.left(at, along[at]), all += call.seen.left(at, 0);
        }
        // These factors say nothing of the lse.
        for (std::size_t k = std::size_t(width); k < call.step(); ++k)
          along[n * call.step() + k] = call.seen.residual(n * call.step() + k);
      }
      if (left_by_one < 0.1 * all) return;
      if (!(left < 0.1 * all)) continue;
      finding f;
      f.name =
          attune::detail::text("weights of whole tiles of ", tile, " keys off, by other factors in each row: a stale ",
                               "maximum, a missing rescale, or a wrong merge of splits");
      f.look_at = "where e^(old maximum - new maximum) multiplies sum and out, and the merge of splits";
      f.last_resort = true;
      f = call.seen.judged(f, along);
      f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
      call.report.findings.push_back(std::move(f));
      return;
    }
  }
}

}  // namespace attune::testing::detail
