// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One layer of activations, and everything that the experiments derive from it: gate projections, parameters, ground
// values. Nothing here is random.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <attune/core/parameter.hpp>
#include <attune/core/tensor.hpp>

namespace apps {

using attune::index_t;

/// How finely a parameter varies. `off` is -inf, the limit in which its component disappears.
enum class granularity { off, constant, per_head, per_query };
inline constexpr granularity granularities[] = {granularity::off, granularity::constant, granularity::per_head,
                                                granularity::per_query};
char const* name(granularity g);

/// Rows first, first + step, ... of one head.
struct row_range {
  index_t head = 0, first = 0, step = 1, count = 0;
  index_t row(index_t n) const { return first + n * step; }
};

/// The values of one parameter in one layer: one number, one per head, or one per head and query.
struct setting {
  std::vector<double> values{-std::numeric_limits<double>::infinity()};
  index_t heads = 1, queries = 1;  ///< extents of `values`

  double at(index_t h, index_t i) const {
    return values[std::size_t((heads == 1 ? 0 : h) * queries + (queries == 1 ? 0 : i))];
  }
  /// The parameter of a call that sees the first `count` heads. This and the next point into `values`.
  attune::parameter first(index_t count) const {
    return attune::tensor<double const>(values.data(), {1, heads == 1 ? 1 : count, queries, 1});
  }
  /// The parameter of a call that sees these rows of one head.
  attune::parameter of(row_range const& r) const {
    index_t const row = (heads == 1 ? 0 : r.head) * queries + (queries == 1 ? 0 : r.first);
    return {
        attune::tensor<double const>(values.data() + row, {1, 1, queries == 1 ? 1 : r.count, 1}, {0, 0, r.step, 1})};
  }
};

/// Which setting each parameter of Principled Attention takes.
struct principled_choice {
  granularity alpha = granularity::per_query, beta = granularity::per_query, gamma = granularity::per_query;
  bool ground_value = true;  ///< v0 per head; else zero
};

struct layer {
  int number = 0;
  index_t heads = 0, length = 0, width = 0;
  std::vector<float> q, k, v;           ///< (head, position, feature)
  std::vector<float> stored;            ///< the model's own attention output, float64 rounded once to float32
  std::vector<float> gate_q, gate_k;    ///< q and k rotated by +-45 degrees in the planes (d, d + D/2), norm sqrt(8)
  std::vector<float> mean_value, zero;  ///< ground values per head: the mean of the head's values; zero
  setting alpha[4], beta[4], gamma[4];  ///< by granularity
  setting sink;  ///< per head: a third of the mass that the keys have in the head's median row, so w0 = 1/4 there
  setting
      affine_alpha;  ///< per query: linear_clipping of 10 times the cosine of q_i with a vector of signs: around 1/2
  setting affine_average;  ///< its mean over the layer: what a moving average of it comes to

  attune::tensor<float const> first(std::vector<float> const& x, index_t count) const {
    return {x.data(), {1, count, length, width}};
  }
  attune::tensor<float const> head(std::vector<float> const& x, index_t h) const {
    return {x.data() + h * length * width, {1, 1, length, width}};
  }
  /// The first `count` positions of one head: a text cut short there.
  attune::tensor<float const> prefix(std::vector<float> const& x, index_t h, index_t count) const {
    return {x.data() + h * length * width, {1, 1, count, width}};
  }
  attune::tensor<float const> of(std::vector<float> const& x, row_range const& r) const {
    return {x.data() + (r.head * length + r.first) * width, {1, 1, r.count, width}, {0, 0, r.step * width, 1}};
  }
  /// q_i . k_j / sqrt(width) of the first `keys` keys, in double.
  std::vector<double> scores(index_t h, index_t i, index_t keys) const;
};

/// Reads alice_layer<number>_{q,k,v,o}.npy and derives the rest. `heads` > 0 keeps only the first ones.
layer load_layer(std::filesystem::path const& folder, int number, index_t heads);

/// The tokens, one per position.
std::vector<std::string> load_tokens(std::filesystem::path const& folder);

}  // namespace apps
