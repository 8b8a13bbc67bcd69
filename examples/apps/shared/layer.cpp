// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "layer.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <attune/core/activation.hpp>
#include <attune/io/npy.hpp>

namespace apps {
namespace {

std::vector<float> load(std::filesystem::path const& file, layer& to, index_t heads) {
  attune::io::array const x = attune::io::read_npy(file);
  std::vector<float> data = attune::io::numbers<float>(x);
  std::vector<index_t> shape = x.extents;
  if (shape.size() != 3 || shape[2] % 2 != 0)
    throw std::runtime_error(file.string() + ": expected a shape (head, position, even feature)");
  if (heads > 0 && heads < shape[0]) {
    shape[0] = heads;
    data.resize(std::size_t(heads * shape[1] * shape[2]));
  }
  if (to.heads != 0 && (shape[0] != to.heads || shape[1] != to.length || shape[2] != to.width))
    throw std::runtime_error(file.string() + ": its shape differs from that of the queries");
  to.heads = shape[0];
  to.length = shape[1];
  to.width = shape[2];
  return data;
}

/// Every row turned by 45 degrees times `direction` in the planes (d, d + D/2) and scaled to norm sqrt(8).
std::vector<float> gate_projection(std::vector<float> const& x, index_t width, double direction) {
  std::vector<float> y(x.size());
  index_t const half = width / 2;
  for (std::size_t row = 0; row < x.size(); row += std::size_t(width)) {
    float const* const from = x.data() + row;
    float* const to = y.data() + row;
    double norm = 0;
    for (index_t d = 0; d < width; ++d) norm += double(from[d]) * from[d];
    double const scale = norm > 0 ? std::sqrt(8 / norm) * std::sqrt(0.5) : 0;
    for (index_t d = 0; d < half; ++d) {
      to[d] = float(scale * (from[d] - direction * from[d + half]));
      to[d + half] = float(scale * (from[d + half] + direction * from[d]));
    }
  }
  return y;
}

double median(std::vector<double> x) {
  auto const middle = x.begin() + std::ptrdiff_t(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// Per head: the 90th percentile of the scores and the median over rows of their log-sum-exp.
struct score_facts {
  std::vector<double> percentile, lse;
};
score_facts facts(layer const& l) {
  score_facts f;
  std::vector<double> all, lse(std::size_t(l.length));
  for (index_t h = 0; h < l.heads; ++h) {
    all.clear();
    for (index_t i = 0; i < l.length; ++i) {
      std::vector<double> const row = l.scores(h, i, l.length);
      double const top = *std::max_element(row.begin(), row.end());
      double mass = 0;
      for (double const s : row) mass += std::exp(s - top);
      lse[std::size_t(i)] = top + std::log(mass);
      all.insert(all.end(), row.begin(), row.end());
    }
    auto const tenth = all.begin() + std::ptrdiff_t(9 * all.size() / 10);
    std::nth_element(all.begin(), tenth, all.end());
    f.percentile.push_back(*tenth);
    f.lse.push_back(median(lse));
  }
  return f;
}

/// <q_i, u> / |q_i| of every row, (head, position): u a unit vector of signs that change every `period` features.
std::vector<double> cosines(layer const& l, index_t period) {
  std::vector<double> all;
  for (index_t row = 0; row < l.heads * l.length; ++row) {
    float const* const q = l.q.data() + row * l.width;
    double norm = 0, sum = 0;
    for (index_t d = 0; d < l.width; ++d) {
      norm += double(q[d]) * q[d];
      sum += d / period % 2 == 0 ? q[d] : -q[d];
    }
    all.push_back(norm > 0 ? sum / std::sqrt(norm * double(l.width)) : 0);
  }
  return all;
}

/// The four granularities of one parameter: `per_head` itself, its median, and per_head + cosine, read from the
/// direction of q_i.
void derive(setting (&to)[4], layer const& l, std::vector<double> const& per_head, index_t period) {
  to[int(granularity::off)] = {};
  to[int(granularity::constant)] = {{median(per_head)}, 1, 1};
  to[int(granularity::per_head)] = {per_head, l.heads, 1};
  setting& query = to[int(granularity::per_query)];
  query = {cosines(l, period), l.heads, l.length};
  for (index_t row = 0; row < l.heads * l.length; ++row)
    query.values[std::size_t(row)] += per_head[std::size_t(row / l.length)];
}

}  // namespace

char const* name(granularity g) {
  switch (g) {
    case granularity::off:
      return "off";
    case granularity::constant:
      return "constant";
    case granularity::per_head:
      return "per head";
    case granularity::per_query:
      return "per query";
  }
  return "";
}

std::vector<double> layer::scores(index_t h, index_t i, index_t keys) const {
  double const c = 1 / std::sqrt(double(width));
  float const* const query = q.data() + (h * length + i) * width;
  std::vector<double> row;
  for (index_t j = 0; j < keys; ++j) {
    float const* const key = k.data() + (h * length + j) * width;
    double s = 0;
    for (index_t d = 0; d < width; ++d) s += double(query[d]) * key[d];
    row.push_back(c * s);
  }
  return row;
}

layer load_layer(std::filesystem::path const& folder, int number, index_t heads) {
  layer l;
  l.number = number;
  auto const file = [&](char const* what) {
    return folder / ("alice_layer" + std::to_string(number) + "_" + what + ".npy");
  };
  l.q = load(file("q"), l, heads);
  l.k = load(file("k"), l, heads);
  l.v = load(file("v"), l, heads);
  l.stored = load(file("o"), l, heads);
  l.gate_q = gate_projection(l.q, l.width, 1);
  l.gate_k = gate_projection(l.k, l.width, -1);

  l.zero.assign(std::size_t(l.heads * l.width), 0);
  l.mean_value = l.zero;
  for (index_t h = 0; h < l.heads; ++h)
    for (index_t d = 0; d < l.width; ++d) {
      double sum = 0;
      for (index_t j = 0; j < l.length; ++j) sum += l.v[std::size_t((h * l.length + j) * l.width + d)];
      l.mean_value[std::size_t(h * l.width + d)] = float(sum / double(l.length));
    }

  score_facts const f = facts(l);
  std::vector<double> alpha, beta;
  for (index_t h = 0; h < l.heads;
       ++h) {  // a ramp over the heads, around softplus(-3.5) = 0.03 and softplus(-1) = 0.31
    double const ramp = l.heads > 1 ? double(h) / double(l.heads - 1) - 0.5 : 0;
    alpha.push_back(-3.5 + ramp);
    beta.push_back(-1 - ramp);
  }
  derive(l.alpha, l, alpha, 1);
  derive(l.beta, l, beta, 2);
  derive(l.gamma, l, f.percentile, 4);
  l.sink = {f.lse, l.heads, 1};
  for (double& t : l.sink.values) t -= std::log(3.0);

  l.affine_alpha = {cosines(l, 8), l.heads, l.length};
  double sum = 0;
  for (double& a : l.affine_alpha.values) {
    a = attune::activate(attune::activation::linear_clipping, 10 * a);
    sum += a;
  }
  l.affine_average = {{sum / double(l.affine_alpha.values.size())}, 1, 1};
  return l;
}

std::vector<std::string> load_tokens(std::filesystem::path const& folder) {
  auto const file = folder / "alice_tokens.json";
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be opened");
  try {
    return nlohmann::json::parse(in).get<std::vector<std::string>>();
  } catch (nlohmann::json::exception const& e) {
    throw std::runtime_error(file.string() + ": expected an array of strings (" + e.what() + ")");
  }
}

}  // namespace apps
