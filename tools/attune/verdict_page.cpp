// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "verdict_page.hpp"

#include <cmath>
#include <cstdio>
#include <sstream>

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
tr.blind td{color:#888}code,pre{background:#f4f4f4;padding:.1em .3em}pre{overflow:auto;padding:.6em}
</style>)";

std::string short_number(double x) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.3g", x);
  return digits;
}

void findings(std::ostringstream& to, testing::verdict_report const& r) {
  to << "<h3>What was looked for</h3>\n<p>How much of each defect the output shows, and how much of it these inputs "
        "would have "
        "shown. |z| beyond 6 is noticed. Grey: changes nothing here that could be seen, or is allowed by the "
        "formats.</p>\n"
        "<table><tr><th>parameter or defect</th><th class=\"number\">estimate</th><th class=\"number\">smallest "
        "noticed</th>"
        "<th class=\"number\">z</th></tr>\n";
  for (auto const& f : r.findings) {
    bool const seen = f.tested && (f.parameter ? std::isfinite(f.power) : f.power < 1);
    bool const noticed = f.tested && std::fabs(f.z) > 6;
    to << "<tr"
       << (noticed ? " class=\"noticed\""
           : seen  ? ""
                   : " class=\"blind\"")
       << "><td>" << escaped(f.name) << "</td><td class=\"number\">" << f.amount(f.estimate, true)
       << "</td><td class=\"number\">" << f.amount(f.power, false) << "</td><td class=\"number\">" << short_number(f.z)
       << "</td></tr>\n";
  }
  to << "</table>\n";
}

void one_report(std::ostringstream& to, std::string const& what, testing::verdict_report const& r) {
  to << "<h2>" << escaped(what) << ": " << testing::name_of(r.decision) << "</h2>\n";
  if (r.reasons.empty())
    to << "<p>Every element is within the error bound of its type, and no defect is noticed.</p>\n";
  to << "<ul>\n";
  for (auto const& reason : r.reasons) to << "<li>" << escaped(reason) << "</li>\n";
  to << "</ul>\n<h3>Where the error sits</h3>\n<p>Error over bound, the worst of each cell. Grey: within its bound; "
        "yellow to "
        "red: "
        "1 to 1,000 bounds; black: not finite.</p>\n";
  for (auto const& e : r.elements) {
    to << "<p><b>" << escaped(e.output) << "</b>: " << e.outside << " of " << e.count << " outside; worst "
       << short_number(e.ratio) << " bounds at batch " << e.place.batch << ", head " << e.place.head << ", position "
       << e.place.position << ", feature " << e.place.feature << ": " << short_number(e.got) << ", exact "
       << short_number(e.expected) << " ± " << short_number(e.bound) << "</p>\n";
    to << heat_map(by_head_and_position(e), e.output + " by head and position", "head", "position");
    if (e.extents.feature > 1)
      to << heat_map(by_position_and_feature(e), e.output + " by position and feature", "position", "feature");
  }
  to << bars(r.by_key, "the weight that each key acts with");
  findings(to, r);
  std::ostringstream plain;
  plain << r;
  to << "<h3>In words</h3>\n<pre>" << escaped(plain.str()) << "</pre>\n";
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
  to << "<p>Stored as " << testing::name_of(j.stored) << ". Masks: <code>" << escaped(call.at("mask").dump())
     << "</code>, parameters: <code>" << escaped(call.at("parameters").dump()) << "</code>, offset "
     << escaped(call.at("offset").dump()) << ".</p>\n";
  for (auto const& hint : j.hints) to << "<p>Hint: " << escaped(hint) << "</p>\n";
  for (auto const& [what, report] : j.reports) one_report(to, what, report);
  to << "</html>\n";
  return to.str();
}

}  // namespace attune::tool
