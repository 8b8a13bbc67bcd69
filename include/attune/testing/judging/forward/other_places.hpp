// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   add_places_of_out(suspicions, call)   "out of the next head"      add_lse_alone(suspicions, call)
//
// Right numbers at wrong places: rows of out and lse that are written elsewhere, and features in another order.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <attune/testing/judging/forward/suspicion.hpp>
#include <attune/testing/judging/place_maps.hpp>

namespace attune::testing::detail {

/// out, alone or with lse: rows and features at other places.
template <class Op>
void add_places_of_out(suspicions<Op>& all, sampled_call<Op> const& call) {
  problem_shape const& p = call.p;
  auto const with = [&](std::string name, bool with_lse, place_map const& m) {
    all.add(
        std::move(name), look::layout, [&call, from = m.from, with_lse](sampled_row const& r, std::vector<double>& x) {
          for (index_t d = 0; d < call.p.value_width; ++d) {
            element_place const at = from({r.batch, r.head, r.query, d});
            x.push_back(call.bounds.at_out(at.batch, at.head, at.row, at.feature).value -
                        call.bounds.at_out(r.batch, r.head, r.query, d).value);
          }
          element_place const at = from({r.batch, r.head, r.query, 0});
          if (!call.given.lse().empty())
            x.push_back(with_lse ? call.bounds.at_lse(at.batch, at.head, at.row).value - call.exact_lse(r).value : 0);
          if (!call.given.ground_weight().empty()) x.push_back(0);
        });
  };
  for (place_map const& m : place_maps({p.batch, p.heads, p.queries, p.value_width}, "head", "query")) {
    with((m.features ? "v or out " : "out ") + m.name, false, m);
    if (Op::has_lse && !m.features && !call.given.lse().empty()) with("out and lse " + m.name, true, m);
  }
}

/// lse: of another row, without a part, or in another form.
template <class Op>
void add_lse_alone(suspicions<Op>& all, sampled_call<Op> const& call) {
  if constexpr (Op::has_lse) {
    if (call.given.lse().empty() || !call.seen.must_be_explained(1)) return;
    auto const with = [&](char const* name, auto const& number) {
      all.add(name, look::lse, [&call, number](sampled_row const& r, std::vector<double>& x) {
        x.resize(x.size() + std::size_t(call.p.value_width), 0);
        double const exact = call.exact_lse(r).value, y = number(r, exact);
        x.push_back(y == exact ? 0 : y - exact);
        if (!call.given.ground_weight().empty()) x.push_back(0);
      });
    };
    auto const of = [&call](index_t b, index_t h, index_t i) { return call.bounds.at_lse(b, h, i).value; };
    auto const largest = [&call](sampled_row const& r) {
      double most = 0;
      for (double w : call.rows.template evaluate<double>({}, r.batch, r.head, r.query).weights)
        most = std::fmax(most, w);
      return std::log(most);  // of a weight: the largest logit minus lse
    };
    index_t const B = call.p.batch, H = call.p.heads, Lq = call.p.queries;
    with("lse of the next head", [=](sampled_row const& r, double) { return of(r.batch, (r.head + 1) % H, r.query); });
    with("lse of the head before",
         [=](sampled_row const& r, double) { return of(r.batch, (r.head + H - 1) % H, r.query); });
    with("lse of the next batch element",
         [=](sampled_row const& r, double) { return of((r.batch + 1) % B, r.head, r.query); });
    with("lse of the next query",
         [=](sampled_row const& r, double) { return of(r.batch, r.head, (std::min)(r.query + 1, Lq - 1)); });
    with("lse of the query before",
         [=](sampled_row const& r, double) { return of(r.batch, r.head, (std::max<index_t>)(r.query - 1, 0)); });
    with("lse of the first query of each tile of 64",
         [=](sampled_row const& r, double) { return of(r.batch, r.head, r.query / 64 * 64); });
    with("largest logit instead of lse", [=](sampled_row const& r, double lse) { return lse + largest(r); });
    with("largest logit missing from lse", [=](sampled_row const& r, double) { return -largest(r); });
    with("lse with the wrong sign", [](sampled_row const&, double lse) { return -lse; });
    with("sum of exponentials instead of lse", [](sampled_row const&, double lse) { return std::exp(lse); });
    with("lse is 0", [](sampled_row const&, double) { return 0.; });
  }
}

}  // namespace attune::testing::detail
