// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_keys(call, rows)    "keys missing: 8..15", "keys missing where j mod 16 = 15", "the weight of key 7"
//
// For a verdict that is already FAIL: which keys act with a wrong weight?
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/forward/key_ranges.hpp>
#include <attune/testing/judging/forward/sampled_call.hpp>
#include <attune/testing/judging/key_equations.hpp>
#include <attune/testing/moving_parameter.hpp>

namespace attune::testing::detail {

/// The regions whose residuals are too large; null: none or all.
template <class Op>
std::vector<int> const* suspect_parts(sampled_call<Op> const& call) {
  std::vector<int> const* parts = nullptr;
  for (energy_excess const& e : call.report.energies)
    if (e.found && !e.parts.empty()) parts = &e.parts;
  return parts;
}
/// The sampled rows of these regions; of all regions if there is none.
template <class Op>
std::vector<std::size_t> suspect_rows(sampled_call<Op> const& call) {
  std::vector<int> const* parts = suspect_parts(call);
  std::vector<std::size_t> to;
  std::vector<int> ids;
  for (std::size_t n = 0; n < call.sampled.size(); ++n) {
    ids.clear();
    call.parts.of(0, call.sampled[n].batch, call.sampled[n].head, call.sampled[n].query, ids);
    bool const in = parts == nullptr || std::any_of(ids.begin(), ids.end(), [&](int id) {
                      return std::find(parts->begin(), parts->end(), id) != parts->end();
                    });
    if (in) to.push_back(n);
  }
  return to;
}

/// The weight of one key is off by a factor.
template <class Op>
void by_one_weight(sampled_call<Op>& call, index_t key) {
  if constexpr (Op::has_lse && !Op::has_ground_weight) {
    finding f;
    f.name = "the weight of key " + std::to_string(key);
    f.parameter = f.relative = true;
    f.chosen_from = call.p.keys;
    if (call.report.find(f.name) != nullptr) return;
    f = call.seen.judged(f, call.direction([&](sampled_row const& r, std::vector<double>& x) {
      auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
      auto const at = std::find(row.keys.begin(), row.keys.end(), key);
      double const w = at == row.keys.end() ? 0 : row.weights[std::size_t(at - row.keys.begin())];
      index_t const head = call.p.group(r.head, call.p.value_heads);
      for (index_t c = 0; c < call.p.value_width; ++c)
        x.push_back(w == 0 ? 0 : w * (call.in.v(r.batch, head, key, c) - row.out[std::size_t(c)]));
      if (!call.given.lse().empty()) x.push_back(w);
    }));
    if (f.estimate > -1.1) call.report.findings.push_back(f);  // no weight is negative
  }
}
/// The weights of some keys are off by one factor: `is` tells which, by the row's weights and the number in the row.
/// Complexity: 35 passes over the rows.
template <class Op, class Is>
void by_common_weight(sampled_call<Op>& call, std::string name, std::string hint, index_t chosen_from, Is const& is) {
  if constexpr (Op::has_lse && !Op::has_ground_weight && !Op::has_output_gate) {
    struct part {
      std::vector<double> out, sum;  ///< sum: of w v over the keys
      double weight = 0;             ///< of w
    };
    std::vector<part> parts;
    for (sampled_row const& r : call.sampled) {
      auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
      index_t const head = call.p.group(r.head, call.p.value_heads);
      double most = 0;
      for (double w : row.weights) most = std::fmax(most, w);
      part& to = parts.emplace_back();
      to.out = row.out, to.sum.assign(row.out.size(), 0);
      for (std::size_t n = 0; n < row.keys.size(); ++n) {
        double const w = row.weights[n];
        if (w == 0 || !is(row.keys[n], w / most)) continue;
        to.weight += w;
        for (std::size_t d = 0; d < to.sum.size(); ++d)
          to.sum[d] += w * call.in.v(r.batch, head, row.keys[n], index_t(d));
      }
    }
    auto const change = [&](double by) {
      std::vector<double> to;
      for (part const& x : parts) {
        for (std::size_t d = 0; d < x.out.size(); ++d)
          to.push_back(x.weight == 0 ? 0 : (x.out[d] + by * x.sum[d]) / (1 + by * x.weight) - x.out[d]);
        if (!call.given.lse().empty()) to.push_back(std::log1p(by * x.weight));
      }
      return to;
    };
    finding f;
    f.name = std::move(name);
    f.hint = std::move(hint);
    f.look_at = look::sum;
    f.parameter = f.relative = true;
    f.chosen_from = chosen_from;
    double const size = fitted_size(f, [&](double by) {
      double sum = 0;
      std::vector<double> const all = change(by);
      for (std::size_t n = 0; n < all.size(); ++n) sum += call.seen.left(n, all[n]);
      return sum;
    });
    if (!(std::fabs(size) > 1e-9) || size > 30) return;
    std::vector<double> along = change(size);
    for (double& x : along) x /= size;
    f = call.seen.judged(f, along);
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call.report.findings.push_back(std::move(f));
  }
}
/// Weights that are off by their distance from the largest one: a bad exponential, or small weights that are dropped.
template <class Op>
void by_size_of_weights(sampled_call<Op>& call) {
  struct range {
    double first, last;
    char const* name;
  };
  for (range const& x : {range{0, 1, "0..1"}, range{1, 2, "1..2"}, range{2, 4, "2..4"}, range{4, 8, "4..8"},
                         range{8, 16, "8..16"}, range{16, 1e9, "16 and more"}, range{2, 1e9, "2 and more"},
                         range{4, 1e9, "4 and more"}, range{8, 1e9, "8 and more"}})
    by_common_weight(call, std::string("small weights, of logits ") + x.name + " below the row's largest,",
                     " (the exponential in that range)", 9, [&](index_t, double share) {
                       double const below = -std::log(share);
                       return below >= x.first && below < x.last;
                     });
}
/// Judges a kernel that lacks some keys, or counts them twice. which: the keys, as text after "keys missing".
template <class Op>
void by_marked_keys(sampled_call<Op>& call, marked what, std::vector<bool> keys, std::string const& which,
                    index_t chosen_from) {
  std::string const name = (what == marked::missing ? "keys missing" : "keys counted twice") + which;
  if (call.report.find(name) != nullptr) return;
  call.rows.pairs().mark(std::move(keys));
  call.by_change(name, look::tiles, row_change{.keys = what});
  call.report.findings.back().chosen_from = chosen_from;
}
/// The same for the keys whose error says so, if they are few ranges.
template <class Op>
void by_ranges_of_keys(sampled_call<Op>& call, marked what, std::vector<double> const& error) {
  std::vector<bool> keys;
  for (double x : error) keys.push_back(what == marked::missing ? x < -0.6 : x > 0.6);
  auto const count = std::count(keys.begin(), keys.end(), true);
  if (count == 0 || 2 * count > index_t(keys.size())) return;
  std::string const which = ranges(keys.size(), [&](std::size_t j) { return keys[j]; });
  if (which.size() > 60) return;
  by_marked_keys(call, what, std::move(keys), ": " + which, 9 * call.p.keys);  // about so many ranges
}
/// Keys whose number has certain remainders: the last key of each page, a lane of each tile. One unknown for each
/// remainder, so that fewer rows tell more than they tell of single keys.
template <class Op>
void by_remainders(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  problem_shape const& p = call.p;
  index_t const width = p.value_width, rows = (std::min<index_t>)(index_t(of.size()), 128);
  for (index_t period : {2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64}) {
    if (2 * period > p.keys || rows * width < 4 * period) continue;
    key_equations system(rows * width, period);
    for (index_t n = 0; n < rows; ++n) {
      std::size_t const at_row = of[std::size_t(n) * of.size() / std::size_t(rows)];
      sampled_row const& r = call.sampled[at_row];
      auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
      index_t const head = p.group(r.head, p.value_heads);
      for (index_t c = 0; c < width; ++c) {
        std::size_t const at = at_row * call.step() + std::size_t(c);
        double const unit = std::sqrt(call.seen.metric(at));
        system.residual(n * width + c) = call.seen.residual(at) * unit;
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          if (row.weights[k] != 0 && unit != 0)
            system.effect(n * width + c, row.keys[k] % period) +=
                unit * row.weights[k] * (call.in.v(r.batch, head, row.keys[k], c) - row.out[std::size_t(c)]);
      }
    }
    // A factor of all weights changes nothing: most remainders are right, so the median is 0.
    std::vector<double> x = system.estimated().x, sorted = x;
    std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(period / 2), sorted.end());
    for (double& y : x) y -= sorted[std::size_t(period / 2)];
    for (marked what : {marked::missing, marked::doubled}) {
      auto const is = [&](std::size_t n) { return what == marked::missing ? x[n] < -0.7 : x[n] > 0.7 && x[n] < 1.3; };
      std::string const which = ranges(std::size_t(period), is);
      if (which.empty() || which.size() > 30) continue;
      std::vector<bool> marks;
      for (index_t j = 0; j < p.keys; ++j) marks.push_back(is(std::size_t(j % period)));
      if (2 * std::count(marks.begin(), marks.end(), true) > p.keys) continue;
      bool const one = which.find_first_of(",.") == which.npos;
      by_marked_keys(call, what, std::move(marks),
                     attune::detail::text(" where j mod ", period, one ? " = " : " in ", which), 32 * period);
    }
  }
}

