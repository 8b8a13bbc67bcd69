// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "projections.hpp"

#include <cmath>

#include <attune/analysis/regularizer/temperature.hpp>

#include "operators.hpp"
#include "shared/random.hpp"

namespace scalar_sort {
namespace {

using temperature = attune::regularizer::temperature<float>;

/// f(offset of a head's direction in the values, its activations, its scalars) for queries and for keys.
template <class Values, class F>
void each_side(projections const& p, stretch const& s, Values& q, Values& k, F const& f) {
  for (index_t h = 0; h < p.heads; ++h) {
    f(p.query(h), s(s.of->q).row(0, h, 0), q.data() + h * s.count);
    f(p.key(h), s(s.of->k).row(0, h, 0), k.data() + h * s.count);
  }
}

}  // namespace

scalars projections::of(stretch const& s) const {
  scalars to{numbers(std::size_t(heads * s.count)), numbers(std::size_t(heads * s.count))};
  each_side(*this, s, to.q, to.k, [&](std::size_t at, float const* x, float* y) {
    for (index_t i = 0; i < s.count; ++i) {
      float sum = values[at + std::size_t(width)];
      for (index_t d = 0; d < width; ++d) sum += values[at + std::size_t(d)] * x[i * width + d];
      y[i] = sum;
    }
  });
  return to;
}

numbers projections::tau() const {
  numbers to;
  for (index_t h = 0; h < heads; ++h) to.push_back(temperature{}.value(values[bandwidth(h)]));
  return to;
}

projections random_projections(stretch const& s, float tau, std::uint64_t seed) {
  projections p{s.heads(), s.width(), {}};
  p.values.assign(std::size_t(p.heads * (2 * p.width + 3)), 0.0f);
  apps::rng draw(seed);
  for (float& x : p.values) x = float(draw.normal());
  for (index_t h = 0; h < p.heads; ++h) {
    p.values[p.query(h) + std::size_t(p.width)] = p.values[p.key(h) + std::size_t(p.width)] = 0;
    p.values[p.bandwidth(h)] = temperature::inverse(tau);
  }
  scalars x = p.of(s);
  each_side(p, s, x.q, x.k, [&](std::size_t at, float const*, float const* y) {
    double sum = 0, square = 0;
    for (index_t i = 0; i < s.count; ++i) sum += double(y[i]), square += double(y[i]) * double(y[i]);
    double const mean = sum / double(s.count), unit = std::sqrt(square / double(s.count) - mean * mean);
    for (index_t d = 0; d < p.width; ++d)
      p.values[at + std::size_t(d)] = float(double(p.values[at + std::size_t(d)]) / unit);
    p.values[at + std::size_t(p.width)] = float(-mean / unit);
  });
  return p;
}

numbers chain(projections const& p, stretch const& s, slopes const& by) {
  numbers to(p.values.size(), 0.0f);
  each_side(p, s, by.q, by.k, [&](std::size_t at, float const* x, float const* dy) {
    for (index_t i = 0; i < s.count; ++i) {
      to[at + std::size_t(p.width)] += dy[i];
      for (index_t d = 0; d < p.width; ++d) to[at + std::size_t(d)] += dy[i] * x[i * p.width + d];
    }
  });
  for (index_t h = 0; h < p.heads; ++h)
    to[p.bandwidth(h)] = by.tau[std::size_t(h)] * temperature{}.slope(p.values[p.bandwidth(h)]);
  return to;
}

}  // namespace scalar_sort
