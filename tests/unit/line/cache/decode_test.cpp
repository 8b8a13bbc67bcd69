// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <attune/line/decode.hpp>
#include <attune/policies/kernel/scalar.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using kv_cache = line::sorted_cache<double>;
using line::row_report;

struct row {
  std::vector<double> out;
  row_report report;
};

/// One query of a cache with one head.
template <class Window>
row one(kv_cache const& kv, double query, double tau, Window const& window, std::vector<double> const& q = {}) {
  index_t const width = kv.layout().value_width;
  row r{std::vector<double>(std::size_t(width)), {}};
  tensor<double const> const vector_q =
      q.empty() ? tensor<double const>{} : tensor<double const>(q, {1, 1, 1, index_t(q.size())});
  line::decoded<double> const to{.out = {r.out, {1, 1, 1, width}}, .rows = {&r.report, 1}};
  line::queries<double> const in{.sort_q = {&query, {1, 1, 1, 1}}, .q = vector_q};
  if (q.empty())
    decode(cpu<double>{1}, line::windowed{tau, window}, kv, in, to);
  else
    decode(cpu<double>{1}, line::hybrid{tau, window, mask::none{}, line::no_sink{}, 1.0}, kv, in, to);
  return r;
}

/// A cache of one head whose token j has the value j-th unit vector: `out` then is the weights.
kv_cache with_keys(std::vector<double> const& keys) {
  auto const n = index_t(keys.size());
  kv_cache kv({.value_width = n});
  for (index_t j = 0; j < n; ++j) {
    std::vector<double> v(keys.size());
    v[std::size_t(j)] = 1;
    kv.insert(std::vector{keys[std::size_t(j)]}, v);
  }
  return kv;
}

