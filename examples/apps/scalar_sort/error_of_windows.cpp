// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What reading only k keys does to the output, and what a certificate says about it.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "experiments.hpp"
#include "shared/csv.hpp"
#include "shared/page.hpp"
#include "shared/text.hpp"
#include "windows.hpp"

namespace scalar_sort {
namespace {

using apps::text;
namespace line = attune::line;

std::string run(apps::context const& c, shared_fits& made) {
  auto const& all = made(c);
  c.bar->stage("errors of windows");
  apps::csv error({"variant", "k", "nearest", "half", "promised", "missing", "bound"});
  std::vector<std::vector<std::string>> table{
      {"regularizers", "k = 8", "k = 16", "k = 32", "k = 64", "k / 2 each side, k = 64"}};
  double worst = 0;  // error over what was promised
  for (fitted const& f : all) {
    table.push_back({f.with.name});
    std::string half_at_64;
    std::vector<window_study> studies;
    for (fitted_layer const& l : f.layers)
      studies.emplace_back(in_context(l.learned, l.held_out(), l.held_out().count));
    for (index_t const k : {4, 8, 16, 32, 64, 128}) {
      std::vector<window_row> near, half;
      for (window_study const& s : studies) {
        auto const a = s.rows(line::nearest{k}), b = s.rows(line::half{k});
        near.insert(near.end(), a.begin(), a.end());
        half.insert(half.end(), b.begin(), b.end());
      }
      double promised = 0, exact = 0, missing = 0, bound = 0;
      for (window_row const& r : near) {
        worst = std::max(worst, r.error / r.promised);
        promised += r.promised * r.promised;
        exact += r.exact * r.exact;
        missing += (1 - r.captured) / double(near.size());
        bound += r.bound / double(near.size());
      }
      double const e = summary(near).error, h = summary(half).error;
      error.row({f.with.name, k, e, h, std::sqrt(promised / exact), missing, bound});
      if (k >= 8 && k <= 64) table.back().push_back(text("%.3f", e));
      if (k == 64) half_at_64 = text("%.3f", h);
    }
    table.back().push_back(half_at_64);
    c.bar->add(1.5);
  }
  if (worst > 1) throw std::runtime_error(text("a window's error is %g times what its report promises", worst));
  error.save(c.output / "error.csv");
  return text(
             "The error of the output, |out − exact| over |exact| (root mean square over held-out rows). On every row "
             "it was "
             "at most what "
             "the row's report promises; the largest share of the promise that was used up is %.2f. The promise is a "
             "bound for "
             "any values: it knows "
             "how much weight may be missing, not what it would have bought.</p>",
             worst) +
         apps::html_table(table) + "<p>";
}

}  // namespace

apps::experiment error_of_windows(fits f) {
  return {.name = "error",
          .title = "Error of a window of k keys",
          .summary = "relative error of the output for k = 4 ... 128 nearest keys, and what reports promise",
          .paper =
              "The probability mass outside the window is negligible for k of tens to low hundreds, whatever the "
              "length; the "
              "approximation "
              "error at k = 8, 16, 32, 64 is the metric to watch. The window is k/2 keys on each side of the insertion "
              "point. "
              "<cite>Binary search at inference; proposed experiment 3.</cite>",
          .pictures =
              {{"error_by_k",
                "Left: relative error of the output against the number of nearest keys read, held-out rows of 256 "
                "keys. Right: the share of "
                "weight that is missing (lines) and the bound that counts and nearest distances alone give (dashed)."}},
          .cost = 8,
          .run = [f](apps::context const& c) { return run(c, *f); },
          .preparation = shared_fits::cost};
}

}  // namespace scalar_sort
