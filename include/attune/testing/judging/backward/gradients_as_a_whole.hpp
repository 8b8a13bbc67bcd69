// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_lost_keys(call)    "keys missing in dk: 40..44"      by_places(call)    "dq of the next head"
//
// For a verdict on gradients that is already FAIL: are rows of dk or dv missing or there twice, are right numbers at
// other places, or do several gradients have a factor in common?
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/backward/gradient_call.hpp>
#include <attune/testing/judging/backward/row_regions.hpp>
#include <attune/testing/judging/defects/defect.hpp>
#include <attune/testing/judging/place_maps.hpp>

namespace attune::testing::detail {

/// The exact gradients by `of`, and 0 elsewhere.
template <class Op>
std::vector<double> exact_gradients(gradient_call<Op> const& call, std::vector<field> const& of) {
  std::vector<double> to;
  for (auto const& [name, x] : call.given.all()) {
    bool const in = name.is_input() && std::find(of.begin(), of.end(), name.input) != of.end();
    for (double y : array_of(call.exact, name).values) to.push_back(in ? y : 0);
  }
  return to;
}
/// How much of each key's row is off, from the gradients by `of`.
template <class Op>
std::vector<row_share> shares_of_keys(gradient_call<Op> const& call, std::vector<field> const& of) {
  std::vector<row_share> to;
  for (field f : of) {
    auto const& exact = call.exact.of(f);
    std::size_t const width = std::size_t(exact.extents.feature), first = call.first_of(f);
    to.resize(exact.values.size() / width);
    for (std::size_t n = 0; n < exact.values.size(); ++n) {
      double const x = exact.values[n], m = call.seen.metric(first + n);
      if (!std::isfinite(x)) continue;
      to[n / width].precision += x * x * m;
      to[n / width].share += x * m * call.seen.residual(first + n);
    }
  }
  for (row_share& x : to) x.share = x.precision > 0 ? x.share / x.precision : 0;
  return to;
}

/// Rows of dk, of dv, or of both.
template <class Op>
void by_lost_keys(gradient_call<Op>& call) {
  auto const given = [&](field f) { return call.given.all().count(f) > 0; };
  auto const judge = [&](std::vector<field> const& of, std::string const& name) {
    shape const& e = call.exact.of(of.front()).extents;
    row_regions const places({e.batch, e.head, e.position, 1}, "key", "key head");
    auto const shares = shares_of_keys(call, of);
    for (double by : {-1., 1.}) {
      auto const region = places.best(shares, by);
      if (region.gain == 0) continue;
      finding f;
      bool const some = region.last - region.first < e.position;
      f.name = (by < 0 ? "keys missing in " : "keys counted twice in ") + name +
               (some ? ": " + row_regions::words(region.first, region.last, "", "") : "");
      f.look_at = look::tiles;
      f.chosen_from = e.position;
      std::vector<double> along = exact_gradients(call, of);
      for (field one : of) {
        std::size_t const width = std::size_t(call.exact.of(one).extents.feature), first = call.first_of(one);
        for (std::size_t n = 0; n < call.exact.of(one).values.size(); ++n)
          along[first + n] *= region.has[n / width] ? by : 0;
      }
      f = call.seen.judged(f, along, false);
      f.where = region.members;
      f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
      call.report.findings.push_back(std::move(f));
    }
  };
  if (given(field::k)) judge({field::k}, "dk");
  if (given(field::v)) judge({field::v}, "dv");
  if (given(field::k) && given(field::v) && call.p.key_heads == call.p.value_heads)
    judge({field::k, field::v}, "dk and dv");
}

/// Right numbers of one gradient at other places.
template <class Op>
void by_places(gradient_call<Op>& call) {
  for (auto const& [name, x] : call.given.all()) {
    if (!name.is_input()) continue;
    auto const& exact = call.exact.of(name.input);
    bool const queries = side_of(name.input) == input_side::query;
    for (place_map const& m : place_maps(exact.extents, queries ? "head" : "key head", queries ? "query" : "key")) {
      auto other = exact;
      shape const& e = exact.extents;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t d = 0; d < e.feature; ++d) {
              element_place const at = m.from({b, h, i, d});
              other(b, h, i, d) = exact(at.batch, at.head, at.row, at.feature);
            }
      std::vector<double> along(call.seen.size(), 0);
      std::size_t const first = call.first_of(name.input);
      for (std::size_t n = 0; n < exact.values.size(); ++n)
        if (other.values[n] != exact.values[n]) along[first + n] = other.values[n] - exact.values[n];
      finding f;
      f.name = name.text() + " " + m.name;
      f.look_at = look::layout;
      f = call.seen.judged(f, along);
      f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
      call.report.findings.push_back(std::move(f));
    }
  }
}

/// A factor that several gradients have.
template <class Op>
void by_common_factors(gradient_call<Op>& call) {
  auto const judge = [&](std::vector<field> const& of, char const* name) {
    for (field f : of)
      if (call.given.all().count(f) == 0) return;
    finding f;
    f.name = name;
    f.look_at = "what multiplies these gradients alone";
    f.parameter = f.relative = true;
    f = call.seen.judged(f, exact_gradients(call, of));
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call.report.findings.push_back(std::move(f));
  };
  judge({field::q, field::k}, "dq and dk");
  judge({field::k, field::v}, "dk and dv");
}

}  // namespace attune::testing::detail
