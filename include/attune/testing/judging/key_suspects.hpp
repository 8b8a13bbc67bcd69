// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_keys(rows)    "keys missing: 8..15", "the weight of key 7": the keys that a kernel weighs wrongly
//
// For a verdict that is already FAIL: which keys act with a wrong weight?
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/key_equations.hpp>
#include <attune/testing/judging/key_ranges.hpp>
#include <attune/testing/judging/sampled_call.hpp>

namespace attune::testing::detail {

template <class Op>
class key_suspects : protected sampled_call<Op> {
 protected:
  using base = sampled_call<Op>;
  using base::base;
  using base::bounds_, base::by_defect, base::direction, base::given_, base::how_, base::in_;
  using base::p_, base::regions_, base::report_, base::rows_, base::sampled_, base::seen_, base::step;
  using typename base::sampled_row;

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
      f.chosen_from = p_.keys;
      if (report_.find(f.name) != nullptr) return;
      f = seen_.judged(f, direction([&](sampled_row const& r, std::vector<double>& x) {
                         auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
                         auto const at = std::find(row.keys.begin(), row.keys.end(), key);
                         double const w = at == row.keys.end() ? 0 : row.weights[std::size_t(at - row.keys.begin())];
                         index_t const head = p_.group(r.head, p_.value_heads);
                         for (index_t c = 0; c < p_.value_width; ++c)
                           x.push_back(w == 0 ? 0 : w * (in_.v(r.batch, head, key, c) - row.out[std::size_t(c)]));
                         if (!given_.lse().empty()) x.push_back(w);
                       }));
      if (f.estimate > -1.1) report_.findings.push_back(f);  // no weight is negative
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
    std::size_t const before = report_.findings.size();
    by_defect(d, name);
    if (report_.findings.size() > before) report_.findings.back().chosen_from = 9 * p_.keys;  // about so many ranges
  }
  /// The regions whose residuals are too large; null: none or all.
  std::vector<int> const* suspect_parts() const {
    std::vector<int> const* parts = nullptr;
    for (energy_excess const& e : report_.energies)
      if (e.found && !e.parts.empty()) parts = &e.parts;
    return parts;
  }
  /// The sampled rows of these regions; of all regions if there is none.
  std::vector<std::size_t> suspect_rows() const {
    std::vector<int> const* parts = suspect_parts();
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
  /// Keys next to each other that are missing or counted twice, and one key with a wrong weight. Needs fewer rows than
  /// by_keys: it looks for one range.
  void by_ranges(std::vector<std::size_t> const& of) {
    if constexpr (Op::has_lse && !Op::has_ground_weight && !Op::has_output_gate) {
      constexpr double most = 4e6;  // numbers: 32 MB
      index_t const width = p_.value_width + (given_.lse().empty() ? 0 : 1);
      auto const rows = std::size_t(std::fmin(double(of.size()), most / double(p_.keys * width + 1)));
      if (rows == 0) return;
      key_ranges ranges(p_.keys, index_t(rows) * width);
      for (std::size_t n = 0; n < rows; ++n) {
        std::size_t const at_row = of[n * of.size() / rows];
        sampled_row const& r = sampled_[at_row];
        auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
        index_t const head = p_.group(r.head, p_.value_heads);
        for (index_t c = 0; c < width; ++c) {
          bool const lse = c == p_.value_width;
          std::size_t const at = at_row * step() + std::size_t(c);
          double const unit = std::sqrt(seen_.metric(at));
          ranges.next(seen_.residual(at) * unit);
          if (unit == 0) continue;
          for (std::size_t k = 0; k < row.keys.size(); ++k)
            if (row.weights[k] != 0)
              ranges.effect(
                  row.keys[k],
                  unit * row.weights[k] * (lse ? 1 : in_.v(r.batch, head, row.keys[k], c) - row.out[std::size_t(c)]));
        }
      }
      key_ranges::range const best = ranges.best();
      if (best.first == best.last) return;
      if (best.last - best.first == 1) by_one_weight(best.first);
      std::vector<double> acts(std::size_t(p_.keys), 0);
      std::fill(acts.begin() + best.first, acts.begin() + best.last, 1);
      auto const marks = [](double x) { return x > 0; };
      by_marked_keys(best.factor < 0 ? defect::marked_keys_missing : defect::marked_keys_doubled, acts, marks);
    }
  }
};

}  // namespace attune::testing::detail
