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
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/conclusion.hpp>
#include <attune/testing/judging/read_tensor.hpp>
#include <attune/testing/judging/usual_suspects.hpp>
#include <attune/testing/moving_parameter.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

namespace detail {

template <class Op>
class judge : usual_suspects<Op> {
  using D = dual<double, 1>;
  using base = usual_suspects<Op>;
  using base::accumulation_, base::bounds_, base::by_defect, base::direction, base::given_, base::how_, base::in_;
  using base::judge_direction, base::op_, base::p_, base::precision_, base::regions_, base::report_, base::rows_;
  using base::sampled_, base::seen_, base::step;
  using typename base::sampled_row;

 public:
  judge(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given, verdict_options const& how)
      : base(op, in, given, how) {}

  verdict_report operator()() {
    base::elements();
    base::sample();
    for_each_moving_parameter(
        op_, p_, [&](finding const& f, Op const& op, lift<D> const& numbers) { by_parameter(f, op, numbers); });
    as_a_whole();
    lse_as_a_whole();
    by_sums_of_rows();
    base::by_slopes();
    for (int d = 1; d < defect_count; ++d) by_defect(static_cast<defect>(d), testing::name_of(static_cast<defect>(d)));
    decide();
    return std::move(report_);
  }

 private:
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
                      x.push_back(std::isfinite(base::exact_lse(r).value) ? 1 : 0);
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
  /// A factor 1 / (1 - p) for a usual p is the scale of a dropout. The nearest p, if the estimate tells it from others.
  static std::string dropout_of(finding const& f) {
    constexpr std::array usual{0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5};
    auto const scale = [&](std::size_t n) { return 1 / (1 - usual[n]) - 1; };
    auto const off = [&](std::size_t n) { return std::fabs(f.estimate - scale(n)); };
    std::size_t nearest = 0;
    for (std::size_t n = 1; n < usual.size(); ++n)
      if (off(n) < off(nearest)) nearest = n;
    if (nearest == 0) return "";
    double const apart = scale(nearest) - scale(nearest - 1);  // from the nearest other one
    if (!(off(nearest) < (std::min)(0.005 * scale(nearest) + f.power / 6, apart / 2))) return "";
    return attune::detail::text(" (1 / (1 - ", usual[nearest], "): a dropout scale left in?)");
  }
  /// Parameters that are far off: their effect is not proportional to it. `suspects`: sampled rows that tell the size.
  void by_large_changes(std::vector<std::size_t> const& suspects) {
    std::size_t const every = suspects.size() / 64 + 1;  // so many rows tell enough
    for (finding& f : report_.findings) {
      auto const cost = [&](double by) {
        double sum = math::infinity<double>();
        with_moved_parameter(op_, p_, f, by, [&](Op const& op) {
          altered_rows<Op> const rows(op, in_, p_);
          sum = 0;
          for (std::size_t n = 0; n < suspects.size(); n += every) {
            sampled_row const& r = sampled_[suspects[n]];
            std::vector<double> change;
            base::append_change(rows.template evaluate<double>(defect::none, r.batch, r.head, r.query), r, change);
            for (std::size_t k = 0; k < change.size(); ++k) sum += seen_.left(suspects[n] * step() + k, change[k]);
          }
        });
        return sum;
      };
      refit(f, seen_, cost, [&](double by) {
        std::vector<double> along;
        with_moved_parameter(op_, p_, f, by,
                             [&](Op const& op) { along = base::change_to(altered_rows<Op>(op, in_, p_)); });
        return along;
      });
    }
  }

