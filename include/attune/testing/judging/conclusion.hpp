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
#include <attune/testing/judging/evidence/report_words.hpp>
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

/// How a finding compares with others that explain as much. A definite defect is more likely than a parameter, if the
/// inputs tell it from a multiple of it.
inline double merit_of(finding const& f, projections const& seen) {
  constexpr double definite = 1, parameter = 0.98, vague = 0.97, partly = 0.9, last = 0.85;
  constexpr double known = 0.25;  // the power with which an estimate of 1 is told from others
  if (!f.tested) return 0;
  double const kind = f.last_resort                   ? last
                      : f.partial                     ? partly
                      : f.parameter                   ? parameter
                      : f.directed && f.power > known ? vague
                                                      : definite;  // infinite: nothing is promised of it
  return kind * (f.share + 1e-3 * f.gain / std::fmax(seen.total(), 1e-300));
}

/// The reasons of a FAIL.
class fail_reasons {
 public:
  fail_reasons(verdict_report& report, projections const& seen, double needed, index_t tests, energy_excess const* high)
      : r_(report), seen_(seen), needed_(needed), tests_(double(tests)), high_(high) {}

  void give() {
    plain_words const plain = plain_faults_of(r_);
    bool const all_plain = plain.outside > 0 && plain.elements >= plain.outside && high_ == nullptr,
               most_plain = 2 * plain.elements >= plain.outside;
    one_output_ = !r_.observation.empty();
    if (!plain.words.empty()) r_.observation = plain.words;
    r_.region = words_of_region(r_, high_ != nullptr);
    name_cause(all_plain);
    bool const said_first = r_.caused && r_.findings.front().directed && most_plain && !plain.words.empty();
    if (said_first) say(plain.words);
    if (r_.caused)
      say_causes();
    else
      say_nothing_known(all_plain);
    if (r_.caused && !said_first && !plain.words.empty()) say(plain.words);
    if (r_.caused && !r_.region.empty() && r_.region != everywhere) say(r_.region);
    if (high_ != nullptr && (!r_.caused || r_.in_part)) say(words_of_size());
    for (worst_element const& e : r_.elements)
      if (e.outside > 0) say(words_of_element(r_, e));
  }

 private:
  void say(std::string const& text) { r_.reasons.push_back(text); }

  bool is_sure(finding const& f, double share) const {
    if (!f.tested || share <= 0.25) return false;
    if (f.directed && !better_than_chance(f, tests_ * double(f.chosen_from), seen_)) return false;
    // The best of many has a larger z by chance.
    double const z = f.parameter ? std::fabs(f.z) : f.z, chosen = 2 * std::log(double(f.chosen_from));
    if (z > std::sqrt(needed_ * needed_ + chosen)) return true;
    // Sizes that are too large need no sign: a finding that explains most of them needs no z.
    return high_ != nullptr && f.chosen_from == 1 && share > whole;
  }
  /// Finds what explains all outputs; else what explains each alone.
  void name_cause(bool all_plain) {
    auto& findings = r_.findings;
    auto const first = std::find_if(findings.begin(), findings.end(), [&](finding const& f) {
      return is_sure(f, f.share) && !(f.directed && (all_plain || (one_output_ && !is_whole(f))));
    });
    if (first != findings.end() && (is_whole(*first) || !name_by_output())) {
      std::rotate(findings.begin(), first, first + 1);
      r_.share = findings.front().share;
      r_.in_part = !is_whole(findings.front());
      causes_ = {words_of_cause(findings.front(), r_.share, "", r_.in_part)};
      looks_ = {findings.front().look_at};
      r_.caused = true;
    } else if (first == findings.end() && !all_plain) {
      name_by_output();
    }
  }
  /// A size that is free explains a part of any residual: a parameter that is off has to explain more than a defect.
  static bool is_whole(finding const& f) {
    bool const free = f.parameter && std::fabs(f.z) >= very_sure;
    return f.share >= (free ? whole_of_free : whole) && !f.partial;
  }

