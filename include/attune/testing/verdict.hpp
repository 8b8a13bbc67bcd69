// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto report = verdict(op, {.q = Q, .k = K, .v = V}, candidate(tensor(out, shape)).with_lse(natural_lse(L)));
//
// Is somebody's kernel right? Two tests, each fair to every correct kernel:
//   elements     |computed - exact| <= error_bound, for every element
//   projections  theta = <r, D> / <D, D>, r the residual, D what a defect does to the output (its derivative by a parameter, or the
//                whole difference of a named defect), in the metric of the expected errors. Rounding to storage averages out over
//                elements, so that a defect far below the error of one element shows: |theta| must stay below
//                power = <drift, |D|> / <D, D>  (errors that may all have one sign)  +  gate * the deviation of the scatter.
// The defect that explains most of r is the cause; power is what these inputs could have revealed.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <attune/exec/direction.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/defect.hpp>
#include <attune/testing/error_bound.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing {

/// A defect that must not go unnoticed: the name of a finding, and for a parameter how large it is.
struct demanded {
  std::string name;
  double size = 1;
};

struct verdict_options {
  std::optional<precision> how = std::nullopt;  ///< formats of the kernel; by default what its storage type implies
  double gate = 6;                              ///< standard deviations
  index_t rows = 256;                           ///< that projections look at, spread evenly; elements are all compared
  std::vector<demanded> must_detect = {};
};

namespace detail {

template <class Op>
class judge {
  using D = dual<double, 1>;

 public:
  judge(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given, verdict_options const& how)
      : op_(op), in_(in), given_(given), how_(how), precision_(formats(given, how)), bounds_(error_bound(op, in, precision_)),
        p_(bounds_.extents), rows_(op_, in_, p_) {
    shape const wanted{p_.batch, p_.heads, p_.queries, p_.value_width};
    if (!(given.extents() == wanted))
      throw error("testing::verdict", "out", "shape " + to_string(given.extents()), to_string(wanted));
    precision_.out = given.stored();
  }

