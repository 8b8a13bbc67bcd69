// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (std::string const& line : differences({rows, keys, seen, exact}, unit)) ...
//
// How the weights of a kernel differ from the exact ones, as text. The pattern is measured, nothing is assumed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/number_text.hpp>
#include <attune/core/tensor.hpp>

namespace attune::testing::detail {

using attune::detail::number_text, attune::detail::text;

/// The weights of one head, (rows, keys), row by row.
struct seen_weights {
  index_t rows = 0, keys = 0;
  std::vector<double> seen, exact;

  double got(index_t i, index_t j) const { return seen[std::size_t(i * keys + j)]; }
  double right(index_t i, index_t j) const { return exact[std::size_t(i * keys + j)]; }
};

/// "0..3, 8, 12..15" of increasing numbers. Of many ranges the first ones.
inline std::string range_words(std::vector<index_t> const& numbers, std::size_t most = 6) {
  std::vector<std::pair<index_t, index_t>> found;
  for (index_t n : numbers)
    if (!found.empty() && found.back().second == n - 1)
      found.back().second = n;
    else
      found.emplace_back(n, n);
  std::string all;
  for (std::size_t r = 0; r < (std::min)(found.size(), most); ++r) {
    all += text(r ? ", " : "", found[r].first);
    if (found[r].second > found[r].first) all += text("..", found[r].second);
  }
  return found.size() > most ? text(all, ", ... (", numbers.size(), " in all)") : all;
}
/// Some keys of those that were measured: by their residue, if that tells them, else as ranges. Both increase.
inline std::string key_words(std::vector<index_t> const& chosen, std::vector<index_t> const& among) {
  if (chosen == among) return "all keys";
  index_t const count = index_t(chosen.size());
  bool const whole = chosen.back() - chosen.front() + 1 == count;
  for (index_t m = 2; !whole && m <= (among.back() - among.front() + 1) / 2; ++m) {
    std::set<index_t> residues;
    for (index_t j : chosen) residues.insert(j % m);
    if (2 * index_t(residues.size()) > m || count <= index_t(residues.size())) continue;
    if (std::count_if(among.begin(), among.end(), [&](index_t j) { return residues.count(j % m) > 0; }) != count)
      continue;
    return text("keys j with j mod ", m, residues.size() == 1 ? " = " : " in ",
                range_words({residues.begin(), residues.end()}), " (", range_words(chosen, 3), ")");
  }
  return (count > 1 ? "keys " : "key ") + range_words(chosen);
}

/// Finds the patterns.
class weight_patterns {
 public:
  weight_patterns(seen_weights const& w, double unit)
      : w_(w), unit_(unit), near_((std::max)(6 * unit, 1e-3)), lost_(std::size_t(w.keys), false) {
    for (index_t j = 0; j < w.keys; ++j)
      if (any_row([&](index_t i) { return w_.right(i, j) > 10 * tiny; })) measured_.push_back(j);
  }

  std::vector<std::string> operator()() {
    for (double x : w_.seen)
      if (!std::isfinite(x)) return {"weights are NaN or infinite"};
    bool any = false;
    for (std::size_t n = 0; n < w_.seen.size(); ++n)
      any = any ||
            !(std::fabs(w_.seen[n] - w_.exact[n]) <= near_ * (std::max)(std::fabs(w_.seen[n]), w_.exact[n]) + tiny);
    double const sum = std::accumulate(w_.seen.begin(), w_.seen.end(), 0.),
                 right = std::accumulate(w_.exact.begin(), w_.exact.end(), 0.), ratio = sum / (std::max)(right, tiny);
    bool const off = std::fabs(ratio - 1) > (any ? near_ : (std::max)(unit_ / 4, 1e-4));  // rounding averages out
    if (any) {
      if (!edge(true, true) && !edge(false, true)) lost_keys();
      edge(true, false);
      edge(false, false);
      factors();
    }
    if (off) lines_.push_back("the weights sum to " + number_text(ratio, 5) + " times the exact sums");
    if (any) largest();
    return lines_;
  }

