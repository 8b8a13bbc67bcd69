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
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/conclusion.hpp>
#include <attune/testing/judging/defects/known_defects.hpp>
#include <attune/testing/judging/defects/rare_defects.hpp>
#include <attune/testing/judging/factor_words.hpp>
#include <attune/testing/judging/forward/lost_rows.hpp>
#include <attune/testing/judging/forward/mask_edges.hpp>
#include <attune/testing/judging/forward/other_calls.hpp>
#include <attune/testing/judging/forward/other_inputs.hpp>
#include <attune/testing/judging/forward/other_pages.hpp>
#include <attune/testing/judging/forward/other_places.hpp>
#include <attune/testing/judging/forward/tile_factors.hpp>
#include <attune/testing/judging/forward/visits_in_parts.hpp>
#include <attune/testing/judging/forward/wrong_keys.hpp>
#include <attune/testing/judging/read_tensor.hpp>
#include <attune/testing/moving_parameter.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class judge {
  using D = dual<double, 1>;

 public:
  judge(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given, verdict_options const& how)
      : call_(op, in, given, how) {}

  verdict_report operator()() {
    call_.elements();
    call_.sample();
    for_each_moving_parameter(call_.op, call_.p, [&](finding const& f, Op const& op, lift<D> const& numbers) {
      by_parameter(f, op, numbers);
    });
    as_a_whole();
    lse_as_a_whole();
    by_sums_of_rows();
    by_slopes(call_);
    for (known_defect const& d : known_defects) call_.by_defect(d);
    decide();
    return std::move(call_.report);
  }

 private:
  void by_parameter(finding const& f, Op const& op, lift<D> const& numbers) {
    altered_rows<Op> const rows(op, call_.in, call_.p);
    call_.judge_direction(f, call_.direction([&](sampled_row const& r, std::vector<double>& x) {
      auto const row = rows.template evaluate<D>({}, r.batch, r.head, r.query, numbers);
      for (D const& out : row.out) x.push_back(out.tangent[0]);
      if (!call_.given.lse().empty()) x.push_back(row.lse.tangent[0]);
      if (!call_.given.ground_weight().empty()) x.push_back(row.ground_weight.tangent[0]);
    }));
  }

  /// A factor of the whole output: truncation instead of rounding, or a biased sum.
  void as_a_whole() {
    finding f;
    f.name = "out";
    f.parameter = f.relative = true;
    call_.judge_direction(f, call_.direction([&](sampled_row const& r, std::vector<double>& x) {
      for (index_t c = 0; c < call_.p.value_width; ++c)
        x.push_back(call_.bounds.at_out(r.batch, r.head, r.query, c).value);
      x.resize(x.size() + call_.step() - std::size_t(call_.p.value_width), 0);
    }));
  }
  /// A number added to every lse.
  void lse_as_a_whole() {
    if (call_.given.lse().empty()) return;
    finding f;
    f.name = "lse";
    f.parameter = true;
    call_.judge_direction(f, call_.direction([&](sampled_row const& r, std::vector<double>& x) {
      x.resize(x.size() + std::size_t(call_.p.value_width), 0);
      x.push_back(std::isfinite(call_.exact_lse(r).value) ? 1 : 0);
      if (!call_.given.ground_weight().empty()) x.push_back(0);
    }));
  }
  /// In each row the sum of weights has another error: out times 1 + x, and lse minus x if the lse is wrong too. x
  /// comes from the residual, so it needs another reason to fail.
  void by_sums_of_rows() {
    if (!Op::has_lse || !call_.seen.must_be_explained(0)) return;
    bool const with_lse = call_.seen.must_be_explained(1);
    std::vector<double> all;
    for (std::size_t n = 0; n < call_.sampled.size(); ++n) {
      sampled_row const& r = call_.sampled[n];
      double square = 0, product = 0;
      auto const along = [&](std::size_t k) {
        return k < std::size_t(call_.p.value_width) ? call_.bounds.at_out(r.batch, r.head, r.query, index_t(k)).value
               : k == std::size_t(call_.p.value_width) && with_lse ? -1
                                                                   : 0;
      };
      for (std::size_t k = 0; k < call_.step(); ++k) {
        double const x = along(k), m = call_.seen.metric(n * call_.step() + k);
        if (m == 0 || !std::isfinite(x)) continue;
        square += x * x * m;
        product += x * call_.seen.residual(n * call_.step() + k) * m;
      }
      for (std::size_t k = 0; k < call_.step(); ++k)
        all.push_back(square > 0 && std::isfinite(along(k)) ? along(k) * product / square : 0);
    }
    finding f;
    f.name = with_lse ? "sum of weights off, by another factor in each row"
                      : "sum of weights that divides out off, by another factor in each row";
    if (Op::has_ground_weight) f.hint = " (the sink or ground is part of it)";
    f.last_resort = true;
    f = call_.seen.judged(f, all);
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call_.report.findings.push_back(f);
  }
  /// Parameters that are far off: their effect is not proportional to it. `suspects`: sampled rows that tell the size.
  void by_large_changes(std::vector<std::size_t> const& suspects) {
    std::size_t const every = suspects.size() / 64 + 1;  // so many rows tell enough
    for (finding& f : call_.report.findings) {
      auto const cost = [&](double by) {
        double sum = math::infinity<double>();
        with_moved_parameter(call_.op, call_.p, f, by, [&](Op const& op) {
          altered_rows<Op> const rows(op, call_.in, call_.p);
          sum = 0;
          for (std::size_t n = 0; n < suspects.size(); n += every) {
            sampled_row const& r = call_.sampled[suspects[n]];
            std::vector<double> change;
            call_.append_change(rows.template evaluate<double>({}, r.batch, r.head, r.query), r, change);
            for (std::size_t k = 0; k < change.size(); ++k)
              sum += call_.seen.left(suspects[n] * call_.step() + k, change[k]);
          }
        });
        return sum;
      };
      refit(f, call_.seen, cost, [&](double by) {
        std::vector<double> along;
        with_moved_parameter(call_.op, call_.p, f, by,
                             [&](Op const& op) { along = call_.changes_to(altered_rows<Op>(op, call_.in, call_.p)); });
        return along;
      });
    }
  }

  /// Whether a usual mistake explains the residual already: then nobody looks for unusual ones.
  bool is_explained() const {
    return std::any_of(call_.report.findings.begin(), call_.report.findings.end(), [](finding const& f) {
      bool const whole = f.parameter || std::fabs(f.estimate - 1) < 0.2;
      return f.tested && !f.last_resort && whole && f.share > 0.995;
    });
  }
  /// Many mistakes of which each is unlikely.
  void by_suspicions(std::vector<std::size_t> const& rows) {
    suspicions<Op> all(call_);
    for (known_defect const& d : rare_defects) all.add(d);
    add_other_parameters(all, call_);
    add_other_bias(all, call_);
    add_other_inputs(all, call_);
    add_places_of_out(all, call_);
    add_lse_alone(all, call_);
    add_visits_in_parts(all);
    add_exchanged_scales(all, call_, rows);
    add_other_tiles(all, call_);
    all.judge_best(rows);
  }

  // ---- what looks like noise ----------------------------------------------------------------------------------------
  void by_noise(std::vector<std::size_t> const& rows) {
    std::vector<int> const* parts = suspect_parts(call_);
    std::vector<int> const in = parts == nullptr ? std::vector<int>{} : *parts;
    finding f;
    f.where = call_.parts.words(in);
    auto const sizes = [&](auto const& of_row) {
      return call_.direction([&](sampled_row const& r, std::vector<double>& x) {
        of_row(r, x);
        x.resize(x.size() + call_.step() - std::size_t(call_.p.value_width), 0);
      });
    };
    f.name = "sums of out rounded to 16 bits";
    auto const size = sizes([&](sampled_row const& r, std::vector<double>& x) {
      for (index_t c = 0; c < call_.p.value_width; ++c)
        x.push_back(std::fabs(call_.bounds.at_out(r.batch, r.head, r.query, c).value));
    });
    double const least = format_of(storage::fp16).unit / 8,
                 most = most_roundings(double(call_.p.keys)) * format_of(storage::bf16).unit;
    add_noise(f, size, least, most, in);
    // The sums of tiles are as large as the spread of a row's terms, and so are the errors of rounded probabilities.
    f.name = "probabilities or sums of out rounded to 16 bits";
    auto const partial = sizes([&](sampled_row const& r, std::vector<double>& x) {
      auto const row = call_.rows.template evaluate<double>({}, r.batch, r.head, r.query);
      index_t const head = call_.p.group(r.head, call_.p.value_heads);
      for (index_t c = 0; c < call_.p.value_width; ++c) {
        double square = row.out[std::size_t(c)] * row.out[std::size_t(c)];
        for (std::size_t k = 0; k < row.keys.size(); ++k) {
          double const term = row.weights[k] == 0 ? 0 : row.weights[k] * call_.in.v(r.batch, head, row.keys[k], c);
          square += term * term;
        }
        x.push_back(std::sqrt(square));
      }
    });
    add_noise(f, partial, least, most, in);
    by_rounded_sum(rows);
    by_lse_alone();
  }
  void add_noise(finding const& f, std::vector<double> const& size, double least, double most,
                 std::vector<int> const& in) {
    call_.report.findings.push_back(call_.seen.judged_as_noise(f, size, least, most, in));
  }
  /// e^(lse - maximum) is a number of 16 bits, next to the exact one, in most rows.
  void by_rounded_sum(std::vector<std::size_t> const& rows) {
    if constexpr (Op::has_lse && Op::normalizer_policy::traits.reference == mass_reference::running_maximum) {
      if (call_.given.lse().empty() || format_of(call_.given.lse_stored()).unit > format_of(storage::fp32).unit) return;
      for (storage s : {storage::bf16, storage::fp16}) {
        double on = 0, all = 0;
        for (std::size_t n : rows) {
          sampled_row const& r = call_.sampled[n];
          double const got =
              call_.given.lse()[std::size_t((r.batch * call_.p.heads + r.head) * call_.p.queries + r.query)];
          auto const row = call_.rows.template evaluate<double>({}, r.batch, r.head, r.query);
          double most = 0;
          for (double w : row.weights) most = std::fmax(most, w);
          double const exact = 1 / most, sum = std::exp(got - row.lse) * exact, slack = 4e-7 * (4 + std::fabs(got));
          auto const off = [&](double x) { return std::fabs(rounded_to(s, x) / x - 1); };
          if (!std::isfinite(sum) || most == 0 || !(off(exact) > 4 * slack)) continue;
          all += 1;
          on += off(sum) <= slack && std::fabs(sum / exact - 1) <= format_of(s).unit + slack;
        }
        if (all < 4 || on < 0.6 * all) continue;
        finding f;
        f.name = std::string("sum of weights rounded to ") + name_of(s);
        f.share = on / all;
        f.z = 2 * call_.how.gate;
        f.power = f.power_of_part = math::infinity<double>();
        call_.report.findings.push_back(f);
        return;
      }
    }
  }
  /// Everything but the lse is as rounding leaves it.
  void by_lse_alone() {
    bool alone = call_.seen.must_be_explained(1);
    for (std::size_t n = 0; n < call_.report.elements.size(); ++n)
      alone = alone && (n == 1 || (call_.report.elements[n].outside == 0 && !call_.seen.must_be_explained(int(n))));
    if (alone) call_.report.observation = "only the lse is seen to be wrong";
  }

  // ---- decision -----------------------------------------------------------------------------------------------------
  void decide() {
    if (any_outside(call_.report) || any_noticed(call_.report, call_.how.gate) || call_.seen.must_explain_any()) {
      std::vector<std::size_t> all(call_.sampled.size());
      std::iota(all.begin(), all.end(), std::size_t(0));
      auto const suspects = suspect_rows(call_);
      if (call_.seen.total() > 0) {  // else all is NaN, and says nothing of keys
        by_keys(call_, all);
        if (suspects.size() < all.size()) by_keys(call_, suspects);
      }
      by_large_changes(suspects);
      by_ranges(call_, suspects);
      if (!is_explained()) {
        by_remainders(call_, suspects);
        by_size_of_weights(call_);
        by_mask_edges(call_, suspects);
        by_free_edges(call_, suspects);
        by_tile_factors(call_, suspects);
        by_suspicions(suspects);
      }
      by_pages(call_);
      by_empty_rows(call_);
      by_exponentials(call_);
      by_narrow_arithmetic(call_.report, call_.formats, call_.how.gate, [&](precision const& narrow) {
        error_bounds const b = error_bound(call_.op, call_.in, narrow);
        return all_within(call_.given.out(), b.out) && all_within(call_.given.lse(), b.lse) &&
               all_within(call_.given.ground_weight(), b.ground_weight);
      });
      by_noise(suspects);
    }
    call_.report.condition = condition_of(call_.bounds.out, call_.accumulation, call_.how.gate);
    for (finding& f : call_.report.findings)
      if (f.name == "out" && f.parameter) f.hint = words_of_factor(f);
    conclude(call_.report, call_.seen, call_.how, 0.25);
  }

  sampled_call<Op> call_;
};

}  // namespace detail

/// Judges the results that a kernel computed for `op` from these inputs.
/// PASS:        every element is within its bound and no defect was noticed. The findings say how small a defect would
///              have been noticed.
/// FAIL:        the first reason names the cause, if one of the known defects explains the residual.
/// UNDECIDABLE: the problem is ill-conditioned, or these inputs cannot reveal a defect of the demanded size.
/// Errors:      attune::error names argument, value and expectation.
/// Complexity:  about 10 reference<double> for the bounds, and 40 on at most `rows` rows for the projections. A FAIL
///              that no usual mistake explains: about 300 more on 24 rows.
template <class Op>
verdict_report verdict(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given,
                       verdict_options const& how = {}) {
  return detail::judge<Op>(op, in, given, how)();
}

}  // namespace attune::testing
