// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Theorem 2 on real rows: how many of the selected keys stay nearer to what the row selects than any other key.
#include <attune/analysis/heads.hpp>
#include <attune/analysis/limits/separability.hpp>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"

namespace gallery {
namespace {

/// One row at one N.
struct measured {
  double share;                  ///< N_s / N, values on the unit sphere as Assumption 1 has them
  double share_as_they_are;      ///< the same of the values themselves
  double lower, upper, printed;  ///< Theorem 2 at the row's own r
};

struct separated {
  analysis::selection<double> chosen;
  double radius, share;
};
separated separate(std::vector<double> const& alpha, analysis::points<double> const& x, index_t selected) {
  std::vector<double> const y = analysis::weighted(alpha, x);
  auto s = analysis::select(analysis::points<double>(y, x.width()), analysis::largest(alpha, selected));
  double const r = analysis::separation_radius(s);
  double const share = double(analysis::separable(s, r, analysis::ball::open)) / double(selected);
  return {std::move(s), r, share};
}

measured measure(context const& c, row_place const& place, index_t selected) {
  index_t const width = c.layers[place.layer].width;
  std::vector<double> const alpha = analysis::softmax(scores_of(c, place)), v = values_of(c, place);
  std::vector<double> unit = v;
  for (std::size_t at = 0; at < unit.size(); at += std::size_t(width)) {
    std::span<double> const one(unit.data() + at, std::size_t(width));
    double const length = analysis::norm(one);
    for (double& d : one) d /= length;
  }
  separated const s = separate(alpha, analysis::points<double>(unit, width), selected);
  std::vector<double> heaviest;
  std::vector<double> of_chosen;
  for (index_t const i : s.chosen.chosen) {
    heaviest.push_back(alpha[std::size_t(i)]);
    of_chosen.insert(of_chosen.end(), unit.begin() + i * width, unit.begin() + (i + 1) * width);
  }
  double const least = analysis::least_distance(analysis::points<double>(of_chosen, width));
  auto const b = analysis::bound_separability(
      heaviest, analysis::sphere<double>{1, std::isfinite(least) ? least : 0, width}, s.radius);
  for (std::size_t n = 0; n < b.spread.size(); ++n)
    require_at_most(s.chosen.chosen_distance[n], b.spread[n], "xi of Theorem 2");
  require_at_most(b.lower, s.share,
                  "the lower bound of Theorem 2");  // Markov's inequality holds for a row as for the mean
  return {s.share, separate(alpha, analysis::points<double>(v, width), selected).share, b.lower, b.upper, b.printed};
}

std::string run(context const& c) {
  apps::csv out({"selected", "share_10", "share_25", "share_50", "share_75", "share_90", "share_mean",
                 "as_they_are_mean", "lower_mean", "upper_mean", "printed_mean"});
  std::vector<index_t> counts;
  for (index_t const n : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256})
    if (n < c.length()) counts.push_back(n);
  std::vector<row_place> const rows = rows_of(c, c.length());
  std::vector<double> means, printed, lower_means, upper_means;
  for (index_t const n : counts) {
    auto const all = computed(c, rows.size(), [&](std::size_t at) { return measure(c, rows[at], n); });
    auto const column = [&](double measured::* number) {
      std::vector<double> x;
      for (measured const& m : all) x.push_back(m.*number);
      return x;
    };
    std::vector<double> line{double(n)}, lower = column(&measured::lower);
    for (double& x : lower) x = std::max(x, 0.0);
    for (double const share : {0.1, 0.25, 0.5, 0.75, 0.9}) line.push_back(quantile(column(&measured::share), share));
    means.push_back(mean(column(&measured::share)));
    printed.push_back(mean(column(&measured::printed)));
    lower_means.push_back(mean(lower));
    upper_means.push_back(mean(column(&measured::upper)));
    line.insert(line.end(), {means.back(), mean(column(&measured::share_as_they_are)), lower_means.back(),
                             upper_means.back(), printed.back()});
    out.row({line.begin(), line.end()});
    c.bar->add(separability().cost / double(counts.size()));
  }
  out.save(c.output / "separability.csv");
  std::size_t const lowest = std::size_t(std::min_element(means.begin(), means.end()) - means.begin());
  bool below = true;
  for (std::size_t n = 0; n < means.size(); ++n) below = below && means[n] <= printed[n];
  return apps::text("The mean share of our rows is %.2f at N = %td, lowest with %.2f at N = %td, and %.2f at N = %td: ",
                    means.front(), counts.front(), means[lowest], counts[lowest], means.back(), counts.back()) +
         apps::text("three independent heads of share %.2f would cover %.3f of the keys. ", means[lowest],
                    analysis::head_coverage(means[lowest], 3)) +
         apps::text(
             "Theorem 2 is about independent uniform keys and holds on average. At each row’s own r its lower bound is "
             "%.2f and our upper bound %.2f on average at N = %td. ",
             lower_means[lowest], upper_means[lowest], counts[lowest]) +
         apps::text("The printed upper bound, %.2f at N = %td, is no bound%s: ", printed.back(), counts.back(),
                    below ? ", though the means of these rows stay below it" : "") +
         "it takes ξ, which bounds the distance from above, for a bound from below.";
}

}  // namespace

experiment separability() {
  return {"separability",
          "Geometric separability",
          "Theorem 2: the share of the selected keys that stay apart from the rest",
          "“Geometric separability saturates at 70–85 %: the fraction of distinguishable embeddings N<sub>s</sub>/N "
          "quickly "
          "plateaus; "
          "roughly one fifth of selected tokens remain outside B<sub>r</sub>(s).” <cite>Limitations of Normalization, "
          "Figure "
          "3</cite>. A "
          "selected key counts if it is nearer to s than every key that was not selected; the keys are normalised to a "
          "sphere.",
          {{"separability",
            "N<sub>s</sub>/N against N: median, middle half and middle 80 % of the rows, their mean, and the bounds of "
            "Theorem "
            "2."}},
          20,
          run};
}

}  // namespace gallery