 private:
  static constexpr double tiny = 1e-6;  // smaller weights tell nothing: 16 bits may lose them

  template <class Test>
  bool any_row(Test const& test) const {
    for (index_t i = 0; i < w_.rows; ++i)
      if (test(i)) return true;
    return false;
  }
  static std::string plus(index_t n) { return n == 0 ? "i" : text("i ", n > 0 ? "+ " : "- ", n > 0 ? n : -n); }

  /// Keys whose weight is 0 wherever it should not be.
  void lost_keys() {
    std::vector<index_t> found;
    bool sure = false;
    for (index_t j : measured_) {
      index_t seen = 0, gone = 0;
      for (index_t i = 0; i < w_.rows; ++i)
        if (w_.right(i, j) > 10 * tiny) {
          seen += 1;
          gone += std::fabs(w_.got(i, j)) < 1e-3 * w_.right(i, j);
        }
      if (gone < seen) continue;
      found.push_back(j);
      sure = sure || seen >= (std::min)(index_t(2), w_.rows);
    }
    if (!sure || found == measured_) return;
    for (index_t j : found) lost_[std::size_t(j)] = true;
    lines_.push_back(key_words(found, measured_) + ": weight 0 in all queries that see them");
  }

  /// A line about the last (first) key that each row sees. constant: asks whether all rows agree, and adds no line.
  bool edge(bool last, bool constant) {
    struct row {
      index_t query, right, got;
    };
    std::vector<row> told;
    index_t outermost = -1;
    for (index_t i = 0; i < w_.rows; ++i) {
      row r{i, -1, -1};
      for (index_t n = 0; n < w_.keys; ++n) {
        index_t const j = last ? n : w_.keys - 1 - n;
        if (lost_[std::size_t(j)]) continue;
        outermost = j;
        if (w_.right(i, j) > 0) r.right = j;
        if (w_.got(i, j) > tiny) r.got = j;
      }
      if (r.right >= 0 && r.got >= 0 && w_.right(i, r.right) > tiny) told.push_back(r);
    }
    std::vector<row> wrong, free;
    std::copy_if(told.begin(), told.end(), std::back_inserter(wrong), [](row const& r) { return r.got != r.right; });
    if (wrong.empty()) return false;
    bool const more = std::all_of(wrong.begin(), wrong.end(), [&](row const& r) { return (r.got > r.right) == last; });
    for (row const& r : told)
      if (!more || r.right != outermost) free.push_back(r);  // a row that sees the outermost key sees no more
    auto const all = [&](auto const& of) {
      return !free.empty() && std::all_of(free.begin(), free.end(), [&](row const& r) { return of(r) == of(free[0]); });
    };
    std::string const side = last ? "up to " : "from ", on = last ? "" : " on";
    if (all([](row const& r) { return r.got - r.right; })) {
      if (constant) return true;
      row const& r = free[0];
      if (all([](row const& x) { return x.right - x.query; }))
        lines_.push_back("query i sees keys " + side + plus(r.got - r.query) + on + ", not " + plus(r.right - r.query));
      else if (all([](row const& x) { return x.right; }))
        lines_.push_back(text("queries see keys ", side, r.got, on, ", not ", r.right));
      else
        lines_.push_back(text("the ", last ? "last" : "first", " key that a query sees is ", std::abs(r.got - r.right),
                              r.got > r.right ? " too late" : " too early"));
      return true;
    }
    if (constant || double(wrong.size()) < (std::max)(2., 0.02 * double(told.size()))) return false;
    auto const off = [](row const& r) { return std::abs(r.got - r.right); };
    row const& most =
        *std::max_element(wrong.begin(), wrong.end(), [&](row const& a, row const& b) { return off(a) < off(b); });
    std::vector<index_t> queries;
    for (row const& r : wrong) queries.push_back(r.query);
    bool const one =
        std::all_of(wrong.begin(), wrong.end(), [&](row const& r) { return r.got - r.query == most.got - most.query; });
    std::string const place = one ? ": it is " + plus(most.got - most.query) + " for query i" : "";
    lines_.push_back(text("the ", last ? "last" : "first", " key that a query sees is off by up to ", off(most), place,
                          " in queries ", range_words(queries), ": query ", most.query, " sees keys ", side, most.got,
                          ", not ", most.right));
    return true;
  }

