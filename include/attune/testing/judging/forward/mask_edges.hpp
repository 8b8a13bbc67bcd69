// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_mask_edges(call, rows)    "mask shifted by +17 at its end: rows see up to 17 keys more"
//
// For a verdict that is already FAIL: between which keys does the kernel see? The ends that fit the residuals best, of
// those that kernels have by mistake: moved by a number of keys, moved to the edge of a tile, or the same for all rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/forward/sampled_call.hpp>
#include <attune/testing/judging/mask_words.hpp>

namespace attune::testing::detail {

/// Where a mask may begin or end by mistake.
struct moved_edges {
  std::string words;
  std::function<key_interval(index_t query, key_interval right)> of;
};

/// The mistakes that are tried. Keys: Lk.
inline std::vector<moved_edges> usual_edges(index_t keys, index_t queries) {
  std::vector<moved_edges> all;
  auto const words_of_shift = [](index_t by, char const* end) {
    return attune::detail::text("mask shifted by ", by > 0 ? "+" : "", by, " at its ", end, ": rows see ",
                                by > 0 ? by : -by, (by > 0) == (end[0] == 'e') ? " keys too many" : " keys too few",
                                " there");
  };
  all.push_back(
      {"mask's start ignored: rows see from key 0", [](index_t, key_interval k) { return key_interval{0, k.last}; }});
  all.push_back({"mask's end ignored: rows see up to the last key",
                 [=](index_t, key_interval k) { return key_interval{k.first, keys}; }});
  for (index_t tile : {2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256}) {
    auto const down = [=](index_t x) { return x / tile * tile; };
    auto const up = [=](index_t x) { return (x + tile - 1) / tile * tile; };
    auto const of_tile = attune::detail::text(" a multiple of ", tile);
    all.push_back({"mask ends at" + of_tile + ": rows see up to the end of a tile of keys",
                   [=](index_t, key_interval k) { return key_interval{k.first, up(k.last)}; }});
    all.push_back({"mask ends at" + of_tile + ": rows lack the keys of their last tile of keys",
                   [=](index_t, key_interval k) { return key_interval{k.first, down(k.last)}; }});
    all.push_back({"mask starts at" + of_tile + ": rows see from the start of a tile of keys",
                   [=](index_t, key_interval k) { return key_interval{down(k.first), k.last}; }});
    all.push_back({"mask starts at" + of_tile + ": rows lack the keys of their first tile of keys",
                   [=](index_t, key_interval k) { return key_interval{up(k.first), k.last}; }});
    auto const queries_of = attune::detail::text("mask of a tile of ", tile, " queries: each query sees what the ");
    all.push_back({queries_of + "last one sees", [=](index_t i, key_interval k) {
                     return key_interval{k.first, k.last + (std::min)(down(i) + tile - 1, queries - 1) - i};
                   }});
    all.push_back({queries_of + "first one sees",
                   [=](index_t i, key_interval k) { return key_interval{k.first, k.last - (i - down(i))}; }});
    all.push_back({queries_of + "first one sees at its start", [=](index_t i, key_interval k) {
                     return key_interval{k.first == 0 ? 0 : k.first - (i - down(i)), k.last};
                   }});
  }
  for (index_t n = 4; n < 2 * 257; ++n) {  // known_defects has shifts by 1
    index_t const by = n % 2 == 0 ? n / 2 : -(n / 2);
    all.push_back(
        {words_of_shift(by, "end"), [=](index_t, key_interval k) { return key_interval{k.first, k.last + by}; }});
    all.push_back({words_of_shift(by, "start"), [=](index_t, key_interval k) {
                     return key_interval{k.first == 0 && by > 0 ? 0 : k.first + by, k.last};
                   }});
    all.push_back({attune::detail::text("mask shifted by ", by > 0 ? "+" : "", by), [=](index_t, key_interval k) {
                     return key_interval{k.first == 0 ? 0 : k.first + by, k.last + by};
                   }});
  }
  for (index_t key = 1; key < keys && keys <= 512; ++key) {
    all.push_back({attune::detail::text("mask ends at key ", key - 1, " in all rows that see it"),
                   [=](index_t, key_interval k) { return key_interval{k.first, (std::min)(k.last, key)}; }});
    all.push_back({attune::detail::text("mask of all rows begins at key ", key),
                   [=](index_t, key_interval k) { return key_interval{(std::max)(k.first, key), k.last}; }});
    all.push_back({attune::detail::text("all rows see keys up to ", key - 1),
                   [=](index_t, key_interval k) { return key_interval{k.first, (std::max)(k.last, key)}; }});
  }
  return all;
}

/// The outputs of one row for every range of keys that it might see.
template <class Op>
class row_by_range {
 public:
  row_by_range(sampled_call<Op> const& call, sampled_row const& r)
      : width_(std::size_t(call.p.value_width)), ground_(0), at_ground_(width_, 0) {
    auto const row = call.rows.template evaluate<double>({.all_keys = true}, r.batch, r.head, r.query);
    index_t const head = call.p.group(r.head, call.p.value_heads);
    sums_.assign((row.keys.size() + 1) * (width_ + 1), 0);
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      double const* const from = &sums_[n * (width_ + 1)];
      double* const to = &sums_[(n + 1) * (width_ + 1)];
      double const w = row.weights[n];
      to[width_] = from[width_] + w;
      for (std::size_t d = 0; d < width_; ++d)
        to[d] = from[d] + (w == 0 ? 0 : w * call.in.v(r.batch, head, row.keys[n], index_t(d)));
    }
    if constexpr (Op::has_ground_weight) {
      ground_ = row.ground_weight;
      if constexpr (Op::uses(field::v0))
        for (std::size_t d = 0; d < width_; ++d)
          at_ground_[d] =
              ground_ * attune::detail::read_shared<double>(call.in.v0, r.batch, r.head, r.query, index_t(d));
    }
  }
  /// Feature d of `out` if the row sees the keys of a range.
  double operator()(key_interval const& k, std::size_t d) const {
    double const *low = &sums_[std::size_t(k.first) * (width_ + 1)], *high = &sums_[std::size_t(k.last) * (width_ + 1)];
    double const mass = high[width_] - low[width_] + ground_;
    return mass > 0 ? (high[d] - low[d] + at_ground_[d]) / mass : 0;
  }

