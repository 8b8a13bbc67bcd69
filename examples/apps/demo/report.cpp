// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <attune/version.hpp>

#include "chart.hpp"
#include "heatmap.hpp"
#include "png.hpp"
#include "print.hpp"
#include "shared/page_style.hpp"

namespace demo {
namespace {

constexpr char const* drawn[] = {"softmax", "off-by-one", "sink", "principled"};
constexpr char const* charted[] = {"softmax", "off-by-one", "sink", "ssmax", "principled"};

void write_introduction(std::ostream& to, study_result const& r) {
  layer const& l = r.layers.front();
  to << "<h1>What attention does with <em>Alice in Wonderland</em></h1>\n"
     << text(
            "<p class=\"lead\">A language model reads the first %td tokens of <em>Alice’s Adventures in "
            "Wonderland</em>. We "
            "took the queries, keys and values of %zu of its layers "
            "(%td heads of width %td each) and asked: what if attention were allowed to say “nothing here is for me”? "
            "The same "
            "numbers go through softmax and four alternatives; "
            "every result is compared with a reference that computes it another way, in higher precision.</p>\n",
            l.length, r.layers.size(), l.heads, l.width);
  to << text("<p class=\"verdict %s\">%s: worst error %.2f of the bound, over %zu presets and %zu variants</p>\n",
             r.passed() ? "pass" : "fail", r.passed() ? "All agree" : "DISAGREEMENT", r.worst_error() / error_limit,
             r.presets.size(), r.grid.size());
}

void write_presets(std::ostream& to, study_result const& r) {
  to << "<h2>The presets</h2>\n<p><b>Softmax</b> must spend a whole unit of attention on the keys. <b>Off-by-one</b> "
        "and "
        "<b>sink</b> add one constant mass that buys nothing "
        "(e<sup>0</sup>, or a logit per head). <b>Ssmax</b> sharpens scores by the logarithm of the number of keys. "
        "<b>Principled Attention</b> compares every key with a threshold γ: "
        "what a key lacks goes to a ground state, whose value v0 the row receives instead; a gate can veto keys, and "
        "scores "
        "are amplified around γ as rows grow longer.</p>\n"
     << "<div class=\"scroll\"><table><thead><tr class=\"group\"><th class=\"name\" colspan=\"2\"></th><th "
        "colspan=\"3\">largest error, of the bound</th>";
  for (int const n : r.options.layers) to << text("<th colspan=\"2\">layer %d: means</th>", n);
  to << "<th></th></tr>\n<tr><th class=\"name\">preset</th><th class=\"name\">mask</th><th>CPU float<br>vs "
        "double</th><th>CPU "
        "float<br>vs 50 digits</th><th>double<br>vs 50 digits</th>";
  for (std::size_t n = 0; n < r.options.layers.size(); ++n) to << "<th>ground<br>weight</th><th>entropy<br>(nats)</th>";
  to << "<th>time<br>(softmax = 1)</th></tr></thead>\n<tbody>";
  double const base = r.presets.front().time;
  std::string previous = r.presets.front().mask;
  for (preset_result const& p : r.presets) {
    std::vector<head_report> all;
    for (auto const& [number, heads] : p.heads) all.insert(all.end(), heads.begin(), heads.end());
    head_report const worst = summary(all);
    to << (p.mask == previous ? "<tr>" : "<tr class=\"next-mask\">") << "<th>" << p.name << "</th><td class=\"name\">"
       << p.mask << "</td>";
    for (double const x : {worst.error, worst.digits_error, worst.reference_error})
      to << text("<td class=\"bar\" style=\"--share:%.0f%%\">%.3f</td>", 100 * std::min(x / error_limit, 1.0),
                 x / error_limit);
    for (auto const& [number, heads] : p.heads) {
      head_report const mean = summary(heads);
      to << text("<td>%.3f</td><td>%.2f</td>", mean.ground, mean.entropy);
    }
    to << text("<td>%.2f</td></tr>\n", p.time / base);
    previous = p.mask;
  }
  to << text(
      "</tbody></table></div>\n<p class=\"soft\">Errors are shares of the bound, eps × condition (below): above 1 "
      "fails. "
      "CPU float "
      "against double: every element of all rows; against 50 digits: 2 rows of every head. "
      "Time: processor time of one thread on layer %d, median of interleaved calls; softmax without mask takes %.2f "
      "ms. The "
      "reference also reproduces the outputs that the model itself stored "
      "(softmax, float32) to %.1e.</p>\n",
      r.options.grid_layer, 1e3 * base, r.stored_error);
}

void write_charts(std::ostream& to, study_result const& r) {
  double const uniform = std::log(double(r.layers.front().length));
  to << "<h2>Head by head</h2>\n<p>Entropy says over how many keys a row spreads: 0 nats is one key, "
     << text("%.2f nats is all %td of them alike. ", uniform, r.layers.front().length)
     << "Ground weight is the share of a row that no key receives; softmax and ssmax have none. Means over all rows, "
        "no mask; "
        "a mark’s name and number appear under the pointer.</p>\n";
  for (bool first = true; int const n : r.options.layers) {
    std::vector<series> entropy, ground;
    for (char const* name : charted) {
      series e{name, {}}, g{name, {}};
      for (head_report const& h : r.preset(name, "none").heads.at(n)) {
        e.values.push_back(h.entropy);
        g.values.push_back(h.ground);
      }
      entropy.push_back(std::move(e));
      ground.push_back(std::move(g));
    }
    if (first) to << chart_legend(entropy);
    first = false;
    to << text("<div class=\"pair\"><figure><figcaption>Layer %d: entropy</figcaption>", n)
       << chart(entropy, {"entropy (nats)", 7, 1, uniform, text("ln %td: uniform", r.layers.front().length)},
                text("entropy of every head of layer %d", n))
       << text("</figure><figure><figcaption>Layer %d: ground weight</figcaption>", n)
       << chart(ground, {"ground weight", 1, 0.2, -1, ""}, text("ground weight of every head of layer %d", n))
       << "</figure></div>\n";
  }
}

void write_head(std::ostream& to, study_result const& r, int layer_number, std::size_t h, std::size_t count) {
  to << "<div class=\"pair\">";
  for (char const* name : drawn) {
    head_report const& head = r.preset(name, "none").heads.at(layer_number)[h];
    bool const has_ground = std::string(name) != "softmax";
    to << "<figure><figcaption>" << name
       << text(" <span>layer %d, head %zu: entropy %.2f nats", layer_number, h, head.entropy)
       << (has_ground ? text(", mean ground weight %.2f", head.ground) : std::string()) << "</span></figcaption>"
       << heatmap(head.corner, count, has_ground, text("%s attention, layer %d, head %zu", name, layer_number, h))
       << "</figure>\n";
  }
  to << "</div>\n";
}

/// The share of the weight of the rows shown that lies on the tokens shown.
double weight_in_sight(head_report const& head, std::size_t count) {
  return std::accumulate(head.corner.begin(), head.corner.end(), 0.0) / double(count);  // softmax: no ground among them
}

/// Of a layer's heads: the one with the most weight on the tokens shown, and the one with the median entropy.
std::vector<std::size_t> featured(std::vector<head_report> const& heads, std::size_t count) {
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return heads[a].entropy < heads[b].entropy; });
  std::size_t const middle = order[order.size() / 2];
  std::size_t const first = *std::max_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return weight_in_sight(heads[a], count) < weight_in_sight(heads[b], count);
  });
  if (first == middle) return {first};
  return {first, middle};
}

