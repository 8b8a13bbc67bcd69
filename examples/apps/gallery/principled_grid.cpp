// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The ablation grid of Principled Attention against the number of keys.
#include <map>

#include "experiments.hpp"
#include "rows.hpp"
#include "shared/csv.hpp"
#include "systems_run.hpp"

namespace gallery {
namespace {

using apps::granularity;

/// Means over heads and rows.
struct facts {
  double ground = 0, entropy = 0,
         highest = 0;  ///< entropy of w / sum w over log K; highest: the largest weight of a row
};

facts measure(context const& c, apps::principled_choice const& choice, index_t keys) {
  facts f;
  apps::principled_system const system{choice};
  index_t const queries = grid_queries_per_head(c);
  for (apps::layer const& l : c.layers)
    for (index_t h = 0; h < l.heads; ++h) {
      apps::row_range const rows{.head = h, .first = keys / (2 * queries), .step = keys / queries, .count = queries};
      auto const mean = attune::head_means(statistics_of(system, attune::mask::none{}, l, rows, keys)).front();
      f.ground += mean.ground_weight / double(c.heads());
      f.entropy += mean.normalized_entropy / std::log(double(keys)) / double(c.heads());
      f.highest += mean.highest_weight / double(c.heads());
    }
  return f;
}

struct variant {
  apps::principled_choice choice;
  index_t keys;
  /// Which components are on: alpha 4, beta 2, gamma 1.
  int components() const {
    return 4 * (choice.alpha != granularity::off) + 2 * (choice.beta != granularity::off) +
           (choice.gamma != granularity::off);
  }
};

std::string run(context const& c) {
  std::vector<variant> all;
  for (index_t keys = 16; keys <= c.length(); keys *= 2)
    for (granularity const a : apps::granularities)
      for (granularity const b : apps::granularities)
        for (granularity const g : apps::granularities) all.push_back({{a, b, g, true}, keys});
  auto const found = computed(c, all.size(), [&](std::size_t n) {
    facts const f = measure(c, all[n].choice, all[n].keys);
    c.bar->add(principled_grid().cost / double(all.size()));
    return f;
  });
  apps::csv grid({"keys", "alpha", "beta", "gamma", "ground", "entropy", "highest"});
  std::map<std::pair<int, index_t>, std::vector<facts>> by_components;
  for (std::size_t n = 0; n < all.size(); ++n) {
    auto const& choice = all[n].choice;
    grid.row({all[n].keys, double(choice.alpha), double(choice.beta), double(choice.gamma), found[n].ground,
              found[n].entropy, found[n].highest});
    by_components[{all[n].components(), all[n].keys}].push_back(found[n]);
  }
  grid.save(c.output / "principled_variants.csv");

  // What granularity changes is a band: least, mean and largest over the variants with the same components.
  apps::csv bands({"components", "keys", "ground_low", "ground", "ground_high", "entropy_low", "entropy",
                   "entropy_high", "highest_low", "highest", "highest_high"});
  for (auto const& [at, variants] : by_components) {
    std::vector<double> line{double(at.first), double(at.second)};
    for (auto const number : {&facts::ground, &facts::entropy, &facts::highest}) {
      std::vector<double> x;
      for (facts const& f : variants) x.push_back(f.*number);
      line.insert(line.end(), {quantile(x, 0), mean(x), quantile(x, 1)});
    }
    bands.row({line.begin(), line.end()});
  }
  bands.save(c.output / "principled.csv");

  auto const at = [&](int components, index_t keys) {
    std::vector<facts> const& v = by_components.at({components, keys});
    facts f;
    for (facts const& one : v) {
      f.ground += one.ground / double(v.size());
      f.entropy += one.entropy / double(v.size());
      f.highest += one.highest / double(v.size());
    }
    return f;
  };
  index_t const few = 16, many = c.length();
  double const without = at(0, many).highest / at(0, few).highest, with = at(4, many).highest / at(4, few).highest;
  std::string seen = apps::text(
      "With everything off it is softmax: its largest weight is %.3f at K = %td and %.3f at K = %td. With α alone it "
      "is "
      "%.3f and %.3f. ",
      at(0, few).highest, few, at(0, many).highest, many, at(4, few).highest, at(4, many).highest);
  if (with > without)
    seen += apps::text("Amplification by softplus(α) ln K slows the dilution%s ",
                       with < 1 ? "; at these small α it does not stop it." : " and stops it.");
  seen += apps::text(
      "The ground, which γ alone gives, takes %.3f of a row at K = %td and %.3f at K = %td. With α it is %.3f and "
      "%.3f, "
      "with α and β %.3f and %.3f. γ is the 90th percentile of the scores. ",
      at(1, few).ground, few, at(1, many).ground, many, at(5, few).ground, at(5, many).ground, at(7, few).ground,
      at(7, many).ground);
  double apart = 0;  // of the entropies without and with gamma
  for (index_t keys = few; keys <= many; keys *= 2)
    apart = std::max(apart, std::fabs(at(1, keys).entropy - at(0, keys).entropy));
  if (apart < 1e-6)
    seen += "γ divides all weights of a row alike: without α the entropy of w / Σw is the same with γ and without. ";
  return seen +
         "The bands are what granularity (constant, per head, per query) changes while the same components are "
         "on.";
}

}  // namespace

experiment principled_grid() {
  return {
      "principled",
      "Principled Attention against the number of keys",
      "64 variants of Principled Attention: ground weight, entropy and largest weight against K",
      "Principled Attention amplifies margins over a threshold γ by 1 + softplus(α) ln K, so that relevant keys should "
      "keep their weight as "
      "rows grow longer, and leaves what no key earns to a ground value; α, β and γ are each off, constant, per head "
      "or "
      "per query. "
      "<cite>Principled Attention, section 3 and its ablation grid</cite>; "
      "<cite>Limitations of Normalization</cite> calls the same wish length-adaptive.",
      {{"principled",
        "Mean ground weight, entropy of w / Σw as a share of ln K, and mean largest weight of a row against K; bands: "
        "over "
        "granularities."}},
      60,
      run};
}

}  // namespace gallery