  // ---- what looks like noise ----------------------------------------------------------------------------------------
  void by_noise(std::vector<std::size_t> const& rows) {
    std::vector<int> const* parts = base::suspect_parts();
    std::vector<int> const in = parts == nullptr ? std::vector<int>{} : *parts;
    finding f;
    f.where = regions_.words(in);
    auto const sizes = [&](auto const& of_row) {
      return direction([&](sampled_row const& r, std::vector<double>& x) {
        of_row(r, x);
        x.resize(x.size() + step() - std::size_t(p_.value_width), 0);
      });
    };
    f.name = "sums of out rounded to 16 bits";
    auto const size = sizes([&](sampled_row const& r, std::vector<double>& x) {
      for (index_t c = 0; c < p_.value_width; ++c)
        x.push_back(std::fabs(bounds_.at_out(r.batch, r.head, r.query, c).value));
    });
    double const least = format_of(storage::fp16).unit / 8,
                 most = most_roundings(double(p_.keys)) * format_of(storage::bf16).unit;
    add_noise(f, size, least, most, in);
    // The sums of tiles are as large as the spread of a row's terms, and so are the errors of rounded probabilities.
    f.name = "probabilities or sums of out rounded to 16 bits";
    auto const partial = sizes([&](sampled_row const& r, std::vector<double>& x) {
      auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
      index_t const head = p_.group(r.head, p_.value_heads);
      for (index_t c = 0; c < p_.value_width; ++c) {
        double square = row.out[std::size_t(c)] * row.out[std::size_t(c)];
        for (std::size_t k = 0; k < row.keys.size(); ++k) {
          double const term = row.weights[k] == 0 ? 0 : row.weights[k] * in_.v(r.batch, head, row.keys[k], c);
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
    report_.findings.push_back(seen_.judged_as_noise(f, size, least, most, in));
  }
  /// e^(lse - maximum) is a number of 16 bits, next to the exact one, in most rows.
  void by_rounded_sum(std::vector<std::size_t> const& rows) {
    if constexpr (Op::has_lse && Op::normalizer_policy::traits.reference == mass_reference::running_maximum) {
      if (given_.lse().empty() || format_of(given_.lse_stored()).unit > format_of(storage::fp32).unit) return;
      for (storage s : {storage::bf16, storage::fp16}) {
        double on = 0, all = 0;
        for (std::size_t n : rows) {
          sampled_row const& r = sampled_[n];
          double const got = given_.lse()[std::size_t((r.batch * p_.heads + r.head) * p_.queries + r.query)];
          auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
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
        f.z = 2 * how_.gate;
        f.power = f.power_of_part = math::infinity<double>();
        report_.findings.push_back(f);
        return;
      }
    }
  }
  /// Everything but the lse is as rounding leaves it.
  void by_lse_alone() {
    bool alone = seen_.must_be_explained(1);
    for (std::size_t n = 0; n < report_.elements.size(); ++n)
      alone = alone && (n == 1 || (report_.elements[n].outside == 0 && !seen_.must_be_explained(int(n))));
    if (alone) report_.observation = "only the lse is seen to be wrong";
  }

  // ---- decision -----------------------------------------------------------------------------------------------------
  void decide() {
    if (any_outside(report_) || any_noticed(report_, how_.gate) || seen_.must_explain_any()) {
      std::vector<std::size_t> all(sampled_.size());
      std::iota(all.begin(), all.end(), std::size_t(0));
      auto const suspects = base::suspect_rows();
      if (seen_.total() > 0) {  // else all is NaN, and says nothing of keys
        base::by_keys(all);
        if (suspects.size() < all.size()) base::by_keys(suspects);
      }
      by_large_changes(suspects);
      base::by_ranges(suspects);
      base::by_pages();
      base::by_empty_rows();
      base::by_exponentials();
      by_narrow_arithmetic(report_, precision_, how_.gate, [&](precision const& narrow) {
        error_bounds const b = error_bound(op_, in_, narrow);
        return all_within(given_.out(), b.out) && all_within(given_.lse(), b.lse) &&
               all_within(given_.ground_weight(), b.ground_weight);
      });
      by_noise(suspects);
    }
    report_.condition = condition_of(bounds_.out, accumulation_, how_.gate);
    for (finding& f : report_.findings)
      if (f.name == "out" && f.parameter) f.hint = dropout_of(f);
    conclude(report_, seen_, how_, 0.25);
  }
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
