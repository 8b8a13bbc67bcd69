// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   class judge : sampled_call<Op>       elements(), sample(), judge_direction(finding, effect on each sampled row)
//
// The call behind a verdict: the bounds of all elements, the energies of their residuals, and the residuals of sampled
// rows. The effects of defects are projected on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/philox.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/defect.hpp>
#include <attune/testing/projection.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

template <class Op>
class sampled_call {
 protected:
  using altered = altered_rows<Op>;

  sampled_call(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given, verdict_options const& how)
      : op_(op), in_(in), given_(given), how_(how), precision_(formats(given, how)),
        bounds_(error_bound(op, in, precision_)), p_(bounds_.extents), rows_(op_, in_, p_),
        accumulation_(accumulation_of(precision_.arithmetic)), factors_(bounds_.lse, precision_),
        seen_(how.gate, regions_) {
    shape const wanted{p_.batch, p_.heads, p_.queries, p_.value_width};
    if (!(given.extents() == wanted))
      throw error("testing::verdict", "out", "shape " + to_string(given.extents()), to_string(wanted));
    precision_.out = given.stored();
    widen(bounds_.lse, given.lse_stored());
    widen(bounds_.ground_weight, given.ground_weight_stored());
    regions_.add("", {p_.batch, p_.heads, p_.queries, 1}, "query", "head");
  }

  static precision formats(candidate const& given, verdict_options const& how) {
    precision p = how.how.value_or(precision(given.stored()));
    p.out = given.stored();
    p.lse_roundings = how.lse_roundings;
    return p;
  }

  /// Numbers that a kernel stores in a narrower format than it computes in.
  void widen(std::vector<bounded_number>& numbers, storage stored) const {
    if (format_of(stored).unit <= format_of(precision_.arithmetic).unit) return;
    for (bounded_number& x : numbers) x = certify::detail::stored_in(format_of(stored), x);
  }

  // ---- elements -----------------------------------------------------------------------------------------------------
  void elements() {
    report_.by_query.assign(std::size_t(p_.queries), 0);
    report_.by_head.assign(std::size_t(p_.heads), 0);
    report_.by_feature.assign(std::size_t(p_.value_width), 0);
    compare("out", given_.out(), bounds_.out, p_.value_width);
    compare("lse", given_.lse(), bounds_.lse, 1);
    compare("ground weight", given_.ground_weight(), bounds_.ground_weight, 1);
  }
  void compare(char const* output, std::vector<double> const& got, std::vector<bounded_number> const& wanted,
               index_t width) {
    if (got.empty()) return;
    if (wanted.empty())
      throw error("testing::verdict", output, "values", std::string("none: this operator has no ") + output);
    worst_element all = compared(output, {p_.batch, p_.heads, p_.queries, width}, got, wanted);
    shape const extents{p_.batch, p_.heads, p_.queries, width};
    energies energy(output, regions_, how_.gate, extents);
    bool const of_out = wanted.data() == bounds_.out.data();
    energy.add(0, got, wanted, accumulation_, {}, 0, of_out ? factors_ : row_factors());
    report_.energies.push_back(energy.excess());
    if (report_.energies.back().used > 1) seen_.must_explain(tag_of(output));
    report_.false_alarms += energy.false_alarms();
    if (of_out)
      for (std::size_t n = 0; n < all.ratios.size(); ++n) {
        index_t const row = index_t(n) / width;
        auto const note = [&](std::vector<double>& to, index_t i) {
          to[std::size_t(i)] = std::fmax(to[std::size_t(i)], double(all.ratios[n]));
        };
        note(report_.by_query, row % p_.queries);
        note(report_.by_head, row / p_.queries % p_.heads);
        note(report_.by_feature, index_t(n) % width);
      }
    report_.elements.push_back(std::move(all));
  }

  static int tag_of(std::string const& output) { return output == "out" ? 0 : output == "lse" ? 1 : 2; }

  // ---- projections --------------------------------------------------------------------------------------------------
  struct sampled_row {
    index_t batch, head, query;
  };
  /// The residual at the sampled rows: out, then lse and ground weight if they were given. Every head of every batch
  /// element has as many rows, one drawn from each of equal intervals of queries.
  void sample() {
    index_t const heads = p_.batch * p_.heads;
    if (heads == 0 || p_.queries == 0) return seen_.close(precision_.out);
    index_t const each = (std::min)(p_.queries, (std::max<index_t>)(2, (how_.rows + heads - 1) / heads));
    for (index_t n = 0; n < heads * each; ++n) {
      index_t const head = n / each, first = n % each * p_.queries / each, last = (n % each + 1) * p_.queries / each;
      std::uint32_t const drawn =
          philox::draw({{std::uint32_t(n), 0, 0, 0}}, std::uint32_t(how_.seed), std::uint32_t(how_.seed >> 32)).at[0];
      index_t const i = first + index_t(drawn) % (last - first);
      sampled_.push_back({head / p_.heads, head % p_.heads, i});
      index_t const row = head * p_.queries + i;
      std::vector<int> ids;
      regions_.of(0, head / p_.heads, head % p_.heads, i, ids);
      seen_.begin_row(std::move(ids));
      double const shared = features_per_error(sampled_.back());
      for (index_t d = 0; d < p_.value_width; ++d) {
        std::size_t const at = std::size_t(row * p_.value_width + d);
        seen_.add(given_.out()[at], factors_.with_factor(bounds_.out[at], row, p_.value_width), 0, 1. / 3,
                  together(bounds_.out[at], shared, precision_.out));
      }
      if (!given_.lse().empty()) seen_.add(given_.lse()[std::size_t(row)], bounds_.lse[std::size_t(row)], 1);
      if (!given_.ground_weight().empty())
        seen_.add(given_.ground_weight()[std::size_t(row)], bounds_.ground_weight[std::size_t(row)], 2);
    }
    seen_.close(precision_.out);
  }

