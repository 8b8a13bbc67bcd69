// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a window of fixed k captures as the context grows.
#include <algorithm>
#include <cmath>

#include "experiments.hpp"
#include "shared/csv.hpp"
#include "shared/page.hpp"
#include "shared/text.hpp"
#include "synthetic.hpp"

namespace scalar_sort {
namespace {

using apps::text;
namespace line = attune::line;

/// How keys come as there are more of them: 128 of them are the same in all three.
struct growth {
  char const* name;
  double (*key)(apps::rng&, index_t);
  float (*tau)(index_t n);
};
constexpr index_t first_keys = 128;
constexpr float first_tau = 0.1f;
constexpr growth growths[] = {
    {"fixed density", [](apps::rng& draw, index_t) { return draw.normal(); }, [](index_t) { return first_tau; }},
    {"τ as 1/n²", [](apps::rng& draw, index_t) { return draw.normal(); },
     [](index_t n) { return first_tau * float(first_keys * first_keys) / (float(n) * float(n)); }},
    {"far keys", [](apps::rng& draw, index_t j) { return draw.normal() + (j < first_keys ? 0 : 100); },
     [](index_t) { return first_tau; }}};

/// The weight on the 64 nearest keys, scalar heads.
struct drawn_result {
  double at_4096 = 0;                  ///< of 4,096 keys of fixed density; 0 in a quick run
  double first[3] = {}, last[3] = {};  ///< of the fewest and of the most keys, by growth
};
drawn_result synthetic(apps::context const& c) {
  apps::csv csv({"keys", "growth", "heads", "k", "captured", "error"});
  drawn_result to;
  std::vector<index_t> lengths;
  for (index_t n = first_keys; n <= (c.quick ? 512 : 32768); n *= c.quick ? 2 : 4) lengths.push_back(n);
  if (!c.quick) lengths.push_back(4096), lengths.push_back(512);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (index_t const n : lengths)
    for (growth const& g : growths)
      for (index_t const width : {0, 32}) {
        index_t const queries = c.quick ? 32 : 200;
        window_study const study(drawn({.keys = n,
                                        .queries = queries,
                                        .width = width,
                                        .tau = g.tau(n),
                                        .query = [](apps::rng& draw) { return draw.normal(); },
                                        .key = g.key},
                                       std::uint64_t(n)));
        for (index_t const k : {1, 8, 16, 32, 64}) {
          window_summary const s = summary(study.rows(line::nearest{k}));
          csv.row({n, g.name, width == 0 ? "scalar" : "hybrid", k, s.captured, s.error});
          if (k != 64 || width != 0) continue;
          auto const which = static_cast<std::size_t>(&g - growths);
          if (n == lengths.front()) to.first[which] = s.captured;
          to.last[which] = s.captured;
          if (n == 4096 && which == 0) to.at_4096 = s.captured;
        }
        c.bar->add(0.6);
      }
  csv.save(c.output / "context_synthetic.csv");
  return to;
}

std::string run(apps::context const& c, shared_fits& made) {
  auto const& all = made(c);
  c.bar->stage("context, synthetic keys");
  drawn_result const keys_drawn = synthetic(c);
  c.bar->stage("context, real heads");
  apps::csv csv({"keys", "variant", "k", "captured", "error", "certified_keys"});
  std::vector<std::vector<std::string>> table{{"regularizers", "k = 64 of 128", "k = 64 of 256", "k = 64 of 512",
                                               "keys read for 1e-3: of 128", "of 256", "of 512"}};
  bool falls = true;  // the share of a window of 64 keys, with every regularizer
  for (fitted const& f : all) {
    std::vector<std::string> windows, certificates;
    double before = 2;
    for (index_t const n : {128, 192, 256, 384, 512}) {
      std::vector<window_study> studies;
      for (fitted_layer const& l : f.layers)
        studies.emplace_back(in_context(l.learned, {l.of, l.of->length - n, n}, 64));
      double const read = summary(rows_of(studies, line::certified{1e-3})).scored;
      for (index_t const k : window_sizes) {
        window_summary const s = summary(rows_of(studies, line::nearest{k}));
        csv.row({n, f.with.name, k, s.captured, s.error, read});
        if (k == 64 && (n == 128 || n == 256 || n == 512)) {
          falls = falls && s.captured < before;
          before = s.captured;
          windows.push_back(text("%.2f", s.captured));
          certificates.push_back(text("%.0f", read));
        }
      }
    }
    table.push_back({f.with.name});
    table.back().insert(table.back().end(), windows.begin(), windows.end());
    table.back().insert(table.back().end(), certificates.begin(), certificates.end());
    c.bar->add(1);
  }
  csv.save(c.output / "context_real.csv");
  std::string seen;
  if (keys_drawn.at_4096 > 0)
    seen += text("Drawn keys, scalar heads, fixed density and τ: the 64 nearest of 4,096 hold %.3f of the weight. ",
                 keys_drawn.at_4096);
  auto const &first = keys_drawn.first, &last = keys_drawn.last;
  seen += text("From the fewest to the most keys their share goes from %.3f to %.3f", first[0], last[0]);
  seen += last[0] < first[0]
              ? ": with a fixed density a window of k keys is a stretch of the line that shrinks like k/n. "
              : ". ";
  seen +=
      text("It goes from %.3f to %.3f where τ shrinks like 1/n², and from %.3f to %.3f where all new keys are far. ",
           first[1], last[1], first[2], last[2]);
  if (std::fabs(last[1] - first[1]) < 0.05 && std::fabs(last[2] - first[2]) < 0.05)
    seen +=
        "So <em>the effective width is constant</em> is true of the width on the line, not of the number of keys in "
        "it. ";
  if (falls)
    seen +=
        "For real heads the window’s share falls as the text grows from 128 to 512 tokens, with every regularizer. ";
  return seen +
         "Real heads: 64 queries, the same for all lengths; contexts of more than 256 reach back into the half of the "
         "text that was fitted.</p>" +
         apps::html_table(table) + "<p>";
}

}  // namespace

apps::experiment context_length(fits f) {
  return {
      .name = "context",
      .title = "Captured weight against the length of the context",
      .summary = "captured weight of fixed windows: real heads at 128 to 512 tokens, drawn keys from 128 to 32768",
      .paper =
          "The window does not need to grow with n; the attention distribution does not dilute as context grows; the "
          "effective context "
          "width is O(1) in n. The key systems experiment: does error grow with context length, or does the "
          "regularizer "
          "keep the window "
          "effectively constant? <cite>Overview; Long context behavior; proposed experiment 4.</cite>",
      .pictures =
          {{"context_synthetic",
            "Drawn keys, τ = 0.1 at n = 128. Left: share of the weight on the 64 nearest keys, scalar heads "
            "(filled) and hybrid heads "
            "(open). Right: the weight of the nearest key alone, the largest of a scalar head."},
           {"context_real",
            "Real heads: share of the combined weight on the 64 nearest keys as the context grows backwards from "
            "the last 64 tokens; "
            "dotted: 64 keys chosen at random."}},
      .cost = 25,
      .run = [f](apps::context const& c) { return run(c, *f); },
      .preparation = shared_fits::cost};
}

}  // namespace scalar_sort