/// The mean ground weight of a preset without mask, over all rows of all layers.
double mean_ground(study_result const& r, char const* name) {
  std::vector<head_report> all;
  for (auto const& [number, heads] : r.preset(name, "none").heads) all.insert(all.end(), heads.begin(), heads.end());
  return summary(all).ground;
}

void write_heatmaps(std::ostream& to, study_result const& r) {
  auto const& softmax = r.preset("softmax", "none").heads;
  std::size_t const count = std::size_t(std::min<index_t>(r.options.corner, r.layers.front().length));
  to << text(
            "<h2>Who looks at whom</h2>\n<p>The first %zu tokens: a row is a query, a column a key, and the separate "
            "column on "
            "the right is the ground. "
            "Rows sum to 1 over all %td keys, so what is missing here lies further on in the text. The pointer reads a "
            "number.</p>\n"
            "<p><b>How to read it.</b> Softmax must spend its unit somewhere: a flat head has weights near 1/%td "
            "everywhere. Off-by-one adds a constant 1 to the mass of %td keys; its ground takes %.4f of a row on "
            "average. A sink is one number for a whole head: where the rows of a head are alike, it takes the same "
            "share of each. Principled Attention decides key by key: a light ground cell is a query that found little "
            "above its threshold, a dark one a query that found its keys.</p>\n",
            count, r.layers.front().length, r.layers.front().length, r.layers.front().length,
            mean_ground(r, "off-by-one"))
     << heatmap_legend() << heatmap_labels(r.tokens, count);
  for (int const n : r.options.layers) {
    auto const& heads = softmax.at(n);
    auto const chosen = featured(heads, count);
    char const* const why[] = {"the most weight of the layer on these tokens", "the median entropy of the layer"};
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      to << text(
          "<h3>Layer %d, head %zu: %s</h3>\n<p>%.0f %% of the softmax weight of these %zu rows lies on the "
          "tokens shown.</p>\n",
          n, chosen[c], why[c], 100 * weight_in_sight(heads[chosen[c]], count), count);
      write_head(to, r, n, chosen[c], count);
    }
    to << text("<h3>Other heads of layer %d</h3>\n", n);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (std::find(chosen.begin(), chosen.end(), h) != chosen.end()) continue;
      to << text("<details><summary>Head %zu (softmax: %.2f nats)</summary>", h, heads[h].entropy);
      write_head(to, r, n, h, count);
      to << "</details>\n";
    }
  }
}

