// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   conclude(report, projections, options, limit)     PASS, FAIL or UNDECIDABLE, and the reasons
//
// The decision of a verdict from its elements, energies and findings.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <attune/core/number_text.hpp>
#include <attune/core/stable_sort.hpp>
#include <attune/testing/projection.hpp>

namespace attune::testing::detail {

inline bool any_outside(verdict_report const& r) {
  return std::any_of(r.elements.begin(), r.elements.end(), [](worst_element const& e) { return e.outside > 0; });
}
inline bool any_noticed(verdict_report const& r, double gate) {
  return std::any_of(r.findings.begin(), r.findings.end(),
                     [&](finding const& f) { return f.tested && std::fabs(f.z) > gate; });
}

/// Median of what rounding may leave of the finite numbers, `gate` standard deviations, divided by their root mean
/// square.
inline double condition_of(std::vector<bounded_number> const& numbers, double accumulation, double gate) {
  double square = 0, count = 0;
  for (bounded_number const& x : numbers)
    if (std::isfinite(x.value)) square += x.value * x.value, count += 1;
  if (count == 0 || square == 0) return 0;
  double const typical = std::sqrt(square / count);
  std::vector<float> sizes;  // one for each number of the output: their median needs no more digits
  sizes.reserve(numbers.size());
  for (bounded_number const& x : numbers)
    if (std::isfinite(x.value)) sizes.push_back(float(std::fmin(x.bound, gate * sigma_of(x, accumulation)) / typical));
  auto const middle = sizes.begin() + std::ptrdiff_t(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

/// Whether a direction that was chosen from `candidates` explains more of the residual than one of them would by chance
/// in one case of 10,000: a residual that lies in a few numbers resembles some direction.
inline bool better_than_chance(finding const& f, double candidates, projections const& seen) {
  auto const [total, numbers] = seen.to_explain();
  double const left = std::fmax(1 - f.share, 1 / std::fmax(total, 1.));  // rounding stays unexplained
  return std::log(candidates) + (numbers - 1) / 2 * std::log(left) < std::log(1e-4);
}

/// Which outputs are NaN; "" for none.
inline std::string words_of_nan(verdict_report const& r) {
  std::string all;
  for (worst_element const& e : r.elements) {
    if (e.nan == 0) continue;
    std::string const how_many = e.nan == e.count ? "all" : attune::detail::text(e.nan, " of ", e.count);
    all += (all.empty() ? "" : ", ") + how_many + " elements of " + e.output + " are NaN";
  }
  return all;
}

/// Results that a kernel stores in fp64 and computed in fp32. `within`: whether all are within the bounds of a
/// precision.
template <class Within>
void by_narrow_arithmetic(verdict_report& report, precision const& how, double gate, Within const& within) {
  if (how.arithmetic != storage::fp64 || !any_outside(report)) return;
  precision narrow(storage::fp64, storage::fp32, storage::fp32);
  narrow.lse_roundings = how.lse_roundings;
  if (!within(narrow)) return;
  finding f;
  f.name = "computed in fp32";
  f.share = f.estimate = 1;
  f.z = 2 * gate;
  f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
  f.last_resort = true;                                  // so is what is hardly wrong
  report.findings.push_back(f);
}

/// Orders the findings, decides, and gives the reasons. `limit`: of the condition.
inline void conclude(verdict_report& report, projections const& seen, verdict_options const& how, double limit) {
  auto& findings = report.findings;
  bool const outside = any_outside(report);
  bool const noticed = !how.proved_only && any_noticed(report, how.gate);
  energy_excess const* high = nullptr;
  for (energy_excess const& e : report.energies)
    if (e.found && !how.proved_only && (high == nullptr || e.times / e.limit > high->times / high->limit)) high = &e;
  index_t const tests = index_t(findings.size()) * seen.tests();
  report.false_alarms += double(tests) * std::erfc(how.gate / std::sqrt(2.));
  report.seed = how.seed;
  // If a parameter and a definite defect explain the residual equally well, the definite defect is more likely.
  auto const merit = [&](finding const& f) {
    return (f.tested ? f.share + 1e-3 * f.gain / std::fmax(seen.total(), 1e-300) : 0) * (f.last_resort ? 0.85
                                                                                         : f.parameter ? 0.98
                                                                                                       : 1.0);
  };
  attune::detail::sort_stably(findings, [&](finding const& a, finding const& b) { return merit(a) > merit(b); });
  auto say = [&](std::string const& text) { report.reasons.push_back(text); };
  if (outside || noticed || high != nullptr) {
    report.decision = judgement::fail;
    report.ground = outside ? failure_ground::proved : failure_ground::statistical;
    // If something is wrong in any case, weaker evidence suffices for the cause.
    double const needed = outside || high != nullptr ? how.gate / 3 : how.gate;
    auto const sure = [&](finding const& f) {
      if (!f.tested || f.share <= 0.25) return false;
      if (f.directed && !better_than_chance(f, double(tests) * double(f.chosen_from), seen)) return false;
      // The best of many has a larger z by chance.
      double const z = f.parameter ? std::fabs(f.z) : f.z, chosen = 2 * std::log(double(f.chosen_from));
      if (z > std::sqrt(needed * needed + chosen)) return true;
      // Sizes that are too large need no sign: a finding that explains most of them needs no z.
      return high != nullptr && f.chosen_from == 1 && f.share > 0.6;
    };
    auto const first = std::find_if(findings.begin(), findings.end(), sure);
    report.caused = first != findings.end();
    if (report.caused) {
      std::rotate(findings.begin(), first, first + 1);
      finding const& cause = findings.front();
      report.share = cause.share;
      say((report.share < 0.6 ? "in part " : "") + cause.words() +
          attune::detail::text(" (z = ", std::round(cause.z), ", explains ", std::round(100 * report.share),
                               " % of the residual)"));
    } else {
      if (report.observation.empty()) report.observation = words_of_nan(report);
      say((report.observation.empty() ? "" : report.observation + "; ") + "no known defect explains it");
    }
    if (high != nullptr && (!report.caused || report.share < 0.6))
      say(high->output + attune::detail::text(": the residuals", high->where.empty() ? "" : " ", high->where, " are ",
                                              attune::detail::number_text(high->times, 3),
                                              " times what rounding leaves (at most ",
                                              attune::detail::number_text(high->limit, 3), " in a correct kernel)"));
    for (worst_element const& e : report.elements)
      if (e.outside > 0)
        say(e.output + attune::detail::text(" at (", e.place.batch, ", ", e.place.head, ", ", e.place.position, ", ",
                                            e.place.feature, ") is ", e.got, ", exact ", e.expected, " +- ", e.bound));
    if (!outside)
      say(attune::detail::text(
          "statistical: every element is within its bound; of the reports on correct kernels, at most ",
          attune::detail::number_text(report.false_alarms, 3), " say FAIL like this"));
    return;
  }
  if (report.condition > limit) {
    report.decision = judgement::undecidable;
    say(attune::detail::text("ill-conditioned: what rounding leaves exceeds ", limit,
                             " of the typical number in half of the elements: nothing can be concluded"));
  }
  for (demanded const& wanted : how.must_detect) {
    finding const* f = nullptr;
    for (finding const& x : findings)
      if (attune::detail::is_called(x.name, wanted.name)) f = &x;
    if (f == nullptr)
      throw error("testing::verdict", "must_detect", "the name \"" + wanted.name + "\"",
                  "a parameter of the operator or the name of a defect that applies to it");
    if (f->power < wanted.size) continue;
    report.decision = judgement::undecidable;
    say(f->name + attune::detail::text(": ", wanted.size,
                                       " would go unnoticed on these inputs, the smallest to be seen is ", f->power,
                                       ": run the probes (testing/probes.hpp)"));
  }
}

}  // namespace attune::testing::detail
