// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Normalizers of one's own with a candidate set, one for each rule by which a threshold comes about: gradients against
// differences of the 50-digit forward pass, and rows whose gradient one can do by hand.
#include <cmath>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <support/tent.hpp>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/gradient_check.hpp>

using namespace attune;
using attune::test::tent;

namespace {

// [snippet: selection]
/// Softmax of the keys whose softmax weight is at least `share` of the largest one (min-p sampling).
struct min_p {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support,
                                            .threshold = threshold_rule::selection};
  double share = 0.1;
  static constexpr auto parameters() { return std::tuple<>{}; }

  template <class T>
  struct bound {
    T width, shift;
    template <class Column>
    candidate_threshold<T> solve(Column& column) const {
      T const off = -math::infinity<T>(), highest = column.highest(), m = math::select(highest == off, T(0), highest);
      candidate_threshold<T> const at{m, T(0), T(m - width), off};  // reference, level, cut, last
      column.keep([&](T const& a) { return math::select(a >= at.cut, T(1), T(0)); });
      return at;
    }
    T weight(candidate_threshold<T> const& at, T const& a, key<T> const&) const {
      return math::select(a >= at.cut, math::exp_nonpositive(T(a - at.reference)), T(0));
    }
    T reported(candidate_threshold<T> const& at) const { return at.cut + shift; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {lift<T>::constant(-std::log(share)), r.logit_shift};
  }
};
// [/snippet]

// [snippet: sum]
/// Sparsemax once more: weights [a - m - level]+ at the level where they sum to 1.
struct own_sparsemax {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support, .threshold = threshold_rule::sum};

  template <class T>
  struct bound {
    T shift;
    template <class Column>
    candidate_threshold<T> solve(Column& column) const {
      T const zero(0), one(1), off = -math::infinity<T>(), highest = column.highest(),
                               m = math::select(highest == off, zero, highest);
      T level(-1);
      for (index_t step = 0; step <= column.size(); ++step) {  // Newton from the left: the support only shrinks
        T sum(0), count(0);
        for (index_t n = 0; n < column.size(); ++n) {
          T const a = column.logit(n) - m;
          sum = sum + math::select(a > level, a, zero);
          count = count + math::select(a > level, one, zero);
        }
        T const next = math::larger(level, T((sum - one) / math::larger(count, one)));
        if (!scalar<T>::any(next > level)) break;
        level = next;
      }
      column.keep([&](T const& a) { return math::larger(T(a - m - level), zero); });
      return {m, level, off, off};
    }
    T weight(candidate_threshold<T> const& at, T const& a, key<T> const&) const {
      return math::larger(T((a - at.reference) - at.level), T(0));
    }
    T reported(candidate_threshold<T> const& at) const { return at.reference + at.level + shift; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};
// [/snippet]

/// d out / d scores of scores {0, 0.5, -5} and values {1, 3, 7}.
template <class Executor, class Normalizer>
std::vector<double> gradient(Executor const& executor, Normalizer n) {
  std::vector<double> const scores{0, 0.5, -5}, values{1, 3, 7}, one{1};
  tensor<double const> const S(scores.data(), {1, 1, 1, 3}), V(values.data(), {1, 1, 3, 1}),
      D(one.data(), {1, 1, 1, 1});
  auto const g =
      vjp(executor, attention(kernel::given_scores{}, n), {.v = V, .scores = S}, {.out = D}).of(field::scores);
  return {g(0, 0, 0, 0), g(0, 0, 0, 1), g(0, 0, 0, 2)};
}

}  // namespace

TEST_SUITE("own_candidates") {
  TEST_CASE("A selection: the level stands still, the reference moves (variants, fault 2)") {
    auto const check = [&](std::vector<double> const& g, double first) {
      CHECK(g[0] == doctest::Approx(-first).epsilon(1e-9));
      CHECK(g[1] == doctest::Approx(first).epsilon(1e-9));
      CHECK(g[2] == 0);
    };
    double const w = 1 / (1 + std::exp(-0.5)), softmax = 2 * w * (1 - w);  // 0.4700
    check(gradient(cpu<double>{serial{}}, min_p{std::exp(-2.0)}), softmax);
    check(gradient(reference<double>{}, min_p{std::exp(-2.0)}), softmax);
    double const bent = 2 * 1.0 / (1.75 * 1.75) / 2;  // 0.3265
    check(gradient(cpu<double>{serial{}}, tent{}), bent);
    check(gradient(reference<double>{}, tent{}), bent);
  }

  TEST_CASE("Gradients of both rules agree with differences of 50 digits") {
    auto const check = [](auto const& op) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        auto const report = testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 9, .width = 4}, seed);
        CAPTURE(report);
        CHECK(report.passed());
      }
    };
    check(attention(kernel::dot_product{}, min_p{0.3}, mask::causal{}));
    check(attention(kernel::dot_product{}, own_sparsemax{}, mask::causal{}));
    check(attention(kernel::dot_product{}, tent{}));
  }

  TEST_CASE("A sparsemax of one's own is sparsemax") {
    std::vector<float> q(2 * 40 * 8), k(q.size()), v(q.size()), own(q.size()), ours(q.size());
    for (std::size_t n = 0; n < q.size(); ++n)
      q[n] = float(n * 37 % 89) / 40 - 1, k[n] = float(n * 53 % 97) / 40 - 1, v[n] = float(n % 13);
    shape const s{1, 2, 40, 8};
    tensor<float const> const Q(q.data(), s), K(k.data(), s), V(v.data(), s);
    forward(cpu{serial{}}, attention(kernel::dot_product{}, own_sparsemax{}), {.q = Q, .k = K, .v = V},
            {.out = tensor(own, s)});
    forward(cpu{serial{}}, attention(kernel::dot_product{}, normalizer::sparsemax{}), {.q = Q, .k = K, .v = V},
            {.out = tensor(ours, s)});
    for (std::size_t n = 0; n < own.size(); ++n) CHECK(own[n] == doctest::Approx(ours[n]).epsilon(1e-4));
  }
}
