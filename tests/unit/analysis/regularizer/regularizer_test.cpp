// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <random>
#include <span>
#include <vector>

#include <attune/analysis/regularizer/combined.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using namespace attune::regularizer;
using numbers = std::vector<double>;
using view = std::span<double const>;

TEST_CASE("alignment: cost, bias and variance by hand") {
  numbers const w{0.25, 0.75}, k{1, 5};
  auto const r = split_alignment(view(w), 2.0, view(k));
  CHECK(r.cost == 7);  // 1/4 + 27/4
  CHECK(r.mass == 1);
  CHECK(r.offset == -2);   // the mean is 4
  CHECK(r.variance == 3);  // 9/4 + 3/4
  numbers const double_w{0.5, 1.5};
  auto const twice = split_alignment(view(double_w), 2.0, view(k));
  CHECK(twice.cost == 14);
  CHECK(twice.cost == twice.mass * (twice.variance + twice.offset * twice.offset));  // the factor that the paper omits
}

TEST_CASE("alignment: a key without weight is not read, a query without weight costs nothing") {
  numbers const w{0, 1}, k{nan, 5}, none{0, 0};
  auto const r = split_alignment(view(w), 2.0, view(k));
  CHECK(r.cost == 9);
  CHECK(r.variance == 0);
  auto const dead = split_alignment(view(none), 2.0, view(k));
  CHECK(dead.cost == 0);
  CHECK(dead.offset == 0);
}

TEST_CASE("alignment: the mean over all pairs, its gradient pulls key and query together") {
  numbers const w{0.25, 0.75}, q{2}, k{1, 5};
  numbers dq{100}, dk{0, 0};
  double const loss =
      alignment(tensor(w, shape{1, 1, 1, 2}), tensor(q, shape{1, 1, 1, 1}), tensor(k, shape{1, 1, 2, 1}),
                {tensor(dq, shape{1, 1, 1, 1}), tensor(dk, shape{1, 1, 2, 1})}, 2.0);
  CHECK(loss == 3.5);             // 7 / 2
  CHECK(dq == numbers{100 - 4});  // added: 2 * 2 / 2 * (0.25 - 2.25)
  CHECK(dk == numbers{-0.5, 4.5});
}

TEST_CASE("alignment: heads share keys") {
  numbers const w(2 * 4 * 3 * 5, 0.2), q(2 * 4 * 3, 1.0), k(2 * 2 * 5, 3.0);
  numbers dk(k.size(), 0.0);
  double const loss = alignment(tensor(w, shape{2, 4, 3, 5}), tensor(q, shape{2, 4, 3, 1}),
                                tensor(k, shape{2, 2, 5, 1}), {{}, tensor(dk, shape{2, 2, 5, 1})});
  CHECK(near(loss, 0.8));
  for (double x : dk) CHECK(near(x, 2.0 / 120 * 6 * 0.4));  // 3 queries of 2 heads
}

TEST_CASE("spread: targets with and without the ends of the range") {
  numbers const k{3, 1, 2};
  numbers d(3, 0.0);
  CHECK(near(spread(view(k), {0.0, 3.0}, targets::endpoints, std::span(d)), (1 + 0.25 + 0) / 3));  // 0, 1.5, 3
  CHECK(near(d[0], 0));
  CHECK(near(d[1], 2.0 / 3));
  CHECK(near(d[2], 1.0 / 3));
  CHECK(near(spread(view(k), {0.0, 3.0}, targets::midpoints), 0.25));  // 0.5, 1.5, 2.5
  CHECK(near(distance_to_uniform(view(k), {0.0, 3.0}), 0.25 + 9.0 / 108));
  numbers const one{4};
  CHECK(spread(view(one), {1.0, 3.0}) == 9);
  CHECK(spread(view(one), {1.0, 3.0}, targets::midpoints) == 4);
}

TEST_CASE("spread: equal keys in the order of their index") {
  numbers const k{1, 1, 0};
  numbers d(3, 0.0);
  spread(view(k), {0.0, 2.0}, targets::endpoints, std::span(d), 3.0);
  CHECK(d == numbers{0, -2, 0});  // the second of the equal ones has the target 2
}

TEST_CASE("spread: the adaptive range is mean and three deviations of the population") {
  numbers const k{1, 3};
  auto const r = adaptive_range(view(k));
  CHECK(r.from == -1);
  CHECK(r.to == 5);
  CHECK(adaptive_range(view(k), 1.0).to == 3);
}

TEST_CASE("temperature: softplus up to the cap, where the gradient stops") {
  temperature<double> const free{}, capped{1.0};
  CHECK(near(free.value(0), ln2));
  CHECK(free.slope(0) == 0.5);
  CHECK(near(free.value(-700), std::exp(-700)));
  CHECK(capped.value(0) == free.value(0));
  CHECK(capped.value(3) == 1);
  CHECK(capped.slope(3) == 0);
  CHECK(temperature<double>{free.value(0)}.slope(0) == 0.5);  // at the cap: still below it
  for (double tau : {1e-300, 1e-3, 0.35, 40.0}) CHECK(near(free.value(free.inverse(tau)), tau, 1e-13));
}

