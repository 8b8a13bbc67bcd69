// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   words_of_region(report)                          "wrong only in head 5, queries 64..127 (993 elements)"
//   closest_findings(report), excluded_by(report)    {"out +2 % (explains 40 %)"}, {"kernel.scale (to 0.4 %)", "mask"}
//
// The words of a report about a failure that no known defect explains.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/number_text.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing::detail {

inline energy_excess const* energy_of(verdict_report const& r, std::string const& output) {
  for (energy_excess const& e : r.energies)
    if (e.output == output) return &e;
  return nullptr;
}

/// An element as text: "out[batch 0, head 6, query 38, feature 29] = -0.101, exact 0.0157, allowed 0.0028".
inline std::string words_of_element(verdict_report const& r, worst_element const& e) {
  using attune::detail::number_text, attune::detail::text;
  energy_excess const* const energy = energy_of(r, e.output);
  bool const keys = energy != nullptr && energy->of_keys;
  std::string place;
  auto const add = [&](char const* name, index_t at, index_t extent, bool always) {
    if (always || extent > 1) place += text(place.empty() ? "" : ", ", name, " ", at);
  };
  bool const tensor = e.extents.position > 1 || e.extents.feature > 1;
  add("batch", e.place.batch, e.extents.batch, tensor);
  add(keys ? "key head" : "head", e.place.head, e.extents.head, tensor);
  add(keys ? "key" : "query", e.place.position, e.extents.position, tensor);
  add("feature", e.place.feature, e.extents.feature, false);
  return e.output + (place.empty() ? "" : "[" + place + "]") + " = " + number_text(e.got, 3) + ", exact " +
         number_text(e.expected, 3) + ", allowed " + number_text(e.bound, 2);
}

inline constexpr char const* everywhere = "wrong everywhere";
/// The smallest part of each output that is wrong. `statistical`: sizes of residuals count.
inline std::string words_of_region(verdict_report const& r, bool statistical) {
  using attune::detail::text;
  std::string all;
  bool all_of_them = true, any = false;
  for (worst_element const& e : r.elements) {
    energy_excess const* const energy = energy_of(r, e.output);
    bool const large = statistical && energy != nullptr && energy->found;
    if (e.outside <= e.zero && !large) {
      all_of_them = all_of_them && e.outside > 0;
      continue;
    }
    index_box box = large && !energy->box.feature.empty() ? energy->box : e.wrong;
    if (e.outside > 0 && e.zero + e.nan == 0) box.add(e.wrong);
    std::string const where = box.words(energy != nullptr && energy->of_keys);
    all_of_them = all_of_them && where.empty();
    std::string const name = r.elements.size() == 1 ? "" : e.output;
    std::string const part = name + (name.empty() || where.empty() ? "" : ", ") + where;
    all += (any ? "; and in " : "") + part +
           (e.outside > 0 ? text(" (", e.outside, e.outside > 1 ? " elements)" : " element)")
                          : std::string(" (each element within its bound)"));
    any = true;
  }
  if (!any) return "";
  return all_of_them ? everywhere : "wrong only in " + all;
}

/// The parts that are NaN or zeros, of all outputs. elements: in these parts; outside: of all that are outside.
struct plain_words {
  std::string words;
  index_t elements = 0, outside = 0;
};
inline plain_words plain_faults_of(verdict_report const& r) {
  plain_words to;
  for (worst_element const& e : r.elements) {
    to.outside += e.outside;
    to.elements += e.zero + e.nan;
    if (!e.plain.empty()) to.words += (to.words.empty() ? "" : ", ") + e.plain;
  }
  return to;
}

/// The three findings that explain most, with their shares.
inline std::vector<std::string> closest_findings(verdict_report const& r) {
  constexpr double least = 0.05;
  std::vector<finding const*> all;
  for (finding const& f : r.findings)
    if (f.tested && f.share >= least && std::isfinite(f.estimate) && std::fabs(f.z) > 3) all.push_back(&f);
  std::stable_sort(all.begin(), all.end(), [](auto const* a, auto const* b) { return a->share > b->share; });
  std::vector<std::string> to;
  for (std::size_t n = 0; n < (std::min<std::size_t>)(3, all.size()); ++n)
    to.push_back(all[n]->short_words() + attune::detail::text(" (", std::round(100 * all[n]->share), " %)"));
  return to;
}

/// The subject of a finding, where several have the same: "mask".
inline std::string topic_of(finding const& f) {
  auto const begins = [&](char const* x) { return f.name.rfind(x, 0) == 0; };
  auto const has = [&](char const* x) { return f.name.find(x) != std::string::npos; };
  if (f.parameter) return f.relative && !begins("the weight of") ? f.name : "";
  if (begins("mask") || begins("one key") || begins("window") || begins("first visible key") ||
      begins("last visible key"))
    return has("sum of weights") || has("doubled") ? "" : "mask";
  if (has("key head")) return "heads";
  if (has("batch element")) return "batch elements";
  if (begins("head and position")) return "order of axes";
  if (begins("values shifted")) return "order of values";
  if (begins("lse in base")) return "base of the lse";
  return begins("sink or ground") ? "sink or ground" : "";
}
/// Subjects that were looked at with enough power and are right: defects that the residual would contradict even if it
/// has other causes too.
inline std::vector<std::string> excluded_by(verdict_report const& r) {
  constexpr double sure = 3, most = 0.05;              ///< most: of a parameter
  std::vector<std::pair<std::string, double>> topics;  // with the size that would be seen; infinity: not excluded
  for (finding const& f : r.findings) {
    std::string const topic = topic_of(f);
    if (topic.empty() || !f.tested || !f.directed) continue;
    double const size = std::fabs(f.estimate) + sure * f.doubt + f.power;
    double const seen = size < (f.parameter ? most : 0.5) ? size : math::infinity<double>();
    auto const at = std::find_if(topics.begin(), topics.end(), [&](auto const& x) { return x.first == topic; });
    if (at == topics.end())
      topics.emplace_back(topic, seen);
    else
      at->second = std::fmax(at->second, seen);
  }
  std::vector<std::string> to;
  for (auto const& [topic, size] : topics) {
    if (!(size < 1)) continue;
    bool const parameter = r.find(topic) != nullptr && r.find(topic)->parameter;
    std::string const name = parameter && topic.find('.') == std::string::npos ? "a factor of " + topic : topic;
    to.push_back(name + (parameter ? " (to " + attune::detail::number_text(100 * size, 2) + " %)" : ""));
  }
  return to;
}
/// A list with commas.
inline std::string joined(std::vector<std::string> const& words) {
  std::string all;
  for (std::string const& one : words) all += (all.empty() ? "" : ", ") + one;
  return all;
}

}  // namespace attune::testing::detail