  /// How many features of a row have one error of rounded weights in common: a row with one large weight has one such
  /// error, a row with many keys one for each feature.
  double features_per_error(sampled_row const& r) const {
    if (!(format_of(precision_.weights).unit > format_of(precision_.arithmetic).unit)) return 1;
    double square = 0, fourth = 0;
    for (double w : rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query).weights) {
      square += w * w;
      fourth += w * w * w * w;
    }
    return fourth > 0 && std::isfinite(square) ? std::fmax(1, double(p_.value_width) * fourth / (square * square)) : 1;
  }

  /// The direction of a change: the result of `row` for each sampled row, appended in the order of the residual.
  template <class Row>
  std::vector<double> direction(Row const& row) const {
    std::vector<double> to;
    for (sampled_row const& r : sampled_) row(r, to);
    return to;
  }
  bounded_number const& exact_lse(sampled_row const& r) const { return bounds_.at_lse(r.batch, r.head, r.query); }

  std::size_t step() const {
    return std::size_t(p_.value_width) + (given_.lse().empty() ? 0u : 1u) + (given_.ground_weight().empty() ? 0u : 1u);
  }

  void by_defect(defect d, std::string const& name) {
    if (!rows_.applies(d)) return;
    if (d == defect::lse_in_base_e && !given_.base_two()) return;
    bool const of_lse = d == defect::lse_in_base_two || d == defect::lse_in_base_e || d == defect::lse_without_scale ||
                        d == defect::lse_without_ground;
    if (of_lse && given_.lse().empty()) return;
    finding f;
    f.name = name;
    bool const rounding = d == defect::weights_in_bf16 || d == defect::weights_in_fp16;
    if (rounding) {
      storage const to = d == defect::weights_in_bf16 ? storage::bf16 : storage::fp16;
      f.tested = format_of(precision_.weights).unit < format_of(to).unit;
    }
    if (d == defect::logits_in_bf16 || d == defect::logits_in_fp16) {
      storage const to = d == defect::logits_in_bf16 ? storage::bf16 : storage::fp16;
      f.tested = format_of(precision_.arithmetic).unit < format_of(to).unit;
    }
    judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                      if (d == defect::out_by_position) return out_by_position(r, x);
                      append_change(rows_.template evaluate<double>(d, r.batch, r.head, r.query), r, x, of_lse);
                    }));
  }
  /// Appends the difference between an altered row and the right one. of_lse: out stays.
  void append_change(altered_row<double> const& row, sampled_row const& r, std::vector<double>& x,
                     bool of_lse = false) const {
    for (index_t c = 0; c < p_.value_width; ++c) {
      double const exact = bounds_.at_out(r.batch, r.head, r.query, c).value;
      x.push_back(of_lse ? 0 : row.out[std::size_t(c)] - exact);
    }
    if (!given_.lse().empty()) {
      double const exact = exact_lse(r).value;
      x.push_back(row.lse == exact ? 0 : row.lse - exact);
    }
    if (!given_.ground_weight().empty())
      x.push_back(row.ground_weight - bounds_.at_ground_weight(r.batch, r.head, r.query).value);
  }
  /// Element (h, i) of a tensor that should be (B, H, Lq, Dv) but is (B, Lq, H, Dv).
  void out_by_position(sampled_row const& r, std::vector<double>& x) const {
    index_t const place = r.head * p_.queries + r.query, query = place / p_.heads, head = place % p_.heads;
    for (index_t c = 0; c < p_.value_width; ++c)
      x.push_back(bounds_.at_out(r.batch, head, query, c).value - bounds_.at_out(r.batch, r.head, r.query, c).value);
    if (!given_.lse().empty()) x.push_back(0);
    if (!given_.ground_weight().empty()) x.push_back(0);
  }

  void judge_direction(finding const& f, std::vector<double> const& along) {
    report_.findings.push_back(seen_.judged(f, along));
  }

  Op const& op_;
  inputs<Op, any_tensor> const& in_;
  candidate const& given_;
  verdict_options const& how_;
  precision precision_;
  error_bounds bounds_;
  problem_shape const& p_;
  altered rows_;
  double accumulation_;
  row_factors factors_;
  regions regions_;
  std::vector<sampled_row> sampled_;
  projections seen_;
  verdict_report report_;
};

}  // namespace attune::testing::detail