  static double median(std::vector<double> x) {
    std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
    return x[x.size() / 2];
  }
  /// Keys whose weights are a multiple of the exact ones, compared with other keys.
  void factors() {
    std::vector<std::vector<double>> ratios(std::size_t(w_.keys));
    for (index_t i = 0; i < w_.rows; ++i) {
      double base = 0;
      for (index_t j = 0; j < w_.keys; ++j) {
        if (!(w_.right(i, j) > tiny && w_.got(i, j) > tiny)) continue;
        double const ratio = w_.got(i, j) / w_.right(i, j);
        if (base == 0) base = ratio;
        ratios[std::size_t(j)].push_back(ratio / base);
      }
    }
    std::vector<std::pair<index_t, double>> all;
    for (index_t j = 0; j < w_.keys; ++j)
      if (!ratios[std::size_t(j)].empty()) all.emplace_back(j, median(ratios[std::size_t(j)]));
    std::vector<index_t> keys, among;
    std::vector<double> values;
    auto const select = [&] {
      keys.clear(), values.clear(), among.clear();
      for (auto const& [j, x] : all) {
        among.push_back(j);
        if (std::fabs(x - 1) > 2 * near_) keys.push_back(j), values.push_back(x);
      }
    };
    select();
    if (3 * keys.size() > 2 * all.size()) {  // the first keys are the odd ones
      double const middle = median(values);
      for (auto& one : all) one.second /= middle;
      select();
    }
    if (keys.empty()) return;
    auto const [low, high] = std::minmax_element(values.begin(), values.end());
    std::string const by = *high - *low < 6 * near_ * *high ? number_text(median(values), 3)
                                                            : number_text(*low, 3) + " to " + number_text(*high, 3);
    lines_.push_back(key_words(keys, among) + ": weights times " + by + ", compared with the other keys");
  }

  /// The largest differences of two rows.
  void largest() {
    auto const off = [&](index_t i, index_t j) { return std::fabs(w_.got(i, j) - w_.right(i, j)); };
    auto const of_row = [&](index_t i) {
      double most = 0;
      for (index_t j = 0; j < w_.keys; ++j) most = (std::max)(most, off(i, j));
      return most;
    };
    for (index_t i : first_of(w_.rows, 2, of_row)) {
      std::string line;
      for (index_t j : first_of(w_.keys, 3, [&](index_t k) { return off(i, k); }))
        if (off(i, j) > 0)
          line += text(line.empty() ? " " : ", ", j, " ", number_text(w_.got(i, j), 3), " (exact ",
                       number_text(w_.right(i, j), 3), ")");
      if (!line.empty()) lines_.push_back(text("query ", i, ": keys", line));
    }
  }
  /// The numbers below n with the largest sizes, in their order.
  template <class Size>
  static std::vector<index_t> first_of(index_t n, index_t count, Size const& size) {
    std::vector<index_t> all(std::size_t(n), 0);
    std::iota(all.begin(), all.end(), index_t(0));
    std::stable_sort(all.begin(), all.end(), [&](index_t a, index_t b) { return size(a) > size(b); });
    all.resize(std::size_t((std::min)(n, count)));
    std::sort(all.begin(), all.end());
    return all;
  }

  seen_weights const& w_;
  double unit_, near_;
  std::vector<bool> lost_;
  std::vector<index_t> measured_;
  std::vector<std::string> lines_;
};

/// Lines about the weights of one head; none if every weight is right. unit: of the format that the kernel stores.
inline std::vector<std::string> differences(seen_weights const& w, double unit) { return weight_patterns(w, unit)(); }

}  // namespace attune::testing::detail