void write_grid_table(std::ostream& to, study_result const& r, std::string const& title, char const* format,
                      double lowest, double highest, std::function<double(grid_result const&)> const& value) {
  to << "<figure><figcaption>" << title
     << "</figcaption><table><thead><tr><th rowspan=\"2\">α</th><th rowspan=\"2\">β</th><th "
        "colspan=\"4\">γ</th></tr><tr>";
  for (granularity const g : granularities) to << "<th>" << name(g) << "</th>";
  to << "</tr></thead><tbody>\n";
  for (granularity const a : granularities)
    for (granularity const b : granularities) {
      to << "<tr>";
      if (b == granularity::off) to << "<th rowspan=\"4\">" << name(a) << "</th>";
      to << "<th>" << name(b) << "</th>";
      for (granularity const g : granularities) {
        double most = -1;
        for (grid_result const& x : r.grid)
          if (x.choice.alpha == a && x.choice.beta == b && x.choice.gamma == g) most = std::max(most, value(x));
        if (most < 0) {
          to << "<td>–</td>";
          continue;
        }
        int const shade = int(std::clamp(255 * (most - lowest) / (highest - lowest), 0.0, 255.0));
        auto const& c = violet_to_yellow()[std::size_t(shade)];
        to << text("<td style=\"background:rgb(%d,%d,%d);color:%s\">", c[0], c[1], c[2], shade > 130 ? "#111" : "#fff")
           << text(format, most) << "</td>";
      }
      to << "</tr>\n";
    }
  to << "</tbody></table></figure>\n";
}

