// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <utility>
#include <vector>

#include <support/line_in_long_double.hpp>
#include <support/line_problem.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace attune::test {
namespace {

using numbers = std::vector<double>;

/// One head, values of width 1: out and lse.
template <class Op>
std::pair<numbers, numbers> row(Op const& op, numbers const& q, numbers const& k, numbers const& v) {
  shape const queries{1, 1, index_t(q.size()), 1}, keys{1, 1, index_t(k.size()), 1};
  numbers out(q.size()), lse(q.size());
  outputs<Op, double> to{.out = tensor(out, queries)};
  if constexpr (Op::has_lse) to.lse = natural_lse<double>(tensor(lse, queries));
  forward(cpu<double>{}, op, {.v = tensor(v, keys), .sort_q = tensor(q, queries), .sort_k = tensor(k, keys)}, to);
  return {out, lse};
}

TEST_CASE("line laplacian: by hand") {
  double const t = 1 / ln2;  // masses 2^-distance
  auto const [out, lse] = row(line::laplacian{t}, {1, 0}, {2, 0, 3}, {10, 30, 40});
  CHECK(near(out[0], (0.5 * 10 + 0.5 * 30 + 0.25 * 40) / 1.25));
  CHECK(near(lse[0], std::log(1.25)));
  CHECK(near(out[1], (0.25 * 10 + 30 + 0.125 * 40) / 1.375));
  auto const causal = row(line::laplacian{t, mask::causal{}}, {1, 0}, {2, 0, 3}, {10, 30, 40}).first;
  CHECK(near(causal[0], 20));  // offset 1: the first query sees two keys
  CHECK(near(causal[1], out[1]));
}

TEST_CASE("line sliced ReLU: by hand") {
  auto const of = [](auto by) { return row(line::sliced_relu{by}, {1, 3}, {2, 0, 2.5}, {10, 20, 40}); };
  CHECK(of(normalizer::relu{}).first == numbers{20, 90});  // 1 * 20; 1 * 10 + 3 * 20 + 0.5 * 40
  CHECK(near(of(normalizer::mean_relu{}).first[0], 20.0 / 3));
  CHECK(near(of(normalizer::mean_relu{}).first[1], 30));
  CHECK(near(of(normalizer::normalized_relu{}).first[1], 20));
  CHECK(near(of(normalizer::normalized_relu{}).second[1], std::log(4.5)));
  CHECK(row(line::sliced_relu{normalizer::normalized_relu{}}, {-1}, {2}, {10}).first[0] == 0);  // nothing on the left
}

TEST_CASE("line gaussian: by hand") {
  auto const [out, lse] = row(line::gaussian{1 / ln2, 1e-12}, {1}, {2, 0, 3}, {10, 20, 40});  // masses 2^-distance^2
  CHECK(near(out[0], (0.5 * 10 + 0.5 * 20 + 0.0625 * 40) / 1.0625));
  CHECK(near(lse[0], std::log(1.0625)));
}

TEST_CASE("sums on a line: tau to 0 is the nearest key, ties share; tau to inf is the mean") {
  numbers const q{0, 2.4, -50}, k{1, -1, 3, 4}, v{1, 2, 4, 9};
  for (double const tau : {1e-3, 1e-9}) {
    CHECK(row(line::laplacian{tau}, q, k, v).first == numbers{1.5, 4, 2});
    CHECK(row(line::gaussian{tau, 1e-9}, q, k, v).first == numbers{1.5, 4, 2});
  }
  for (double const out : row(line::laplacian{1e12}, q, k, v).first) CHECK(near(out, 4, 1e-10));
  for (double const out : row(line::gaussian{1e12, 1e-9}, q, k, v).first) CHECK(near(out, 4, 1e-8));
}

TEST_CASE("sums on a line: without a key out is 0, without a query nothing happens") {
  CHECK(row(line::laplacian{1.0}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(line::gaussian{1.0}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(line::sliced_relu{normalizer::normalized_relu{}}, {1}, {}, {}) == std::pair(numbers{0}, numbers{-inf}));
  CHECK(row(line::sliced_relu{normalizer::mean_relu{}}, {1}, {}, {}).first == numbers{0});
  CHECK(row(line::laplacian{1.0}, {}, {1}, {2}).first.empty());
  auto const causal = row(line::laplacian{1.0, mask::causal{}}, {1, 1}, {5}, {7});  // the first query sees nothing
  CHECK(causal.first == numbers{0, 7});
  CHECK(causal.second == numbers{-inf, -4});
}

TEST_CASE("sums on a line: NaN in values that a query does not see stays away") {
  numbers q(200, 0.0), k(200, 0.0), v(200, 1.0);
  for (std::size_t n = 0; n < 200; ++n) q[n] = k[n] = std::sin(double(n));
  v[150] = nan;
  for (auto const& out : {row(line::laplacian{1.0, mask::causal{}}, q, k, v).first,
                          row(line::sliced_relu{normalizer::normalized_relu{}, mask::causal{}}, q, k, v).first})
    for (std::size_t i = 1; i < 150; ++i) CHECK((out[i] == 0 || near(out[i], 1)));
}

TEST_CASE("sums on a line: rounding within the stated bounds, against long double") {
  constexpr double u = 0x1p-53;
  unsigned seed = 100;
  auto const check = [&](lie keys, auto const& sees) {
    line_problem const p = random_line(lie::normal, keys, 200, 200, ++seed);
    double const n = double(p.keys), v = largest(p.v), far = keys == lie::far ? 1010 : 30;  // no query is farther
    line::laplacian const laplace{per_head(p.tau), sees};
    auto const got = outputs_in<double>(cpu<double>{}, laplace, p);
    auto const exact = in_long_double(laplace, p).out;
    double worst = 0;
    for (std::size_t x = 0; x < got.size(); ++x) worst = std::max(worst, double(std::fabs(got[x] - exact[x])));
    CHECK(worst <= u * (8 * n + 6 * far / 0.3 + 12 * std::log(n + 1) + 64) * v);

    line::sliced_relu const relu{normalizer::relu{}, sees};
    auto const sums = outputs_in<double>(cpu<double>{}, relu, p);
    auto const right = in_long_double(relu, p).out;
    line_problem absolute = p;
    for (double& x : absolute.v) x = std::fabs(x);
    auto const condition = outputs_in<double>(cpu<double>{}, relu, absolute);
    double share = 0;
    for (std::size_t x = 0; x < sums.size(); ++x)
      if (condition[x] > 0) share = std::max(share, double(std::fabs(sums[x] - right[x])) / condition[x]);
    CHECK(share <= 4 * (n + 8) * u);
  };
  for (lie const keys : {lie::normal, lie::clustered, lie::heavy, lie::far}) {
    check(keys, mask::none{});
    check(keys, mask::causal{});
    check(keys, mask::causal_window{90});
  }
}

TEST_CASE("line gaussian: the certificate holds against long double, in float and double") {
  for (lie const keys : {lie::normal, lie::clustered, lie::equal, lie::heavy})
    for (double const tolerance : {1e-2, 1e-5, 1e-9}) {
      line_problem p = random_line(lie::normal, keys, 300, 300, 3);
      for (auto* x : {&p.q, &p.k, &p.v})
        for (double& e : *x) e = double(float(e));
      p.tau.assign(4, 0.5);
      line::gaussian const op{0.5, tolerance};
      numbers out(std::size_t(p.query_side(p.width).size()));
      auto const c = forward(cpu<double>{}, op, p.in<line::gaussian<>>(), {.out = tensor(out, p.query_side(p.width))});
      CHECK(c.expanded > 0);
      CHECK(c.discarded <= 0.51 * tolerance);
      CHECK(c.truncated <= 0.51 * tolerance);
      auto const in_float = outputs_in<float>(cpu<float>{}, op, p);
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

TEST_CASE("sums on a line: bitwise the same for any number of threads") {
  line_problem const p = random_line(lie::tied, lie::normal, 150, 150, 9);
  auto const check = [&](auto const& op) {
    auto const one = results_on(cpu<double>{1}, op, p), three = results_on(cpu<double>{3}, op, p);
    CHECK(one.out == three.out);
    CHECK(one.q == three.q);
    CHECK(one.k == three.k);
    CHECK(one.v == three.v);
  };
  check(line::laplacian{0.3, mask::causal{}});
  check(line::sliced_relu{normalizer::normalized_relu{}});
  check(line::gaussian{0.3});
}

TEST_CASE("sums on a line: strided tensors, one tau and its gradient for all heads") {
  using Op = line::laplacian<>;
  line_problem const p = random_line(lie::normal, lie::normal, 40, 50, 4);
  auto const in = p.in<Op>();
  auto transposed = in;  // features outermost
  numbers v(p.v.size());
  index_t const keys = p.keys, width = p.width;
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t j = 0; j < keys; ++j)
      for (index_t d = 0; d < width; ++d) v[std::size_t((b * width + d) * keys + j)] = in.v(b, 0, j, d);
  transposed.v = tensor<double const>(v.data(), p.value_side(), {width * keys, 0, 1, keys});
  numbers a(std::size_t(p.query_side(width).size())), b = a;
  forward(cpu<double>{}, Op{0.5}, in, {.out = tensor(a, p.query_side(width))});
  forward(cpu<double>{}, Op{0.5}, transposed, {.out = tensor(b, p.query_side(width))});
  CHECK(a == b);
  numbers const same(4, 0.5);
  auto const tau = vjp(cpu<double>{}, Op{0.5}, in, p.cotangents<Op>()).parameter("tau");
  auto const each = vjp(cpu<double>{}, Op{per_head(same)}, in, p.cotangents<Op>()).parameter("tau");
  REQUIRE(each.values.size() == 4);
  CHECK(near(tau.values.at(0), each.values[0] + each.values[1] + each.values[2] + each.values[3], 1e-12));
}

}  // namespace
}  // namespace attune::test
