// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What eight systems make of the same heads: sums of weights, entropy, the weight of the first token.
#include <functional>

#include <attune/policies/mask/causal.hpp>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"
#include "shared/page.hpp"
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

  std::vector<std::string> head{"system", "row sums, 5 % to 95 %", "entropy of w / Σw (nats)",
                                "rows with weights below 0"};
  for (apps::layer const& l : c.layers) head.push_back(apps::text("first token, layer %d", l.number));
  std::vector<std::vector<std::string>> table{head};
  for (std::size_t s = 0; s < maps; ++s) {
    table.push_back({systems[s].name, apps::text("%.2f to %.2f", sum_low[s], sum_high[s]),
                     apps::text("%.2f", entropies[s]), apps::text("%.0f %%", 100 * without[s])});
    for (std::size_t n = 0; n < c.layers.size(); ++n) {
      std::vector<double> first;
      for (std::size_t h = 0; h < heads.size(); ++h)
        if (heads[h].layer == n) first.push_back(of(s, h).first_key);
      table.back().push_back(apps::text("%.4f", mean(first)));
    }
  }
  std::string seen =
      apps::text(
          "Means over the rows of %zu heads; ln %td = %.2f nats is uniform. The first token is [CLS] here, 1/L is "
          "%.4f. "
          "A row with weights below 0 has no entropy. ",
          heads.size(), c.length(), std::log(double(c.length())), 1 / double(c.length())) +
      "α, sinks and thresholds are set by fixed rules, not learned: the table shows what the operators do to these "
      "scores.</p>" +
      apps::html_table(table) + "<p>";
  seen += apps::text(
      "Affine-scaled weights sum to their running average (one for each layer), whatever α a query chooses: with N the "
      "visible keys the formula of the paper has no other row sum. Where N counts keys that the mask hides, the sum "
      "varies with the position: %.2f to %.2f under a causal mask. ",
      sum_low[maps], sum_high[maps]);
  if (entropies[3] > entropies[0])
    seen +=
        "Affine-scaled rows that have an entropy are more even than those of softmax: they are mixtures with the "
        "uniform row. ";
  return seen;
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