/// Estimates the effective weight (1 + x_j) w_ij of each key: sum_j x_j w_ij (v_j - out_i) = r_i with the computed
/// out_i, whatever the row was divided by. Uses least squares for all keys at once, because values of different keys
/// are not orthogonal. Then looks for keys without weight, with twice their weight, and for one key that is off.
/// `of`: the sampled rows to use.
template <class Op>
void by_keys(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  index_t const keys = call.p.keys, width = call.p.value_width;
  index_t const rows =
      (std::min<index_t>)(index_t(of.size()), index_t(4e9) / (std::max<index_t>)(1, keys * keys * width));
  if (keys == 0 || rows * width < 2 * keys) return;
  key_equations system(rows * width, keys);
  for (index_t n = 0; n < rows; ++n) {
    std::size_t const at_row = of[std::size_t(n) * of.size() / std::size_t(rows)];
    sampled_row const& r = call.sampled[at_row];
    auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
    index_t const head = call.p.group(r.head, call.p.value_heads);
    for (index_t c = 0; c < width; ++c) {
      std::size_t const at = at_row * call.step() + std::size_t(c);
      double const unit = std::sqrt(call.seen.metric(at));
      double const out = Op::has_lse ? row.out[std::size_t(c)] + call.seen.residual(at) : 0;
      system.residual(n * width + c) = call.seen.residual(at) * unit;
      for (std::size_t k = 0; k < row.keys.size(); ++k)
        if (row.weights[k] != 0 && unit != 0)
          system.effect(n * width + c, row.keys[k]) =
              unit * row.weights[k] * (call.in.v(r.batch, head, row.keys[k], c) - out);
    }
  }
  std::vector<double> const all = system.solved();
  if (all.empty()) return;
  if (call.report.by_key.empty()) call.report.by_key = all;
  auto const smaller = [](double x, double y) { return std::fabs(x) < std::fabs(y); };
  auto const most = std::max_element(all.begin(), all.end(), smaller);
  if (std::fabs(*most) > 10 * typical_size(all)) by_one_weight(call, most - all.begin());
  // Keys with little weight cannot be told apart one by one, but tiles of them can.
  for (index_t tile = 1; tile <= 128 && tile <= keys; tile *= 2) {
    std::vector<double> mean(all.size(), 0);
    for (index_t first = 0; first < keys; first += tile) {
      index_t const n = (std::min)(tile, keys - first);
      double const average = std::accumulate(all.begin() + first, all.begin() + first + n, 0.) / double(n);
      std::fill_n(mean.begin() + first, n, average);
    }
    for (marked what : {marked::missing, marked::doubled}) by_ranges_of_keys(call, what, mean);
  }
}

