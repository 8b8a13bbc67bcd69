// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// l_align, l_spread, l_tau (cases/README.md, section 7), in the scalar of each executor.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <attune/analysis/regularizer/alignment.hpp>
#include <attune/analysis/regularizer/spread.hpp>
#include <attune/analysis/regularizer/temperature.hpp>

#include "computed.hpp"

namespace attune::golden {
namespace {

using instances::backend;

template <class T>
std::span<T const> all(std::vector<T> const& x) {
  return x;
}

/// softmax(<q, k> / sqrt(D) - (q - k)^2 / tau) row by row, the plain way: here the weights are an input.
template <class T>
std::vector<T> hybrid_weights(golden_case const& c, std::vector<T> const& qs, std::vector<T> const& ks) {
  auto const q = reader<T>(c)("q"), k = reader<T>(c)("k"), tau = reader<T>(c)("tau"), mask = reader<T>(c)("mask");
  std::size_t const rows = qs.size(), keys = ks.size(), width = q.size() / rows;
  std::vector<T> w(rows * keys, T(0));
  for (std::size_t i = 0; i < rows; ++i) {
    T sum(0), highest = -math::infinity<T>();
    for (std::size_t j = 0; j < keys; ++j) {
      T dot(0);
      for (std::size_t d = 0; d < width; ++d) dot = dot + q[i * width + d] * k[j * width + d];
      T const e = qs[i] - ks[j];
      w[i * keys + j] = dot / math::sqrt(T(static_cast<double>(width))) - e * e / tau[tau.size() == 1 ? 0 : i];
      if (mask[i * keys + j] == T(1)) highest = math::larger(highest, w[i * keys + j]);
    }
    for (std::size_t j = 0; j < keys; ++j) {
      T& x = w[i * keys + j];
      x = mask[i * keys + j] == T(1) ? math::exp(T(x - highest)) : T(0);
      sum = sum + x;
    }
    for (std::size_t j = 0; j < keys && !(sum == T(0)); ++j) w[i * keys + j] = w[i * keys + j] / sum;
  }
  return w;
}

template <class T>
results align(golden_case const& c) {
  auto const qs = reader<T>(c)("qs"), ks = reader<T>(c)("ks");
  auto const w = hybrid_weights(c, qs, ks);
  index const rows = static_cast<index>(qs.size()), keys = static_cast<index>(ks.size());
  shape const query_side{1, 1, rows, 1}, key_side{1, 1, keys, 1};
  std::vector<T> dq(qs.size(), T(0)), dk(ks.size(), T(0));
  T const loss = regularizer::alignment(attune::tensor(w, shape{1, 1, rows, keys}), attune::tensor(qs, query_side),
                                        attune::tensor(ks, key_side),
                                        {attune::tensor(dq, query_side), attune::tensor(dk, key_side)});
  results got{{"loss", {static_cast<double>(loss)}}, {"d_qs", plain(dq)}, {"d_ks", plain(dk)}};
  for (std::size_t i = 0; i < qs.size(); ++i) {
    auto const row = regularizer::split_alignment(all(w).subspan(i * ks.size(), ks.size()), qs[i], all(ks));
    got["per_query"].push_back(static_cast<double>(row.cost));
    got["var_term"].push_back(static_cast<double>(T(row.mass * row.variance)));
    got["offset_term"].push_back(static_cast<double>(T(row.offset * row.offset)));
  }
  return got;
}

template <class T>
results spread(golden_case const& c) {
  auto const keys = reader<T>(c)("ks");
  auto const kind = text_param(c, "range"), at = text_param(c, "targets");
  bool const known =
      kind && at && (*kind == "fixed" || *kind == "adaptive") && (*at == "linspace" || *at == "midpoint");
  if (!known) throw unplannable("has no params range and targets that are known");
  auto const from = numeric_param(c, "a"), to = numeric_param(c, "b");
  if (*kind == "fixed" && !(from && to)) throw unplannable("has no params a and b");
  regularizer::range<T> const over =
      *kind == "fixed" ? regularizer::range<T>{T(*from), T(*to)} : regularizer::adaptive_range(all(keys));
  std::vector<T> d(keys.size(), T(0));
  T const loss = regularizer::spread(
      all(keys), over, *at == "linspace" ? regularizer::targets::endpoints : regularizer::targets::midpoints,
      std::span<T>(d));
  return {{"loss", {static_cast<double>(loss)}},
          {"range", {static_cast<double>(over.from), static_cast<double>(over.to)}},
          {"w2sq_to_continuous_uniform", {static_cast<double>(regularizer::distance_to_uniform(all(keys), over))}},
          {"d_ks", plain(d)}};
}

template <class T>
results penalty(golden_case const& c) {
  auto const tau = reader<T>(c)("tau");
  auto const lambda = numeric_param(c, "lambda");
  if (!lambda) throw unplannable("has no param lambda");
  std::vector<T> d(tau.size(), T(0));
  T const loss = T(*lambda) * regularizer::temperature_penalty(all(tau), std::span<T>(d), T(*lambda));
  return {{"loss", {static_cast<double>(loss)}}, {"d_tau", plain(d)}};
}

template <class T>
results run(golden_case const& c) {
  if (c.operation == "l_align") return align<T>(c);
  return c.operation == "l_spread" ? spread<T>(c) : penalty<T>(c);
}

}  // namespace

outcome run_regularizer(golden_case const& c, registry const&, backend executor) {
  results const got = in_scalar_of(executor, [&]<class T>(T const&) { return run<T>(c); });
  return compared(c, got, 1, executor);
}

}  // namespace attune::golden
