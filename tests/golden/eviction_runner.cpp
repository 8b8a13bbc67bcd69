// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// evict_geometric, density_compression and sliced_relu on a line (cases/README.md, section 8), in the scalar of each
// executor.
#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include <attune/analysis/eviction/density.hpp>
#include <attune/analysis/eviction/geometric.hpp>
#include <attune/line.hpp>

#include "computed.hpp"

namespace attune::golden {
namespace {

using instances::backend;

template <class T>
std::span<T const> all(std::vector<T> const& x) {
  return x;
}
double needed(golden_case const& c, std::string const& param) {
  auto const x = numeric_param(c, param);
  if (!x) throw unplannable("has no param " + param);
  return *x;
}

template <class T>
results evict(golden_case const& c) {
  auto const keys = reader<T>(c)("ks"), recent = reader<T>(c)("recent_qs");
  auto const range = eviction::reached(all(recent), T(needed(c, "r")));
  std::optional<eviction::zone<T>> sinks;
  if (c.params.contains("sink_zone")) {
    auto const ends = c.params.at("sink_zone").get<std::vector<double>>();
    sinks = eviction::zone<T>{T(ends.at(0)), T(ends.at(1))};
  }
  auto const kept = eviction::keep_in_range(all(keys), range, sinks);
  return {{"lo", {static_cast<double>(range.from)}},
          {"hi", {static_cast<double>(range.to)}},
          {"keep", {kept.begin(), kept.end()}}};
}

/// Attention of one query with scores ln multiplicity - (q - k)^2 / tau, the plain way.
template <class T>
std::vector<double> attend(T const& q, T const& tau, std::vector<T> const& keys, std::vector<T> const& values,
                           std::vector<T> const& multiplicity) {
  std::size_t const width = values.size() / keys.size();
  std::vector<T> sum(width, T(0)), scores;
  for (T const& k : keys) scores.push_back(-((q - k) * (q - k) / tau));
  T const highest = *std::max_element(scores.begin(), scores.end());
  T mass(0);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    T const w = multiplicity[j] * math::exp(T(scores[j] - highest));
    mass = mass + w;
    for (std::size_t d = 0; d < width; ++d) sum[d] = sum[d] + w * values[j * width + d];
  }
  for (T& x : sum) x = x / mass;
  return plain(sum);
}

template <class T>
results compress(golden_case const& c) {
  auto const keys = reader<T>(c)("ks"), values = reader<T>(c)("v"), multiplicity = reader<T>(c)("mult");
  T const q = reader<T>(c)("qs").at(0), tau = reader<T>(c)("tau").at(0);
  auto const few = eviction::compress(all(keys), all(values), T(needed(c, "h")), T(needed(c, "k0")), all(multiplicity));
  return {{"rep_keys", plain(few.keys)},
          {"rep_values", plain(few.values)},
          {"rep_mult", plain(few.multiplicity)},
          {"o_exact", attend(q, tau, keys, values, multiplicity)},
          {"o_compressed_with_multiplicity", attend(q, tau, few.keys, few.values, few.multiplicity)},
          {"o_compressed_printed_no_multiplicity",
           attend(q, tau, few.keys, few.values, std::vector<T>(few.keys.size(), T(1)))}};
}

/// The outputs are the library's. It has no prefix sums about 0, which cancel: those are formed here.
template <class T>
results relu(golden_case const& c) {
  auto const q = reader<T>(c)("qs"), k = reader<T>(c)("ks"), v = reader<T>(c)("v");
  index const queries = static_cast<index>(q.size()), keys = static_cast<index>(k.size()),
              width = static_cast<index>(v.size()) / keys;
  std::vector<T> out(static_cast<std::size_t>(queries * width));
  attune::line::detail::run_sliced_relu<T, xsimd::default_arch>(
      attune::divisor::one,
      [&](index, index) {
        return attune::line::detail::sight(std::vector<attune::key_interval>(q.size(), {0, keys}), true);
      },
      {attune::tensor(q, shape{1, 1, queries, 1}), attune::tensor(k, shape{1, 1, keys, 1}),
       attune::tensor(v, shape{1, 1, keys, width})},
      {1, 1, 1, 1, queries, keys, width}, {attune::tensor(out, shape{1, 1, queries, width}), {}}, {1});
  std::vector<std::size_t> order(k.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return k[a] < k[b]; });
  std::size_t const w = static_cast<std::size_t>(width);
  std::vector<T> sums(w, T(0)), moments(w, T(0)), all_sums = sums, all_moments = sums;
  for (std::size_t const j : order) {
    for (std::size_t d = 0; d < w; ++d) {
      sums[d] = sums[d] + v[j * w + d];
      moments[d] = moments[d] + k[j] * v[j * w + d];
    }
    all_sums.insert(all_sums.end(), sums.begin(), sums.end());
    all_moments.insert(all_moments.end(), moments.begin(), moments.end());
  }
  return {{"o", plain(out)}, {"prefix_v", plain(all_sums)}, {"prefix_kv", plain(all_moments)}};
}

template <class T>
results run(golden_case const& c) {
  if (c.operation == "evict_geometric") return evict<T>(c);
  return c.operation == "density_compression" ? compress<T>(c) : relu<T>(c);
}

}  // namespace

outcome run_eviction(golden_case const& c, registry const&, backend executor) {
  results const got = in_scalar_of(executor, [&]<class T>(T const&) { return run<T>(c); });
  double farthest = 0;  // S of section 2: the weights of sliced ReLU, the scores of a compressed cache
  if (c.operation != "evict_geometric")
    for (double q : c.inputs.at("qs").data)
      for (double k : c.inputs.at("ks").data) farthest = std::max(farthest, std::abs(q - k));
  if (c.operation == "density_compression") farthest = farthest * farthest / c.inputs.at("tau").data.at(0);
  return compared(c, got, 1 + farthest, executor);
}

}  // namespace attune::golden
