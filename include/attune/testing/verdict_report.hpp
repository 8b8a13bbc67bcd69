// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::cout << report;   return report.decision == judgement::pass ? 0 : 1;
//
// The results of a verdict, as numbers and as text.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/math.hpp>
#include <attune/core/number_text.hpp>
#include <attune/core/tensor.hpp>
#include <attune/testing/judging/evidence/index_words.hpp>

namespace attune::testing {

/// The outcome of a verdict.
enum class judgement { pass, fail, undecidable };
/// "PASS", "FAIL" or "UNDECIDABLE".
constexpr char const* name_of(judgement j) {
  return j == judgement::pass ? "PASS" : j == judgement::fail ? "FAIL" : "UNDECIDABLE";
}

/// One kind of defect: how much of it the residual shows, and how much of it these inputs could reveal.
struct finding {
  std::string name;        ///< "kernel.scale", "sink or ground ignored"
  bool parameter = false;  ///< a parameter that is off by `estimate`; else a whole defect, 1 if it is present
  bool relative = false;   ///< estimate and power in units of the parameter's value
  double estimate = 0;     ///< how much of the defect the residual shows
  double z = 0;            ///< estimate divided by its uncertainty, which includes rounding in one direction
  double power = 0;        ///< the smallest estimate that would be noticed (|z| = the gate); infinity: no effect here
  double gain = 0;         ///< the part of the residual's weighted square that it explains
  double share = 0;        ///< the part of the residual that it explains, of the output that it explains least: 0 to 1
  /// Its share of one output alone, with the estimate of this output.
  struct of_output {
    double estimate, share;
  };
  std::vector<of_output> alone = {};  ///< by output that has to be explained
  bool partial = false;      ///< not this defect alone: the residual has another multiple of it, or shows its size only
  double doubt = 0;          ///< the uncertainty of the estimate because the residual has other causes
  bool tested = true;        ///< false: allowed by the kernel's precision, or no effect here
  bool last_resort = false;  ///< it fits many residuals: another finding with a similar share comes first
  bool directed = false;     ///< the share is of one direction, which chance may resemble
  bool of_inputs = false;    ///< its effect on gradients of parameters is not known
  index_t chosen_from = 1;   ///< how many directions it was chosen from
  std::string where = {};    ///< the region that shows it, "in head 3"; "" for everywhere
  double power_of_part = 0;  ///< like power, for a defect of any one head, batch element or half of the rows of a tile

  std::string hint = {};     ///< what it may come from
  std::string look_at = {};  ///< where in a kernel its cause is to be looked for

