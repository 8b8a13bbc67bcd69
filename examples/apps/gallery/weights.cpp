// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What eight systems make of the same heads: sums of weights, entropy, the weight of the first token.
#include <functional>

#include <attune/policies/mask/causal.hpp>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"
#include "systems_run.hpp"

namespace gallery {
namespace {

using rows_function = std::function<attune::row_statistics<double>(apps::layer const&, apps::row_range const&)>;

struct system_entry {
  std::string name;
  rows_function rows;
};

template <class System, class Mask = attune::mask::none>
system_entry entry(std::string name, System const& system, Mask mask = {}) {
  return {std::move(name),
          [=](apps::layer const& l, apps::row_range const& r) { return statistics_of(system, mask, l, r, l.length); }};
}

/// The order of the pictures: the scripts have the names again.
std::vector<system_entry> all_systems() {
  using attune::normalizer::affine_count;
  return {entry("softmax", apps::softmax_system{}),
          entry("off-by-one", apps::off_by_one_system{}),
          entry("sink", apps::sink_system{}),
          entry("affine-scaled", apps::affine_system<affine_count::visible>{}),
          entry("principled", apps::principled_system{}),
          entry("sparsemax", apps::sparsemax_system{}),
          entry("1.5-entmax", apps::entmax15_system{}),
          entry("SSMax", apps::ssmax_system{}),
          entry("affine-scaled, causal, N = L", apps::affine_system<affine_count::total>{}, attune::mask::causal{})};
}
constexpr std::size_t maps = 8;           // the last one only has a histogram
constexpr double bin = 0.02, most = 1.2;  // of row sums

/// Of one head, over its queries.
struct head_facts {
  std::vector<double> sums;
  double entropy = 0, first_key = 0;  ///< means; entropy of the rows that have one: weights below 0 have none
  double without_entropy = 0;         ///< share of the other rows
};

head_facts facts_of(attune::row_statistics<double> const& s) {
  head_facts f{s.mass, 0, mean(s.first_key), 0};
  std::vector<double> entropies;
  for (index_t i = 0; i < index_t(s.mass.size()); ++i)
    if (double const h = s.normalized_entropy(i); h == h) entropies.push_back(h);
  f.entropy = mean(entropies);
  f.without_entropy = 1 - double(entropies.size()) / double(s.mass.size());
  return f;
}

/// Shares of bins of width `bin` in [0, most].
std::vector<double> histogram(std::vector<double> const& x) {
  std::vector<double> share(std::size_t(std::lround(most / bin)), 0.0);
  for (double const value : x)
    share[std::min(std::size_t(std::max(value, 0.0) / bin + 1e-9), share.size() - 1)] += 1 / double(x.size());
  return share;
}

std::string run(context const& c) {
  auto const systems = all_systems();
  std::vector<row_place> heads;  // one for each head: the first of its rows
  for (row_place const& r : rows_of(c, c.length()))
    if (heads.empty() || heads.back().head != r.head) heads.push_back(r);
  auto const facts = computed(c, systems.size() * heads.size(), [&](std::size_t n) {
    row_place const& at = heads[n % heads.size()];
    apps::layer const& l = c.layers[at.layer];
    c.bar->add(weights().cost / double(systems.size() * heads.size()));
    return facts_of(systems[n / heads.size()].rows(l, {.head = at.head_of_layer, .count = l.length}));
  });
  auto const of = [&](std::size_t system, std::size_t head) -> head_facts const& {
    return facts[system * heads.size() + head];
  };

  apps::csv map({"system", "head", "entropy", "first_key", "sum"}), bars({"system", "sum", "single", "heads_together"}),
      facts_of_sums({"system", "mean", "median"});
  std::vector<double> entropies, without, sum_low, sum_high;
  for (std::size_t s = 0; s < systems.size(); ++s) {
    std::vector<double> single, together, entropy, negative;
    for (std::size_t n = 0; n < c.layers.size(); ++n) {
      std::vector<double> means(std::size_t(c.length()), 0.0);  // as in the paper: over the heads of a layer
      for (std::size_t h = 0; h < heads.size(); ++h) {
        if (heads[h].layer != n) continue;
        for (std::size_t i = 0; i < means.size(); ++i) means[i] += of(s, h).sums[i] / double(c.layers[n].heads);
      }
      together.insert(together.end(), means.begin(), means.end());
    }
    for (std::size_t h = 0; h < heads.size(); ++h) {
      head_facts const& f = of(s, h);
      single.insert(single.end(), f.sums.begin(), f.sums.end());
      if (f.entropy == f.entropy) entropy.push_back(f.entropy);
      negative.push_back(f.without_entropy);
      if (s < maps) map.row({s, h, f.entropy, f.first_key, mean(f.sums)});
    }
    auto const one = histogram(single), many = histogram(together);
    for (std::size_t b = 0; b < one.size(); ++b) bars.row({s, (double(b) + 0.5) * bin, 100 * one[b], 100 * many[b]});
    facts_of_sums.row({s, mean(single), quantile(single, 0.5)});
    entropies.push_back(mean(entropy));
    without.push_back(mean(negative));
    sum_low.push_back(quantile(single, 0.05));
    sum_high.push_back(quantile(single, 0.95));
  }
  map.save(c.output / "weights_heads.csv");
  bars.save(c.output / "weights_sums.csv");
  facts_of_sums.save(c.output / "weights_sums_means.csv");

  std::string seen = apps::text(
      "Row sums between their 5th and 95th percentile: off-by-one %.2f to %.2f, sink %.2f to %.2f, principled %.2f to "
      "%.2f. ",
      sum_low[1], sum_high[1], sum_low[2], sum_high[2], sum_low[4], sum_high[4]);
  seen += apps::text(
      "Affine-scaled weights sum to their running average, %.3f to %.3f (two layers, two averages), whatever α a query "
      "chooses: with N the "
      "visible keys the formula of the paper has no other row sum. Only where N counts keys that the mask hides does "
      "the sum "
      "vary, %.2f to "
      "%.2f, with the position. ",
      sum_low[3], sum_high[3], sum_low[8], sum_high[8]);
  seen += apps::text(
      "Mean entropy of w / Σw in nats: softmax %.2f, affine-scaled %.2f, principled %.2f, sparsemax %.2f, 1.5-entmax "
      "%.2f, "
      "SSMax %.2f; ln %td = "
      "%.2f is uniform. ",
      entropies[0], entropies[3], entropies[4], entropies[5], entropies[6], entropies[7], c.length(),
      std::log(double(c.length())));
  seen += apps::text(
      "%.0f %% of the affine-scaled rows have weights below 0, where α exceeds its average, and no entropy; the others "
      "are "
      "more even than "
      "softmax, being mixtures with the uniform row. ",
      100 * without[3]);
  seen += "The first token is [CLS] here, 1/L is " + apps::text("%.4f. ", 1 / double(c.length()));
  for (std::size_t n = 0; n < c.layers.size(); ++n) {
    auto const first_of = [&](std::size_t system) {
      std::vector<double> x;
      for (std::size_t h = 0; h < heads.size(); ++h)
        if (heads[h].layer == n) x.push_back(of(system, h).first_key);
      return mean(x);
    };
    seen += apps::text(
        "In layer %d it gets %.4f of a row on average under softmax, %.4f with the sink, %.4f affine-scaled, %.4f "
        "principled, "
        "%.4f under sparsemax. ",
        c.layers[n].number, first_of(0), first_of(2), first_of(3), first_of(4), first_of(5));
  }
  seen +=
      "What divides all weights of a row lowers its weight by as much as any other’s, a uniform share moves it towards "
      "1/L; "
      "what sharpens raises it. ";
  return seen +
         "α, sinks and thresholds are set by fixed rules, not learned; the pictures show what the operators do to "
         "these "
         "scores.";
}

}  // namespace

experiment weights() {
  return {
      "weights",
      "Eight systems on the same heads",
      "row sums, entropy and first-token weight under eight normalizers",
      "“Standard softmax attention yields exactly one; attention sinks allow values below one, but the range remains "
      "limited. "
      "Affine-Scaled Attention produces a substantially broader distribution.” And: it “achieves the highest entropy "
      "in most "
      "layers” and "
      "“alleviates positional over-concentration” on the first token. <cite>Affine-Scaled Attention, sections 4.1, 4.2 "
      "and "
      "4.4</cite>. "
      "Sparsemax, 1.5-entmax and SSMax are the alternatives that <cite>Limitations of Normalization</cite> names.",
      {{"weights_sums",
        "Sums of the weights of a row: single rows of all heads, and the mean over the heads of a layer as in the "
        "paper. "
        "Systems whose sums are 1 are left out."},
       {"weights_entropy", "Mean entropy of w / Σw of every head; affine-scaled: of the rows without weights below 0."},
       {"weights_first", "Mean weight of the first token of every head."},
       {"weights_sum_map", "Mean sum of the weights of every head."}},
      60,
      run};
}

}  // namespace gallery
