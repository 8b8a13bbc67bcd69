// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How many keys a row reads, against 2 sqrt(-tau log eps) rho(q).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "experiments.hpp"
#include "shared/csv.hpp"
#include "shared/page.hpp"
#include "shared/text.hpp"
#include "synthetic.hpp"

namespace scalar_sort {
namespace {

using apps::text;
namespace line = attune::line;

/// Keys of a known density, and queries at one place of it.
struct place {
  char const* name;
  double (*key)(apps::rng&, index_t);
  double at, density;  ///< of one key at that place
};
/// Of the normal distribution with deviation 0.3.
double normal_density(double x) { return std::exp(-x * x / (2 * 0.09)) / (0.3 * std::sqrt(2 * std::numbers::pi)); }
place const places[] = {
    {"uniform centre", [](apps::rng& draw, index_t) { return draw.uniform(-3, 3); }, 0, 1.0 / 6},
    {"uniform end", [](apps::rng& draw, index_t) { return draw.uniform(-3, 3); }, 3, 1.0 / 6},
    {"normal centre", [](apps::rng& draw, index_t) { return 0.3 * draw.normal(); }, 0, normal_density(0)},
    {"normal 3 deviations out", [](apps::rng& draw, index_t) { return 0.3 * draw.normal(); }, 0.9,
     normal_density(0.9)}};

struct counts {
  double radius = 0, certified = 0, summed = 0;
};
counts count(window_study const& s, double eps) {
  counts to;
  auto const r = s.rows(line::radius{eps});
  auto const c = s.rows(line::certified{eps});
  for (auto const& row : r) to.radius += double(row.scored) / double(r.size());
  for (auto const& row : c) {
    if (1 - row.captured > eps * (1 + 1e-9) + 1e-12)
      throw std::runtime_error("a certified row misses more than its eps");
    to.certified += double(row.scored) / double(c.size());
    to.summed += double(row.summed) / double(c.size());
  }
  return to;
}

std::string run(apps::context const& c, shared_fits& made) {
  auto const& all = made(c);
  c.bar->stage("keys accessed");
  apps::csv csv({"keys", "place", "tau", "eps", "predicted", "radius", "certified", "summed"});
  std::vector<std::vector<std::string>> table{
      {"keys", "predicted", "in the radius", "ratio", "scored, certified", "ratio"}};
  index_t const largest = c.quick ? 1024 : 65536;
  std::vector<double> ratios;  // of the places, keys in the radius over the prediction
  for (place const& p : places)
    for (index_t n = 256; n <= largest; n *= 4) {
      float const tau = 0.05f;
      window_study const study(drawn({.keys = n,
                                      .queries = 50,
                                      .width = 0,
                                      .tau = tau,
                                      .query = [&](apps::rng& draw) { return p.at + draw.uniform(-1e-3, 1e-3); },
                                      .key = p.key},
                                     std::uint64_t(n)));
      for (double const eps : {1e-2, 1e-6}) {
        double const predicted = line::expected_keys(line::radius_of(double(tau), eps), double(n) * p.density);
        counts const found = count(study, eps);
        csv.row({n, p.name, tau, eps, predicted, found.radius, found.certified, found.summed});
        if (n == largest && eps == 1e-6) {
          ratios.push_back(found.radius / predicted);
          table.push_back({text("%s, n = %td", p.name, n), text("%.0f", predicted), text("%.0f", found.radius),
                           text("%.2f", found.radius / predicted), text("%.0f", found.certified),
                           text("%.2f", found.certified / predicted)});
        }
      }
      c.bar->add(0.6);
    }
  // Real heads: the density about each query from the 16 nearest keys.
  apps::csv real({"variant", "predicted", "radius", "certified"});
  double const eps = 1e-3;
  bool more_than_the_radius = true;  // keys that every certified window reads
  for (fitted const& f : all) {
    double predicted = 0, in_radius = 0, certified = 0, rows = 0;
    for (fitted_layer const& l : f.layers) {
      stretch const s = l.held_out();
      window_study const study(in_context(l.learned, s, s.count));
      auto const near = study.rows(line::radius{eps}), proved = study.rows(line::certified{eps});
      for (std::size_t n = 0; n < near.size(); ++n) {
        index_t const h = index_t(n) / s.count;
        double const reach = line::radius_of(double(study.what().tau[std::size_t(h)]), eps);
        double const expected = line::expected_keys(reach, study.density(h, near[n].sort_q));
        if (n % 7 == 0) real.row({f.with.name, expected, near[n].scored, proved[n].scored});
        predicted += std::min(expected, double(s.count));
        in_radius += double(near[n].scored);
        certified += double(proved[n].scored);
        ++rows;
      }
    }
    more_than_the_radius = more_than_the_radius && certified > in_radius;
    table.push_back({"real heads, " + f.with.name, text("%.0f", predicted / rows), text("%.0f", in_radius / rows),
                     text("%.2f", in_radius / predicted), text("%.0f", certified / rows),
                     text("%.2f", certified / predicted)});
    c.bar->add(1);
  }
  csv.save(c.output / "accessed.csv");
  real.save(c.output / "accessed_real.csv");
  std::string seen = "Drawn keys: τ = 0.05, ε = 1e-6, the largest n of the pictures. ";
  if (std::fabs(ratios[0] - 1) < 0.1) seen += "The formula is right where the density is constant over the window. ";
  if (std::fabs(ratios[1] - 0.5) < 0.1) seen += "At the end of the keys half of the window is empty. ";
  if (ratios[2] < 1 && ratios[3] > 1)
    seen +=
        "A radius that reaches beyond a peak of the density finds fewer keys than the peak suggests, one beside a peak "
        "more. ";
  seen += text(
      "Hybrid rows of real heads at ε = %g over %td keys; a prediction above the number of keys counts as that "
      "number. ",
      eps, c.layers.front().length / 2);
  if (more_than_the_radius)
    seen +=
        "The certified window needs more keys than the radius where the dot product may favour far keys: that is what "
        "its certificate has to exclude.";
  return seen + "</p>" + apps::html_table(table) + "<p>";
}

}  // namespace

apps::experiment accessed(fits f) {
  return {.name = "accessed",
          .title = "Keys accessed",
          .summary = "keys in the radius and keys read by the certified window against 2 sqrt(-tau log eps) rho",
          .paper =
              "The expected number of keys inside the radius √(−τ log ε) is 2 √(−τ log ε) ρ(q), with ρ the local "
              "density of "
              "the keys. "
              "<cite>Bandwidth and window size.</cite>",
          .pictures =
              {{"accessed",
                "Scalar heads over drawn keys, n = 256 to 65,536, ε = 1e-2 (small marks) and 1e-6 (large). Left: keys "
                "inside the radius. Right: keys whose "
                "score the certified window computed. The line is the prediction."},
               {"accessed_real",
                "Hybrid heads of the model, ε = 1e-3, a seventh of the held-out rows: keys inside the radius against "
                "the prediction from the local "
                "density (16 nearest keys). No row can have more than 256."}},
          .cost = 20,
          .run = [f](apps::context const& c) { return run(c, *f); },
          .preparation = shared_fits::cost};
}

}  // namespace scalar_sort