TEST_SUITE("sorted_decode") {
  TEST_CASE("two keys: weights 2/3 and 1/3, whatever the window") {
    kv_cache kv({.value_width = 1});
    kv.insert(std::vector{0.0}, std::vector{3.0});
    kv.insert(std::vector{1.0}, std::vector{6.0});
    double const tau = 1 / ln2;
    for (double out : {one(kv, 0, tau, line::certified{}).out[0], one(kv, 0, tau, line::nearest{2}).out[0],
                       one(kv, 0, tau, line::half{5}).out[0], one(kv, 0, tau, line::radius{0.3}).out[0]})
      CHECK(near(out, 4));
    row const r = one(kv, 0, tau, line::nearest{1});
    CHECK(r.out[0] == 3);
    CHECK(near(r.report.lse, 0));
    CHECK(near(r.report.discarded, 1.0 / 3, 1e-11));
    CHECK(r.report.insertion == 0);
    CHECK(r.report.summed == 1);
    CHECK(near(one(kv, 0, tau, line::nearest{2}).report.lse, std::log(1.5)));
  }

  // Scalar Sort prints "k nearest keys (k / 2 on each side of the insertion point)": two different things.
  TEST_CASE("half as many on each side are not the nearest") {
    kv_cache const kv = with_keys({0, 3, 3.1, 3.2, 3.3});
    row const half = one(kv, 2.9, 1, line::half{4}), nearest = one(kv, 2.9, 1, line::nearest{4});
    CHECK(half.report.lower == 0);
    CHECK(half.report.upper == 3);
    CHECK(nearest.report.lower == 1);
    CHECK(nearest.report.upper == 5);
  }

  TEST_CASE("nearest takes the lower key at equal distances, and exact differences count") {
    kv_cache const kv = with_keys({-1, 1, 3, std::nextafter(-1.0, -2.0)});
    CHECK(one(kv, 0, 1, line::nearest{1}).report.lower == 1);
    CHECK(one(kv, 0, 1, line::nearest{2}).report.upper == 3);
    CHECK(one(kv, 0, 1, line::nearest{3}).report.lower == 0);
    CHECK(one(kv, 0, 1, line::nearest{100}).report.summed == 4);
    // 1e-17 is lost in 1e-17 - (-1), not in the comparison.
    CHECK(one(with_keys({-1, 1}), 1e-17, 1, line::nearest{1}).report.lower == 1);
  }

  // Scalar Sort: "the probability mass outside a window of radius r decays as erfc(r / sqrt(tau)), independently of n".
  TEST_CASE("the tail of a uniform density bounds nothing where keys lie otherwise") {
    std::vector<double> keys{1.0};
    for (int i = 0; i < 50; ++i) keys.push_back(1.01 + 0.001 * i);
    row const r = one(with_keys(keys), 0, 0.25, line::nearest{1});
    double const missing = 1 - std::exp(r.report.lse - one(with_keys(keys), 0, 0.25, line::nearest{51}).report.lse);
    CHECK(missing > 0.97);
    CHECK(line::uniform_tail(1.005, 0.25) < 0.005);
    CHECK(r.report.discarded >= missing);
    CHECK(r.report.discarded_by_ends >= r.report.discarded);
    CHECK(r.report.discarded < 0.98);  // by blocks: nearly exact
  }

  // Scalar Sort: a key whose weight before normalization is below eps "falls below threshold".
  TEST_CASE("a radius may hold no key at all; what is certified holds the best") {
    kv_cache const kv = with_keys({-1, 1});
    row const r = one(kv, 0, 0.025, line::radius{1e-6});  // each weight e^-40 before, 1/2 after normalization
    CHECK(r.out == std::vector{0.0, 0.0});
    CHECK(r.report.discarded == 1);
    CHECK(r.report.lse == -inf);
    CHECK(near(line::radius_of(0.025, 1e-6), 0.58769, 1e-4));
    row const c = one(kv, 0, 0.025, line::certified{1e-6});
    CHECK(c.out == std::vector{0.5, 0.5});
    CHECK(near(c.report.lse, -40 + ln2));
    CHECK(near(line::expected_keys(0.5, 30), 30));
  }

  TEST_CASE("tau to 0: the nearest key, ties share; tau to infinity: all keys alike") {
    kv_cache const kv = with_keys({-1, 1, 3, 1});
    for (double tau : {5e-324, 1e-310, 1e-100, 1e-6}) {
      CHECK(one(kv, 0.5, tau, line::certified{}).out == std::vector{0.0, 0.5, 0.0, 0.5});
      CHECK(near(one(kv, 0, tau, line::nearest{4}).out[0], 1.0 / 3));
      CHECK(one(kv, 1e6, tau, line::certified{}).out == std::vector{0.0, 0.0, 1.0, 0.0});
    }
    for (double tau : {1e20, 1e300, std::numeric_limits<double>::max()})
      for (double query : {0.0, 100.0})
        for (double w : one(kv, query, tau, line::certified{}).out) CHECK(near(w, 0.25));
    double const far = 1e307;
    kv_cache const wide = with_keys({-far, far, 0});
    for (double tau : {5e-324, 1.0, 1e300})
      for (double query : {-far, 0.0, 1.0, far})
        for (double w : one(wide, query, tau, line::certified{}).out) CHECK((w == 0 || w == 1));
    CHECK(one(with_keys({-far, far}), 0, 1, line::certified{}).out == std::vector{0.5, 0.5});
  }

  TEST_CASE("far from all keys whole digits are left") {
    // Scores of -1e20 that differ by 2 d q / tau = 1: their own rounding is 1e4.
    row const r = one(with_keys({0, 1e-10}), 1e10, 2 / ln2, line::nearest{2});
    CHECK(near(r.out[1] / r.out[0], 2));
  }

  TEST_CASE("scores are those of kernel::scalar_sort, relative to the best") {
    attune::row<double> const place{
        .place = {}, .position = 0, .visible = 4, .log_visible = 1, .inverse_sqrt_width = 1};
    auto const policy = kernel::scalar_sort{0.37}.bind(place);
    line::detail::relative_scores const s(0.7, 0.9, 0.37);
    for (double k : {0.9, -3.0, 0.4, 1.0, 5.0}) CHECK(near(s(k) + s.best(), policy.score(0.7 - k, {0})));
    CHECK(s.best_of(-1, 2) == 0);
    CHECK(s.best_of(-1, 0.4) == s(0.4));
    CHECK(s.best_of(1, 2) == s(1.0));
  }

  TEST_CASE("hybrid: what the window left out is in the bound") {
    kv_cache kv({.key_width = 2, .value_width = 1});
    kv.insert(std::vector{0.0}, std::vector{1.0}, std::vector{0.0, 1.0});
    kv.insert(std::vector{0.1}, std::vector{2.0}, std::vector{0.0, 0.0});
    kv.insert(std::vector{9.0}, std::vector{7.0}, std::vector{0.0, 60.0});  // far, and 60 ahead by its product
    std::vector<double> const q{3, 1};
    row const near_keys = one(kv, 0, 4, line::nearest{2}, q), all = one(kv, 0, 4, line::certified{}, q);
    CHECK(near_keys.out[0] < 2);
    CHECK(near_keys.report.discarded > 0.999);
    CHECK(near(all.out[0], 7));
    CHECK(all.report.discarded <= 1e-6);
  }

  TEST_CASE("certified rows of many keys read few") {
    kv_cache kv({.value_width = 1}), hybrid({.key_width = 2, .value_width = 1});
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int j = 0; j < 20000; ++j) {
      std::vector<double> const key{uniform(random)}, v{uniform(random)}, k{uniform(random), uniform(random)};
      kv.insert(key, v);
      hybrid.insert(key, v, k);
    }
    row const r = one(kv, 0.1, 1e-6, line::certified{});
    CHECK(r.report.scored < 300);  // the radius of e^-14 reaches 75 keys
    CHECK(r.report.summed < 100);
    CHECK(one(hybrid, 0.1, 1e-6, line::certified{}, {1, -1}).report.scored < 400);
  }

  TEST_CASE("heads, groups, tau per query, strides, threads, snapshots") {
    index_t const heads = 4, groups = 2, width = 3, length = 5;
    line::sorted_cache<float> kv({.heads = heads, .value_groups = groups, .value_width = width});
    line::sorted_cache<float> shared(
        {.heads = heads, .value_groups = groups, .value_width = width, .order = line::sort_keys::per_group});
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> keys, values;
    for (int j = 0; j < 700; ++j) {
      std::vector<float> k(heads), v(std::size_t(groups * width));
      for (float& x : k) x = normal(random);
      for (float& x : v) x = normal(random);
      k[1] = k[0], k[3] = k[2];
      kv.insert(k, v);
      shared.insert(std::vector{k[0], k[2]}, v);
      keys.push_back(k), values.push_back(v);
    }
    std::vector<float> q(std::size_t(heads * length)), out(std::size_t(heads * length * width)), again(out), lse(q);
    std::vector<double> tau(q.size());
    for (float& x : q) x = normal(random);
    for (double& x : tau) x = std::exp(double(normal(random)) - 3);
    line::windowed const op{per_query(tau, heads), line::certified{1e-6}};
    line::queries<float> const in{.sort_q = {q, {1, heads, length, 1}}};
    shape const to{1, heads, length, width};
    std::vector<row_report> rows(q.size());
    decode(cpu<float>{1}, op, kv, in,
           {.out = {out, to}, .lse = natural_lse<float>({lse, {1, heads, length, 1}}), .rows = rows});
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < length; ++i) {
        auto const at = std::size_t(h * length + i);
        std::vector<double> sum(3);
        double z = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
          double const e = double(q[at]) - double(keys[j][std::size_t(h)]), w = std::exp(-e * e / tau[at]);
          z += w;
          for (std::size_t d = 0; d < 3; ++d) sum[d] += w * double(values[j][std::size_t(h / 2 * width) + d]);
        }
        for (std::size_t d = 0; d < 3; ++d)
          CHECK(std::fabs(double(out[at * 3 + d]) - sum[d] / z) <= rows[at].output_error + 1e-12);
        CHECK(near(double(lse[at]), std::log(z), 1e-5));
      }
    decode(cpu<float>{3}, op, kv, in, {.out = {again, to}});
    CHECK(again == out);
    auto const saved = kv.snapshot();
    kv.erase(3);
    kv.insert(keys[3], values[3]);
    kv.restore(saved);
    decode(cpu<float>{2}, op, kv, in, {.out = {again, to}});
    CHECK(again == out);
    decode(cpu<float>{2}, op, shared, in, {.out = {again, to}});
    CHECK(again == out);
    std::vector<float> spread(2 * out.size());
    tensor<float> const strided(spread.data(), to, {0, 2 * width * length, 2 * width, 2});
    decode(cpu<float>{1}, op, kv, in, {.out = strided});
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(spread[2 * i] == out[i]);
  }

  TEST_CASE("an empty cache gives 0") {
    kv_cache const kv({.value_width = 2});
    row const r = one(kv, 1, 1, line::certified{});
    CHECK(r.out == std::vector{0.0, 0.0});
    CHECK(r.report.lse == -inf);
    CHECK(r.report.discarded == 0);
    CHECK(one(kv, 1, 1, line::nearest{3}).report.summed == 0);
  }

  TEST_CASE("values beyond the window are never read") {
    kv_cache kv({.value_width = 1});
    kv.insert(std::vector{0.0}, std::vector{1.0});
    kv.insert(std::vector{5.0}, std::vector{nan});
    row const r = one(kv, 0, 0.1, line::certified{});
    CHECK(r.out[0] == 1);
    CHECK(r.report.output_error == inf);
    CHECK(std::isnan(one(kv, 0, 0.1, line::nearest{2}).out[0]));  // inside a window: e^-250 times NaN
  }

  TEST_CASE("misuse is refused in words, and nothing is written") {
    kv_cache const kv = with_keys({0, 1});
    auto const message = [&](auto const& window, double query, double tau) {
      return error_of([&] { one(kv, query, tau, window); });
    };
    CHECK(message(line::certified{0.0}, 0, 1) ==
          "attune::decode: tolerance has the value 0; expected a number in (0, 1)");
    CHECK(message(line::certified{1.0}, 0, 1) ==
          "attune::decode: tolerance has the value 1; expected a number in (0, 1)");
    CHECK(message(line::certified{nan}, 0, 1) != "");
    CHECK(message(line::radius{-1.0}, 0, 1) == "attune::decode: eps has the value -1; expected a number in (0, 1)");
    CHECK(message(line::nearest{0}, 0, 1) == "attune::decode: k has the value 0; expected a number of keys >= 1");
    CHECK(message(line::half{-3}, 0, 1) == "attune::decode: k has the value -3; expected a number of keys >= 1");
    for (double tau : {0.0, -1.0, nan, inf})
      CHECK(message(line::certified{}, 0, tau).find("parameter tau") != std::string::npos);
    for (double query : {nan, inf})
      CHECK(message(line::certified{}, query, 1).find("sort_q has the value") != std::string::npos);
    CHECK(message(line::certified{1e-16}, 0, 1).find("half of the rounding of head 0") != std::string::npos);
    CHECK(error_of([&] { one(kv, 0, 1, line::certified{}, {1.0}); }) ==
          "attune::decode: the cache has no vector keys; expected a cache with key_width > 0, or line::windowed");

    double const query = 0;
    std::vector<double> out{7, 7}, small(1);
    line::queries<double> const in{.sort_q = {&query, {1, 1, 1, 1}}};
    CHECK(error_of([&] {
            decode(cpu<double>{}, line::windowed{1, line::certified{1e-17}}, kv, in, {.out = {out, {1, 1, 1, 2}}});
          }) != "");
    CHECK(out == std::vector{7.0, 7.0});
    CHECK(error_of([&] {
            decode(cpu<double>{}, line::windowed{1, line::certified{}}, kv, in, {.out = {small, {1, 1, 1, 1}}});
          }) == "attune::decode: out has shape (1, 1, 1, 1); expected (1, 1, 1, 2)");
  }
}

}  // namespace
}  // namespace attune::test
