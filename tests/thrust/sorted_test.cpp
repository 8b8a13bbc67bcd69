// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operators on sorted keys on Thrust against those of the CPU: however scalars lie, grouped keys and values, every
// tie.
#include <cmath>
#include <utility>
#include <vector>

#include <thrust/system/omp/execution_policy.h>

#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/sliced_relu.hpp>
#include <attune/sorted/thrust/gaussian.hpp>
#include <attune/sorted/thrust/laplacian_vjp.hpp>
#include <attune/sorted/thrust/sliced_relu_vjp.hpp>

#include "../support/line_problem.hpp"
#include "../unit/check.hpp"

namespace attune::test {
namespace {

using sorted::visibility;

/// out and lse of either; what forward() returns goes to `certificate`.
struct outputs_of {
  std::vector<double> out, lse;
  outputs_of(line_problem const& p) : out(std::size_t(p.query_side(p.width).size())), lse(p.q.size()) {}
  sorted::results<double> views(line_problem const& p, bool with_lse) {
    return {tensor(out, p.query_side(p.width)), with_lse ? tensor(lse, p.query_side()) : tensor<double>()};
  }
};

template <class F>
void for_each_line(F const& f) {
  static std::pair<index_t, index_t> const lengths[] = {{65, 65}, {20, 131}, {70, 33}, {1, 64}, {3, 0}, {0, 5}};
  unsigned seed = 0;
  for (lie const keys : {lie::normal, lie::clustered, lie::equal, lie::tied, lie::heavy, lie::far})
    for (auto const& length : lengths) {
      lie const queries = ++seed % 3 == 0 ? keys : lie::normal;
      INFO("keys ", int(keys), " queries ", int(queries), " ", length.first, " x ", length.second);
      line_problem p = random_line(queries, keys, length.first, length.second, seed);
      p.width = seed % 2 == 0 ? 5 : 11;  // one piece of features, and two
      p.v.resize(std::size_t(p.value_side().size()));
      p.by.resize(std::size_t(p.query_side(p.width).size()));
      for (std::size_t n = 0; n < p.by.size(); ++n) p.by[n] = std::cos(0.9 * double(n));
      for (std::size_t n = 0; n < p.v.size(); ++n) p.v[n] = std::sin(1.3 * double(n));
      f(p);
    }
}

template <class Op, class Compare>
void check_on(line_problem const& p, Op const& op, bool with_lse, Compare const& compare) {
  outputs_of cpu(p), cpp(p), omp(p);
  sorted::forward(op, p.arrays(), cpu.views(p, with_lse));
  sorted::forward(thrust_on<double>(::thrust::host), op, p.arrays(), cpp.views(p, with_lse));
  sorted::forward(thrust_on<double>(::thrust::omp::par), op, p.arrays(), omp.views(p, with_lse));
  compare(cpp, cpu);
  compare(omp, cpu);
}

TEST_SUITE("full sorted on thrust") {
  TEST_CASE("thrust: sorted laplacian") {
    for_each_line([](line_problem const& p) {
      for (parameter const& tau : {parameter(0.7), per_head(p.tau)})
        check_on(p, sorted::laplacian{tau}, true, [](outputs_of const& got, outputs_of const& right) {
          CHECK(away(got.out, right.out) < 1e-12);
          CHECK(away(got.lse, right.lse) < 1e-12);
        });
    });
  }

  TEST_CASE("thrust: gradients of the sorted laplacian") {
    for_each_line([](line_problem const& p) {
      if (p.queries == 0) return;
      line_results const right = sorted_results(sorted::laplacian{per_head(p.tau)}, p, true, true);
      auto const check = [&](auto const& exec, index_t bandwidths) {
        line_results got(p);
        got.tau.resize(std::size_t(bandwidths));
        sorted::gradients<double> const d{tensor(got.q, p.query_side()), tensor(got.k, p.key_side()),
                                          tensor(got.v, p.value_side()), tensor(got.tau, shape{1, bandwidths, 1, 1})};
        sorted::vjp(exec, sorted::laplacian{per_head(p.tau)}, p.arrays(), p.cotangents(), d);
        CHECK(away(got.q, right.q) < 1e-11);
        CHECK(away(got.k, right.k) < 1e-11);
        CHECK(away(got.v, right.v) < 1e-11);
        if (bandwidths > 1) {
          CHECK(away(got.tau, right.tau) < 1e-9);
        } else {
          double sum = 0, size = 0;
          for (double const x : right.tau) sum += x, size += std::fabs(x);
          CHECK(std::fabs(got.tau[0] - sum) <= 1e-9 * size);
        }
      };
      check(thrust_on<double>(::thrust::host), p.heads);
      check(thrust_on<double>(::thrust::omp::par), 1);
    });
  }

  TEST_CASE("thrust: sliced ReLU") {
    for_each_line([](line_problem const& p) {
      for (divisor const by : {divisor::one, divisor::count, divisor::sum})
        check_on(p, sorted::sliced_relu{by}, by == divisor::sum, [](outputs_of const& got, outputs_of const& right) {
          CHECK(away(got.out, right.out) < 1e-12);
          CHECK(away(got.lse, right.lse) < 1e-12);
        });
    });
  }

  TEST_CASE("thrust: gradients of sliced ReLU") {
    for_each_line([](line_problem const& p) {
      if (p.queries == 0) return;
      for (divisor const by : {divisor::one, divisor::count, divisor::sum}) {
        sorted::sliced_relu const op{by};
        line_results const right = sorted_results(op, p, by == divisor::sum, false);
        auto const check = [&](auto const& exec) {
          line_results got(p);
          auto cotangents = p.cotangents();
          if (by != divisor::sum) cotangents.lse = {};
          sorted::vjp(exec, op, p.arrays(), cotangents,
                      {tensor(got.q, p.query_side()), tensor(got.k, p.key_side()), tensor(got.v, p.value_side()), {}});
          CHECK(away(got.q, right.q) < 1e-11);
          CHECK(away(got.k, right.k) < 1e-11);
          CHECK(away(got.v, right.v) < 1e-11);
        };
        check(thrust_on<double>(::thrust::host));
        check(thrust_on<double>(::thrust::omp::par));
      }
    });
  }

  TEST_CASE("thrust: windows keep what their certificate says") {
    for_each_line([](line_problem const& p) {
      sorted::gaussian const fine{per_head(p.tau), 1e-12};
      outputs_of right(p);
      auto const exact = sorted::forward(fine, p.arrays(), right.views(p, true));
      for (double const tolerance : {1e-3, 1e-8}) {
        outputs_of got(p);
        auto const c = sorted::forward(thrust_on<double>(::thrust::omp::par),
                                       sorted::gaussian{per_head(p.tau), tolerance}, p.arrays(), got.views(p, true));
        CHECK(c.discarded <= 1.01 * tolerance);
        double worst = 0, worst_lse = 0;
        for (std::size_t n = 0; n < got.out.size(); ++n) worst = std::fmax(worst, std::fabs(got.out[n] - right.out[n]));
        for (std::size_t n = 0; n < got.lse.size(); ++n)
          if (got.lse[n] != right.lse[n])
            worst_lse = std::fmax(worst_lse, std::fabs(got.lse[n] - right.lse[n]) / (1 + std::fabs(right.lse[n])));
        CHECK(worst <= (c.output() + exact.output()) * largest(p.v) + 1e-300);
        CHECK(worst_lse <= c.lse() + exact.lse() + 1e-15);
      }
    });
  }

  TEST_CASE("thrust: a certificate is not idle, a window smaller than it says is noticed") {
    line_problem const p = random_line(lie::normal, lie::normal, 200, 4000, 5);
    outputs_of got(p);
    auto const c = sorted::forward(thrust_on<double>(::thrust::host), sorted::gaussian{1e-3, 1e-2}, p.arrays(),
                                   got.views(p, false));
    CHECK(c.discarded > 1e-9);
    CHECK(c.boxes == p.batch * p.heads * p.queries);
  }

  TEST_CASE("thrust: the laplacian of 100,000 keys is exact to rounding") {
    constexpr index_t n = 100000;
    std::vector<double> q(n), k(n), v(n), got(n);
    for (index_t i = 0; i < n; ++i) {
      q[std::size_t(i)] = 40 * std::sin(double(i) * 0.7) * std::sin(double(i));
      k[std::size_t(i)] = 40 * std::sin(double(i) * 1.3) * std::cos(double(i) * 0.9);
      v[std::size_t(i)] = std::cos(double(i));
    }
    shape const s{1, 1, n, 1};
    using wide = long double;
    std::vector<wide> const wq(q.begin(), q.end()), wk(k.begin(), k.end()), wv(v.begin(), v.end());
    std::vector<wide> exact(n);
    sorted::forward<wide>(sorted::laplacian{0.05}, {tensor(wq, s), tensor(wk, s), tensor(wv, s)},
                          {tensor(exact, s), {}});
    for (bool const parallel : {false, true}) {
      auto const run = [&](auto const& exec) {
        sorted::forward(exec, sorted::laplacian{0.05}, {tensor(q, s), tensor(k, s), tensor(v, s)},
                        {tensor(got, s), {}});
      };
      if (parallel)
        run(thrust_on<double>(::thrust::omp::par));
      else
        run(thrust_on<double>(::thrust::host));
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) worst = std::fmax(worst, double(std::fabs(wide(got[i]) - exact[i])));
      MESSAGE((parallel ? "omp" : "cpp") << ": worst error " << worst);
      CHECK(worst <= 0x1p-53 * (8.0 * n + 6 * 80 / 0.05 + 12 * std::log(n + 1.0) + 64));
    }
  }