 private:
  std::size_t width_;
  double ground_;
  std::vector<double> at_ground_, sums_;  ///< sums_: of weights and of weighted values, up to each key
};

/// The weighted square of what sampled row number n leaves of its residual if it sees the keys of a range.
template <class Op>
double left_by(sampled_call<Op> const& call, std::size_t n, row_by_range<Op> const& row, key_interval const& k) {
  sampled_row const& r = call.sampled[n];
  double sum = 0;
  for (std::size_t d = 0; d < std::size_t(call.p.value_width); ++d) {
    double const exact = call.bounds.at_out(r.batch, r.head, r.query, index_t(d)).value;
    sum += call.seen.left(n * call.step() + d, row(k, d) - exact);
  }
  return sum;
}

/// Operators whose output is a mean of values with weights e^logit.
template <class Op>
concept MeanOfValues =
    Op::has_lse && Op::has_plain_values && !Op::has_output_gate &&
    Op::normalizer_policy::traits.family == row_family::masses &&
    Op::normalizer_policy::traits.divided_by == divisor::sum && !Op::normalizer_policy::traits.ground_mass &&
    !Op::normalizer_policy::traits.weight_factor && !Op::normalizer_policy::traits.uniform_share &&
    std::is_same_v<typename Op::length_scale_policy, length_scale::none>;

