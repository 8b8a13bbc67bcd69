// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_skipped_keys(call, rows)    "keys skipped in dq: 16..31"
//
// Keys next to each other whose part dq lacks.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <attune/testing/judging/backward/backward_rows.hpp>
#include <attune/testing/judging/backward/gradient_call.hpp>
#include <attune/testing/judging/backward/row_regions.hpp>

namespace attune::testing::detail {

/// The keys next to each other that dq lacks: the same for all rows, or others in each row.
template <RecomputesWeights Op>
void by_skipped_keys(gradient_call<Op>& call, backward_rows<Op>& rows) {
  if (call.p.keys == 0 || call.given.all().count(field::q) == 0 ||
      !call.seen.must_be_explained(call.tensors.at(field::q)))
    return;
  constexpr index_t lengths[] = {1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
  auto const& q = call.exact.of(field::q);
  std::size_t const width = std::size_t(q.extents.feature), first = call.first_of(field::q);
  if (q.values.size() != std::size_t(call.p.batch * call.p.heads * call.p.queries) * width) return;
  dense_gradients<double> scratch = attune::detail::blank_gradients<double>(call.op, call.in);
  std::vector<double> common(std::size(lengths) * std::size_t(call.p.keys), 0), change(q.values.size(), 0);
  std::vector<double> sums(std::size_t(call.p.keys + 1) * width);
  double of_all = 0;
  /// Visits the ranges of a row: the gain if they are missing.
  auto const with_ranges = [&](std::size_t row, auto const& visit) {
    std::fill(sums.begin(), sums.end(), 0.);
    rows.for_each_key(scratch, [&](index_t j, double const* x) {
      std::copy_n(x, width, sums.begin() + std::ptrdiff_t(std::size_t(j + 1) * width));
    });
    for (std::size_t n = width; n < sums.size(); ++n) sums[n] += sums[n - width];
    for (std::size_t l = 0; l < std::size(lengths); ++l)
      for (index_t j = 0; j + lengths[l] <= call.p.keys; ++j) {
        double gain = 0;
        double const *low = &sums[std::size_t(j) * width], *high = &sums[std::size_t(j + lengths[l]) * width];
        for (std::size_t c = 0; c < width; ++c) {
          double const x = low[c] - high[c], m = call.seen.metric(first + row * width + c);
          gain += x * m * (2 * call.seen.residual(first + row * width + c) - x);
        }
        visit(l, j, gain, low, high);
      }
  };
  std::size_t row = 0;
  call.for_each_row([&](index_t b, index_t h, index_t i) {
    rows.select(b, h, i);
    double best = 9;
    double* const to = &change[row * width];
    with_ranges(row, [&](std::size_t l, index_t j, double gain, double const* low, double const* high) {
      common[l * std::size_t(call.p.keys) + std::size_t(j)] += gain;
      if (!(gain > best)) return;
      best = gain;
      for (std::size_t c = 0; c < width; ++c) to[c] = low[c] - high[c];
    });
    if (best > 9) of_all += best;
    ++row;
  });
  auto const most = std::max_element(common.begin(), common.end());
  bool const same = *most > 0.9 * of_all;
  finding f;
  f.name = "keys skipped in dq: other ones in each row";
  f.last_resort = !same;
  if (same) {
    std::size_t const at = std::size_t(most - common.begin()), l = at / std::size_t(call.p.keys);
    index_t const from = index_t(at % std::size_t(call.p.keys));
    f.name = "keys skipped in dq: " + row_regions::words(from, from + lengths[l], "", "");
    row = 0;
    call.for_each_row([&](index_t b, index_t h, index_t i) {
      rows.select(b, h, i);
      double* const to = &change[row * width];
      with_ranges(row, [&](std::size_t of, index_t j, double gain, double const* low, double const* high) {
        if (of != l || j != from) return;
        for (std::size_t c = 0; c < width; ++c) to[c] = gain > 0 ? low[c] - high[c] : 0;
      });
      ++row;
    });
  }
  std::vector<double> along(call.seen.size(), 0);
  std::copy(change.begin(), change.end(), along.begin() + std::ptrdiff_t(first));
  f = call.seen.judged(f, along, false);
  // Ranges that are chosen for each row explain a part of any residual.
  if (same || f.share > 0.9) {
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call.report.findings.push_back(f);
  }
}

}  // namespace attune::testing::detail