/// Keys next to each other that are missing or counted twice, and one key with a wrong weight. Needs fewer rows than
/// by_keys: it looks for one range.
template <class Op>
void by_ranges(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  if constexpr (Op::has_lse && !Op::has_ground_weight && !Op::has_output_gate) {
    constexpr double most = 4e6;  // numbers: 32 MB
    problem_shape const& p = call.p;
    index_t const width = p.value_width + (call.given.lse().empty() ? 0 : 1);
    auto const rows = std::size_t(std::fmin(double(of.size()), most / double(p.keys * width + 1)));
    if (rows == 0) return;
    key_ranges ranges(p.keys, index_t(rows) * width);
    for (std::size_t n = 0; n < rows; ++n) {
      std::size_t const at_row = of[n * of.size() / rows];
      sampled_row const& r = call.sampled[at_row];
      auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
      index_t const head = p.group(r.head, p.value_heads);
      for (index_t c = 0; c < width; ++c) {
        bool const lse = c == p.value_width;
        std::size_t const at = at_row * call.step() + std::size_t(c);
        double const unit = std::sqrt(call.seen.metric(at));
        ranges.next(call.seen.residual(at) * unit);
        if (unit == 0) continue;
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          if (row.weights[k] != 0)
            ranges.effect(
                row.keys[k],
                unit * row.weights[k] * (lse ? 1 : call.in.v(r.batch, head, row.keys[k], c) - row.out[std::size_t(c)]));
      }
    }
    key_ranges::range const best = ranges.best();
    if (best.first == best.last) return;
    if (best.last - best.first == 1) by_one_weight(call, best.first);
    std::vector<double> error(std::size_t(p.keys), 0);
    std::fill(error.begin() + best.first, error.begin() + best.last, best.factor < 0 ? -1 : 1);
    by_ranges_of_keys(call, best.factor < 0 ? marked::missing : marked::doubled, error);
    std::string const keys =
        detail::ranges(std::size_t(best.last), [&](std::size_t j) { return index_t(j) >= best.first; });
    if (best.last - best.first < p.keys)
      by_common_weight(call, "weights of keys " + keys, "", 9 * p.keys,
                       [&](index_t j, double) { return j >= best.first && j < best.last; });
  }
}

}  // namespace attune::testing::detail
