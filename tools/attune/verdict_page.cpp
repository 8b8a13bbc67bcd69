// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "verdict_page.hpp"

#include <cmath>
#include <sstream>

#include <attune/core/number_text.hpp>

#include "masks.hpp"
#include "pictures.hpp"

namespace attune::tool {
namespace {

constexpr char const* style = R"(<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1 .mark{color:#fff;border-radius:.3em;padding:.05em .4em}.PASS{background:#2a7d46}.FAIL{background:#b3261e}.UNDECIDABLE{background:#946200}
h2{margin-top:2rem}svg.heat{width:100%;height:auto;display:block;margin:1rem 0}svg text{font:10px system-ui,sans-serif;fill:#444}
svg .title{font-size:13px;fill:#222}svg .end{text-anchor:end}svg .line{stroke:#bbb;stroke-width:.5}svg .bar{fill:#b3261e}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #ddd}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}tr.noticed td{font-weight:600;color:#b3261e}
.blind{color:#888}.legend span{display:inline-block;padding:0 .5em;margin-right:.6em}.cause{border:2px solid;border-radius:.4em;padding:.5em .8em;font-size:1.1em;font-weight:600}
summary{cursor:pointer;margin:.5rem 0}code,pre{background:#f4f4f4;padding:.1em .3em}pre{overflow:auto;padding:.6em}
</style>)";

constexpr char const* legend =
    "<p class=\"legend\">Error / bound, the worst of each cell: <span style=\"background:hsl(210,20%,85%)\">within "
    "the bound</span><span style=\"background:hsl(52,95%,58%)\">1</span><span "
    "style=\"background:hsl(26,95%,51%)\">30</span><span style=\"background:hsl(0,95%,44%);color:#fff\">1,000 and "
    "more</span><span style=\"background:#000;color:#fff\">not finite</span></p>\n";

std::string short_number(double x) { return attune::detail::number_text(x, 3); }

/// Whether these inputs show a defect at all.
bool is_seen(testing::finding const& f) {
  double const most = f.parameter ? testing::finding::most_told : 1;
  return f.tested && std::isfinite(f.estimate) && f.power < most;
}
void row_of_table(std::ostringstream& to, testing::finding const& f, testing::verdict_report const& r) {
  bool const noticed = r.decision == testing::judgement::fail && std::fabs(f.z) > 6;
  double const z = std::fabs(f.z);
  to << "<tr" << (noticed ? " class=\"noticed\"" : "") << "><td>" << escaped(f.name)
     << (f.where.empty() ? "" : " " + escaped(f.where)) << "</td><td class=\"number\">" << f.amount(f.estimate, true)
     << "</td><td class=\"number\">" << f.amount(f.power, false) << "</td><td class=\"number\">"
     << (z > 20 ? "sure" : short_number(f.z)) << "</td><td class=\"number\">" << short_number(100 * f.share)
     << " %</td></tr>\n";
}

/// The defects that explain much of the residual stand open. The others are folded: a large defect resembles many.
/// Those that change nothing here have names only.
void findings(std::ostringstream& to, testing::verdict_report const& r) {
  constexpr double much = 0.5;
  std::size_t open = 0, folded = 0;
  std::string unseen;
  auto const explains = [&](testing::finding const& f) {
    return r.cause() != nullptr && (&f == r.cause() || (f.tested && f.share >= much));
  };
  auto const is_shown = [&](testing::finding const& f) { return &f == r.cause() || is_seen(f); };
  for (auto const& f : r.findings) {
    if (!is_shown(f)) unseen += (unseen.empty() ? "" : ", ") + escaped(f.name);
    ++(explains(f) && is_shown(f) ? open : folded);
  }
  auto const table = [&](bool of_open) {
    to << "<table><tr><th>parameter or defect</th><th class=\"number\">estimate</th><th class=\"number\">smallest "
          "noticed</th><th class=\"number\">z</th><th class=\"number\">explains</th></tr>\n";
    for (auto const& f : r.findings)
      if (is_shown(f) && explains(f) == of_open) row_of_table(to, f, r);
    to << "</table>\n";
  };
  to << "<h3>What was looked for</h3>\n<p>How much of each defect the output shows, how much of it these inputs would "
        "have shown, and the part of the residual that it explains. Red: seen, |z| beyond 6.</p>\n";
  if (open > 0) table(true);
  to << "<details><summary>" << (open > 0 ? "Other" : "All") << " parameters and defects (" << folded
     << ")</summary>\n";
  table(false);
  if (!unseen.empty()) to << "<p class=\"blind\">These would not show on these inputs: " << unseen << ".</p>\n";
  to << "</details>\n";
}

/// The first reason: of a FAIL the cause, if one is known.
std::string main_reason(testing::verdict_report const& r) {
  return r.reasons.empty() ? "Every element is within the error bound of its type, and no defect is noticed."
                           : r.reasons.front();
}

void one_report(std::ostringstream& to, std::string const& what, testing::verdict_report const& r) {
  to << "<h2>" << escaped(what) << "</h2>\n<ul>\n";
  for (std::size_t n = 1; n < r.reasons.size(); ++n) to << "<li>" << escaped(r.reasons[n]) << "</li>\n";
  to << "</ul>\n<h3>Where the error is</h3>\n";
  for (auto const& e : r.elements) {
    to << "<p><b>" << escaped(e.output) << "</b>: " << e.outside << " of " << e.count << " outside; worst "
       << short_number(e.ratio) << " bounds at batch " << e.place.batch << ", head " << e.place.head << ", position "
       << e.place.position << ", feature " << e.place.feature << ": " << short_number(e.got) << ", exact "
       << short_number(e.expected) << " ± " << short_number(e.bound) << "</p>\n";
    to << heat_map(by_head_and_position(e), e.output + " by head and position", "head", "position");
    if (e.extents.feature > 1)
      to << heat_map(by_position_and_feature(e), e.output + " by position and feature", "position", "feature");
    to << legend;
  }
  if (r.tells_keys()) to << bars(r.by_key, "the weight that each key acts with");
  findings(to, r);
  std::ostringstream plain;
  plain << r;
  std::string const lines = plain.str();  // the first is the decision, which the page has at its top
  to << "<h3>As text</h3>\n<pre>" << escaped(lines.substr(lines.find('\n') + 1)) << "</pre>\n";
}

}  // namespace

std::string verdict_page(nlohmann::ordered_json const& call, judged_call const& j) {
  std::ostringstream to;
  std::string const decision = testing::name_of(j.decision()), preset = j.call.of->name;
  to << "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\">"
     << "<title>" << decision << ": " << escaped(preset) << "</title>\n"
     << style << "\n<h1><span class=\"mark " << decision << "\">" << decision << "</span> " << escaped(preset)
     << "</h1>\n";
  for (auto const& [what, report] : j.reports) {
    to << "<p class=\"cause\">";
    if (j.reports.size() > 1) to << escaped(what) << ", " << testing::name_of(report.decision) << ": ";
    to << escaped(main_reason(report)) << "</p>\n";
  }
  auto const list = [](nlohmann::ordered_json const& words, auto const& text) {
    std::string all;
    for (auto const& word : words) all += (all.empty() ? "" : "; ") + text(word.template get<std::string>());
    return all;
  };
  std::string const masks = list(call.at("mask"), mask_in_words),
                    parameters = list(call.at("parameters"), [](std::string const& word) {
                      auto const equals = word.find('=');
                      return word.substr(0, equals) + " = " + word.substr(equals + 1);
                    });
  to << "<p>Stored as " << testing::name_of(j.stored) << ". " << (masks.empty() ? "No mask" : "Mask: " + escaped(masks))
     << ". " << (parameters.empty() ? "No parameters" : "Parameters: " + escaped(parameters)) << ". Offset "
     << call.at("offset").get<long>() << ".</p>\n";
  for (auto const& hint : j.hints) to << "<p>Hint: " << escaped(hint) << "</p>\n";
  for (auto const& [what, report] : j.reports) one_report(to, what, report);
  to << "</html>\n";
  return to.str();
}

}  // namespace attune::tool
