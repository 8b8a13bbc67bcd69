// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <utility>
#include <vector>

#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/sliced_relu.hpp>

#include "../../support/line_problem.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using sorted::visibility;
using numbers = std::vector<double>;

/// One head, values of width 1.
template <class Op>
std::pair<numbers, numbers> row(Op const& op, numbers const& q, numbers const& k, numbers const& v,
                                bool with_lse = true) {
  shape const queries{1, 1, index_t(q.size()), 1}, keys{1, 1, index_t(k.size()), 1};
  numbers out(q.size()), lse(q.size());
  sorted::forward<double>(op, {tensor(q, queries), tensor(k, keys), tensor(v, keys)},
                          {tensor(out, queries), with_lse ? tensor(lse, queries) : tensor<double>()});
  return {out, lse};
}

TEST_CASE("sorted laplacian: by hand") {
  double const t = 1 / ln2;  // masses 2^-distance
  auto const [out, lse] = row(sorted::laplacian{t}, {1, 0}, {2, 0, 3}, {10, 30, 40});
  CHECK(near(out[0], (0.5 * 10 + 0.5 * 30 + 0.25 * 40) / 1.25));
  CHECK(near(lse[0], std::log(1.25)));
  CHECK(near(out[1], (0.25 * 10 + 30 + 0.125 * 40) / 1.375));
  auto const causal = row(sorted::laplacian{t, visibility::causal}, {1, 0}, {2, 0, 3}, {10, 30, 40}).first;
  CHECK(near(causal[0], 20));  // offset 1: the first query sees two keys
  CHECK(near(causal[1], out[1]));
}

TEST_CASE("sorted sliced ReLU: by hand") {
  auto const of = [](divisor by) {
    return row(sorted::sliced_relu{by}, {1, 3}, {2, 0, 2.5}, {10, 20, 40}, by == divisor::sum);
  };
  CHECK(of(divisor::one).first == numbers{20, 90});  // 1 * 20; 1 * 10 + 3 * 20 + 0.5 * 40
  CHECK(near(of(divisor::count).first[0], 20.0 / 3));
  CHECK(near(of(divisor::count).first[1], 30));
  CHECK(near(of(divisor::sum).first[1], 20));
  CHECK(near(of(divisor::sum).second[1], std::log(4.5)));
  CHECK(row(sorted::sliced_relu{divisor::sum}, {-1}, {2}, {10}).first[0] == 0);  // nothing on the left
}

TEST_CASE("sorted gaussian: by hand") {
  auto const [out, lse] = row(sorted::gaussian{1 / ln2, 1e-12}, {1}, {2, 0, 3}, {10, 20, 40});  // masses 2^-distance^2
  CHECK(near(out[0], (0.5 * 10 + 0.5 * 20 + 0.0625 * 40) / 1.0625));
  CHECK(near(lse[0], std::log(1.0625)));
}

TEST_CASE("sorted kernels: tau to 0 is the nearest key, ties share; tau to inf is the mean") {
  numbers const q{0, 2.4, -50}, k{1, -1, 3, 4}, v{1, 2, 4, 9};
  for (double const tau : {1e-3, 1e-9}) {
    CHECK(row(sorted::laplacian{tau}, q, k, v).first == numbers{1.5, 4, 2});
    CHECK(row(sorted::gaussian{tau, 1e-9}, q, k, v).first == numbers{1.5, 4, 2});
  }
  for (double const out : row(sorted::laplacian{1e12}, q, k, v).first) CHECK(near(out, 4, 1e-10));
  for (double const out : row(sorted::gaussian{1e12, 1e-9}, q, k, v).first) CHECK(near(out, 4, 1e-8));
}

