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

#include "../instances/digits.hpp"
#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {
namespace {

using instances::backend;
using tensors = std::map<std::string, std::vector<double>>;

template <class T>
std::vector<T> numbers(golden_case const& c, std::string const& input) {
  auto const& data = c.inputs.at(input).data;
  return {data.begin(), data.end()};
}
template <class T>
std::vector<double> rounded(std::vector<T> const& x) {
  std::vector<double> result;
  for (T const& e : x) result.push_back(static_cast<double>(e));
  return result;
}
template <class T>
std::span<T const> all(std::vector<T> const& x) {
  return x;
}

/// softmax(<q, k> / sqrt(D) - (q - k)^2 / tau) row by row, the plain way: here the weights are an input.
template <class T>
std::vector<T> hybrid_weights(golden_case const& c, std::vector<T> const& qs, std::vector<T> const& ks) {
  auto const q = numbers<T>(c, "q"), k = numbers<T>(c, "k"), tau = numbers<T>(c, "tau"), mask = numbers<T>(c, "mask");
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
tensors align(golden_case const& c) {
  auto const qs = numbers<T>(c, "qs"), ks = numbers<T>(c, "ks");
  auto const w = hybrid_weights(c, qs, ks);
  index const rows = static_cast<index>(qs.size()), keys = static_cast<index>(ks.size());
  shape const query_side{1, 1, rows, 1}, key_side{1, 1, keys, 1};
  std::vector<T> dq(qs.size(), T(0)), dk(ks.size(), T(0));
  T const loss =
      regularizer::alignment(attune::tensor(w, shape{1, 1, rows, keys}), attune::tensor(qs, query_side),
                             attune::tensor(ks, key_side), {attune::tensor(dq, query_side), attune::tensor(dk, key_side)});
  tensors got{{"loss", {static_cast<double>(loss)}}, {"d_qs", rounded(dq)}, {"d_ks", rounded(dk)}};
  for (std::size_t i = 0; i < qs.size(); ++i) {
    auto const row = regularizer::split_alignment(all(w).subspan(i * ks.size(), ks.size()), qs[i], all(ks));
    got["per_query"].push_back(static_cast<double>(row.cost));
    got["var_term"].push_back(static_cast<double>(T(row.mass * row.variance)));
    got["offset_term"].push_back(static_cast<double>(T(row.offset * row.offset)));
  }
  return got;
}

template <class T>
tensors spread(golden_case const& c) {
  auto const keys = numbers<T>(c, "ks");
  auto const kind = text_param(c, "range"), at = text_param(c, "targets");
  bool const known = kind && at && (*kind == "fixed" || *kind == "adaptive") && (*at == "linspace" || *at == "midpoint");
  if (!known) throw unplannable("has no params range and targets that are known");
  auto const from = numeric_param(c, "a"), to = numeric_param(c, "b");
  if (*kind == "fixed" && !(from && to)) throw unplannable("has no params a and b");
  regularizer::range<T> const over =
      *kind == "fixed" ? regularizer::range<T>{T(*from), T(*to)} : regularizer::adaptive_range(all(keys));
  std::vector<T> d(keys.size(), T(0));
  T const loss = regularizer::spread(
      all(keys), over, *at == "linspace" ? regularizer::targets::endpoints : regularizer::targets::midpoints, std::span<T>(d));
  return {{"loss", {static_cast<double>(loss)}},
          {"range", {static_cast<double>(over.from), static_cast<double>(over.to)}},
          {"w2sq_to_continuous_uniform", {static_cast<double>(regularizer::distance_to_uniform(all(keys), over))}},
          {"d_ks", rounded(d)}};
}

template <class T>
tensors penalty(golden_case const& c) {
  auto const tau = numbers<T>(c, "tau");
  auto const lambda = numeric_param(c, "lambda");
  if (!lambda) throw unplannable("has no param lambda");
  std::vector<T> d(tau.size(), T(0));
  T const loss = T(*lambda) * regularizer::temperature_penalty(all(tau), std::span<T>(d), T(*lambda));
  return {{"loss", {static_cast<double>(loss)}}, {"d_tau", rounded(d)}};
}

template <class T>
tensors run(golden_case const& c) {
  if (c.operation == "l_align") return align<T>(c);
  return c.operation == "l_spread" ? spread<T>(c) : penalty<T>(c);
}

tensors run_on(backend executor, golden_case const& c) {
  switch (executor) {
    case backend::cpu_float:
      return run<float>(c);
    case backend::reference_50:
      return run<instances::digits>(c);
    case backend::reference_double:
    case backend::cpu_double:
      break;
  }
  return run<double>(c);
}

}  // namespace

outcome run_regularizer(golden_case const& c, registry const&, backend executor) {
  tensors const got = run_on(executor, c);
  checker checks(c, magnitude_of(c, 1), accuracy_of(executor));
  for (auto const& [name, expected] : c.expected) {
    auto const found = got.find(name);
    checks.check(name, expected, found == got.end() ? std::nullopt : std::optional(found->second));
  }
  return checks.result();
}

}  // namespace attune::golden
