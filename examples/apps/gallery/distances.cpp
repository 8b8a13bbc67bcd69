// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Theorem 1 on real rows: the distance of the keys that a row does not select, and its bounds.
#include <attune/analysis/limits/random_selection.hpp>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"

namespace gallery {
namespace {

/// One row at one N.
struct measured {
  double distance, bound;                       ///< of the N largest weights, and Theorem 1 (1)
  double expected_low, expected_high, printed;  ///< of a random set: the bounds that hold; the main term as printed
};

measured measure(context const& c, row_place const& r, index_t selected) {
  std::vector<double> const alpha = analysis::softmax(scores_of(c, r)), v = values_of(c, r);
  analysis::points<double> const x(v, c.layers[r.layer].width);
  auto const fixed = analysis::bound_fixed_set(alpha, x, selected);
  auto const random = analysis::bound_random_set(alpha, x, selected);
  require_at_most(fixed.chosen.distance, fixed.bound, "Theorem 1 (1)");
  require_at_most(random.lower, random.upper, "Theorem 1 (2)");
  return {fixed.chosen.distance, fixed.bound, random.lower, random.upper, random.printed};
}

/// Every head's mean over its rows, of one of the numbers.
std::vector<double> by_head(context const& c, std::vector<row_place> const& rows, std::vector<measured> const& all,
                            double measured::* number) {
  std::vector<double> heads(std::size_t(c.heads()), 0.0);
  for (std::size_t n = 0; n < rows.size(); ++n) heads[rows[n].head] += all[n].*number / double(queries_per_head(c));
  return heads;
}

struct summary {
  double median_distance, median_bound, median_expected, median_above, median_printed;
};

/// Adds a line: quartiles over the heads.
summary add_line(context const& c, apps::csv& to, index_t keys, index_t selected) {
  std::vector<row_place> const rows = rows_of(c, keys);
  auto const all = computed(c, rows.size(), [&](std::size_t n) { return measure(c, rows[n], selected); });
  std::vector<double> line{double(keys), double(selected)};
  for (auto const number :
       {&measured::distance, &measured::bound, &measured::expected_low, &measured::expected_high, &measured::printed})
    for (double const share : {0.25, 0.5, 0.75}) line.push_back(quantile(by_head(c, rows, all, number), share));
  to.row({line.begin(), line.end()});
  return {line[3], line[6], line[9], line[12], line[15]};
}

std::vector<std::string> columns() {
  std::vector<std::string> names{"keys", "selected"};
  for (char const* what : {"distance", "bound", "expected_low", "expected_high", "printed"})
    for (char const* part : {"25", "50", "75"}) names.push_back(std::string(what) + "_" + part);
  return names;
}

std::string run(context const& c) {
  apps::csv by_length(columns()), by_selected(columns());
  constexpr index_t few = 5;
  std::vector<index_t> lengths, counts;
  for (index_t keys = 32; keys <= c.length(); keys *= 2) lengths.push_back(keys);
  for (index_t const n : {1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 400, 450, 480, 500, 508, 511})
    if (n < c.length()) counts.push_back(n);
  double const share = 1 / double(lengths.size() + counts.size());
  std::vector<summary> grown, selected;
  for (index_t const keys : lengths) {
    grown.push_back(add_line(c, by_length, keys, few));
    c.bar->add(distances().cost * share);
  }
  for (index_t const n : counts) {
    selected.push_back(add_line(c, by_selected, c.length(), n));
    c.bar->add(distances().cost * share);
  }
  by_length.save(c.output / "distances_by_length.csv");
  by_selected.save(c.output / "distances_by_selected.csv");

  double const exponent = std::log(grown.back().median_distance / grown.front().median_distance) /
                          std::log(double(lengths.back()) / double(lengths.front()));
  std::size_t highest = 0;
  for (std::size_t n = 0; n < counts.size(); ++n)
    if (selected[n].median_distance > selected[highest].median_distance) highest = n;
  std::string seen = apps::text("With N = %td the median distance grows like L<sup>%.2f</sup> from L = %td to %td", few,
                                exponent, lengths.front(), lengths.back());
  seen += std::fabs(exponent - 1) < 0.25 ? ", roughly linearly as in the paper. " : ", not linearly as in the paper. ";
  seen += apps::text(
      "The keys of the <em>largest</em> weights are no random set: their distance is %.1f times the expectation for a "
      "random set at N = %td, L = %td. ",
      selected[2].median_distance / selected[2].median_expected, counts[2], c.length());
  double const at_the_end = selected.back().median_distance / selected[highest].median_distance;
  seen += apps::text("Against N the distance has its peak at N = %td and is %.3f of it at N = %td. ", counts[highest],
                     at_the_end, counts.back());
  seen += apps::text(
      "The bound of the fixed set holds everywhere, at %.1f (N = %td) to %.1f (N = %td) times the distance. ",
      selected.front().median_bound / selected.front().median_distance, counts.front(),
      selected.back().median_bound / selected.back().median_distance, counts.back());
  double const printed = selected[2].median_printed / selected[2].median_above;
  seen += apps::text("The printed main term (dotted) is %.1f times the upper bound that holds at N = %td", printed,
                     counts[2]);
  return seen + (printed > 1 ? ", so it is not the expectation. " : ". ") +
         "In it N/(L − 1) multiplies x<sub>i</sub>, not α<sub>i</sub>x<sub>i</sub>, and does not multiply the mean.";
}

}  // namespace

experiment distances() {
  return {"distances",
          "Distance of what is not selected",
          "Theorem 1: the distance and its bounds against the length and against N",
          "“With N = 5, both the true distance and its expectation grow roughly linearly in L; the red upper bound is "
          "safe but "
          "conservative. With L = 1024, increasing N beyond 20 yields diminishing returns: the distance plateaus while "
          "the bound "
          "tightens.” <cite>Limitations of Normalization, Figure 2</cite>. d̃ is the sum of |α<sub>i</sub>x<sub>i</sub> "
          "− s| over "
          "the "
          "keys outside the N largest weights, s = Σα<sub>j</sub>x<sub>j</sub> over those inside. We take a head’s "
          "values for x.",
          {{"distances_by_length",
            "Distance d̃ against the number of keys L, N = 5; lines: medians over the heads, shaded: the middle half."},
           {"distances_by_selected", "Distance d̃ against N, all keys."}},
          30,
          run};
}

}  // namespace gallery
