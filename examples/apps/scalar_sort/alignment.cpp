// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Do keys that have weight lie near on the line?
#include <algorithm>
#include <cmath>
#include <numeric>

#include <attune/analysis/regularizer/alignment.hpp>
#include <attune/analysis/regularizer/spread.hpp>

#include "experiments.hpp"
#include "operators.hpp"
#include "shared/csv.hpp"
#include "shared/page.hpp"
#include "shared/text.hpp"

namespace scalar_sort {
namespace {

using apps::text;

/// Mean distance by rank of weight: ranks 1, 2, 3-4, 5-8, ...
struct profile {
  std::vector<double> distance, weight;
  std::vector<double> count;
  double variance = 0, offset = 0, queries = 0;  ///< of alignment's split, sums over queries

  void add(std::span<float const> w, float q, std::span<float const> k, double unit) {
    std::vector<std::size_t> order(w.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return w[a] > w[b] || (w[a] == w[b] && a < b); });
    for (std::size_t r = 0, bin = 0; r < order.size(); ++r) {
      if (r + 1 > (std::size_t{1} << bin)) ++bin;
      if (bin >= count.size()) distance.resize(bin + 1), weight.resize(bin + 1), count.resize(bin + 1);
      distance[bin] += std::fabs(double(q) - double(k[order[r]])) / unit;
      weight[bin] += double(w[order[r]]);
      ++count[bin];
    }
    auto const split = attune::regularizer::split_alignment(w, q, k);
    variance += double(split.variance) / (unit * unit);
    offset += double(split.offset) * double(split.offset) / (unit * unit);
    ++queries;
  }
};

/// The last half of the text, by the weights of the hybrid head or of the model.
void add_layer(profile& to, projections const& p, stretch const& s, numbers const& weights) {
  scalars const at = p.of(s);
  std::size_t const n = std::size_t(s.count);
  for (std::size_t h = 0; h < std::size_t(s.heads()); ++h) {
    std::span<float const> const keys(at.k.data() + h * n, n);
    auto const reach = attune::regularizer::adaptive_range(keys, 1.0f);
    for (std::size_t i = 0; i < n; ++i)
      to.add(std::span<float const>(weights.data() + (h * n + i) * n, n), at.q[h * n + i], keys,
             double(reach.to - reach.from) / 2);
  }
}

std::string run(apps::context const& c, shared_fits& made) {
  auto const& all = made(c);
  c.bar->stage("alignment");
  apps::csv csv({"weights", "variant", "rank", "distance", "weight"});
  std::vector<std::vector<std::string>> table{
      {"regularizers", "spread, hybrid's weights", "offset², hybrid's", "spread, model's weights", "offset², model's"}};
  auto const measure = [&](std::string const& name, auto const& learned) {
    table.push_back({name});
    for (bool const by_model : {false, true}) {
      profile p;
      for (std::size_t l = 0; l < c.layers.size(); ++l) {
        stretch const s = all.front().layers[l].held_out();
        projections const& x = learned(l);
        add_layer(p, x, s, by_model ? model_weights(s) : hybrid_weights(s, x.of(s), x.tau()));
      }
      for (std::size_t bin = 0; bin < p.count.size(); ++bin)
        csv.row({by_model ? "model" : "hybrid", name, std::exp2(double(bin)) * (bin == 0 ? 1 : 0.75),
                 p.distance[bin] / p.count[bin], p.weight[bin] / p.count[bin]});
      table.back().push_back(text("%.2f", p.variance / p.queries));
      table.back().push_back(text("%.2f", p.offset / p.queries));
    }
    c.bar->add(1);
  };
  measure("random", [&](std::size_t l) -> projections const& { return all.front().layers[l].start; });
  for (fitted const& f : all)
    measure(f.with.name, [&](std::size_t l) -> projections const& { return f.layers[l].learned; });
  csv.save(c.output / "alignment.csv");
  return "Distances in standard deviations of the head's sort keys, so that shrinking the whole line gains nothing. "
         "The table "
         "has the two parts of "
         "L_align per query, in variances of the keys: how far the attended keys spread about their mean, and how far "
         "that "
         "mean is from the query "
         "(squared). By the hybrid's own weights near keys win partly because distance is part of the score; by the "
         "model's "
         "weights the "
         "coordinate has to predict what the dot product wants.</p>" +
         apps::html_table(table) + "<p>";
}

}  // namespace

apps::experiment alignment(fits f) {
  return {.name = "alignment",
          .title = "Do keys with weight lie near?",
          .summary = "scalar distance against attention weight, before and after fitting",
          .paper =
              "If the alignment regularizer works, pairs with a large weight have a small scalar distance. At "
              "convergence the "
              "scalar "
              "projections learn a 1-D metric approximating the dot-product attention structure. <cite>Proposed "
              "experiment 2; Term "
              "1.</cite>",
          .pictures = {{"alignment",
                        "Mean distance of the key with the r-th largest weight: left by the hybrid's own weights, "
                        "right by the model's. "
                        "Held-out rows of 256 keys; random: projections before the fit."}},
          .cost = 6,
          .run = [f](apps::context const& c) { return run(c, *f); },
          .preparation = shared_fits::cost};
}

}  // namespace scalar_sort