/// Rows that see one range of keys. `of`: the sampled rows to use.
/// Complexity: O(rows (Lk + ranges) Dv), ranges about 1,700 + 3 min(Lk, 512).
template <class Op>
void by_mask_edges(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  if constexpr (MeanOfValues<Op>) {
    problem_shape const& p = call.p;
    constexpr std::size_t most = 96;
    std::size_t const every = of.size() / most + 1;
    std::vector<moved_edges> const all = usual_edges(p.keys, p.queries);
    std::map<index_t, std::vector<double>> gains;  // by head
    for (std::size_t n = 0; n < of.size(); n += every) {
      sampled_row const& r = call.sampled[of[n]];
      mask_row const m = p.row(r.batch, r.head, r.query);
      key_interval const right = mask::next(call.op.mask, m, 0);
      if (right.empty() || !mask::next(call.op.mask, m, right.last).empty()) continue;
      row_by_range<Op> const row(call, r);
      auto const cost = [&](key_interval const& k) { return left_by(call, of[n], row, k); };
      double const now = cost(right);
      if (!std::isfinite(now)) continue;
      auto& by_edges = gains[r.batch * p.heads + r.head];
      by_edges.resize(all.size(), 0);
      for (std::size_t e = 0; e < all.size(); ++e) {
        key_interval k = all[e].of(r.query, right);
        k.first = std::clamp<index_t>(k.first, 0, p.keys), k.last = std::clamp<index_t>(k.last, 0, p.keys);
        double const x = k.empty() ? now : cost(k);
        by_edges[e] += std::isfinite(x) ? now - x : -now;
      }
    }
    std::vector<double> gain(all.size(), 0);
    for (auto const& [head, by_edges] : gains)
      for (std::size_t e = 0; e < all.size(); ++e) gain[e] += std::fmax(by_edges[e], 0);
    double const most_gain = *std::max_element(gain.begin(), gain.end());
    if (!(most_gain > 0)) return;
    // Of ends that explain the same, the first: the simplest.
    auto const best = std::find_if(gain.begin(), gain.end(), [&](double x) { return x > (1 - 1e-6) * most_gain; });
    moved_edges const& edges = all[std::size_t(best - gain.begin())];
    call.rows.pairs().see_between([&](index_t, index_t, index_t i, key_interval k) { return edges.of(i, k); });
    std::string const mask = words_of_mask(call.op.mask);
    call.by_change(edges.words + mask, look::mask, {});
    call.report.findings.back().chosen_from = index_t(all.size());
    call.rows.pairs().see_between(nullptr);
  }
}

/// Rows that see any other range of keys, each its own: the best first and last key of each row. Two numbers are fitted
/// for the Dv numbers of a row, so it needs 16 features.
template <class Op>
void by_free_edges(sampled_call<Op>& call, std::vector<std::size_t> const& of) {
  if constexpr (MeanOfValues<Op>) {
    problem_shape const& p = call.p;
    if (p.value_width < 16 || std::is_same_v<typename Op::mask_policy, mask::none>) return;
    std::map<std::array<index_t, 3>, key_interval> found;
    std::string examples;
    int shown = 0;
    for (std::size_t n : of) {
      sampled_row const& r = call.sampled[n];
      key_interval const right = mask::next(call.op.mask, p.row(r.batch, r.head, r.query), 0);
      if (right.empty()) continue;
      row_by_range<Op> const row(call, r);
      auto const cost = [&](key_interval const& k) { return left_by(call, n, row, k); };
      double const now = cost(right);
      if (!(now > 4 * double(p.value_width))) continue;
      key_interval best = right;
      double least = now;
      // First one end, then the other; from the right range, and from all keys.
      for (key_interval const& from : {right, key_interval{0, p.keys}, key_interval{0, right.last}}) {
        key_interval k = from;
        double at = math::infinity<double>();
        for (int turn = 0; turn < 4; ++turn) {
          key_interval closer = k;
          for (index_t j = 0; j <= p.keys; ++j) {
            key_interval const tried = turn % 2 == 0 ? key_interval{k.first, j} : key_interval{j, k.last};
            if (tried.empty()) continue;
            if (double const x = cost(tried); x < at) at = x, closer = tried;
          }
          k = closer;
        }
        if (at < 0.999 * least) least = at, best = k;
      }
      if (!(least < 0.2 * now)) continue;
      found[{r.batch, r.head, r.query}] = best;
      if (shown++ < 2)
        examples += attune::detail::text(shown == 1 ? ": query " : ", query ", r.query, " sees keys ", best.first, "..",
                                         best.last - 1, ", not ", right.first, "..", right.last - 1);
    }
    if (found.size() < 2) return;
    call.rows.pairs().see_between([&](index_t b, index_t h, index_t i, key_interval k) {
      auto const at = found.find({b, h, i});
      return at == found.end() ? k : at->second;
    });
    std::string const mask = words_of_mask(call.op.mask);
    call.by_change("mask edges" + mask + " off" + examples, look::mask, {});
    finding& f = call.report.findings.back();
    f.last_resort = true;
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call.rows.pairs().see_between(nullptr);
  }
}

}  // namespace attune::testing::detail