  TEST_CASE("thrust: what sorted operators refuse") {
    line_problem const p = random_line(lie::normal, lie::normal, 4, 4, 1);
    outputs_of to(p);
    auto const exec = thrust_on<double>(::thrust::host);
    std::vector<index_t> const ids{1, 1, 2, 2};
    for (auto const& [sees, name] :
         {std::pair(visibility::causal, "the value causal;"),
          std::pair(visibility::causal_window(2), "the value causal_window(2);"),
          std::pair(visibility::window(3), "the value window(3);"),
          std::pair(visibility::full.within(ids, ids), "the value full within documents;")}) {
      auto const refused = [&, &rule = name](auto const& call) {
        std::string const said = error_of(call);
        INFO(said);
        CHECK(said.find(rule) != std::string::npos);
        CHECK(said.find("expected full") != std::string::npos);
      };
      line_results d(p);
      sorted::gradients<double> const by{
          tensor(d.q, p.query_side()), tensor(d.k, p.key_side()), tensor(d.v, p.value_side()), {}};
      auto cotangents = p.cotangents();
      refused([&, &s = sees] { sorted::forward(exec, sorted::laplacian{1.0, s}, p.arrays(), to.views(p, true)); });
      refused([&, &s = sees] { sorted::vjp(exec, sorted::laplacian{1.0, s}, p.arrays(), cotangents, by); });
      refused([&, &s = sees] { sorted::forward(exec, sorted::gaussian{1.0, 1e-6, s}, p.arrays(), to.views(p, true)); });
      cotangents.lse = {};
      refused([&, &s = sees] {
        sorted::forward(exec, sorted::sliced_relu{divisor::one, s}, p.arrays(), to.views(p, false));
      });
      refused([&, &s = sees] { sorted::vjp(exec, sorted::sliced_relu{divisor::one, s}, p.arrays(), cotangents, by); });
    }
    CHECK(error_of([&] {
            sorted::forward(exec, sorted::sliced_relu{divisor::one}, p.arrays(), to.views(p, true));
          }).find("lse") != std::string::npos);
    CHECK(error_of([&] {
            sorted::forward(exec, sorted::gaussian{1.0, 1e-15}, p.arrays(), to.views(p, true));
          }).find("tolerance") != std::string::npos);
    CHECK(error_of([&] {
            sorted::forward(exec, sorted::laplacian{-1.0}, p.arrays(), to.views(p, true));
          }).find("tau") != std::string::npos);
  }
}

}  // namespace
}  // namespace attune::test
