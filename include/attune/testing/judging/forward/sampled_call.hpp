// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sampled_call<Op> call(op, inputs, candidate, options);   call.elements();   call.sample();   call.by_defect(defect)
//
// The call behind a verdict: the bounds of all elements, the energies of their residuals, and the residuals of sampled
// rows. The effects of defects are projected on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/core/philox.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/judging/defects/altered_row.hpp>
#include <attune/testing/judging/mask_words.hpp>
#include <attune/testing/projection.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// Of one query.
struct sampled_row {
  index_t batch, head, query;
};

template <class Op>
struct sampled_call {
  Op const& op;
  inputs<Op, any_tensor> const& in;
  candidate const& given;
  verdict_options const& how;
  precision formats;
  error_bounds bounds;
  problem_shape const& p;
  altered_rows<Op> rows;
  double accumulation;
  row_factors factors;
  regions parts;
  std::vector<sampled_row> sampled;
  projections seen;
  verdict_report report;

  sampled_call(Op const& of, inputs<Op, any_tensor> const& from, candidate const& result, verdict_options const& by)
      : op(of), in(from), given(result), how(by), formats(formats_of(result, by)),
        bounds(error_bound(of, from, formats)), p(bounds.extents), rows(op, in, p),
        accumulation(accumulation_of(formats.arithmetic)), factors(bounds.lse, formats), seen(by.gate, parts) {
    shape const wanted{p.batch, p.heads, p.queries, p.value_width};
    if (!(given.extents() == wanted))
      throw error("testing::verdict", "out", "shape " + to_string(given.extents()), to_string(wanted));
    widen(bounds.lse, given.lse_stored());
    widen(bounds.ground_weight, given.ground_weight_stored());
    parts.add("", {p.batch, p.heads, p.queries, 1}, "query", "head");
  }
  sampled_call(sampled_call const&) = delete;  // its members refer to each other

  static precision formats_of(candidate const& given, verdict_options const& how) {
    precision p = how.how.value_or(precision(given.stored()));
    p.out = given.stored();
    p.lse_roundings = how.lse_roundings;
    return p;
  }

  /// Numbers that a kernel stores in a narrower format than it computes in.
  void widen(std::vector<bounded_number>& numbers, storage stored) const {
    if (format_of(stored).unit <= format_of(formats.arithmetic).unit) return;
    for (bounded_number& x : numbers) x = certify::detail::stored_in(format_of(stored), x);
  }

  // ---- elements -----------------------------------------------------------------------------------------------------
  void elements() {
    report.by_query.assign(std::size_t(p.queries), 0);
    report.by_head.assign(std::size_t(p.heads), 0);
    report.by_feature.assign(std::size_t(p.value_width), 0);
    compare("out", given.out(), bounds.out, p.value_width);
    compare("lse", given.lse(), bounds.lse, 1);
    compare("ground weight", given.ground_weight(), bounds.ground_weight, 1);
  }
  void compare(char const* output, std::vector<double> const& got, std::vector<bounded_number> const& wanted,
               index_t width) {
    if (got.empty()) return;
    if (wanted.empty())
      throw error("testing::verdict", output, "values", std::string("none: this operator has no ") + output);
    worst_element all = compared(output, {p.batch, p.heads, p.queries, width}, got, wanted);
    shape const extents{p.batch, p.heads, p.queries, width};
    energies energy(output, parts, how.gate, extents);
    bool const of_out = wanted.data() == bounds.out.data();
    energy.add(0, got, wanted, accumulation, {}, 0, of_out ? factors : row_factors());
    report.energies.push_back(energy.excess());
    seen.shows(report.energies.back(), tag_of(output));
    if (report.energies.back().used > 1) seen.must_explain(tag_of(output), output);
    report.false_alarms += energy.false_alarms();
    if (of_out)
      for (std::size_t n = 0; n < all.ratios.size(); ++n) {
        index_t const row = index_t(n) / width;
        auto const note = [&](std::vector<double>& to, index_t i) {
          to[std::size_t(i)] = std::fmax(to[std::size_t(i)], double(all.ratios[n]));
        };
        note(report.by_query, row % p.queries);
        note(report.by_head, row / p.queries % p.heads);
        note(report.by_feature, index_t(n) % width);
      }
    report.elements.push_back(std::move(all));
  }

  static int tag_of(std::string const& output) { return output == "out" ? 0 : output == "lse" ? 1 : 2; }

  // ---- projections --------------------------------------------------------------------------------------------------
  /// The residual at the sampled rows: out, then lse and ground weight if they were given. Every head of every batch
  /// element has as many rows, one drawn from each of equal intervals of queries.
  void sample() {
    index_t const heads = p.batch * p.heads;
    if (heads == 0 || p.queries == 0) return seen.close(formats.out);
    index_t const each = (std::min)(p.queries, (std::max<index_t>)(2, (how.rows + heads - 1) / heads));
    for (index_t n = 0; n < heads * each; ++n) {
      index_t const head = n / each, first = n % each * p.queries / each, last = (n % each + 1) * p.queries / each;
      std::uint32_t const drawn =
          philox::draw({{std::uint32_t(n), 0, 0, 0}}, std::uint32_t(how.seed), std::uint32_t(how.seed >> 32)).at[0];
      index_t const i = first + index_t(drawn) % (last - first);
      sampled.push_back({head / p.heads, head % p.heads, i});
      index_t const row = head * p.queries + i;
      std::vector<int> ids;
      parts.of(0, head / p.heads, head % p.heads, i, ids);
      seen.begin_row(std::move(ids), {head / p.heads, head % p.heads, i, 0});
      double const shared = features_per_error(sampled.back());
      for (index_t d = 0; d < p.value_width; ++d) {
        std::size_t const at = std::size_t(row * p.value_width + d);
        seen.add(given.out()[at], factors.with_factor(bounds.out[at], row, p.value_width), 0, 1. / 3,
                 together(bounds.out[at], shared, formats.out));
      }
      if (!given.lse().empty()) seen.add(given.lse()[std::size_t(row)], bounds.lse[std::size_t(row)], 1);
      if (!given.ground_weight().empty())
        seen.add(given.ground_weight()[std::size_t(row)], bounds.ground_weight[std::size_t(row)], 2);
    }
    seen.close(formats.out);
  }