  /// The finding as text: "behaves as if: value gate ignored".
  std::string words() const {
    return std::string("behaves as if") + (parameter ? " " : ": ") + short_words(" were ") + hint;
  }
  /// Its name, size and region: "kernel.scale +0.3 % in head 3".
  std::string short_words(std::string const& verb = " ") const {
    return name + (parameter ? verb + amount(estimate, true) : "") + (where.empty() ? "" : " " + where);
  }
  /// A number in the units of this finding as text, in percent if it is relative.
  std::string amount(double x, bool with_sign) const {
    double const shown = relative ? 100 * x : x;
    using attune::detail::number_text, attune::detail::signed_number_text;
    if (relative && x >= most_told) return with_sign ? "many times too large" : "more than 10 times its value";
    return (with_sign ? signed_number_text(shown, relative ? 3 : 4) : number_text(shown, 2)) + (relative ? " %" : "");
  }
  /// The largest relative estimate that is a measurement.
  static constexpr double most_told = 9;
};

/// The size of the residuals in each part of an output, in standard deviations of rounding. A correct kernel has
/// about 1.
struct energy_map {
  std::string by;             ///< "head", "batch element", "block of 8 queries"
  std::vector<double> times;  ///< the root mean square of each; NaN: nothing to judge there
};

/// Residuals that are larger than rounding leaves them: their root mean square, in standard deviations of rounding.
struct energy_excess {
  bool found = false;            ///< whether a region exceeds its limit
  std::string output;            ///< "out", "lse", "ground weight", "dq"
  std::string where;             ///< the region, "in head 3"; "" for everywhere
  std::vector<int> parts;        ///< the numbers of the regions that it consists of
  bool of_keys = false;          ///< positions are keys
  double times = 0,              ///< the root mean square there
      limit = 0,                 ///< the largest that a correct kernel shows there
      overall = 0,               ///< the root mean square everywhere
      used = 0;                  ///< the largest share of its limit that a region or row reaches; above 1 it is found
  std::vector<energy_map> maps;  ///< by batch element, head, and block of positions, where there are several
  detail::index_box box{};       ///< the smallest part that holds nearly all of the excess
  std::vector<double> over{};    ///< the excess of each region; 0 within its limit
};

/// Why a verdict is FAIL.
enum class failure_ground {
  none,
  proved,       ///< an element is outside its certified bound: no correct kernel does that
  statistical,  ///< all elements together: a correct kernel does that in verdict_report::false_alarms of the reports
};

/// The elements of one output, and the worst one.
struct worst_element {
  std::string output;         ///< "out", "lse", "ground weight"
  shape extents{0, 0, 0, 0};  ///< of the output
  std::vector<float> ratios;  ///< error / bound of each element, row-major
  shape place{0, 0, 0, 0};    ///< the worst element: (batch, head, position, feature)
  double got = 0,             ///< its value
      expected = 0,           ///< the exact value
      bound = 0,              ///< the largest allowed error
      ratio = 0;              ///< its error / bound
  index_t outside = 0,        ///< number of elements with error > bound, or NaN
      nan = 0,                ///< number of elements that are NaN and should not be
      zero = 0,               ///< number of elements outside that are 0 in a part of zeros
      count = 0;              ///< number of elements
  detail::index_box wrong{};  ///< the smallest part that has all elements outside
  std::string plain;          ///< what is plain to see: "head 3 of out is all zeros"
};

/// The result of a verdict.
struct verdict_report {
  judgement decision = judgement::pass;          ///< the outcome
  failure_ground ground = failure_ground::none;  ///< of FAIL
  double false_alarms = 0;  ///< the share of correct kernels that fail on statistical grounds, at most
  std::uint64_t seed = 0;   ///< with which the sampled rows were drawn
  bool parts = true;        ///< whether heads, batch elements, blocks and halves of tiles were looked at by themselves
  std::vector<std::string> reasons;     ///< for FAIL and UNDECIDABLE, most important first
  std::vector<worst_element> elements;  ///< per output
  std::vector<double> by_query,         ///< the largest error / bound of out, per query
      by_head,                          ///< the same per head
      by_feature;                       ///< the same per feature
  std::vector<double> by_key;           ///< for a FAIL: relative error of each key's weight: -1 missing, 1 twice
  std::vector<finding> findings;        ///< most important first
  std::vector<energy_excess> energies;  ///< per output
  double condition = 0;                 ///< median of bound / root mean square of out

