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

namespace attune::testing::detail {

/// out: rows of another head, batch element or query; features in another order.
template <class Op>
void add_places_of_out(suspicions<Op>& all, sampled_call<Op> const& call) {
  struct place {
    index_t batch, head, query, feature;
  };
  auto const with = [&](std::string const& name, bool with_lse, auto const& from) {
    all.add(name, look::layout, [&call, from, with_lse](sampled_row const& r, std::vector<double>& x) {
      for (index_t d = 0; d < call.p.value_width; ++d) {
        place const at = from(place{r.batch, r.head, r.query, d});
        x.push_back(call.bounds.at_out(at.batch, at.head, at.query, at.feature).value -
                    call.bounds.at_out(r.batch, r.head, r.query, d).value);
      }
      place const at = from(place{r.batch, r.head, r.query, 0});
      if (!call.given.lse().empty())
        x.push_back(with_lse ? call.bounds.at_lse(at.batch, at.head, at.query).value - call.exact_lse(r).value : 0);
      if (!call.given.ground_weight().empty()) x.push_back(0);
    });
  };
  index_t const B = call.p.batch, H = call.p.heads, Lq = call.p.queries, Dv = call.p.value_width;
  for (bool lse : {false, true}) {
    if (lse && (call.given.lse().empty() || !Op::has_lse)) break;
    std::string const what = lse ? "out and lse" : "out";
    if (H > 1) {
      with(what + " of the next head", lse, [=](place x) { return x.head = (x.head + 1) % H, x; });
      with(what + " of the head before", lse, [=](place x) { return x.head = (x.head + H - 1) % H, x; });
      with(what + " of the heads in reverse order", lse, [=](place x) { return x.head = H - 1 - x.head, x; });
    }
    if (B > 1) with(what + " of the next batch element", lse, [=](place x) { return x.batch = (x.batch + 1) % B, x; });
    if (Lq > 1) {
      with(what + " of the next query", lse, [=](place x) { return x.query = (std::min)(x.query + 1, Lq - 1), x; });
      with(what + " of the query before", lse,
           [=](place x) { return x.query = (std::max<index_t>)(x.query - 1, 0), x; });
      with(what + " of the queries in reverse order", lse, [=](place x) { return x.query = Lq - 1 - x.query, x; });
    }
  }
  auto const features = [&](std::string const& order, auto const& from) {
    with("features of v or out " + order, false, [=](place x) { return x.feature = from(x.feature), x; });
  };
  features("in reverse order", [=](index_t d) { return Dv - 1 - d; });
  features("moved by one", [=](index_t d) { return (d + 1) % Dv; });
  features("moved by one back", [=](index_t d) { return (d + Dv - 1) % Dv; });
  if (Dv % 2 == 0) {
    features("with exchanged halves", [=](index_t d) { return (d + Dv / 2) % Dv; });
    features("with exchanged neighbors", [](index_t d) { return d ^ 1; });
    features("in two interleaved halves", [=](index_t d) { return d % 2 * (Dv / 2) + d / 2; });
    features("with the even ones first", [=](index_t d) { return d < Dv / 2 ? 2 * d : 2 * (d - Dv / 2) + 1; });
  }
  for (index_t n : {4, 8, 16, 32})
    if (Dv % (2 * n) == 0)
      features(attune::detail::text("with exchanged groups of ", n), [=](index_t d) { return d ^ n; });
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
