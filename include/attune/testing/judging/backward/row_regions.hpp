// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row_regions({B, H, Lq, 1}, "query", "head").best(shares, 1)     {rows, "in head 3", factor}
//
// Which rows of a tensor have a defect? Each row says how much of it the residual shows there. The keys' gradients are
// sums over rows, so that no part of dk or dv shows which queries are wrong.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/testing/judging/regions.hpp>

namespace attune::testing::detail {

/// The estimate of one row.
struct row_share {
  double share = 0,   ///< 0: the row is right; 1: it has the whole defect
      precision = 0;  ///< 1 / variance of the estimate
};

class row_regions {
 public:
  /// Rows that have a defect.
  struct region {
    std::vector<bool> has;        ///< by row (batch, head, query)
    std::string where = {};       ///< "in head 3", "in queries 16..31"; "": everywhere
    index_t first = 0, last = 0;  ///< the range of positions
    std::string members = {};     ///< the same without the positions
    double factor = 0, gain = 0;  ///< gain: the part of sum precision * share^2 that it explains
  };

  /// rows: (batch, head, position, 1). position: "query" or "key"; head: "head" or "key head".
  row_regions(shape const& rows, char const* position, char const* head) : rows_(rows), position_(position) {
    regions_.add("", rows, position, head);
  }

  /// All rows, one batch element, one head, or half of each tile; a range of their positions, if the rest is right.
  /// shares: by row. factor: how much of the defect a wrong row has; none: an unknown factor.
  /// Complexity: O(rows + regions * min(Lq, 512)^2).
  region best(std::vector<row_share> const& shares, std::optional<double> factor) const {
    std::vector<std::vector<sums>> of(std::size_t(regions_.count()), std::vector<sums>(std::size_t(rows_.position)));
    std::vector<int> ids;
    for_each_row([&](std::size_t row, index_t b, index_t h, index_t i) {
      ids.clear();
      regions_.of(0, b, h, i, ids);
      for (int id : ids) of[std::size_t(id)][std::size_t(i)].add(shares[row]);
    });
    region best;
    int chosen = 0;
    auto const better = [&](int id, index_t first, index_t last, sums const& s, double by) {
      double const x = factor            ? *factor
                       : s.precision > 0 ? s.product / s.precision
                                         : 0,
                   gain = x * (2 * s.product - x * s.precision);
      if (!(gain > by * best.gain + 9)) return;
      best.gain = gain, best.factor = x, best.first = first, best.last = last, chosen = id;
    };
    for (int id = 0; id < regions_.count(); ++id) {
      sums all;
      for (sums const& s : of[std::size_t(id)]) all.add(s);
      if (is_used(id)) better(id, 0, rows_.position, all, 1.01);
    }
    index_t const step = (rows_.position + 511) / 512;
    for (int id = 0; id < regions_.count(); ++id) {
      auto const by = regions_.at(id).by;
      if (!is_used(id) || (by != regions::kind::all && by != regions::kind::batch && by != regions::kind::head))
        continue;
      for (index_t first = 0; first < rows_.position; first += step) {
        sums s;
        for (index_t last = first + 1; last <= rows_.position; ++last) {
          s.add(of[std::size_t(id)][std::size_t(last - 1)]);
          if ((last % step == 0 || last == rows_.position) && last - first < rows_.position)
            better(id, first, last, s, 1.01);
        }
      }
    }
    best.has.assign(shares.size(), false);
    for_each_row([&](std::size_t row, index_t b, index_t h, index_t i) {
      ids.clear();
      regions_.of(0, b, h, i, ids);
      bool const member = chosen == 0 || std::find(ids.begin(), ids.end(), chosen) != ids.end();
      best.has[row] = best.gain > 0 && member && i >= best.first && i < best.last;
    });
    if (best.gain == 0) return best;
    best.members = chosen == 0 ? "" : regions_.words({chosen});
    best.where = best.members;
    if (best.last - best.first < rows_.position)
      best.where += (best.where.empty() ? "in " : ", ") + (position_ == "query"
                                                               ? words(best.first, best.last, "query ", "queries ")
                                                               : words(best.first, best.last, "key ", "keys "));
    return best;
  }
  /// "queries 3..5", "query 3".
  static std::string words(index_t first, index_t last, char const* one, char const* more) {
    return (last - first == 1 ? one : more) +
           ranges(std::size_t(last), [&](std::size_t n) { return index_t(n) >= first; });
  }

 private:
  struct sums {
    double product = 0, precision = 0;
    void add(row_share const& x) { product += x.precision * x.share, precision += x.precision; }
    void add(sums const& x) { product += x.product, precision += x.precision; }
  };
  bool is_used(int id) const {
    auto const by = regions_.at(id).by;
    return by != regions::kind::tensor && !regions::is_range(by);
  }
  template <class Visit>
  void for_each_row(Visit const& visit) const {
    std::size_t row = 0;
    for (index_t b = 0; b < rows_.batch; ++b)
      for (index_t h = 0; h < rows_.head; ++h)
        for (index_t i = 0; i < rows_.position; ++i) visit(row++, b, h, i);
  }

  shape rows_;
  std::string position_;
  regions regions_;
};

}  // namespace attune::testing::detail