  /// The finding that explains a failure; null if there is none.
  finding const* cause() const {
    return decision == judgement::fail && !findings.empty() && caused ? &findings[0] : nullptr;
  }
  /// The finding of that name; null if there is none.
  finding const* find(std::string const& name) const {
    for (finding const& f : findings)
      if (f.name == name) return &f;
    return nullptr;
  }
  /// Whether by_key says something of the keys: the cause is one of keys, or there is none and most rows are wrong.
  bool tells_keys() const {
    if (by_key.empty()) return false;
    if (auto const* f = cause(); f != nullptr && !in_part)
      return f->name.rfind("keys ", 0) == 0 || f->name.rfind("the weight of key", 0) == 0;
    auto const wrong = std::count_if(by_query.begin(), by_query.end(), [](double x) { return !(x <= 1); });
    return 2 * wrong >= index_t(by_query.size());
  }
  bool caused = false;      ///< whether the first finding explains the failure, or a part of it
  bool in_part = false;     ///< there is a cause, and it does not explain everything
  double share = 0;         ///< the part of the unexplained residual that the first finding explains, 0 to 1
  std::string observation;  ///< what is plain to see: "head 3 of out is all zeros", "only the lse is seen to be wrong"
  std::string region;       ///< the smallest wrong part: "wrong only in head 5, queries 64..127"
  std::vector<std::string> closest;  ///< the findings that explain most, where none is sure: "out +2 % (explains 40 %)"
  std::vector<std::string> excluded;  ///< what was looked for and would have been found: "scale", "mask"
};

/// Whether one report tells more about a failure than another: of several that fail, the one to be shown.
inline bool tells_more(verdict_report const& a, verdict_report const& b) {
  auto const rank = [](verdict_report const& r) {
    if (r.decision != judgement::fail) return -1.;
    double const named = r.cause() == nullptr ? (r.observation.empty() ? 0 : 1.5) : r.in_part ? 1 : 2;
    return named + 0.4 * r.share + (r.ground == failure_ground::proved ? 0.1 : 0);
  };
  return rank(a) > rank(b);
}

namespace detail {
/// A number with few digits; without an exponent below a million.
inline std::string few_digits(double x, int digits) {
  if (!(x >= 100 && x < 1e6)) return attune::detail::number_text(x, digits);
  double const unit = std::pow(10., std::floor(std::log10(x)) + 1 - digits);
  return attune::detail::number_text(unit < 1 ? x : std::round(x / unit) * unit, 7);
}
/// Keys with a wrong weight, as ranges: "keys 8..15 -100 %, 20 +40 %". At most six.
inline std::string words_of_weights(std::vector<double> const& off) {
  constexpr double least = 0.1, alike = 0.2;
  std::string all;
  int ranges = 0;
  for (std::size_t first = 0; first < off.size(); ++first) {
    if (!(std::fabs(off[first]) > least)) continue;
    std::size_t last = first;
    double sum = off[first];
    while (last + 1 < off.size() && std::fabs(off[last + 1] - off[first]) < alike) sum += off[++last];
    if (++ranges > 6) return all + ", ...";
    double const mean = sum / double(last - first + 1);
    all += (all.empty() ? "keys " : ", ") + std::to_string(first) + (last > first ? ".." + std::to_string(last) : "") +
           ' ' + attune::detail::signed_number_text(std::round(100 * mean), 3) + " %";
    first = last;
  }
  return all;
}
}  // namespace detail

/// Prints what would have been noticed: the sizes of parameters and the number of defects first, then all.
inline void print_powers(std::ostream& to, verdict_report const& r) {
  std::string first, parts, whole, blind;  // the last three: a line for each
  int defects = 0, parameters = 0;
  for (finding const& f : r.findings) {
    if (!f.tested) continue;
    double const most = f.parameter ? (f.relative ? finding::most_told : math::infinity<double>()) : 1;
    bool const in_a_part = f.power_of_part < most;
    if (!in_a_part && f.parameter && !(f.power < most)) continue;
    std::string const size = f.parameter ? " off by " + f.amount(in_a_part ? f.power_of_part : f.power, false) : "";
    (in_a_part ? parts : f.power < most ? whole : blind) += "    " + f.name + size + '\n';
    if (!in_a_part) continue;
    if (!f.parameter)
      ++defects;
    else if (++parameters <= 2)
      first += (first.empty() ? "" : ", ") + f.name + size;
  }
  if (parameters > 2) first += attune::detail::text(", ", parameters - 2, " more");
  if (defects > 0)
    first += attune::detail::text(first.empty() ? "" : " and ", defects, defects > 1 ? " defects" : " defect");
  to << "  would have been noticed: " << (first.empty() ? "nothing but errors of single elements" : first) << '\n';
  if (!parts.empty())
    to << (r.parts ? "  also in one head, batch element, or half of the rows of a tile:\n" : "  these:\n") << parts;
  if (!whole.empty()) to << "  everywhere, but not in a part:\n" << whole;
  if (!blind.empty()) to << "  would not have been noticed:\n" << blind;
}

/// Prints the outcome and its reasons; then for each output how much is wrong, and for a FAIL where; for a PASS what
/// would have been noticed.
inline std::ostream& operator<<(std::ostream& to, verdict_report const& r) {
  using attune::detail::text;
  to << name_of(r.decision) << '\n';
  for (std::string const& reason : r.reasons) to << "  " << reason << '\n';
  for (worst_element const& e : r.elements) {
    to << text("  ", e.output, ": ", e.outside, " of ", e.count, " outside the bound; worst error / bound ",
               detail::few_digits(e.ratio, 3));
    for (energy_excess const& x : r.energies)
      if (x.output == e.output && x.overall > 0)
        to << "; the residuals are " << detail::few_digits(x.overall, 3) << " times what rounding leaves";
    to << '\n';
  }
  if (r.decision != judgement::fail) {
    print_powers(to, r);
    return to;
  }
  for (energy_excess const& e : r.energies)
    for (energy_map const& m : e.maps) {
      if (!e.found || m.times.size() > 32) continue;  // more are in the JSON
      to << "  " << e.output << ", times rounding, by " << m.by << ':';
      for (double x : m.times) to << ' ' << detail::few_digits(x, 2);
      to << '\n';
    }
  if (std::string const keys = r.tells_keys() ? detail::words_of_weights(r.by_key) : ""; !keys.empty())
    to << "  weights off: " << keys << '\n';
  return to;
}

}  // namespace attune::testing
