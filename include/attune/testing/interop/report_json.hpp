// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   json_of(report)    {"decision": "FAIL", "reasons": [...], "cause": {...}, "elements": {...}, ...}
//
// A verdict's report as JSON. An infinity or a NaN is no number in JSON: it is a text, as "-inf".
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <attune/core/number_text.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing {

/// A text in quotes.
inline std::string json_of(std::string_view text) {
  std::string to = "\"";
  for (char const c : text) {
    char code[8];
    if (c == '"' || c == '\\') {
      (to += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      to += code;
    } else {
      to += c;
    }
  }
  return to += '"';
}
/// A text in quotes.
inline std::string json_of(char const* text) { return json_of(std::string_view(text)); }
/// true or false.
inline std::string json_of(bool x) { return x ? "true" : "false"; }
/// A whole number.
inline std::string json_of(index_t x) { return std::to_string(x); }
/// A number with all its digits.
inline std::string json_of(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"";
  std::string const text = attune::detail::number_text(x, 17);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// A list.
template <class X>
std::string json_of(std::vector<X> const& all) {
  std::string to = "[";
  for (X const& x : all) to += (to.size() > 1 ? ", " : "") + json_of(x);
  return to += "]";
}

/// An object, member by member.
class json_object {
 public:
  /// Adds a member.
  template <class X>
  json_object& with(char const* name, X const& x) {
    return with_json(name, json_of(x));
  }
  /// Adds a member whose value is JSON already.
  json_object& with_json(char const* name, std::string const& json) {
    text_ += (text_.size() > 1 ? ", " : "") + json_of(name) + ": " + json;
    return *this;
  }
  /// The object.
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};
/// An object.
inline std::string json_of(json_object const& x) { return x.text(); }

/// How much of a defect was seen, and how much would have been.
inline std::string json_of(finding const& f) {
  return json_object()
      .with("name", f.name)
      .with("kind", f.parameter ? "parameter" : "defect")
      .with("relative", f.relative)
      .with("looked_for", f.tested)
      .with("estimate", f.estimate)
      .with("z", f.z)
      .with("smallest_noticed", f.power)
      .with("smallest_noticed_in_a_part", f.power_of_part)
      .with("where", f.where)
      .with("share", f.share)
      .with("partial", f.partial)
      .with("hint", f.hint)
      .with("look_at", f.look_at)
      .text();
}
/// How many elements are outside their bounds, and the worst one.
inline std::string json_of(worst_element const& e) {
  return json_object()
      .with("outside", e.outside)
      .with("count", e.count)
      .with("nan", e.nan)
      .with("worst", json_object()
                         .with("batch", e.place.batch)
                         .with("head", e.place.head)
                         .with("query", e.place.position)
                         .with("feature", e.place.feature)
                         .with("got", e.got)
                         .with("exact", e.expected)
                         .with("bound", e.bound)
                         .with("error_over_bound", e.ratio))
      .text();
}
/// The residuals in each part of an output.
inline std::string json_of(energy_map const& m) { return json_object().with("by", m.by).with("times", m.times).text(); }
/// How large the residuals of an output are, with the region that has too much.
inline std::string json_of(energy_excess const& e) {
  return json_object()
      .with("output", e.output)
      .with("found", e.found)
      .with("where", e.where)
      .with("times", e.times)
      .with("limit", e.limit)
      .with("overall", e.overall)
      .with("maps", e.maps)
      .text();
}
/// A report: decision, reasons, cause, worst elements, where the error sits, findings.
inline std::string json_of(verdict_report const& r) {
  json_object to;
  to.with("decision", name_of(r.decision)).with("reasons", r.reasons);
  if (r.ground != failure_ground::none)
    to.with("ground", r.ground == failure_ground::proved ? "proved" : "statistical").with("share", r.share);
  to.with("false_alarms", r.false_alarms).with("seed", index_t(r.seed)).with("residuals", r.energies);
  if (auto const* cause = r.cause())
    to.with("cause", json_object()
                         .with("name", cause->name)
                         .with("words", cause->words())
                         .with("in_part", r.in_part)
                         .with("look_at", cause->look_at));
  if (!r.observation.empty()) to.with("observation", r.observation);
  if (!r.region.empty()) to.with("region", r.region);
  if (!r.closest.empty()) to.with("closest", r.closest);
  if (!r.excluded.empty()) to.with("excluded", r.excluded);
  json_object elements;
  for (worst_element const& e : r.elements) elements.with(e.output.c_str(), e);
  to.with("elements", elements);
  to.with("error_over_bound",
          json_object().with("by_query", r.by_query).with("by_head", r.by_head).with("by_feature", r.by_feature));
  if (!r.by_key.empty()) to.with("weight_off_by_key", r.by_key);
  return to.with("condition", r.condition).with("findings", r.findings).text();
}

}  // namespace attune::testing
