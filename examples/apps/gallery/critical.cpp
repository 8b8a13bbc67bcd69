// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The critical N: from which N on a Kolmogorov-Smirnov test cannot tell distances from their expectation.
#include <array>
#include <map>

#include <attune/analysis/kolmogorov_smirnov.hpp>
#include <attune/analysis/limits/random_selection.hpp>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"

namespace gallery {
namespace {

/// Of all rows at one N: the distances of the largest weights, and two forms of what a random set is expected to have.
struct samples {
  std::vector<double> distance, expected, printed;
};

/// Means over the rows of each head.
std::vector<double> by_head(context const& c, std::vector<double> const& rows) {
  auto const queries = std::size_t(queries_per_head(c));
  std::vector<double> heads;
  for (std::size_t n = 0; n < rows.size(); n += queries)
    heads.push_back(mean({rows.begin() + std::ptrdiff_t(n), rows.begin() + std::ptrdiff_t(n + queries)}));
  return heads;
}

samples sample(context const& c, std::vector<row_place> const& rows, index_t selected) {
  auto const all = computed(c, rows.size(), [&](std::size_t n) {
    std::vector<double> const alpha = analysis::softmax(scores_of(c, rows[n])), v = values_of(c, rows[n]);
    analysis::points<double> const x(v, c.layers[rows[n].layer].width);
    std::vector<double> const y = analysis::weighted(alpha, x);
    auto const random = analysis::bound_random_set(alpha, x, selected);
    double const distance =
        analysis::select(analysis::points<double>(y, x.width()), analysis::largest(alpha, selected)).distance;
    return std::array{distance, random.lower, random.printed};
  });
  samples s;
  for (auto const& [distance, expected, printed] : all) {
    s.distance.push_back(distance);
    s.expected.push_back(expected);
    s.printed.push_back(printed);
  }
  return s;
}

/// All N up to 16, then some five per cent apart, below `keys`.
std::vector<index_t> sizes_below(index_t keys, bool quick) {
  std::vector<index_t> sizes;
  for (index_t n = 1; n < keys; n = std::max(n + 1, index_t(double(n) * (quick ? 1.5 : 1.06)))) sizes.push_back(n);
  return sizes;
}

double p_of(std::vector<double> const& a, std::vector<double> const& b) {
  return analysis::kolmogorov_smirnov_p(analysis::kolmogorov_smirnov(a, b), analysis::count_of(a),
                                        analysis::count_of(b));
}

std::string run(context const& c) {
  constexpr double level = 0.01;
  apps::csv shares({"keys", "rows", "heads", "rows_printed", "heads_printed"}),
      p_values({"selected", "rows", "heads", "rows_printed", "heads_printed"});
  std::vector<index_t> lengths;
  for (index_t const keys : {32, 64, 128, 192, 256, 384, 512})
    if (keys <= c.length()) lengths.push_back(keys);
  std::array<double, 4> last{};
  for (index_t const keys : lengths) {
    std::vector<row_place> const rows = rows_of(c, keys);
    std::map<index_t, samples> known;
    std::vector<index_t> const sizes = sizes_below(keys, c.quick);
    auto const at = [&](index_t n) -> samples const& {
      auto const found = known.find(n);
      return found != known.end() ? found->second : known.emplace(n, sample(c, rows, n)).first->second;
    };
    auto const share_of = [&](std::vector<double> samples::* expectation, bool heads) {
      auto const n = analysis::critical_count(
          sizes,
          [&](index_t count) {
            samples const& s = at(count);
            return heads ? std::pair(by_head(c, s.distance), by_head(c, s.*expectation))
                         : std::pair(s.distance, s.*expectation);
          },
          level);
      return n ? double(*n) / double(keys) : std::nan("");
    };
    last = {share_of(&samples::expected, false), share_of(&samples::expected, true), share_of(&samples::printed, false),
            share_of(&samples::printed, true)};
    shares.row({keys, last[0], last[1], last[2], last[3]});
    if (keys == lengths.back())
      for (index_t const n : sizes) {
        samples const& s = at(n);
        p_values.row({n, p_of(s.distance, s.expected), p_of(by_head(c, s.distance), by_head(c, s.expected)),
                      p_of(s.distance, s.printed), p_of(by_head(c, s.distance), by_head(c, s.printed))});
      }
    c.bar->add(critical().cost / double(lengths.size()));
  }
  shares.save(c.output / "critical.csv");
  p_values.save(c.output / "critical_p.csv");
  auto const said = [](double share) { return share == share ? apps::text("%.2f L", share) : std::string("none"); };
  std::size_t const row_count = rows_of(c, c.length()).size();
  auto const [rows, heads, rows_printed, heads_printed] = last;
  std::string seen =
      apps::text("On %td keys, with the expectation of Theorem 1 as it is, the critical N is ", lengths.back()) +
      said(heads) + apps::text(" for the means of %td heads and ", c.heads()) + said(rows) +
      apps::text(" for %zu single rows. ", row_count) +
      "With the main term as printed, which is no expectation, it is " + said(heads_printed) + " for the heads and " +
      said(rows_printed) + " for the rows. ";
  constexpr std::size_t enough_rows = 100;  // the paper has 144 heads
  if (row_count < enough_rows)
    return seen + apps::text("With %zu rows the test has no power: nothing follows from these numbers.", row_count);
  if (heads > 0.5 && rows > 0.5) seen += "With the expectation that is most of the row. ";
  if (rows > heads) seen += "The larger sample, which has more power, has the larger critical N. ";
  if (rows != heads) seen += "So a critical N says as much about the size of the sample as about attention. ";
  if (heads_printed > 0.03 && heads_printed < 0.12 && !(heads < 0.12))
    seen +=
        "The critical N of the printed term for the heads is close to the paper’s 0.06 L. So 0.06 L can come of a "
        "formula that is wrong and a sample that is small: it does not show where separation ends.";
  return seen;
}

}  // namespace

experiment critical() {
  return {
      "critical",
      "Critical N",
      "Kolmogorov-Smirnov: from which N distances look like their expectation",
      "“The critical-N curve grows sub-linearly (≈ 0.06 L), confirming that only a small subset of tokens can be "
      "separated "
      "before "
      "attention behaves as if weights were uniform.” <cite>Limitations of Normalization, section 3.1</cite>: the "
      "smallest "
      "N at which "
      "a two-sample Kolmogorov–Smirnov test at level 0.01 cannot tell the distances of all heads from their "
      "expectations.",
      {{"critical", "Left: critical N as a share of the number of keys L. Right: p of the test against N, all keys."}},
      40,
      run};
}

}  // namespace gallery
