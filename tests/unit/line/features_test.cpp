// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <support/line_problem.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace attune::test {
namespace {

using numbers = std::vector<double>;

template <class Map>
double kernel_error(Map const& map, double tau, double reach) {
  numbers a(std::size_t(map.size())), b = a, slope = a;
  double worst = 0;
  for (double q = -reach; q <= reach; q += reach / 10)
    for (double k = -reach; k <= reach; k += reach / 7) {
      map(q, a.data(), slope.data());
      map(k, b.data(), slope.data());
      double sum = 0;
      for (std::size_t m = 0; m < a.size(); ++m) sum += a[m] * b[m];
      worst = std::max(worst, std::fabs(sum - std::exp(-(q - k) * (q - k) / tau)));
    }
  return worst;
}

TEST_CASE("features: products are near the kernel, nearer with more of them") {
  numbers places;
  for (int n = 0; n <= 200; ++n) places.push_back(0.02 * (n - 100));
  using namespace line;
  double const few = kernel_error(line::detail::fourier_map(fourier_features{1, 64}, 0.5, {}), 0.5, 2),
               many = kernel_error(line::detail::fourier_map(fourier_features{1, 20000}, 0.5, {}), 0.5, 2);
  CHECK(few < 0.6);  // 5 / sqrt(64)
  CHECK(many < 0.035);
  CHECK(many < few);
  CHECK(kernel_error(line::detail::nystroem_map(nystroem{1, 30}, 0.5, places), 0.5, 2) < 1e-6);
  CHECK(kernel_error(line::detail::nystroem_map(nystroem{1, 4}, 0.5, places), 0.5, 2) > 0.05);
}

/// One head of a random problem.
line_problem one_head(index_t lq, index_t lk) {
  line_problem p = random_line(lie::normal, lie::normal, lq, lk, 3);
  p.batch = p.heads = p.key_heads = 1;
  p.q.resize(std::size_t(lq)), p.k.resize(std::size_t(lk)), p.v.resize(std::size_t(lk * p.width));
  p.by.resize(std::size_t(lq * p.width)), p.by_lse.resize(std::size_t(lq)), p.tau.assign(1, 0.5);
  return p;
}

TEST_CASE("features: rows are those of the kernel that the features make") {
  line_problem const p = one_head(9, 40);
  line::fourier_features const op{0.5, 500};
  line::detail::fourier_map const map(op, 0.5, {});
  auto const got = results_on(cpu<double>{}, op, p);
  numbers a(std::size_t(map.size())), b = a, slope = a;
  for (std::size_t i = 0; i < 9; ++i) {
    double mass = 0, sum = 0;
    map(p.q[i], a.data(), slope.data());
    for (std::size_t j = 0; j < 40; ++j) {
      map(p.k[j], b.data(), slope.data());
      double w = 0;
      for (std::size_t m = 0; m < a.size(); ++m) w += a[m] * b[m];
      mass += w;
      sum += w * p.v[j * std::size_t(p.width)];
    }
    if (!(mass > 0)) continue;
    CHECK(near(got.out[i * std::size_t(p.width)], sum / mass, 1e-9));
    CHECK(near(got.lse[i], std::log(mass), 1e-9));
  }
}

template <class Op>
void check_gradients(Op const& op, line_problem p, bool with_tau) {
  auto const g = results_on(cpu<double>{}, op, p);
  auto const objective = [&](Op const& at) {
    line_results r(p);
    forward(cpu<double>{}, at, p.in<Op>(), p.to<Op>(r.out, r.lse));
    double sum = 0;
    for (std::size_t n = 0; n < r.out.size(); ++n) sum += p.by[n] * r.out[n];
    for (std::size_t n = 0; n < r.lse.size(); ++n) sum += p.by_lse[n] * r.lse[n];
    return sum;
  };
  double const step = 1e-6;
  auto const check = [&](numbers& x, numbers const& slope, std::size_t first) {
    for (std::size_t n = first; n < x.size(); n += 3) {
      double const at = x[n];
      x[n] = at + step;
      double const above = objective(op);
      x[n] = at - step;
      double const below = objective(op);
      x[n] = at;
      CHECK(std::fabs((above - below) / (2 * step) - slope[n]) < 1e-5 * (1 + std::fabs(slope[n])));
    }
  };
  check(p.q, g.q, 0);
  check(p.v, g.v, 0);
  // Of keys, those whose features are none of the landmarks.
  if (with_tau) {
    check(p.k, g.k, 0);
    Op more = op, less = op;
    more.tau = 0.5 + step, less.tau = 0.5 - step;
    CHECK(std::fabs((objective(more) - objective(less)) / (2 * step) - g.tau[0]) < 1e-5 * (1 + std::fabs(g.tau[0])));
  }
}

TEST_CASE("features: gradients by differences") {
  line_problem const p = one_head(6, 12);
  check_gradients(line::fourier_features{0.5, 200}, p, true);
  check_gradients(line::nystroem{0.5, 5}, p, false);
}

TEST_CASE("features: a row without mass is counted, bad input refused in words") {
  numbers const q{100}, k{0, 1}, v{1, 2};
  numbers out(1), lse(1);
  shape const one{1, 1, 1, 1}, two{1, 1, 2, 1};
  auto const call = [&](line::nystroem const& op) {
    return forward(cpu<double>{}, op, {.v = tensor(v, two), .sort_q = tensor(q, one), .sort_k = tensor(k, two)},
                   {.out = tensor(out, one), .lse = natural_lse<double>(tensor(lse, one))});
  };
  CHECK(call({1e-3, 2}).rows_without_mass == 1);
  CHECK(out[0] == 0);
  CHECK(lse[0] == -inf);
  CHECK(error_of([&] { call({1.0, 0}); }).find("landmarks") != std::string::npos);
  // Landmarks are held still: there is no gradient by tau to ask for.
  auto const g = vjp(cpu<double>{}, line::nystroem{1.0, 2},
                     {.v = tensor(v, two), .sort_q = tensor(q, one), .sort_k = tensor(k, two)},
                     {.out = tensor<double const>(v.data(), one)});
  CHECK(error_of([&] { static_cast<void>(g.parameter("tau")); }).find("no such parameter") != std::string::npos);
}

}  // namespace
}  // namespace attune::test