  /// Two defects: each output has its own cause. Returns whether one was found.
  bool name_by_output() {
    auto& findings = r_.findings;
    std::size_t const outputs = seen_.unexplained().size();
    if (outputs < 2) return false;
    std::vector<finding> named;
    std::size_t front = 0;
    std::vector<std::string> causes, looks;
    double share = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      double best = 0;
      std::size_t at = findings.size();
      for (std::size_t n = 0; n < findings.size(); ++n) {
        finding const& f = findings[n];
        if (k >= f.alone.size() || f.last_resort || !f.tested) continue;
        auto const& [estimate, own] = f.alone[k];
        finding alone = f;
        alone.share = own;
        if (own < 0.8 || (!f.parameter && std::fabs(estimate - 1) > 0.2) || !is_sure(alone, own)) continue;
        if (own * (f.parameter ? 0.98 : 1) > best) best = own * (f.parameter ? 0.98 : 1), at = n;
      }
      if (at == findings.size()) continue;
      finding of = findings[at];
      of.estimate = of.alone[k].estimate;
      std::string const words = words_of_cause(of, of.alone[k].share, seen_.names()[k], false);
      if (causes.empty()) front = at, share = of.alone[k].share;
      if (std::find(causes.begin(), causes.end(), words) == causes.end())
        causes.push_back(words), looks.push_back(of.look_at);
    }
    if (causes.empty()) return false;
    std::rotate(findings.begin(), findings.begin() + std::ptrdiff_t(front),
                findings.begin() + std::ptrdiff_t(front) + 1);
    causes_ = causes, looks_ = looks;
    r_.share = share;
    r_.in_part = causes.size() < outputs;
    r_.caused = true;
    return true;
  }
  static std::string words_of_cause(finding const& f, double share, std::string const& output, bool in_part) {
    double const z = std::fabs(f.z);
    return (in_part ? "in part " : "") + f.words() +
           attune::detail::text(" (explains ", std::round(100 * share), " %", output.empty() ? "" : " of ", output,
                                ", ", z >= very_sure ? std::string("sure") : "z = " + attune::detail::number_text(z, 2),
                                ")");
  }
  void say_causes() {
    for (std::size_t n = 0; n < causes_.size(); ++n) {
      say(causes_[n]);
      if (!looks_[n].empty()) say("look at: " + looks_[n]);
    }
  }
  /// The smallest region, what is closest, and what is excluded.
  void say_nothing_known(bool all_plain) {
    std::string const first = !r_.observation.empty() ? r_.observation : r_.region;
    say(first + (first.empty() ? "" : "; ") + "no known defect explains it");
    if (!r_.observation.empty() && !all_plain && !r_.region.empty() && r_.region != first) say(r_.region);
    if (all_plain) return;
    r_.closest = closest_findings(r_);
    if (!r_.closest.empty()) say("closest: " + joined(r_.closest));
    r_.excluded = excluded_by(r_);
    if (!r_.excluded.empty()) say("excluded: " + joined(r_.excluded));
  }
  std::string words_of_size() const {
    return high_->output + attune::detail::text(": the residuals", high_->where.empty() ? "" : " ", high_->where,
                                                " are ", few_digits(high_->times, 3),
                                                " times what rounding leaves (at most ",
                                                attune::detail::number_text(high_->limit, 3), " in a correct kernel)");
  }

  static constexpr double whole = 0.6, whole_of_free = 0.85, very_sure = 20;
  verdict_report& r_;
  projections const& seen_;
  double needed_, tests_;
  bool one_output_ = false;  ///< the observation says which output alone is wrong
  energy_excess const* high_;
  std::vector<std::string> causes_, looks_;
};

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
  attune::detail::sort_stably(
      findings, [&](finding const& a, finding const& b) { return merit_of(a, seen) > merit_of(b, seen); });
  auto say = [&](std::string const& text) { report.reasons.push_back(text); };
  if (outside || noticed || high != nullptr) {
    report.decision = judgement::fail;
    report.ground = outside ? failure_ground::proved : failure_ground::statistical;
    // If something is wrong in any case, weaker evidence suffices for the cause.
    double const needed = outside || high != nullptr ? how.gate / 3 : how.gate;
    fail_reasons(report, seen, needed, tests, high).give();
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