void write_grid(std::ostream& to, study_result const& r) {
  to << text(
            "<h2>The ablation grid of Principled Attention</h2>\n<p>Amplification α, gate β and threshold γ are each "
            "switched "
            "off (−∞), one constant, one number per head, or one per query; the ground value v0 is zero or a vector "
            "per head: "
            "%zu variants on layer %d. They are values of <em>one</em> operator type: nothing is recompiled to change "
            "the "
            "granularity. With all three off it is softmax: on the CPU executor the outputs %s.</p>\n",
            r.grid.size(), r.options.grid_layer,
            r.all_off_difference == 0 ? "are the same bit for bit"
                                      : text("differ by at most %.1e", r.all_off_difference).c_str())
     << "<div class=\"grids\">\n";
  write_grid_table(to, r, "Mean ground weight", "%.3f", 0, 0.6, [](grid_result const& g) { return g.all.ground; });
  write_grid_table(to, r, "Mean entropy (nats)", "%.2f", 0, std::log(double(r.layers.front().length)),
                   [](grid_result const& g) { return g.all.entropy; });
  write_grid_table(to, r, "Largest error, of the bound", "%.3f", 0, 1, [](grid_result const& g) {
    return std::max({g.all.error, g.all.digits_error, g.all.reference_error}) / error_limit;
  });
  to << text(
      "</div>\n<p class=\"soft\">Ground weight: all rows. Entropy and errors: every %tdth row of every head, starting "
      "elsewhere in each variant so that together they cover all rows; hence the noise in the entropy. "
      "A cell stands for both ground values: v0 has no part in the weights, and of the errors the larger is shown. The "
      "time of "
      "every variant is in <code>results.csv</code>.</p>\n",
      r.grid_step);
}

void write_method(std::ostream& to, study_result const& r) {
  to << "<h2>How it is measured</h2>\n<p>An error means little by itself: attention multiplies rounding errors by what "
        "its "
        "rows contain. So each row has its own bound,</p>\n"
        "<div class=\"formula\">bound = eps × condition\n"
        "condition = (1 + A) V\n"
        "A = max |logit| + f max Σ|c q k| + level + gate max (softplus(−g) + Σ|gq gk|)      maxima over the visible "
        "keys\n"
        "V = max |v|, |v0|</div>\n"
        "<p>because a weight is an exponential: its relative error is the absolute error of its logit, about eps times "
        "the "
        "largest number that took part in it. f is the factor of the length scale, "
        "level the magnitude of γ (amplified) or of the sink’s logit, gate is softplus(β). eps is 2<sup>−23</sup> for "
        "float "
        "and 2<sup>−52</sup> for double. The bound of the ground weight is eps × (1 + A). "
        "An error above its bound fails.</p>\n"
        "<p><b>References.</b> <code>reference&lt;double&gt;</code> evaluates every row densely, as the text books "
        "write it, "
        "without tiles or running maxima; <code>reference&lt;digits50&gt;</code> does the same with 50 digits.</p>\n"
        "<p><b>Data.</b> Layers ";
  for (std::size_t n = 0; n < r.options.layers.size(); ++n) to << (n ? ", " : "") << r.options.layers[n];
  to << " of the sentence-embedding model all-MiniLM-L6-v2 (Apache-2.0; bidirectional, scale 1/√32) on a text in the "
        "public "
        "domain. The model was trained with softmax, so it has no gates, sinks or thresholds. "
        "We derive them by fixed rules: gate queries and keys are q and k turned by +45° and −45° in the planes (d, d "
        "+ 16), "
        "at norm √8; α and β are ramps over the heads around −3.5 and −1; "
        "γ of a head is the 90th percentile of its scores; “per query” adds the cosine between q and a fixed "
        "direction; v0 is "
        "the mean of the head’s values; a sink has a third of the mass that the keys have in the head’s median row; "
        "ssmax uses 0.25 ln K. They show what the operators do, not what training would make of them.</p>\n"
     << text("<p class=\"soft\">attune %d.%d.%d; %d threads for checking; %.0f s.</p>\n", ATTUNE_VERSION_MAJOR,
             ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH, r.options.threads, r.seconds);
}

}  // namespace

void write_report(std::ostream& to, study_result const& r) {
  to << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">"
     << "<title>Attention in Wonderland</title>\n<style>" << page_style << report_style
     << "</style></head>\n<body><main>\n";
  write_introduction(to, r);
  write_presets(to, r);
  write_charts(to, r);
  write_heatmaps(to, r);
  write_grid(to, r);
  write_method(to, r);
  to << "</main><script>" << page_script << "</script></body></html>\n";
}

}  // namespace demo