TEST_CASE("sorted kernels: without a key out is 0, without a query nothing happens") {
  CHECK(row(sorted::laplacian{1.0}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(sorted::gaussian{1.0}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(sorted::sliced_relu{divisor::sum}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(sorted::sliced_relu{divisor::count}, {1}, {}, {}, false).first == numbers{0});
  CHECK(row(sorted::laplacian{1.0}, {}, {1}, {2}).first.empty());
  auto const causal =
      row(sorted::laplacian{1.0, visibility::causal}, {1, 1}, {5}, {7});  // the first query sees nothing
  CHECK(causal.first == numbers{0, 7});
  CHECK(causal.second == numbers{-inf, -4});
}

TEST_CASE("sorted kernels: NaN in values that a query does not see stays away") {
  numbers q(200, 0.0), k(200, 0.0), v(200, 1.0);
  for (std::size_t n = 0; n < 200; ++n) q[n] = k[n] = std::sin(double(n));
  v[150] = nan;
  for (auto const& out : {row(sorted::laplacian{1.0, visibility::causal}, q, k, v).first,
                          row(sorted::sliced_relu{divisor::sum, visibility::causal}, q, k, v).first})
    for (std::size_t i = 1; i < 150; ++i) CHECK((out[i] == 0 || near(out[i], 1)));
}

TEST_CASE("sorted kernels: rounding within the stated bounds, against long double") {
  constexpr double u = 0x1p-53;
  unsigned seed = 100;
  for (lie const keys : {lie::normal, lie::clustered, lie::heavy, lie::far})
    for (auto const& sees : {visibility::full, visibility::causal, visibility::causal_window(90)}) {
      line_problem const p = random_line(lie::normal, keys, 200, 200, ++seed);
      double const n = double(p.keys), v = largest(p.v),
                   far = keys == lie::far ? 1010 : 30;  // no query is farther from a key
      sorted::laplacian const laplace{per_head(p.tau), sees};
      auto const got = outputs_in<double>(laplace, p);
      auto const exact = outputs_in<long double>(laplace, p);
      double worst = 0;
      for (std::size_t x = 0; x < got.size(); ++x) worst = std::max(worst, double(std::fabs(got[x] - exact[x])));
      CHECK(worst <= u * (8 * n + 6 * far / 0.3 + 12 * std::log(n + 1) + 64) * v);

      sorted::sliced_relu const relu{divisor::one, sees};
      auto const sums = outputs_in<double>(relu, p);
      auto const right = outputs_in<long double>(relu, p);
      line_problem absolute = p;
      for (double& x : absolute.v) x = std::fabs(x);
      auto const condition = outputs_in<double>(relu, absolute);
      double share = 0;
      for (std::size_t x = 0; x < sums.size(); ++x)
        if (condition[x] > 0) share = std::max(share, double(std::fabs(sums[x] - right[x])) / condition[x]);
      CHECK(share <= 4 * (n + 8) * u);
    }
}

TEST_CASE("sorted gaussian: the certificate holds against long double, in float and double") {
  for (lie const keys : {lie::normal, lie::clustered, lie::equal, lie::heavy})
    for (double const tolerance : {1e-2, 1e-5, 1e-9}) {
      line_problem p = random_line(lie::normal, keys, 300, 300, 3);
      for (auto* x : {&p.q, &p.k, &p.v})
        for (double& e : *x) e = double(float(e));
      p.tau.assign(4, 0.5);
      sorted::gaussian const op{0.5, tolerance};
      numbers out(std::size_t(p.query_side(p.width).size()));
      auto const c = sorted::forward<double>(op, p.arrays(), {tensor(out, p.query_side(p.width)), {}});
      CHECK(c.expanded > 0);
      CHECK(c.discarded <= 0.51 * tolerance);
      CHECK(c.truncated <= 0.51 * tolerance);
      auto const in_float = outputs_in<float>(op, p);
      double worst = 0, worst_float = 0;
      for (index_t h = 0; h < p.heads; ++h)  // of the first batch
        for (index_t i = 0; i < p.queries; i += 7) {
          long double mass = 0, sum = 0;
          double const q = p.q[std::size_t(h * p.queries + i)];
          for (index_t j = 0; j < p.keys; ++j) {
            long double const e = static_cast<long double>(q) - p.k[std::size_t(h / 2 * p.keys + j)];
            long double const w = std::exp(-e * e * 2);
            mass += w;
            sum += w * p.v[std::size_t(j * p.width)];
          }
          std::size_t const at = std::size_t((h * p.queries + i) * p.width);
          worst = std::max(worst, double(std::fabs(out[at] - sum / mass)));
          worst_float = std::max(worst_float, double(std::fabs(in_float[at] - sum / mass)));
        }
      CHECK(worst <= c.output() * largest(p.v));
      CHECK(worst_float <= (c.output() + 0x1p-24) * largest(p.v));
    }
}

TEST_CASE("sorted kernels: bitwise the same for any number of threads") {
  line_problem const p = random_line(lie::tied, lie::normal, 150, 150, 9);
  auto const check = [&](auto const& op) {
    auto const with = [&](int threads) {
      line_results r(p);
      auto by = p.cotangents();
      by.lse = {};
      sorted::forward(op, p.arrays(), {tensor(r.out, p.query_side(p.width)), {}}, {threads});
      sorted::vjp(op, p.arrays(), by,
                  {tensor(r.q, p.query_side()), tensor(r.k, p.key_side()), tensor(r.v, p.value_side()), {}}, {threads});
      return r;
    };
    auto const one = with(1), three = with(3);
    CHECK(one.out == three.out);
    CHECK(one.q == three.q);
    CHECK(one.k == three.k);
    CHECK(one.v == three.v);
  };
  check(sorted::laplacian{0.3, visibility::causal});
  check(sorted::sliced_relu{divisor::sum});
  check(sorted::gaussian{0.3});
}

TEST_CASE("sorted kernels: strided tensors, one tau and its gradient for all heads") {
  line_problem const p = random_line(lie::normal, lie::normal, 40, 50, 4);
  auto const in = p.arrays();
  auto transposed = in;  // features outermost
  numbers v(p.v.size());
  index_t const keys = p.keys, width = p.width;
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t j = 0; j < keys; ++j)
      for (index_t d = 0; d < width; ++d) v[std::size_t((b * width + d) * keys + j)] = in.v(b, 0, j, d);
  transposed.v = tensor<double const>(v.data(), p.value_side(), {width * keys, 0, 1, keys});
  numbers a(std::size_t(p.query_side(width).size())), b = a, tau(1), each(4);
  sorted::forward(sorted::laplacian{0.5}, in, {tensor(a, p.query_side(width)), {}});
  sorted::forward(sorted::laplacian{0.5}, transposed, {tensor(b, p.query_side(width)), {}});
  CHECK(a == b);
  sorted::vjp(sorted::laplacian{0.5}, in, p.cotangents(), {{}, {}, {}, tensor(tau, shape{1, 1, 1, 1})});
  sorted::vjp(sorted::laplacian{0.5}, in, p.cotangents(), {{}, {}, {}, tensor(each, shape{1, 4, 1, 1})});
  CHECK(near(tau[0], each[0] + each[1] + each[2] + each[3], 1e-12));
}

TEST_CASE("sorted kernels: bad input is refused in words") {
  numbers const q{0, nan}, k{1, 2}, v{1, 2}, taus{1, 2};
  numbers out(2, 5.0);
  shape const s{1, 1, 2, 1};
  auto const with = [&](auto const& op, numbers const& queries, shape const& to = {1, 1, 2, 1}) {
    return error_of([&] {
      sorted::forward<double>(op, {tensor(queries, s), tensor(k, s), tensor(v, s)},
                              {tensor<double>(out.data(), to), {}});
    });
  };
  CHECK(with(sorted::laplacian{1.0}, q) ==
        "attune::sorted::forward(laplacian): sort_q has the value nan at (batch, head, position) = (0, 0, 1); expected "
        "finite "
        "numbers: they are sorted");
  CHECK(with(sorted::gaussian{per_query(taus, 1)}, k)
            .find("tau has one value per query; expected one value, or one per head") != std::string::npos);
  CHECK(with(sorted::laplacian{0.0}, k).find("parameter tau has the value 0") != std::string::npos);
  CHECK(with(sorted::gaussian{1.0, 1e-13}, k).find("tolerance has the value 1e-13; expected a number in [1e-12, 1)") !=
        std::string::npos);
  CHECK(with(sorted::sliced_relu{}, k, {1, 1, 1, 1}) ==
        "attune::sorted::forward(sliced_relu): out has shape (1, 1, 1, 1); expected shape (1, 1, 2, 1)");
  CHECK(error_of([&] { row(sorted::sliced_relu{}, k, k, v); }).find("lse has a tensor; expected none") !=
        std::string::npos);
  CHECK(out == numbers{5, 5});
}

}  // namespace
}  // namespace attune::test