  /// How many features of a row have one error of rounded weights in common: a row with one large weight has one such
  /// error, a row with many keys one for each feature.
  double features_per_error(sampled_row const& r) const {
    if (!(format_of(formats.weights).unit > format_of(formats.arithmetic).unit)) return 1;
    double square = 0, fourth = 0;
    for (double w : rows.template evaluate<double>({}, r.batch, r.head, r.query).weights) {
      square += w * w;
      fourth += w * w * w * w;
    }
    return fourth > 0 && std::isfinite(square) ? std::fmax(1, double(p.value_width) * fourth / (square * square)) : 1;
  }

  /// The direction of a change: the result of `row` for each sampled row, appended in the order of the residual.
  template <class Row>
  std::vector<double> direction(Row const& row) const {
    std::vector<double> to;
    for (sampled_row const& r : sampled) row(r, to);
    return to;
  }
  bounded_number const& exact_lse(sampled_row const& r) const { return bounds.at_lse(r.batch, r.head, r.query); }

  std::size_t step() const {
    return std::size_t(p.value_width) + (given.lse().empty() ? 0u : 1u) + (given.ground_weight().empty() ? 0u : 1u);
  }

  /// Facts that decide which defects apply.
  call_facts facts() const {
    call_facts f = rows.facts();
    f.lse_given = !given.lse().empty();
    f.base_two = given.base_two();
    return f;
  }
  /// Whether the kernel's formats allow the rounding of a change.
  bool allows(row_change const& c) const {
    auto const wide = [](storage has, std::optional<storage> const& rounded) {
      return rounded && format_of(has).unit >= format_of(*rounded).unit;
    };
    return wide(formats.weights, c.weights_stored) || wide(formats.arithmetic, c.logits_stored);
  }
  /// Judges a change of the rows where `among` holds.
  template <class Among>
  finding judged(finding f, row_change const& c, Among const& among) const {
    f.tested = !allows(c);
    return seen.judged(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                         if (!among(r)) return x.resize(x.size() + step(), 0);
                         if (c.out_by_position) return out_by_position(r, x);
                         append_change(rows.template evaluate<double>(c, r.batch, r.head, r.query), r, x, only_lse(c));
                       }));
  }
  /// Appends the finding of a defect, if it applies.
  void by_defect(known_defect const& d) {
    if (!d.applies(facts())) return;
    by_change(std::string(d.name), d.look_at, d.change);
  }
  void by_change(std::string name, std::string_view look_at, row_change const& c) {
    finding f;
    f.name = std::move(name);
    f.look_at = look_at;
    if (changes_mask(c)) f.hint = words_of_mask(op.mask);
    report.findings.push_back(judged(f, c, [](sampled_row const&) { return true; }));
  }
  /// Appends the difference between an altered row and the right one. of_lse: out stays.
  void append_change(altered_row<double> const& row, sampled_row const& r, std::vector<double>& x,
                     bool of_lse = false) const {
    for (index_t c = 0; c < p.value_width; ++c) {
      double const exact = bounds.at_out(r.batch, r.head, r.query, c).value;
      x.push_back(of_lse ? 0 : row.out[std::size_t(c)] - exact);
    }
    if (!given.lse().empty()) {
      double const exact = exact_lse(r).value;
      x.push_back(row.lse == exact ? 0 : row.lse - exact);
    }
    if (!given.ground_weight().empty())
      x.push_back(row.ground_weight - bounds.at_ground_weight(r.batch, r.head, r.query).value);
  }
  /// The changes in all sampled rows if they were the rows of another operator.
  std::vector<double> changes_to(altered_rows<Op> const& other) const {
    return direction([&](sampled_row const& r, std::vector<double>& x) {
      append_change(other.template evaluate<double>({}, r.batch, r.head, r.query), r, x);
    });
  }
  /// Element (h, i) of a tensor that should be (B, H, Lq, Dv) but is (B, Lq, H, Dv).
  void out_by_position(sampled_row const& r, std::vector<double>& x) const {
    index_t const place = r.head * p.queries + r.query, query = place / p.heads, head = place % p.heads;
    for (index_t c = 0; c < p.value_width; ++c)
      x.push_back(bounds.at_out(r.batch, head, query, c).value - bounds.at_out(r.batch, r.head, r.query, c).value);
    if (!given.lse().empty()) x.push_back(0);
    if (!given.ground_weight().empty()) x.push_back(0);
  }

  void judge_direction(finding const& f, std::vector<double> const& along) {
    report.findings.push_back(seen.judged(f, along));
  }
};

}  // namespace attune::testing::detail
