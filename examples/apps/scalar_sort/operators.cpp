// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "operators.hpp"

#include <attune/attune.hpp>

namespace scalar_sort {
namespace {

using attune::tensor;

/// Every attempt runs on one thread: there are more of them than processors.
attune::cpu<float> const one_thread{1};

/// With unit vectors for values the output of a row is its weights. One set of values serves all heads.
struct unit_values {
  index_t count;
  numbers v = numbers(std::size_t(count * count), 0.0f);
  explicit unit_values(index_t n) : count(n) {
    for (index_t j = 0; j < n; ++j) v[std::size_t(j * n + j)] = 1;
  }
  tensor<float const> view() const { return {v.data(), {1, 1, count, count}}; }
};

auto hybrid(numbers const& tau) { return attune::hybrid_attention(attune::per_head(tau)); }
using hybrid_operator = decltype(hybrid(numbers{}));

attune::inputs<hybrid_operator, tensor<float const>> hybrid_inputs(stretch const& s, scalars const& at,
                                                                   tensor<float const> v, every queries = {}) {
  return {.q = s(s.of->q, queries),
          .k = s(s.of->k),
          .v = v,
          .sort_q = as_tensor(at.q.data(), s.heads(), s.count, queries),
          .sort_k = as_tensor(at.k.data(), s.heads(), s.count)};
}

numbers model(stretch const& s, tensor<float const> v) {
  index_t const width = v.extents().feature;
  numbers out(std::size_t(s.heads() * s.count * width));
  forward(one_thread, attune::softmax_attention(), {.q = s(s.of->q), .k = s(s.of->k), .v = v},
          {.out = tensor<float>(out.data(), {1, s.heads(), s.count, width})});
  return out;
}

}  // namespace

numbers model_outputs(stretch const& s) { return model(s, s(s.of->v)); }

numbers model_weights(stretch const& s) { return model(s, unit_values(s.count).view()); }

numbers hybrid_weights(stretch const& s, scalars const& at, numbers const& tau, every queries) {
  unit_values const unit(s.count);
  attune::shape const rows{1, s.heads(), s.count / queries.step, s.count};
  numbers out(std::size_t(rows.size()));
  forward(one_thread, hybrid(tau), hybrid_inputs(s, at, unit.view(), queries),
          {.out = tensor<float>(out.data(), rows)});
  return out;
}

numbers unexplained(stretch const& s, scalars const& at, numbers const& tau, numbers const& target, slopes& to) {
  attune::shape const rows{1, s.heads(), s.count, s.width()};
  numbers out(target.size()), by_out(target.size()), loss;
  auto const op = hybrid(tau);
  auto const in = hybrid_inputs(s, at, s(s.of->v));
  auto const saved = forward_and_save(one_thread, op, in, {.out = tensor<float>(out.data(), rows)});
  std::size_t const width = std::size_t(s.width()), head = std::size_t(s.count) * width;
  for (std::size_t h = 0; h < std::size_t(s.heads()); ++h) {
    std::vector<double> mean(width, 0.0);
    for (std::size_t n = 0; n < head; ++n) mean[n % width] += double(target[h * head + n]) / double(s.count);
    double missed = 0, all = 0;
    for (std::size_t n = 0; n < head; ++n) {
      double const e = double(out[h * head + n]) - double(target[h * head + n]),
                   away = double(target[h * head + n]) - mean[n % width];
      missed += e * e;
      all += away * away;
    }
    for (std::size_t n = h * head; n < (h + 1) * head; ++n)
      by_out[n] = float(2 * (double(out[n]) - double(target[n])) / all);
    loss.push_back(float(missed / all));
  }
  auto const g = vjp(one_thread, op, in, saved, {.out = tensor<float const>(by_out.data(), rows)});
  to.q = g.of(attune::field::sort_q).values;
  to.k = g.of(attune::field::sort_k).values;
  to.tau = g.parameter("tau").values;
  return loss;
}

}  // namespace scalar_sort
