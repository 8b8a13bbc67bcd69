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
#include <attune/core/number_text.hpp>
#include <attune/core/tensor.hpp>

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
  bool tested = true;      ///< false: allowed by the kernel's precision, or no effect here
  bool last_resort = false;  ///< it fits many residuals: another finding with a similar share comes first
  bool directed = false;     ///< the share is of one direction, which chance may resemble
  bool of_inputs = false;    ///< its effect on gradients of parameters is not known
  index_t chosen_from = 1;   ///< how many directions it was chosen from
  std::string where = {};    ///< the region that shows it, "in head 3"; "" for everywhere
  double power_of_part = 0;  ///< like power, for a defect of any one head, batch element or half of the rows of a tile

  std::string hint = {};     ///< what it may come from
  std::string look_at = {};  ///< "look at: ...": where in a kernel's source

  /// The finding as text: "behaves as if: value gate ignored".
  std::string words() const {
    std::string const at = where.empty() ? "" : " " + where;
    if (!parameter) return "behaves as if: " + name + at + hint;
    return "behaves as if " + name + " were " + amount(estimate, true) + at + hint;
  }
  /// A number in the units of this finding as text, in percent if it is relative.
  std::string amount(double x, bool with_sign) const {
    double const shown = relative ? 100 * x : x;
    using attune::detail::number_text, attune::detail::signed_number_text;
    return (with_sign ? signed_number_text(shown, relative ? 3 : 4) : number_text(shown, 2)) + (relative ? " %" : "");
  }
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
  double times = 0,              ///< the root mean square there
      limit = 0,                 ///< the largest that a correct kernel shows there
      overall = 0,               ///< the root mean square everywhere
      used = 0;                  ///< the largest share of its limit that a region or row reaches; above 1 it is found
  std::vector<energy_map> maps;  ///< by batch element, head, and block of positions, where there are several
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
      count = 0;              ///< number of elements
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
  bool caused = false;      ///< whether the first finding explains the failure, or a part of it
  double share = 0;         ///< the part of the unexplained residual that the first finding explains, 0 to 1
  std::string observation;  ///< of a failure that no finding explains: "only the lse is seen to be wrong"
};

namespace detail {
/// The indices where a predicate holds, as "3, 5..9".
template <class Holds>
std::string ranges(std::size_t n, Holds const& holds) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) {
    if (!holds(i)) continue;
    std::size_t last = i;
    while (last + 1 < n && holds(last + 1)) ++last;
    all += (all.empty() ? "" : ", ") + std::to_string(i) + (last > i ? ".." + std::to_string(last) : "");
    i = last;
  }
  return all;
}
}  // namespace detail

/// Prints the outcome, its reasons, the worst element of each output, and what would have been noticed.
inline std::ostream& operator<<(std::ostream& to, verdict_report const& r) {
  using attune::detail::number_text, attune::detail::text;
  to << name_of(r.decision) << '\n';
  for (std::string const& reason : r.reasons) to << "  " << reason << '\n';
  for (worst_element const& e : r.elements)
    to << text("  ", e.output, ": ", e.outside, " of ", e.count, " outside the bound; worst error / bound ",
               number_text(e.ratio, 3), " at ", to_string(e.place), "\n");
  for (energy_excess const& e : r.energies)
    if (e.overall > 0)
      to << "  " << e.output << ": the residuals are " << number_text(e.overall, 3) << " times what rounding leaves\n";
  if (r.decision == judgement::fail) {
    auto const where = [&](char const* what, std::vector<double> const& x) {
      auto const outside = [&](std::size_t n) { return !(x[n] <= 1); };
      std::string const all = detail::ranges(x.size(), outside);
      std::size_t count = 0;
      for (std::size_t n = 0; n < x.size(); ++n) count += outside(n) ? 1u : 0u;
      if (count == 0) return;
      to << "  outside at ";
      if (all.size() > 50)
        to << text("a ", what, ": ", count, " of ", x.size(), "\n");
      else
        to << text(what, " ", all, " of ", x.size(), "\n");
    };
    where("query", r.by_query);
    where("head", r.by_head);
    where("feature", r.by_feature);
    for (energy_excess const& e : r.energies)
      for (energy_map const& m : e.maps) {
        if (!e.found || m.times.size() > 32) continue;  // more are in the JSON
        to << "  " << e.output << ", times rounding, by " << m.by << ':';
        for (double x : m.times) to << ' ' << number_text(x, 2);
        to << '\n';
      }
    if (!r.by_key.empty()) {
      to << "  weights off, by block of keys:";
      std::size_t const blocks = (std::min<std::size_t>)(8, r.by_key.size());
      for (std::size_t n = 0; n < blocks; ++n) {
        std::size_t const first = n * r.by_key.size() / blocks, last = (n + 1) * r.by_key.size() / blocks;
        double sum = 0;
        for (std::size_t j = first; j < last; ++j) sum += r.by_key[j];
        to << text(" ", first, "..", last - 1, " ",
                   attune::detail::signed_number_text(100 * sum / double(last - first), 2), " %",
                   n + 1 < blocks ? "," : "\n");
      }
    }
    return to;
  }
  std::string parts, whole, blind;  // a line for each
  for (finding const& f : r.findings) {
    if (!f.tested) continue;
    bool const in_a_part = f.parameter ? std::isfinite(f.power_of_part) : f.power_of_part < 1;
    if (!in_a_part && f.parameter) continue;
    (in_a_part     ? parts
     : f.power < 1 ? whole
                   : blind) +=
        "    " + f.name + (f.parameter ? " off by " + f.amount(f.power_of_part, false) : "") + '\n';
  }
  if (parts.empty()) parts = "    nothing but errors of single elements\n";
  to << (r.parts ? "  would have been noticed, also in one head, batch element, or half of the rows of a tile:\n"
                 : "  would have been noticed:\n")
     << parts;
  if (!whole.empty()) to << "  would have been noticed everywhere, but not in a part:\n" << whole;
  if (!blind.empty()) to << "  would not have been noticed:\n" << blind;
  return to;
}

}  // namespace attune::testing
