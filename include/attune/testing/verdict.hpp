// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto report = verdict(op, {.q = Q, .k = K, .v = V}, candidate(tensor(out, shape)).with_lse(natural_lse(L)));
//
// Is somebody's kernel right? Three tests, which every correct kernel passes:
//   elements     |computed - exact| <= error_bound, for every element: what is outside is proved wrong
//   energies     of the residuals of every row and region, against what rounding leaves (judging/energy.hpp)
//   projections  of the residual on the effect of a defect on the output: a derivative by a parameter, or the whole
//                difference that a named defect makes (projection.hpp). Rounding to storage averages out over elements,
//                so that a defect far below the error of one element is visible.
// Energies and projections are statistical: verdict_report::false_alarms bounds how often a correct kernel fails. Both
// look at every head, batch element, block of queries and half of a tile by itself (judging/regions.hpp).
// The defect that explains most of the residual is the cause. The power says which defects these inputs could reveal.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/philox.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/defect.hpp>
#include <attune/testing/judging/key_equations.hpp>
#include <attune/testing/moving_parameter.hpp>
#include <attune/testing/projection.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class judge {
  using D = dual<double, 1>;

 public:
  judge(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given, verdict_options const& how)
      : op_(op), in_(in), given_(given), how_(how), precision_(formats(given, how)),
        bounds_(error_bound(op, in, precision_)), p_(bounds_.extents), rows_(op_, in_, p_),
        accumulation_(accumulation_of(precision_.arithmetic)), seen_(how.gate, regions_) {
    shape const wanted{p_.batch, p_.heads, p_.queries, p_.value_width};
    if (!(given.extents() == wanted))
      throw error("testing::verdict", "out", "shape " + to_string(given.extents()), to_string(wanted));
    precision_.out = given.stored();
    regions_.add("", {p_.batch, p_.heads, p_.queries, 1}, "query", "head");
  }

  verdict_report operator()() {
    elements();
    sample();
    for_each_moving_parameter(
        op_, p_, [&](finding const& f, Op const& op, lift<D> const& numbers) { by_parameter(f, op, numbers); });
    as_a_whole();
    lse_as_a_whole();
    by_sums_of_rows();
    for (int d = 1; d < defect_count; ++d) by_defect(static_cast<defect>(d), testing::name_of(static_cast<defect>(d)));
    decide();
    return std::move(report_);
  }

 private:
  static precision formats(candidate const& given, verdict_options const& how) {
    precision p = how.how.value_or(precision(given.stored()));
    p.out = given.stored();
    return p;
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
    worst_element const all = compared(output, {p_.batch, p_.heads, p_.queries, width}, got, wanted);
    shape const extents{p_.batch, p_.heads, p_.queries, width};
    energies energy(output, regions_, how_.gate, extents);
    energy.add(0, got, wanted, accumulation_);
    report_.energies.push_back(energy.excess());
    if (report_.energies.back().used > 1) seen_.must_explain(tag_of(output));
    report_.false_alarms += energy.false_alarms();
    if (wanted.data() == bounds_.out.data())
      for (std::size_t n = 0; n < all.ratios.size(); ++n) {
        index_t const row = index_t(n) / width;
        auto const note = [&](std::vector<double>& to, index_t i) {
          to[std::size_t(i)] = std::fmax(to[std::size_t(i)], double(all.ratios[n]));
        };
        note(report_.by_query, row % p_.queries);
        note(report_.by_head, row / p_.queries % p_.heads);
        note(report_.by_feature, index_t(n) % width);
      }
    report_.elements.push_back(all);
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
      for (index_t d = 0; d < p_.value_width; ++d) {
        std::size_t const at = std::size_t(row * p_.value_width + d);
        seen_.add(given_.out()[at], bounds_.out[at]);
      }
      if (!given_.lse().empty()) seen_.add(given_.lse()[std::size_t(row)], bounds_.lse[std::size_t(row)], 1);
      if (!given_.ground_weight().empty())
        seen_.add(given_.ground_weight()[std::size_t(row)], bounds_.ground_weight[std::size_t(row)], 2);
    }
    seen_.close(precision_.out);
  }

  /// The direction of a change: the result of `row` for each sampled row, appended in the order of the residual.
  template <class Row>
  std::vector<double> direction(Row const& row) const {
    std::vector<double> to;
    for (sampled_row const& r : sampled_) row(r, to);
    return to;
  }
  bounded_number const& exact_lse(sampled_row const& r) const { return bounds_.at_lse(r.batch, r.head, r.query); }

  void by_parameter(finding const& f, Op const& op, lift<D> const& numbers) {
    altered_rows<Op> const rows(op, in_, p_);
    judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                      auto const row = rows.template evaluate<D>(defect::none, r.batch, r.head, r.query, numbers);
                      for (D const& out : row.out) x.push_back(out.tangent[0]);
                      if (!given_.lse().empty()) x.push_back(row.lse.tangent[0]);
                      if (!given_.ground_weight().empty()) x.push_back(row.ground_weight.tangent[0]);
                    }));
  }

  /// A factor of the whole output: truncation instead of rounding, or a biased sum.
  void as_a_whole() {
    finding f;
    f.name = "out";
    f.parameter = f.relative = true;
    judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                      for (index_t c = 0; c < p_.value_width; ++c)
                        x.push_back(bounds_.at_out(r.batch, r.head, r.query, c).value);
                      x.resize(x.size() + step() - std::size_t(p_.value_width), 0);
                    }));
  }
  /// A number added to every lse.
  void lse_as_a_whole() {
    if (given_.lse().empty()) return;
    finding f;
    f.name = "lse";
    f.parameter = true;
    judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                      x.resize(x.size() + std::size_t(p_.value_width), 0);
                      x.push_back(std::isfinite(exact_lse(r).value) ? 1 : 0);
                      if (!given_.ground_weight().empty()) x.push_back(0);
                    }));
  }
  /// In each row the sum of weights has another error: out times 1 + x, lse minus x. x comes from the residual, so it
  /// needs another reason to fail. It moves out and lse: one of them alone has another cause.
  void by_sums_of_rows() {
    if (!Op::has_lse || !seen_.must_be_explained(0) || !seen_.must_be_explained(1)) return;
    std::vector<double> all;
    for (std::size_t n = 0; n < sampled_.size(); ++n) {
      sampled_row const& r = sampled_[n];
      double square = 0, product = 0;
      auto const along = [&](std::size_t k) {
        return k < std::size_t(p_.value_width)    ? bounds_.at_out(r.batch, r.head, r.query, index_t(k)).value
               : k == std::size_t(p_.value_width) ? -1
                                                  : 0;
      };
      for (std::size_t k = 0; k < step(); ++k) {
        double const x = along(k), m = seen_.metric(n * step() + k);
        if (m == 0 || !std::isfinite(x)) continue;
        square += x * x * m;
        product += x * seen_.residual(n * step() + k) * m;
      }
      for (std::size_t k = 0; k < step(); ++k)
        all.push_back(square > 0 && std::isfinite(along(k)) ? along(k) * product / square : 0);
    }
    finding f;
    f.name = "sum of weights off, by another factor in each row";
    f.last_resort = true;
    f = seen_.judged(f, all);
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    report_.findings.push_back(f);
  }
  std::size_t step() const {
    return std::size_t(p_.value_width) + (given_.lse().empty() ? 0u : 1u) + (given_.ground_weight().empty() ? 0u : 1u);
  }

  void by_defect(defect d, std::string const& name) {
    if (!rows_.applies(d)) return;
    bool const of_lse =
        d == defect::lse_in_base_two || d == defect::lse_without_scale || d == defect::lse_without_ground;
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
                      auto const row = rows_.template evaluate<double>(d, r.batch, r.head, r.query);
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
                    }));
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

  /// Estimates the effective weight (1 + x_j) w_ij of each key: sum_j x_j w_ij (v_j - out_i) = r_i with the computed
  /// out_i, whatever the row was divided by. Uses least squares for all keys at once, because values of different keys
  /// are not orthogonal. Then looks for keys without weight, with twice their weight, and for one key that is off.
  /// `of`: the sampled rows to use.
  void by_keys(std::vector<std::size_t> const& of) {
    index_t const keys = p_.keys, width = p_.value_width;
    index_t const rows =
        (std::min<index_t>)(index_t(of.size()), index_t(4e9) / (std::max<index_t>)(1, keys * keys * width));
    if (keys == 0 || rows * width < 2 * keys) return;
    key_equations system(rows * width, keys);
    for (index_t n = 0; n < rows; ++n) {
      std::size_t const at_row = of[std::size_t(n) * of.size() / std::size_t(rows)];
      sampled_row const& r = sampled_[at_row];
      auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
      index_t const head = p_.group(r.head, p_.value_heads);
      for (index_t c = 0; c < width; ++c) {
        std::size_t const at = at_row * step() + std::size_t(c);
        double const unit = std::sqrt(seen_.metric(at));
        double const out = Op::has_lse ? row.out[std::size_t(c)] + seen_.residual(at) : 0;
        system.residual(n * width + c) = seen_.residual(at) * unit;
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          if (row.weights[k] != 0 && unit != 0)
            system.effect(n * width + c, row.keys[k]) =
                unit * row.weights[k] * (in_.v(r.batch, head, row.keys[k], c) - out);
      }
    }
    std::vector<double> const all = system.solved();
    if (all.empty()) return;
    if (report_.by_key.empty()) report_.by_key = all;
    auto const smaller = [](double x, double y) { return std::fabs(x) < std::fabs(y); };
    auto const most = std::max_element(all.begin(), all.end(), smaller);
    if (std::fabs(*most) > 10 * typical_size(all)) by_one_weight(most - all.begin());
    // Keys with little weight cannot be told apart one by one, but tiles of them can.
    for (index_t tile = 1; tile <= 128 && tile <= keys; tile *= 2) {
      std::vector<double> mean(all.size(), 0);
      for (index_t first = 0; first < keys; first += tile) {
        index_t const n = (std::min)(tile, keys - first);
        double const average = std::accumulate(all.begin() + first, all.begin() + first + n, 0.) / double(n);
        std::fill_n(mean.begin() + first, n, average);
      }
      by_marked_keys(defect::marked_keys_missing, mean, [](double x) { return x < -0.6; });
      by_marked_keys(defect::marked_keys_doubled, mean, [](double x) { return x > 0.6; });
    }
  }
  /// The weight of one key is off by a factor.
  void by_one_weight(index_t key) {
    if constexpr (Op::has_lse && !Op::has_ground_weight) {
      finding f;
      f.name = "the weight of key " + std::to_string(key);
      f.parameter = f.relative = true;
      if (report_.find(f.name) != nullptr) return;
      judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                        auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
                        auto const at = std::find(row.keys.begin(), row.keys.end(), key);
                        double const w = at == row.keys.end() ? 0 : row.weights[std::size_t(at - row.keys.begin())];
                        index_t const head = p_.group(r.head, p_.value_heads);
                        for (index_t c = 0; c < p_.value_width; ++c)
                          x.push_back(w == 0 ? 0 : w * (in_.v(r.batch, head, key, c) - row.out[std::size_t(c)]));
                        if (!given_.lse().empty()) x.push_back(w);
                      }));
    }
  }
  template <class Marks>
  void by_marked_keys(defect d, std::vector<double> const& acts, Marks const& marks) {
    std::vector<bool> keys;
    for (double x : acts) keys.push_back(marks(x));
    auto const count = std::count(keys.begin(), keys.end(), true);
    if (count == 0 || 2 * count > index_t(keys.size())) return;
    std::string const which = ranges(keys.size(), [&](std::size_t j) { return keys[j]; });
    if (which.size() > 60) return;
    std::string const name = testing::name_of(d) + (" " + which);
    if (report_.find(name) != nullptr) return;
    rows_.mark(std::move(keys));
    by_defect(d, name);
  }
  /// The sampled rows of the region whose residuals are too large; of all regions if there is none.
  std::vector<std::size_t> suspect_rows() const {
    std::vector<int> const* parts = nullptr;
    for (energy_excess const& e : report_.energies)
      if (e.found && !e.parts.empty()) parts = &e.parts;
    std::vector<std::size_t> to;
    std::vector<int> ids;
    for (std::size_t n = 0; n < sampled_.size(); ++n) {
      ids.clear();
      regions_.of(0, sampled_[n].batch, sampled_[n].head, sampled_[n].query, ids);
      bool const in = parts == nullptr || std::any_of(ids.begin(), ids.end(), [&](int id) {
                        return std::find(parts->begin(), parts->end(), id) != parts->end();
                      });
      if (in) to.push_back(n);
    }
    return to;
  }

  // ---- decision -----------------------------------------------------------------------------------------------------
  void decide() {
    if (any_outside(report_) || any_noticed(report_, how_.gate) || seen_.must_explain_any()) {
      std::vector<std::size_t> all(sampled_.size());
      std::iota(all.begin(), all.end(), std::size_t(0));
      by_keys(all);
      auto const suspects = suspect_rows();
      if (suspects.size() < all.size()) by_keys(suspects);
    }
    report_.condition = condition_of(bounds_.out, accumulation_, how_.gate);
    conclude(report_, seen_, how_, 0.25);
  }

  Op const& op_;
  inputs<Op, any_tensor> const& in_;
  candidate const& given_;
  verdict_options const& how_;
  precision precision_;
  error_bounds bounds_;
  problem_shape const& p_;
  altered_rows<Op> rows_;
  double accumulation_;
  regions regions_;
  std::vector<sampled_row> sampled_;
  projections seen_;
  verdict_report report_;
};

}  // namespace detail

/// Judges the results that a kernel computed for `op` from these inputs.
/// PASS:        every element is within its bound and no defect was noticed. The findings say how small a defect would
///              have been noticed.
/// FAIL:        the first reason names the cause, if one of the known defects explains the residual.
/// UNDECIDABLE: the problem is ill-conditioned, or these inputs cannot reveal a defect of the demanded size.
/// Errors:      attune::error names argument, value and expectation.
/// Complexity:  about 10 reference<double> for the bounds, and 40 on at most `rows` rows for the projections.
template <class Op>
verdict_report verdict(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given,
                       verdict_options const& how = {}) {
  return detail::judge<Op>(op, in, given, how)();
}

}  // namespace attune::testing