  verdict_report operator()() {
    elements();
    sample();
    for_each_parameter(op_, [&](auto const& listed, auto const& policy, std::string const& path) {
      by_parameter(path, listed.values, policy.*listed.member);
    });
    as_a_whole();
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

  // ---- elements ----------------------------------------------------------------------------------------------------------
  void elements() {
    report_.by_query.assign(std::size_t(p_.queries), 0);
    report_.by_head.assign(std::size_t(p_.heads), 0);
    report_.by_feature.assign(std::size_t(p_.value_width), 0);
    compare("out", given_.out(), bounds_.out, p_.value_width);
    compare("lse", given_.lse(), bounds_.lse, 1);
    compare("ground weight", given_.ground_weight(), bounds_.ground_weight, 1);
  }
  void compare(char const* output, std::vector<double> const& got, std::vector<bounded_number> const& wanted, index_t width) {
    if (got.empty()) return;
    if (wanted.empty()) throw error("testing::verdict", output, "values", std::string("none: this operator has no ") + output);
    worst_element worst;
    worst.output = output;
    worst.count = index_t(got.size());
    for (std::size_t n = 0; n < got.size(); ++n) {
      double const x = got[n], y = wanted[n].value;
      bool const same = x == y || (std::isnan(x) && std::isnan(y));
      double const ratio = same                                          ? 0
                           : !std::isfinite(y)                           ? math::infinity<double>()
                           : wanted[n].bound == math::infinity<double>() ? 0
                           : std::isfinite(x)                            ? std::fabs(x - y) / wanted[n].bound
                                                                         : math::infinity<double>();
      if (!(ratio <= 1)) ++worst.outside;
      index_t const k = index_t(n), row = k / width;
      shape const at{row / (p_.queries * p_.heads), row / p_.queries % p_.heads, row % p_.queries, k % width};
      if (wanted.data() == bounds_.out.data()) {
        auto const note = [&](std::vector<double>& to, index_t i) {
          to[std::size_t(i)] = std::fmax(to[std::size_t(i)], ratio);
        };
        note(report_.by_query, at.position);
        note(report_.by_head, at.head);
        note(report_.by_feature, at.feature);
      }
      if (ratio > worst.ratio || n == 0)
        worst.place = at, worst.got = x, worst.expected = y, worst.bound = wanted[n].bound, worst.ratio = ratio;
    }
    report_.elements.push_back(worst);
  }

  // ---- projections -------------------------------------------------------------------------------------------------------
  struct sampled_row {
    index_t batch, head, query;
  };
  /// The residual at the sampled rows: out, then lse and ground weight where they were given.
  void sample() {
    index_t const all = p_.batch * p_.heads * p_.queries, taken = std::min(all, std::max<index_t>(how_.rows, 1));
    std::vector<double> reference;
    auto const add = [&](double got, bounded_number const& wanted) {
      bool const usable = std::isfinite(got) && std::isfinite(wanted.value) && std::isfinite(wanted.bound);
      residual_.push_back(usable ? got - wanted.value : 0);
      usable_.push_back(usable);
      drift_.push_back(wanted.drift);
      scatter_.push_back(wanted.scatter);
      reference.push_back(wanted.value);
    };
    for (index_t n = 0; n < taken; ++n) {
      index_t const row = n * all / taken;
      sampled_.push_back({row / (p_.queries * p_.heads), row / p_.queries % p_.heads, row % p_.queries});
      for (index_t d = 0; d < p_.value_width; ++d) {
        std::size_t const at = std::size_t(row * p_.value_width + d);
        add(given_.out()[at], bounds_.out[at]);
      }
      if (!given_.lse().empty()) add(given_.lse()[std::size_t(row)], bounds_.lse[std::size_t(row)]);
      if (!given_.ground_weight().empty())
        add(given_.ground_weight()[std::size_t(row)], bounds_.ground_weight[std::size_t(row)]);
    }
    double mean = 0;
    std::vector<double> s(residual_.size());
    for (std::size_t n = 0; n < s.size(); ++n) mean += (s[n] = std::hypot(scatter_[n], drift_[n] / 3)) / double(s.size());
    for (std::size_t n = 0; n < s.size(); ++n) {
      double const size = std::fmax(s[n], 1e-3 * mean);
      metric_.push_back(usable_[n] ? 1 / (size * size) : 0);
      total_ += residual_[n] * residual_[n] * metric_[n];
    }
    // Equal numbers are rounded alike: errors of elements with one stored value count as one error.
    std::vector<double> stored;
    for (double x : reference) stored.push_back(rounded_to(precision_.out, x));
    order_.resize(stored.size());
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return stored[a] < stored[b]; });
    for (std::size_t n = 0; n < order_.size(); ++n) alike_.push_back(n > 0 && stored[order_[n]] == stored[order_[n - 1]]);
  }

  /// The direction of a change: what `row` makes of each sampled row, appended in the order of the residual.
  template <class Row>
  std::vector<double> direction(Row const& row) const {
    std::vector<double> to;
    for (sampled_row const& r : sampled_) row(r, to);
    return to;
  }
  bounded_number const& exact_lse(sampled_row const& r) const { return bounds_.at_lse(r.batch, r.head, r.query); }

