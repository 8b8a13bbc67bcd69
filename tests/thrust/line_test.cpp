// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators on a line on Thrust against those of the CPU: however scalars lie, grouped keys and values, every
// tie.
#include <cmath>
#include <utility>
#include <vector>

#include <support/line_in_long_double.hpp>
#include <support/line_problem.hpp>
#include <thrust/system/omp/execution_policy.h>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>
#include <attune/line/thrust/gaussian.hpp>
#include <attune/line/thrust/laplacian_vjp.hpp>
#include <attune/line/thrust/sliced_relu_vjp.hpp>

namespace attune::test {
namespace {

/// out and lse of one call.
struct outputs_of {
  std::vector<double> out, lse;
  outputs_of(line_problem const& p) : out(std::size_t(p.query_side(p.width).size())), lse(p.q.size()) {}
};
template <class Op, class Exec>
outputs_of called(Exec const& exec, Op const& op, line_problem const& p) {
  outputs_of r(p);
  forward(exec, op, p.in<Op>(), p.to<Op>(r.out, r.lse));
  return r;
}

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

template <class Op>
void check_on(line_problem const& p, Op const& op) {
  outputs_of const right = called(cpu<double>{}, op, p);
  for (auto const& got :
       {called(thrust_on<double>(::thrust::host), op, p), called(thrust_on<double>(::thrust::omp::par), op, p)}) {
    CHECK(away(got.out, right.out) < 1e-12);
    CHECK(away(got.lse, right.lse) < 1e-12);
  }
}
template <class Op>
void check_gradients_on(line_problem const& p, Op const& op) {
  if (p.queries == 0) return;
  line_results const right = results_on(cpu<double>{}, op, p);
  for (auto const& got : {results_on(thrust_on<double>(::thrust::host), op, p),
                          results_on(thrust_on<double>(::thrust::omp::par), op, p)}) {
    CHECK(away(got.q, right.q) < 1e-11);
    CHECK(away(got.k, right.k) < 1e-11);
    CHECK(away(got.v, right.v) < 1e-11);
    double size = 0;
    for (double const x : right.tau) size += std::fabs(x);
    for (std::size_t n = 0; n < right.tau.size(); ++n) CHECK(std::fabs(got.tau.at(n) - right.tau[n]) <= 1e-9 * size);
  }
}

TEST_SUITE("full line on thrust") {
  TEST_CASE("thrust: laplacian on a line") {
    for_each_line([](line_problem const& p) {
      check_on(p, line::laplacian{0.7});
      check_on(p, line::laplacian{per_head(p.tau)});
    });
  }
  TEST_CASE("thrust: gradients of the laplacian") {
    for_each_line([](line_problem const& p) {
      check_gradients_on(p, line::laplacian{0.7});
      check_gradients_on(p, line::laplacian{per_head(p.tau)});
    });
  }
  TEST_CASE("thrust: sliced ReLU and its gradients") {
    for_each_line([](line_problem const& p) {
      auto const check = [&](auto const& normalizer) {
        check_on(p, line::sliced_relu{normalizer});
        check_gradients_on(p, line::sliced_relu{normalizer});
      };
      check(normalizer::relu{});
      check(normalizer::mean_relu{});
      check(normalizer::normalized_relu{});
    });
  }

  TEST_CASE("thrust: windows keep what their certificate says") {
    for_each_line([](line_problem const& p) {
      using Op = line::gaussian<>;
      outputs_of right(p);
      auto const exact = forward(cpu<double>{}, Op{per_head(p.tau), 1e-12}, p.in<Op>(), p.to<Op>(right.out, right.lse));
      for (double const tolerance : {1e-3, 1e-8}) {
        outputs_of got(p);
        auto const c = forward(thrust_on<double>(::thrust::omp::par), Op{per_head(p.tau), tolerance}, p.in<Op>(),
                               p.to<Op>(got.out, got.lse));
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
    using Op = line::gaussian<>;
    auto const c = forward(thrust_on<double>(::thrust::host), Op{1e-3, 1e-2}, p.in<Op>(), p.to<Op>(got.out, got.lse));
    CHECK(c.discarded > 1e-9);
    CHECK(c.boxes == p.batch * p.heads * p.queries);
  }

  TEST_CASE("thrust: the laplacian of 100,000 keys is exact to rounding") {
    constexpr index_t n = 100000;
    line_problem p;
    p.queries = p.keys = n;
    for (index_t i = 0; i < n; ++i) {
      p.q.push_back(40 * std::sin(double(i) * 0.7) * std::sin(double(i)));
      p.k.push_back(40 * std::sin(double(i) * 1.3) * std::cos(double(i) * 0.9));
      p.v.push_back(std::cos(double(i)));
    }
    p.by.resize(n), p.by_lse.resize(n);
    using wide = long double;
    line::laplacian const op{0.05};
    std::vector<wide> const exact = in_long_double(op, p).out;
    for (bool const parallel : {false, true}) {
      std::vector<double> const got = parallel ? called(thrust_on<double>(::thrust::omp::par), op, p).out
                                               : called(thrust_on<double>(::thrust::host), op, p).out;
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) worst = std::fmax(worst, double(std::fabs(wide(got[i]) - exact[i])));
      MESSAGE((parallel ? "omp" : "cpp") << ": worst error " << worst);
      CHECK(worst <= 0x1p-53 * (8.0 * n + 6 * 80 / 0.05 + 12 * std::log(n + 1.0) + 64));
    }
  }

  TEST_CASE("thrust: what operators on a line refuse") {
    line_problem const p = random_line(lie::normal, lie::normal, 4, 4, 1);
    auto const refused = [&](auto const& op, char const* what) {
      std::string const said = error_of([&] { called(thrust_on<double>(::thrust::host), op, p); });
      INFO(said);
      CHECK(said.find(what) != std::string::npos);
    };
    refused(line::gaussian{1.0, 1e-15}, "tolerance");
    refused(line::laplacian{-1.0}, "tau");
    std::vector<double> const taus(std::size_t(p.heads * p.queries), 1.0);
    refused(line::laplacian{per_query(taus, p.heads)}, "one value per query");
  }
}

}  // namespace
}  // namespace attune::test