TEST_CASE("temperature: the penalty and its gradient") {
  numbers const tau{0, 1, 3};
  numbers d(3, 1.0);
  CHECK(near(temperature_penalty(view(tau), std::span(d), 2.0), 3 * ln2));
  CHECK(d == numbers{3, 2, 1.5});
}

/// The gradients of the whole against differences of it.
TEST_CASE("combined: gradients by central differences") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> draw(-1, 1);
  auto const drawn = [&](std::size_t n) {
    numbers x(n);
    for (double& e : x) e = draw(random);
    return x;
  };
  numbers w = drawn(2 * 2 * 3 * 4), q = drawn(2 * 2 * 3), k = drawn(2 * 1 * 4), tau{0.3, 2};
  for (double& x : w) x *= x;
  shape const ws{2, 2, 3, 4}, qs{2, 2, 3, 1}, ks{2, 1, 4, 1};
  combination<double> const c{.alignment = 0.7, .spread = 1.3, .temperature = 0.1, .over = range<double>{-2, 2}};
  auto const loss = [&] { return combined(c, tensor(w, ws), tensor(q, qs), tensor(k, ks), view(tau)).total; };
  numbers dq(q.size(), 0.0), dk(k.size(), 0.0), dtau(2, 0.0);
  auto const terms = combined(c, tensor(w, ws), tensor(q, qs), tensor(k, ks), view(tau),
                              {tensor(dq, qs), tensor(dk, ks), std::span(dtau)});
  CHECK(near(terms.total, 0.7 * terms.alignment + 1.3 * terms.spread + 0.1 * terms.temperature));
  auto const compare = [&](numbers& x, numbers const& d) {
    for (std::size_t n = 0; n < x.size(); ++n) {
      double const x0 = x[n], step = 1e-5;
      x[n] = x0 + step;
      double const up = loss();
      x[n] = x0 - step;
      double const down = loss();
      x[n] = x0;
      CHECK(std::fabs((up - down) / (2 * step) - d[n]) < 1e-9);
    }
  };
  compare(q, dq);
  compare(k, dk);
  compare(tau, dtau);
}

TEST_CASE("combined: a term with coefficient 0 is not computed, the adaptive range is per sequence") {
  numbers const w{nan}, q{nan}, k{0, 4, 10, 14}, tau{-1};
  numbers dk(4, 0.0);
  auto const c = combined(combination<double>{.spread = 1}, tensor(w, shape{1, 1, 1, 1}), tensor(q, shape{1, 1, 1, 1}),
                          tensor(k, shape{1, 2, 2, 1}), view(tau), {{}, tensor(dk, shape{1, 2, 2, 1}), {}});
  CHECK(c.alignment == 0);
  CHECK(c.temperature == 0);
  CHECK(c.total == 16);  // keys 0 and 4 want to be at -4 and 8, 10 and 14 at 6 and 18
  CHECK(dk == numbers{2, -2, 2, -2});
}

TEST_CASE("regularizers: bad input is named") {
  numbers const w{1, 0}, k{1, 2}, bad{0, nan}, q{0};
  numbers d(3, 0.0);
  CHECK(error_of([&] { split_alignment(view(w), 0.0, view(q)); }) ==
        "attune::regularizer::split_alignment: keys has 1 elements; expected 2, one per weight");
  CHECK(error_of([&] {
          alignment(tensor(w, shape{1, 1, 1, 2}), tensor(q, shape{1, 1, 1, 1}), tensor(q, shape{1, 1, 1, 1}));
        }) == "attune::regularizer::alignment: sort_k has shape (1, 1, 1, 1); expected shape (1, 1, 2, 1)");
  CHECK(error_of([&] { spread(view(bad), {0.0, 1.0}); }) ==
        "attune::regularizer::spread: keys has the value nan at 1; expected finite numbers");
  CHECK(error_of([&] { spread(view(k), {1.0, 0.0}); }) ==
        "attune::regularizer::spread: over has the range 1 to 0; expected finite ends, the smaller one first");
  CHECK(error_of([&] { spread(view(k), {0.0, 1.0}, targets::midpoints, std::span(d)); }) ==
        "attune::regularizer::spread: d has 3 elements; expected 2, one per key");
  CHECK(error_of([&] { spread(view(), {0.0, 1.0}); }) ==
        "attune::regularizer::spread: keys has no element; expected at least one");
  CHECK(error_of([&] { temperature_penalty(view(bad)); }) ==
        "attune::regularizer::temperature_penalty: tau has the value nan at 1; expected finite numbers >= 0");
  CHECK(error_of([] { temperature<double>::inverse(0); }) ==
        "attune::regularizer::temperature::inverse: tau has the value 0; expected a finite number > 0");
}

}  // namespace
}  // namespace attune::test
