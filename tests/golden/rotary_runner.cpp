// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// rotary (cases/README.md, section 4): cosines and sines of frequencies and positions, then the operator, on the
// executor itself. The angles are doubles, so 50 digits promise no more than double does.
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

#include "computed.hpp"

namespace attune::golden {
namespace {

using instances::backend;

/// A case in memory, and its angles.
template <class T>
struct rotary_case {
  std::vector<T> q, k, v, d_out;
  std::vector<unsigned char> seen;
  std::vector<double> place_q, place_k;
  index_t queries, keys, width, value_width, offset = 0;
  rotary_frequencies frequencies;
  rotary_layout layout = rotary_layout::half;
  parameter scale;

  explicit rotary_case(golden_case const& c) {
    reader<T> const read(c);
    q = read("q"), k = read("k"), v = read("v"), d_out = read("do");
    for (double const x : c.inputs.at("mask").data) seen.push_back(x != 0);
    width = read.width("q"), value_width = read.width("v");
    queries = index_t(q.size()) / width, keys = index_t(k.size()) / width;
    frequencies.values = c.inputs.at("w").data;
    auto const named = text_param(c, "layout");
    if (!named || (*named != "half" && *named != "interleaved")) throw unplannable("has no layout that is known");
    if (*named == "interleaved") layout = rotary_layout::interleaved;
    if (auto const given = numeric_param(c, "scale")) scale = *given;
    auto const position = c.params.at("mask").value("offset", nlohmann::json());
    if (!position.is_number_integer()) throw unplannable("params.mask.offset is not an integer");
    offset = position.template get<index>();
    bool const given = read.has("pos_q");
    for (index_t i = 0; i < queries; ++i)
      place_q.push_back(given ? c.inputs.at("pos_q").data[std::size_t(i)] : double(i + offset));
    for (index_t j = 0; j < keys; ++j) place_k.push_back(given ? c.inputs.at("pos_k").data[std::size_t(j)] : double(j));
  }
};

template <class T, class Exec, class View>
results computed_by(Exec const& exec, rotary_case<T> const& c) {
  rotary_angles<double> const of_queries(c.frequencies,
                                         attune::tensor<double const>(c.place_q, shape{1, 1, c.queries, 1})),
      of_keys(c.frequencies, attune::tensor<double const>(c.place_k, shape{1, 1, c.keys, 1}));
  auto const op = attention(kernel::rotary{.angles = {of_queries, of_keys}, .layout = c.layout, .scale = c.scale},
                            mask::runtime{nullptr, {}, c.seen.data(), {1, 1, c.queries, c.keys}});
  using op_type = std::remove_const_t<decltype(op)>;
  shape const rows{1, 1, c.queries, c.width}, out_rows{1, 1, c.queries, c.value_width};
  inputs<op_type, View> const in{.q = attune::tensor<T const>(c.q, rows),
                                 .k = attune::tensor<T const>(c.k, {1, 1, c.keys, c.width}),
                                 .v = attune::tensor<T const>(c.v, {1, 1, c.keys, c.value_width}),
                                 .offset = c.offset};
  results got;
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
  auto const g = vjp(exec, op, in, cotangents<op_type, View>{.out = attune::tensor<T const>(c.d_out, out_rows)});
  got["d_q"] = plain(g.of(field::q).values), got["d_k"] = plain(g.of(field::k).values);
  got["d_v"] = plain(g.of(field::v).values);
  return got;
}

}  // namespace

outcome run_rotary(golden_case const& c, registry const&, backend executor) {
  auto const got = [&] {
    switch (executor) {
      case backend::cpu_float:
        return computed_by<float, cpu<float>, attune::tensor<float const>>(cpu<float>(1), rotary_case<float>(c));
      case backend::cpu_double:
        return computed_by<double, cpu<double>, attune::tensor<double const>>(cpu<double>(1), rotary_case<double>(c));
      case backend::reference_50:
        return computed_by<double, reference<instances::digits>, any_tensor>({}, rotary_case<double>(c));
      case backend::reference_double:
        break;
    }
    return computed_by<double, reference<double>, any_tensor>({}, rotary_case<double>(c));
  }();
  backend const promised = executor == backend::reference_50 ? backend::cpu_double : executor;
  return compared(c, got, 16, promised);  // no logit is above 15
}

}  // namespace attune::golden
