// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "fit.hpp"

#include <cmath>

#include <attune/analysis/regularizer/combined.hpp>

#include "operators.hpp"
#include "shared/each.hpp"

namespace scalar_sort {
namespace {

constexpr int steps = 120, quick_steps = 6;
constexpr float rate = 0.04f, first_tau = 0.1f;  ///< tau starts where the paper starts it

/// Adam (Kingma and Ba, 2015) with its usual constants.
class adam {
 public:
  explicit adam(std::size_t n) : mean_(n, 0.0f), square_(n, 0.0f) {}
  void step(numbers& x, numbers const& gradient) {
    keep1_ *= 0.9f, keep2_ *= 0.999f;
    for (std::size_t n = 0; n < x.size(); ++n) {
      mean_[n] = 0.9f * mean_[n] + 0.1f * gradient[n];
      square_[n] = 0.999f * square_[n] + 0.001f * gradient[n] * gradient[n];
      x[n] -= rate * (mean_[n] / (1 - keep1_)) / (std::sqrt(square_[n] / (1 - keep2_)) + 1e-8f);
    }
  }

 private:
  numbers mean_, square_;
  float keep1_ = 1, keep2_ = 1;
};

float deviation(numbers const& keys, index_t heads, index_t count) {
  double sum = 0;
  for (index_t h = 0; h < heads; ++h) {
    std::span<float const> const of(keys.data() + h * count, std::size_t(count));
    auto const reach = attune::regularizer::adaptive_range(of, 1.0f);  // one deviation to either side
    sum += double(reach.to - reach.from) / 2;
  }
  return float(sum / double(heads));
}

fitted_layer fit(apps::layer const& l, variant const& with, int count, apps::progress& bar, double cost) {
  namespace regularizer = attune::regularizer;
  fitted_layer f{&l, {}, {}, {}};
  stretch const s = f.trained();
  f.start = f.learned = random_projections(s, first_tau, std::uint64_t(l.number) + 1);
  numbers const target = model_outputs(s);
  index_t const heads = s.heads(), n = s.count;
  // The library's losses are means over heads and pairs; those here are per head and query.
  regularizer::combination<float> const terms{.alignment = with.alignment * float(heads * n),
                                              .spread = with.spread * float(heads),
                                              .temperature = with.temperature,
                                              .over = regularizer::range<float>{-3, 3}};
  bool const regularized = with.alignment > 0 || with.spread > 0 || with.temperature > 0;
  adam descent(f.learned.values.size());
  slopes by;
  for (int step = 0; step <= count; ++step) {
    scalars const at = f.learned.of(s);
    numbers const tau = f.learned.tau(), missed = unexplained(s, at, tau, target, by);
    if (step % 5 == 0 || step == count) f.history.push_back({step, missed, tau, deviation(at.k, heads, n)});
    if (step == count) break;
    if (regularized) {  // of a quarter of the queries, another one in each step: weights cost most
      every const queries{4, step % 4};
      attune::shape const rows{1, heads, n / queries.step, n};
      numbers const w = with.alignment > 0 ? hybrid_weights(s, at, tau, queries) : numbers(std::size_t(rows.size()));
      regularizer::combined(terms, attune::tensor<float const>(w.data(), rows),
                            as_tensor(at.q.data(), heads, n, queries), as_tensor(at.k.data(), heads, n),
                            std::span<float const>(tau),
                            {as_tensor(by.q.data(), heads, n, queries), as_tensor(by.k.data(), heads, n), by.tau});
    }
    descent.step(f.learned.values, chain(f.learned, s, by));
    bar.add(cost / count);
  }
  return f;
}

}  // namespace

std::vector<variant> const& variants() {
  static std::vector<variant> const all{
      {"none", 0, 0, 0}, {"a", 0.1f, 0, 0}, {"a+τ", 0.1f, 0, 0.1f}, {"a+s", 0.1f, 0.1f, 0}, {"all", 0.1f, 0.1f, 0.1f}};
  return all;
}

std::vector<fitted> fit_all(apps::context const& c, double cost) {
  std::vector<fitted> all;
  for (variant const& v : variants()) all.push_back({v, std::vector<fitted_layer>(c.layers.size())});
  std::size_t const count = c.layers.size() * all.size();
  apps::each(c.threads, std::ptrdiff_t(count), [&](std::ptrdiff_t n) {
    fitted& f = all[std::size_t(n) / c.layers.size()];
    std::size_t const l = std::size_t(n) % c.layers.size();
    f.layers[l] = fit(c.layers[l], f.with, c.quick ? quick_steps : steps, *c.bar, cost / double(count));
  });
  return all;
}

}  // namespace scalar_sort
