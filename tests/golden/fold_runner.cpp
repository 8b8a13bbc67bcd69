// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// differential and fold_two (cases/README.md, section 6.1): folds of heads and of operators, on every executor.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies/mask/predicate.hpp>

#include "computed.hpp"

namespace attune::golden {
namespace {

using instances::backend;

/// The mask of a case serves all heads.
struct visible_in {
  double const* of;
  index_t keys;
  bool operator()(mask_row const& r, index_t j) const { return of[r.query * keys + j] == 1; }
};

/// [heads, length, width] -> (1, heads, length, width)
shape shape_of(tensor const& x) { return {1, x.shape.at(0), x.shape.at(1), x.shape.at(2)}; }

std::vector<double> doubles(auto const& values) {
  std::vector<double> to;
  for (auto const& x : values) to.push_back(static_cast<double>(x));
  return to;
}

/// One case with views of E, on an executor that computes in T.
template <class E, class Exec, class Op>
results run_fold(golden_case const& c, Exec const& exec, Op const& op,
                 std::vector<std::pair<std::string, std::string>> const& learned) {
  using T = typename Exec::value_type;
  using view = typename Exec::view;
  auto const stored = [&](char const* name) {
    auto const& from = c.inputs.at(name).data;
    return std::vector<E>(from.begin(), from.end());
  };
  std::vector<E> const q = stored("q"), k = stored("k"), v = stored("v"), by = stored("do");
  auto const view_of = [&](std::vector<E> const& x, char const* name) {
    return view(attune::tensor<E const>(x, shape_of(c.inputs.at(name))));
  };
  inputs<Op, view> const in{.q = view_of(q, "q"), .k = view_of(k, "k"), .v = view_of(v, "v")};
  std::vector<T> out(by.size());
  results got;
  forward(exec, op, in, {.out = attune::tensor<T>(out, shape_of(c.inputs.at("do")))});
  got["o"] = doubles(out);
  cotangents<Op, view> d;
  d.out = view_of(by, "do");
  auto const g = vjp(exec, op, in, d);
  got["d_q"] = doubles(g.of(field::q).values);
  got["d_k"] = doubles(g.of(field::k).values);
  got["d_v"] = doubles(g.of(field::v).values);
  for (auto const& [source, path] : learned) got["d_" + source] = doubles(g.parameter(path).values);
  return got;
}

template <class Op>
results on(backend executor, golden_case const& c, Op const& op,
           std::vector<std::pair<std::string, std::string>> const& learned) {
  switch (executor) {
    case backend::cpu_float:
      return run_fold<float>(c, cpu<float>{1}, op, learned);
    case backend::reference_50:
      return run_fold<double>(c, reference<instances::digits>{}, op, learned);
    case backend::reference_double:
      return run_fold<double>(c, reference<double>{}, op, learned);
    case backend::cpu_double:
      break;
  }
  if constexpr (instances::has_double) return run_fold<double>(c, cpu<double>{1}, op, learned);
  return {};
}

/// S of section 2: 1 + the largest logit that a row sees.
double largest_logit(golden_case const& c) {
  tensor const &q = c.inputs.at("q"), &k = c.inputs.at("k");
  auto const& mask = c.inputs.at("mask").data;
  index const heads = q.shape[0], rows = q.shape[1], width = q.shape[2], keys = k.shape[1];
  std::vector<double> logits;
  for (index h = 0; h < heads; ++h)
    for (index i = 0; i < rows; ++i)
      for (index j = 0; j < keys; ++j) {
        if (mask[static_cast<std::size_t>(i * keys + j)] != 1) continue;
        double dot = 0;
        for (index d = 0; d < width; ++d)
          dot += q.data[static_cast<std::size_t>((h * rows + i) * width + d)] *
                 k.data[static_cast<std::size_t>((h * k.shape[0] / heads * keys + j) * width + d)];
        logits.push_back(dot / std::sqrt(static_cast<double>(width)));
      }
  return logit_magnitude(logits);
}

}  // namespace

outcome run_fold_case(golden_case const& c, registry const&, backend executor) {
  mask::predicate const mask(visible_in{c.inputs.at("mask").data.data(), c.inputs.at("k").shape.at(1)});
  double const logits = largest_logit(c);
  if (c.operation == "differential") {
    std::vector<double> minus = c.inputs.at("lam").data;
    for (double& x : minus) x = -x;
    auto const op = fold(softmax_attention(mask), {1.0, per_head(minus)});
    results got = on(executor, c, op, {{"lam", "fold.1"}});
    for (double& x : got["d_lam"]) x = -x;
    return compared(c, got, logits, executor);
  }
  parameter const first = per_head(c.inputs.at("c0").data);
  parameter const second = per_query(c.inputs.at("c1").data, c.inputs.at("c1").shape.at(0));
  auto const op = fold({first, second}, softmax_attention(mask), sink_attention(c.inputs.at("sink").data.at(0), mask));
  return compared(c, on(executor, c, op, {{"c0", "fold.0"}, {"c1", "fold.1"}, {"sink", "1.normalizer.logit"}}), logits,
                  executor);
}

}  // namespace attune::golden
