// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Both executors on calls that can be redone by hand.
#include <vector>

#include <attune/exec/cpu/tile/forward.hpp>
#include <attune/exec/reference/forward.hpp>

#include "../check.hpp"
#include "calls.hpp"

namespace attune::test {
namespace {

constexpr float lnf2 = float(ln2), lnf3 = float(ln3);

template <class T>
void check(std::vector<T> const& got, std::vector<double> const& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    CAPTURE(n);
    CHECK(near(double(got[n]), expected[n], 1e-6));
  }
}

/// Runs both executors and hands each result to visit.
template <class Visit>
void plain(plain_operator const& op, call_shapes const& s, arrays const& a, Visit const& visit) {
  visit(run(cpu<float>{1}, op, plain_inputs<tensor<float const>>(s, dense(a)), s));
  visit(run(reference<double>{}, op, plain_inputs<any_tensor>(s, dense(a)), s));
}
template <class Visit>
void principled(principled_operator const& op, call_shapes const& s, arrays const& a, Visit const& visit) {
  visit(run(cpu<float>{1}, op, principled_inputs<tensor<float const>>(s, dense(a)), s));
  visit(run(reference<double>{}, op, principled_inputs<any_tensor>(s, dense(a)), s));
}
template <class Visit>
void given(given_operator const& op, call_shapes const& s, arrays const& a, Visit const& visit) {
  visit(run(cpu<float>{1}, op, given_inputs<tensor<float const>>(s, dense(a)), s));
  visit(run(reference<double>{}, op, given_inputs<any_tensor>(s, dense(a)), s));
}

TEST_CASE("softmax by hand: 2 queries, 2 keys") {
  call_shapes s;
  s.q = {1, 1, 2, 1};
  s.k = {1, 1, 2, 1};
  s.v = s.out = {1, 1, 2, 2};
  s.lse = s.ground_weight = {1, 1, 2, 1};
  arrays const a{{"q", {1, 0}}, {"k", {0, lnf3}}, {"v", {4, 0, 0, 8}}};
  plain({}, s, a, [](auto const& r) {
    check(r.out, {1, 6, 2, 4});    // weights 1/4, 3/4 and 1/2, 1/2
    check(r.lse, {2 * ln2, ln2});  // log(1 + 3), log 2
  });
}

TEST_CASE("principled by hand: 1 query, 3 keys, no amplification, no gate") {
  call_shapes s;
  s.q = s.gate_q = s.out = s.lse = s.ground_weight = {1, 1, 1, 1};
  s.k = s.v = s.gate_k = {1, 1, 3, 1};
  s.v0 = {1, 1, 1, 1};
  arrays const a{{"q", {1}},      {"k", {0, lnf2, lnf3}}, {"v", {6, 12, 18}},
                 {"gate_q", {1}}, {"gate_k", {1, 2, 3}},  {"v0", {7}}};
  principled(principled_attention({-inf, -inf, ln2}, mask::runtime{}), s, a, [](auto const& r) {
    check(r.out, {13});  // masses 1, 2, 3; z = 2 + 2 + 3; (6 + 24 + 54) / 7 + 7 / 7
    check(r.lse, {std::log(7)});
    check(r.ground_weight, {1. / 7});
  });
  // alpha with softplus(alpha) = 1 / log 3 and gamma = 0: kappa = 1, logits 2 s: masses 1, 4, 9, all of them above
  // gamma
  double const alpha = std::log(std::expm1(1 / ln3));
  principled(principled_attention({alpha, -inf, 0.0}, mask::runtime{}), s, a, [](auto const& r) {
    check(r.out, {(6 + 48 + 162) / 14.});
    check(r.lse, {std::log(14)});
    check(r.ground_weight, {0});
  });
  // gamma far off: logits 2 s - gamma, of which -gamma is a row constant that only the lse and the ground see
  principled(principled_attention({alpha, -inf, -100.0}, mask::runtime{}), s, a, [](auto const& r) {
    check(r.out, {(6 + 48 + 162) / 14.});
    check(r.lse, {std::log(14) + 100});
    check(r.ground_weight, {0});
  });
  principled(principled_attention({alpha, -inf, 100.0}, mask::runtime{}), s, a, [](auto const& r) {
    check(r.out, {7});  // no key earns e^100: v0
    check(r.lse, {100 + ln3});
    check(r.ground_weight, {1});
  });
}

TEST_CASE("given scores and a sink with a value by hand; slots that no row sees may hold anything") {
  call_shapes s;
  s.scores = s.gates = {1, 1, 2, 4};
  s.v = {1, 1, 4, 1};
  s.out = s.lse = s.ground_weight = {1, 1, 2, 1};
  s.v0 = {1, 1, 2, 1};
  float const off = -std::numeric_limits<float>::infinity(), bad = std::numeric_limits<float>::quiet_NaN();
  arrays const a{{"scores", {0, lnf2, lnf3, bad, bad, bad, bad, bad}},
                 {"gates", {-off, -off, -off, bad, bad, bad, bad, bad}},
                 {"v", {6, 12, 18, bad}},
                 {"v0", {10, 20}}};
  std::vector<key_interval> const hulls{{0, 3}, {2, 2}};
  given_operator op{};
  op.normalizer.logit = std::log(6);
  op.mask = {hulls.data(), {1, 1, 2, 1}};
  given(op, s, a, [](auto const& r) {
    check(r.out, {12, 20});  // 84 / (6 + 6) + 10 / 2; no key: v0
    check(r.lse, {std::log(12), std::log(6)});
    check(r.ground_weight, {0.5, 1});
  });
}

TEST_CASE("key heads and value heads are grouped independently") {
  call_shapes s;
  s.q = s.out = s.lse = s.ground_weight = {1, 6, 1, 1};
  s.k = {1, 3, 2, 1};
  s.v = {1, 2, 2, 1};
  float const lnf7 = float(std::log(7));
  // weight of key 1: 1/2 for heads 0, 1; 3/4 for 2, 3; 7/8 for 4, 5. Its value: 8 for heads 0, 1, 2; 80 for 3, 4, 5.
  arrays const a{{"q", {1, 1, 1, 1, 1, 1}}, {"k", {0, 0, 0, lnf3, 0, lnf7}}, {"v", {0, 8, 0, 80}}};
  plain({}, s, a, [](auto const& r) { check(r.out, {4, 4, 6, 60, 70, 70}); });
}

TEST_CASE("no queries, no batch: nothing happens") {
  for (call_shapes const& s : {call_of(2, 4, 2, 1, 0, 5), call_of(0, 4, 2, 1, 3, 5), call_of(0, 4, 2, 1, 0, 0)}) {
    arrays const a = random_arrays(s);
    plain({}, s, a, [](auto const& r) { CHECK(r.out.empty()); });
    principled({}, s, a, [](auto const& r) { CHECK(r.out.empty()); });
    given({}, s, a, [](auto const& r) { CHECK(r.out.empty()); });
  }
}

TEST_CASE("no heads: nothing happens") {
  call_shapes const s = call_of(2, 0, 0, 0, 3, 5);
  arrays const a = random_arrays(s);
  given({}, s, a, [](auto const& r) { CHECK(r.out.empty()); });
  plain({}, s, a, [](auto const& r) { CHECK(r.out.empty()); });
}

TEST_CASE("no keys: what the contract says of rows without visible keys") {
  call_shapes const s = call_of(1, 2, 2, 1, 3, 0);
  arrays const a = random_arrays(s);
  std::vector<double> v0;
  for (int row = 0; row < 6; ++row) v0.insert(v0.end(), a.at("v0").begin(), a.at("v0").end());
  plain({}, s, a, [](auto const& r) {
    check(r.out, std::vector<double>(42, 0));
    check(r.lse, std::vector<double>(6, -inf));
  });
  principled({}, s, a, [&](auto const& r) {
    check(r.out, v0);
    check(r.lse, std::vector<double>(6, -inf));
    check(r.ground_weight, std::vector<double>(6, 1));
  });
  given_operator op{};
  op.normalizer.logit = 1.5;
  given(op, s, a, [&](auto const& r) {
    check(r.out, v0);
    check(r.lse, std::vector<double>(6, 1.5));
    check(r.ground_weight, std::vector<double>(6, 1));
  });
}

TEST_CASE("reference: every intermediate of a row") {
  call_shapes s;
  s.q = s.out = {1, 1, 1, 1};
  s.k = s.v = {1, 1, 3, 1};
  arrays const a{{"q", {2}}, {"k", {0, 1, 5}}, {"v", {1, 3, 100}}};
  std::vector<key_interval> const hulls{{0, 2}};
  plain_operator op{};
  op.kernel.scale = ln3 / 2;  // scores 0, log 3
  op.mask = {hulls.data(), {1, 1, 1, 1}};
  auto const in = plain_inputs<any_tensor>(s, dense(a));
  auto const whole = forward(reference<double>{}, op, in);
  for (dense_head<double> const& head : {whole.at(0, 0), forward_row(reference<double>{}, op, in, 0, 0, 0)}) {
    CHECK(near(head.scores(0, 1), ln3));
    CHECK(head.scores(0, 2) == -inf);
    CHECK_FALSE(head.visible(0, 2));
    CHECK(near(head.weights(0, 0), 0.25));
    CHECK(head.weights(0, 2) == 0);
    CHECK(near(head.out(0, 0), 2.5));  // 1/4 + 9/4
    CHECK(near(head.lse(0), 2 * ln2));
    CHECK(head.ground_weight.size() == 0);
  }
}

}  // namespace
}  // namespace attune::test