  void by_parameter(std::string const& path, domain values, parameter const& original) {
    Op op = op_;
    parameter* moved = nullptr;
    for_each_parameter(op, [&](auto const& listed, auto const& policy, std::string const& other) {
      if (other == path) moved = &const_cast<parameter&>(policy.*listed.member);  // op is no const object
    });
    finding f;
    f.name = path;
    f.parameter = true;
    if (!original.is_set()) {  // a scale that was never set is 1 / sqrt(D)
      if (path.substr(path.rfind('.') + 1) != "scale" || p_.width == 0) return;
      *moved = parameter(1 / std::sqrt(double(p_.width)));
      f.relative = true;
    }
    shape const e = moved->extents();
    std::vector<double> along;
    if (path.ends_with("scale") || values == domain::positive) f.relative = true;
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) {
          double const x = lift<double>{}.value(*moved, {b, h, i, p_.queries});
          along.push_back(f.relative ? x : 1);
          if (!std::isfinite(x)) return;  // at a limit nothing moves
        }
    policy_direction to;
    to.parameters.push_back({path, parameter(tensor<double const>(along.data(), e))});
    attune::detail::moving_numbers<double> const moving(op, to);
    altered_rows<Op> const rows(op, in_, p_);
    lift<D> const numbers = moving.numbers();
    f.power = 0;
    judge_direction(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                      auto const row = rows.template evaluate<D>(defect::none, r.batch, r.head, r.query, numbers);
                      for (D const& out : row.out) x.push_back(out.tangent[0]);
                      if (!given_.lse().empty()) x.push_back(row.lse.tangent[0]);
                      if (!given_.ground_weight().empty()) x.push_back(row.ground_weight.tangent[0]);
                    }));
  }

  /// A factor of the whole output: truncation for rounding, a sum that leans.
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
  std::size_t step() const {
    return std::size_t(p_.value_width) + (given_.lse().empty() ? 0u : 1u) + (given_.ground_weight().empty() ? 0u : 1u);
  }

  void by_defect(defect d, std::string const& name) {
    if (!rows_.applies(d)) return;
    bool const of_lse = d == defect::lse_in_base_two || d == defect::lse_without_scale || d == defect::lse_without_ground;
    if (of_lse && given_.lse().empty()) return;
    finding f;
    f.name = name;
    bool const rounding = d == defect::weights_in_bf16 || d == defect::weights_in_fp16;
    if (rounding) {
      storage const to = d == defect::weights_in_bf16 ? storage::bf16 : storage::fp16;
      f.tested = format_of(precision_.weights).unit < format_of(to).unit;
    }
    if (d == defect::logits_in_bf16) f.tested = format_of(precision_.arithmetic).unit < format_of(storage::bf16).unit;
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
  /// Element (h, i) of the tensor that should be (B, H, Lq, Dv) and is (B, Lq, H, Dv).
  void out_by_position(sampled_row const& r, std::vector<double>& x) const {
    index_t const place = r.head * p_.queries + r.query, query = place / p_.heads, head = place % p_.heads;
    for (index_t c = 0; c < p_.value_width; ++c)
      x.push_back(bounds_.at_out(r.batch, head, query, c).value - bounds_.at_out(r.batch, r.head, r.query, c).value);
    if (!given_.lse().empty()) x.push_back(0);
    if (!given_.ground_weight().empty()) x.push_back(0);
  }

  void judge_direction(finding f, std::vector<double> const& along) {
    double square = 0, product = 0, allowed = 0;
    for (std::size_t n = 0; n < along.size(); ++n) {
      if (!usable_[n]) continue;
      if (!std::isfinite(along[n])) {  // reads what is NaN or infinite, and the kernel does not
        f.power = 0;
        report_.findings.push_back(f);
        return;
      }
      double const x = along[n] * metric_[n];
      square += along[n] * x;
      product += residual_[n] * x;
      allowed += drift_[n] * std::fabs(x);
    }
    f.power = math::infinity<double>();
    if (square == 0 || allowed / square > 1e12) {
      f.tested = false;
      report_.findings.push_back(f);
      return;
    }
    double variance = 0, sum = 0, squares = 0;
    auto const close = [&] {
      variance += std::fmax(sum * sum, squares);
      sum = squares = 0;
    };
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (!alike_[k]) close();
      std::size_t const n = order_[k];
      double const x = along[n] * metric_[n] * scatter_[n];
      sum += x;
      squares += x * x;
    }
    close();
    f.power = (allowed + how_.gate * std::sqrt(variance)) / square;
    f.estimate = product / square;
    f.z = how_.gate * f.estimate / f.power;
    double const theta = f.parameter ? f.estimate : 1;  // a defect is there as a whole or not at all
    f.gain = theta * (2 * product - theta * square);
    report_.findings.push_back(f);
  }

  /// The weight that each key acts with, (1 + x_j) w_ij: sum_j x_j w_ij (v_j - out_i) = r_i with the out_i that was computed, whatever
  /// the row was divided by. Least squares on all keys at once, since values of different keys are not orthogonal. Then what marks it leaves: keys with no weight, keys with twice theirs.
  void by_keys() {
    using matrix = Eigen::MatrixXd;
    index_t const keys = p_.keys, width = p_.value_width;
    index_t const rows = std::min<index_t>(index_t(sampled_.size()), index_t(4e9) / std::max<index_t>(1, keys * keys * width));
    if (keys == 0 || rows * width < 2 * keys) return;
    matrix of_keys = matrix::Zero(rows * width, keys);
    Eigen::VectorXd residual = Eigen::VectorXd::Zero(rows * width);
    for (index_t n = 0; n < rows; ++n) {
      std::size_t const at_row = std::size_t(n) * sampled_.size() / std::size_t(rows);
      sampled_row const& r = sampled_[at_row];
      auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
      index_t const head = p_.group(r.head, p_.value_heads);
      for (index_t c = 0; c < width; ++c) {
        std::size_t const at = at_row * step() + std::size_t(c);
        double const unit = std::sqrt(metric_[at]);
        double const out = Op::has_lse ? row.out[std::size_t(c)] + residual_[at] : 0;
        residual(n * width + c) = residual_[at] * unit;
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          if (row.weights[k] != 0 && unit != 0)
            of_keys(n * width + c, row.keys[k]) = unit * row.weights[k] * (in_.v(r.batch, head, row.keys[k], c) - out);
      }
    }
    matrix normal = of_keys.transpose() * of_keys;
    double const ridge = 1e-9 * normal.diagonal().maxCoeff();
    if (!std::isfinite(ridge)) return;
    normal.diagonal().array() += ridge;
    Eigen::VectorXd const acts = normal.ldlt().solve(of_keys.transpose() * residual);
    report_.by_key.assign(acts.data(), acts.data() + acts.size());
    // Keys of little weight are not told one by one; tiles of them are.
    for (index_t tile = 1; tile <= 128 && tile <= keys; tile *= 2) {
      std::vector<double> mean(report_.by_key.size(), 0);
      for (index_t first = 0; first < keys; first += tile) {
        index_t const n = std::min(tile, keys - first);
        double const average = acts.segment(first, n).mean();
        std::fill_n(mean.begin() + first, n, average);
      }
      by_marked_keys(defect::marked_keys_missing, mean, [](double x) { return x < -0.6; });
      by_marked_keys(defect::marked_keys_doubled, mean, [](double x) { return x > 0.6; });
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

  // ---- decision ----------------------------------------------------------------------------------------------------------
  void decide() {
    auto& findings = report_.findings;
    bool outside = false, noticed = false;
    for (worst_element const& e : report_.elements) outside = outside || e.outside > 0;
    for (finding const& f : findings) noticed = noticed || (f.tested && std::fabs(f.z) > how_.gate);
    if (outside || noticed) by_keys();
    // Of two that explain the residual alike the definite one is the likelier.
    auto const merit = [&](finding const& f) { return (f.tested ? f.gain : 0) * (f.parameter ? 0.98 : 1.0); };
    std::stable_sort(findings.begin(), findings.end(), [&](finding const& a, finding const& b) { return merit(a) > merit(b); });
    condition();
    auto say = [&](std::string const& text) { report_.reasons.push_back(text); };
    if (outside || noticed) {
      report_.decision = judgement::fail;
      finding const* first = findings.empty() ? nullptr : &findings[0];
      // Where elements are outside something is wrong for certain: less is needed to say what.
      double const needed = outside ? how_.gate / 3 : how_.gate;
      report_.caused = first != nullptr && first->tested && (first->parameter ? std::fabs(first->z) : first->z) > needed &&
                       first->gain > 0.25 * excess();
      if (report_.caused) {
        say(first->words() + attune::detail::text(" (z = ", std::round(first->z), ", explains ",
                                                  std::round(100 * first->gain / std::fmax(total_, 1e-300)),
                                                  " % of the residual)"));
      } else {
        say("no known defect explains it");
      }
      for (worst_element const& e : report_.elements)
        if (e.outside > 0)
          say(e.output + attune::detail::text(" at (", e.place.batch, ", ", e.place.head, ", ", e.place.position, ", ",
                                              e.place.feature, ") is ", e.got, ", exact ", e.expected, " +- ", e.bound));
      if (!outside) say("every element is within its bound, but together they lean one way");
      return;
    }
    if (report_.condition > 0.25) {
      report_.decision = judgement::undecidable;
      say("ill-conditioned: half of the bounds exceed a quarter of the typical output: nothing can be concluded");
    }
    for (demanded const& wanted : how_.must_detect) {
      finding const* f = nullptr;
      for (finding const& x : findings)
        if (attune::detail::is_called(x.name, wanted.name)) f = &x;
      if (f == nullptr)
        throw error("testing::verdict", "must_detect", "the name \"" + wanted.name + "\"",
                    "a parameter of the operator or the name of a defect that applies to it");
      if (f->power < wanted.size) continue;
      report_.decision = judgement::undecidable;
      say(f->name + attune::detail::text(": ", wanted.size, " would go unnoticed on these inputs, the smallest to be seen is ",
                                         f->power, ": run the probes (testing/probes.hpp)"));
    }
  }
  /// What the residual has beyond what rounding explains: its weighted square less its expectation.
  double excess() const {
    double usable = 0;
    for (bool u : usable_) usable += u ? 1 : 0;
    return std::fmax(total_ - usable, 0.1 * total_);
  }
  void condition() {
    std::vector<double> sizes;
    double square = 0;
    for (bounded_number const& x : bounds_.out)
      if (std::isfinite(x.value)) {
        sizes.push_back(x.bound);
        square += x.value * x.value;
      }
    if (sizes.empty() || square == 0) return;
    auto const middle = sizes.begin() + std::ptrdiff_t(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    report_.condition = *middle / std::sqrt(square / double(sizes.size()));
  }

  Op const& op_;
  inputs<Op, any_tensor> const& in_;
  candidate const& given_;
  verdict_options const& how_;
  precision precision_;
  error_bounds bounds_;
  problem_shape const& p_;
  altered_rows<Op> rows_;
  std::vector<sampled_row> sampled_;
  std::vector<double> residual_, drift_, scatter_, metric_;
  std::vector<bool> usable_, alike_;
  std::vector<std::size_t> order_;
  double total_ = 0;
  verdict_report report_;
};

}  // namespace detail

/// Judges what a kernel computed for `op` from these inputs.
/// PASS:        every element within its bound, no defect noticed; the findings say how small a defect would have been.
/// FAIL:        the first reason names the cause, if one of the known defects explains the residual.
/// UNDECIDABLE: the problem is ill-conditioned, or a demanded defect is smaller than these inputs reveal.
/// Errors:      attune::error names argument, value and expectation.
/// Complexity:  about 10 reference<double> for the bounds, and 40 on at most `rows` rows for the projections.
template <class Op>
verdict_report verdict(Op const& op, inputs<Op, any_tensor> const& in, candidate const& given,
                       verdict_options const& how = {}) {
  return detail::judge<Op>(op, in, given, how)();
}

}  // namespace attune::testing
