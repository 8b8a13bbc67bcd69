// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// cope (cases/README.md, section 4): a row of numbers read at a sum of gates, on the executor itself.
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

#include "../support/cope.hpp"
#include "computed.hpp"

namespace attune::golden {
namespace {

using instances::backend;

/// A case in memory.
template <class T>
struct cope_case {
  std::vector<T> q, k, v, z, gates, d_out;
  std::vector<double> rate;
  std::vector<unsigned char> seen;
  index_t queries, keys, width, value_width, entries, offset = 0;
  parameter scale;

  explicit cope_case(golden_case const& c) {
    reader<T> const read(c);
    q = read("q"), k = read("k"), v = read("v"), z = read("z"), d_out = read("do");
    if (read.has("gates")) gates = read("gates");
    if (read.has("rate")) rate = c.inputs.at("rate").data;
    for (double const x : c.inputs.at("mask").data) seen.push_back(x != 0);
    width = read.width("q"), value_width = read.width("v"), entries = read.width("z");
    queries = index_t(q.size()) / width, keys = index_t(k.size()) / width;
    if (auto const given = numeric_param(c, "scale")) scale = *given;
    auto const position = c.params.at("mask").value("offset", nlohmann::json());
    if (!position.is_number_integer()) throw unplannable("params.mask.offset is not an integer");
    offset = position.template get<index>();
  }
  attune::tensor<T const> view(std::vector<T> const& x, index_t rows) const {
    return {x.data(), {1, 1, rows, index_t(x.size()) / rows}};
  }
};

template <class View, class T, class Exec, class Op>
results computed_by(Exec const& exec, cope_case<T> const& c, Op const& op) {
  auto const make = [&]<field F>() -> View {
    switch (F) {
      case field::q:
        return c.view(c.q, c.queries);
      case field::k:
        return c.view(c.k, c.keys);
      case field::v:
        return c.view(c.v, c.keys);
      case field::bias:
        return c.view(c.gates, c.queries);
      default:
        return c.view(c.z, c.queries);
    }
  };
  auto const in = make_inputs<Op, View>(make, c.offset);
  results got;
  shape const out_rows{1, 1, c.queries, c.value_width};
  if constexpr (std::is_same_v<View, any_tensor>) {
    auto const dense = forward(exec, op, in);
    for (index_t i = 0; i < c.queries; ++i) {
      for (index_t d = 0; d < c.value_width; ++d) got["o"].push_back(double(dense.heads[0].out(i, d)));
      got["lse"].push_back(double(dense.heads[0].lse(i)));
    }
  } else {
    std::vector<T> out(std::size_t(out_rows.size())), lse(std::size_t(c.queries));
    forward(
        exec, op, in,
        {.out = attune::tensor<T>(out, out_rows), .lse = natural_lse<T>(attune::tensor<T>(lse, {1, 1, c.queries, 1}))});
    got["o"] = plain(out), got["lse"] = plain(lse);
  }
  auto const g = vjp(exec, op, in, cotangents<Op, View>{.out = attune::tensor<T const>(c.d_out, out_rows)});
  got["d_q"] = plain(g.of(field::q).values), got["d_k"] = plain(g.of(field::k).values);
  got["d_v"] = plain(g.of(field::v).values), got["d_z"] = plain(g.of(field::position_scores).values);
  if (!c.rate.empty()) got["d_rate"] = plain(g.parameter("rate").values);
  return got;
}
template <class View, class T, class Exec>
results computed_by(Exec const& exec, cope_case<T> const& c) {
  mask::runtime const seen{nullptr, {}, c.seen.data(), {1, 1, c.queries, c.keys}};
  if (!c.rate.empty()) return computed_by<View>(exec, c, attention(test::cope{c.rate[0], c.scale}, seen));
  return computed_by<View>(exec, c, attention(kernel::dot_product{} + test::row_at_given_index{}, seen));
}

}  // namespace

outcome run_cope(golden_case const& c, registry const&, backend executor) {
  auto const got = [&] {
    switch (executor) {
      case backend::cpu_float:
        return computed_by<attune::tensor<float const>>(cpu<float>(1), cope_case<float>(c));
      case backend::cpu_double:
        if constexpr (instances::has_double)
          return computed_by<attune::tensor<double const>>(cpu<double>(1), cope_case<double>(c));
        return results{};
      case backend::reference_50:
        return computed_by<any_tensor>(reference<instances::digits>{}, cope_case<double>(c));
      case backend::reference_double:
        break;
    }
    return computed_by<any_tensor>(reference<double>{}, cope_case<double>(c));
  }();
  return compared(c, got, 16, executor);  // no logit is above 15
}

}  // namespace attune::golden
