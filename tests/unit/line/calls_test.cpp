// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators on a line are called like every other operator, and give what it gives: attune/line.hpp.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <support/random.hpp>
#include <unit/check.hpp>

// [snippet: includes]
#include <attune/attune.hpp>
#include <attune/line.hpp>
// [/snippet]
#include <attune/reference.hpp>

namespace attune::test {
namespace {

/// Two batch elements, four heads on two heads of keys and one of values.
struct problem {
  index_t queries, keys, width = 3;
  std::vector<double> q, k, v, by, by_lse;

  problem(index_t lq, index_t lk, std::uint64_t seed) : queries(lq), keys(lk) {
    rng random(seed);
    auto const fill = [&](std::vector<double>& x, index_t n) {
      for (index_t i = 0; i < n; ++i) x.push_back(random.normal());
    };
    fill(q, 8 * lq), fill(k, 4 * lk), fill(v, 2 * lk * width), fill(by, 8 * lq * width), fill(by_lse, 8 * lq);
  }
  shape rows(index_t f = 1) const { return {2, 4, queries, f}; }
  template <class Op, class View>
  inputs<Op, View> in(std::optional<index_t> offset = std::nullopt) const {
    return make_inputs<Op, View>(
        [&]<field F>() -> View {
          if constexpr (F == field::sort_q) return tensor<double const>(q, rows());
          if constexpr (F == field::sort_k) return tensor<double const>(k, {2, 2, keys, 1});
          if constexpr (F == field::v) return tensor<double const>(v, {2, 1, keys, width});
          return {};
        },
        offset);
  }
  template <class Op, class View>
  attune::cotangents<Op, View> cotangents() const {
    attune::cotangents<Op, View> d;
    d.out = tensor<double const>(by, rows(width));
    if constexpr (Op::has_lse) d.lse = tensor<double const>(by_lse, rows());
    return d;
  }
};

/// Outputs and gradients of a call, against those of the dense operator.
template <class Op>
void check(std::string const& name, Op const& op, problem const& p, std::optional<index_t> offset, double tolerance) {
  CAPTURE(name);
  using Dense = decltype(op.dense());
  using view = tensor<double const>;
  std::vector<double> out(std::size_t(8 * p.queries * p.width)), lse(std::size_t(8 * p.queries));
  outputs<Op, double> to{.out = tensor<double>(out, p.rows(p.width))};
  if constexpr (Op::has_lse) to.lse = natural_lse<double>(tensor<double>(lse, p.rows()));
  forward(cpu<double>{}, op, p.template in<Op, view>(offset), to);
  auto const right = forward(reference<double>{}, op.dense(), p.template in<Dense, any_tensor>(offset));
  double worst = 0;
  for (index_t b = 0; b < 2; ++b)
    for (index_t h = 0; h < 4; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        for (index_t d = 0; d < p.width; ++d)
          worst = std::max(worst, std::fabs(to.out(b, h, i, d) - right.at(b, h).out(i, d)));
        if constexpr (Op::has_lse)
          if (double const exact = right.at(b, h).lse(i), got = to.lse.values(b, h, i, 0); got != exact)
            worst = std::max(worst, std::fabs(got - exact));
      }
  CHECK(worst <= tolerance);

  auto const d = vjp(cpu<double>{}, op, p.template in<Op, view>(offset), p.template cotangents<Op, view>());
  auto const exact = vjp(reference<double>{}, op.dense(), p.template in<Dense, any_tensor>(offset),
                         p.template cotangents<Dense, any_tensor>());
  for (field f : {field::sort_q, field::sort_k, field::v}) {
    CAPTURE(name_of(f));
    REQUIRE(d.of(f).values.size() == exact.of(f).values.size());
    for (std::size_t n = 0; n < d.of(f).values.size(); ++n)
      CHECK(std::fabs(d.of(f).values[n] - exact.of(f).values[n]) <= 20 * tolerance);
  }
  if constexpr (requires { op.tau; }) {
    auto const tau = d.parameter("tau"), wanted = exact.parameter("tau");
    REQUIRE(tau.extents == wanted.extents);
    for (std::size_t n = 0; n < tau.values.size(); ++n)
      CHECK(std::fabs(tau.values[n] - wanted.values[n]) <= 200 * tolerance);
  }
}

/// Under every mask: the one that compiles fastest stands for all, since masks do the same for each.
template <class Mask>
void laplacian(std::string const& mask_name, Mask const& m, problem const& p,
               std::optional<index_t> offset = std::nullopt) {
  std::vector<double> const of_heads{0.3, 1, 2.5, 0.7}, of_elements{0.3, 1, 2.5, 0.7, 0.5, 1.5, 2, 0.9};
  check("laplacian, " + mask_name, line::laplacian{0.5, m}, p, offset, 1e-12);
  check("laplacian by head, " + mask_name, line::laplacian{per_head(of_heads), m}, p, offset, 1e-12);
  check("laplacian by batch and head, " + mask_name,
        line::laplacian{parameter(tensor<double const>(of_elements, {2, 4, 1, 1})), m}, p, offset, 1e-12);
}

TEST_SUITE("operators on a line") {
  TEST_CASE("outputs and gradients are the dense operator's, under masks of intervals") {
    problem const p(40, 57, 1), long_rows(90, 90, 2), few(3, 200, 3);
    for (problem const* x : {&p, &long_rows, &few}) {
      laplacian("no mask", mask::none{}, *x);
      laplacian("causal window", mask::causal_window{9}, *x);
      mask::window const near{6};
      check("relu", line::sliced_relu{normalizer::relu{}, near}, *x, std::nullopt, 1e-11);
      check("mean relu", line::sliced_relu{normalizer::mean_relu{}, near}, *x, std::nullopt, 1e-12);
      check("normalized relu", line::sliced_relu{normalizer::normalized_relu{}, near}, *x, std::nullopt, 1e-9);
      check("gaussian", line::gaussian{0.5, 1e-10, near}, *x, std::nullopt, 1e-8);
    }
    std::vector<index_t> const of_queries{0, 0, 1, 1, 1, 4, 4, 4, 4, 7}, of_keys{0, 1, 1, 1, 4, 4, 6, 7, 7, 7};
    laplacian("causal, documents", mask::causal{} & mask::documents{of_queries, of_keys}, problem(10, 10, 4));
  }
  TEST_CASE("a call, as the documentation shows it") {
    std::vector<float> const s{0.1f, 0.5f, 0.9f}, values{1, 2, 3};
    std::vector<float> out(3), lse(3);
    shape const positions{1, 1, 3, 1};
    // [snippet: line]
    line::laplacian const op{0.5, mask::causal{}};  // tau, and who sees whom
    tensor<float const> const S(s, positions), V(values, positions);
    tensor<float> const O(out, positions), L(lse, positions);

    forward(cpu{}, op, {.v = V, .sort_q = S, .sort_k = S}, {.out = O, .lse = natural_lse(L)});
    auto const g = vjp(cpu{}, op, {.v = V, .sort_q = S, .sort_k = S}, {.out = V});
    gradient_array<float> const by_tau = g.parameter("tau");  // of <O, V>; g.of(field::sort_k) is that by the keys
    // [/snippet]
    CHECK(out[0] == 1);  // its own key alone
    CHECK(lse[0] == 0);
    double const near = std::exp(-0.8), far = std::exp(-1.6);
    CHECK(out[2] == doctest::Approx((far + 2 * near + 3) / (far + near + 1)));
    CHECK(by_tau.values.size() == 1);
  }
  TEST_CASE("an offset moves the queries among the keys") {
    problem const p(12, 30, 5);
    laplacian("causal at 4", mask::causal{}, p, 4);
    laplacian("causal before all keys", mask::causal{}, p, -20);
  }
  TEST_CASE("no bit depends on the threads") {
    problem const p(64, 80, 6);
    using Op = line::laplacian<mask::causal>;
    auto const run = [&](int threads) {
      std::vector<double> out(std::size_t(8 * p.queries * p.width));
      forward(cpu<double>{threads}, Op{0.5}, p.in<Op, tensor<double const>>(),
              {.out = tensor<double>(out, p.rows(p.width))});
      auto const d = vjp(cpu<double>{threads}, Op{0.5}, p.in<Op, tensor<double const>>(),
                         p.cotangents<Op, tensor<double const>>());
      out.insert(out.end(), d.of(field::sort_k).values.begin(), d.of(field::sort_k).values.end());
      return out;
    };
    CHECK(run(1) == run(3));
  }
  TEST_CASE("what does not fit is refused in words") {
    problem const p(5, 9, 7);
    std::vector<double> out(std::size_t(8 * p.queries * p.width));
    tensor<double> const O(out, p.rows(p.width));
    auto const call = [&](auto const& op) {
      using Op = std::remove_cvref_t<decltype(op)>;
      forward(cpu<double>{}, op, p.template in<Op, tensor<double const>>(), {.out = O});
    };
    CHECK_THROWS_WITH_AS(call(line::laplacian{-1.0}), doctest::Contains("tau"), error);
    CHECK_THROWS_WITH_AS(call(line::gaussian{1.0, 0.0}), doctest::Contains("tolerance"), error);
    CHECK_THROWS_WITH_AS(call(line::laplacian{1.0, mask::sink_window{2, 2}}),
                         doctest::Contains("one interval of keys for each query"), error);
    std::vector<index_t> const back{1, 1, 0, 0, 0}, keys{0, 0, 0, 0, 1, 1, 1, 1, 1};
    CHECK_THROWS_WITH_AS(call(line::laplacian{1.0, mask::documents{back, keys}}), doctest::Contains("ids that ascend"),
                         error);
    std::vector<double> const by_query(5, 1.0);
    CHECK_THROWS_WITH_AS(call(line::laplacian{parameter(tensor<double const>(by_query.data(), {1, 1, 5, 1}))}),
                         doctest::Contains("one value, or one per head"), error);
    problem unordered = p;
    unordered.k[3] = std::nan("");
    using Op = line::laplacian<>;
    CHECK_THROWS_WITH_AS(forward(cpu<double>{}, Op{}, unordered.in<Op, tensor<double const>>(), {.out = O}),
                         doctest::Contains("finite numbers: they are sorted"), error);
    for (double const x : out) CHECK(x == 0);
  }
}

}  // namespace
}  // namespace attune::test
