// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <vector>

#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/grounded.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/sink.hpp>
#include <attune/policies/normalizer/softmax.hpp>

#include "../check.hpp"
#include "../policies/row.hpp"

namespace attune::test {
namespace {

struct visible_key {
  double logit, value;
};
using visible_keys = std::vector<visible_key>;
using state = row_state<double>;

template <class N>
state state_of(N const& n, visible_keys const& keys) {
  auto const f = n.bind(row_with(0));
  state s = state::empty<N>(f, 1);
  for (visible_key const& k : keys) s.accumulate<N>(f, k.logit, [&](index_t) { return k.value; });
  return s;
}

struct finished {
  double out, ground_weight, lse;  ///< out without the ground value
};
template <class N>
finished finish(N const& n, state const& s, std::size_t visible) {
  auto const done = finish_masses<N>(n.bind(row_with(0)), s.reference, s.earned, s.ground, double(visible));
  return {s.acc[0] * done.value_factor, done.ground_weight, done.lse};
}
template <class N>
finished row_of(N const& n, visible_keys const& keys) {
  return finish(n, state_of(n, keys), keys.size());
}

void check(finished const& got, double out, double ground_weight, double lse) {
  CHECK(near(got.out, out));
  CHECK(near(got.ground_weight, ground_weight));
  CHECK(near(got.lse, lse));
}

// Masses 1, 2, 3 with values 6, 12, 18: sum 6, value sum 6 + 24 + 54 = 84.
visible_keys const three{{0, 6}, {ln2, 12}, {ln3, 18}};

TEST_CASE("accumulate: masses relative to the largest logit so far") {
  state const s = state_of(normalizer::softmax{}, three);
  CHECK(s.reference == ln3);
  CHECK(near(s.earned, 2));   // 6 / 3
  CHECK(near(s.acc[0], 28));  // 84 / 3
  CHECK(s.ground == 0);
  state const g = state_of(normalizer::grounded{2 * ln2}, three);  // e^gamma = 4
  CHECK(g.reference == 2 * ln2);
  CHECK(near(g.earned, 1.5));  // 6 / 4
  CHECK(near(g.ground, 1.5));  // (3 + 2 + 1) / 4
}

TEST_CASE("accumulate, finish: a row by hand, in any order of its keys") {
  visible_keys keys = three;
  for (int order = 0; order < 3; ++order, std::rotate(keys.begin(), keys.begin() + 1, keys.end())) {
    check(row_of(normalizer::softmax{}, keys), 14, 0, std::log(6));            // 84 / 6
    check(row_of(normalizer::off_by_one{}, keys), 12, 1. / 7, std::log(7));    // 84 / (6 + 1)
    check(row_of(normalizer::sink{std::log(6)}, keys), 7, 0.5, std::log(12));  // 84 / (6 + 6)
    check(row_of(normalizer::sink{20.0}, keys), 84 / (6 + std::exp(20)), 1 / (1 + 6 * std::exp(-20)),
          20 + std::log1p(6 * std::exp(-20)));
    check(row_of(normalizer::grounded{ln2}, keys), 12, 1. / 7, std::log(7));  // 2 + 2 + 3; the first key leaves 1
    check(row_of(normalizer::grounded{0.0}, keys), 14, 0, std::log(6));       // every key reaches gamma
  }
}

TEST_CASE("extreme logits: no overflow, no NaN") {
  visible_keys const far{{-1e4, 1}, {1e4, 2}, {-1e300, 3}};
  check(row_of(normalizer::softmax{}, far), 2, 0, 1e4);
  check(row_of(normalizer::off_by_one{}, far), 2, 0, 1e4);
  check(row_of(normalizer::sink{2e4}, far), 0, 1, 2e4);
  check(row_of(normalizer::grounded{2e4}, far), 0, 1, 2e4 + ln3);
  check(row_of(normalizer::grounded{-1e5}, far), 2, 0, 1e4);
}

TEST_CASE("no visible key") {
  check(row_of(normalizer::softmax{}, {}), 0, 0, -inf);
  check(row_of(normalizer::off_by_one{}, {}), 0, 1, 0);
  check(row_of(normalizer::sink{3.0}, {}), 0, 1, 3);
  check(row_of(normalizer::sink{-inf}, {}), 0, 1, -inf);
  check(row_of(normalizer::sink{inf}, {}), 0, 1, inf);
  for (double gamma : {-inf, -2.0, 5.0, inf}) check(row_of(normalizer::grounded{gamma}, {}), 0, 1, -inf);
}

TEST_CASE("all logits -inf") {
  visible_keys const off{{-inf, 1}, {-inf, 2}};
  check(row_of(normalizer::softmax{}, off), 0, 0, -inf);
  check(row_of(normalizer::off_by_one{}, off), 0, 1, 0);
  check(row_of(normalizer::sink{3.0}, off), 0, 1, 3);
  check(row_of(normalizer::sink{-inf}, off), 0, 1, -inf);
  check(row_of(normalizer::grounded{3.0}, off), 0, 1, 3 + ln2);  // two keys left e^3 each
  check(row_of(normalizer::grounded{-inf}, off), 0, 0, -inf);    // softmax: nobody holds the mass
}

TEST_CASE("some logits -inf: weight exactly 0; one key: its value exactly") {
  check(row_of(normalizer::softmax{}, {{-inf, 1e300}, {0.7, 0.1}}), 0.1, 0, 0.7);
  CHECK(row_of(normalizer::softmax{}, {{0.7, 0.1}}).out == 0.1);
}

TEST_CASE("infinite levels take or leave everything") {
  check(row_of(normalizer::sink{-inf}, three), 14, 0, std::log(6));
  check(row_of(normalizer::grounded{-inf}, three), 14, 0, std::log(6));
  check(row_of(normalizer::sink{inf}, three), 0, 1, inf);
  check(row_of(normalizer::grounded{inf}, three), 0, 1, inf);
}

TEST_CASE("+inf and NaN logits make the row NaN; weight 0 times inf too") {
  for (double bad : {inf, nan}) {
    CHECK(std::isnan(row_of(normalizer::softmax{}, {{0, 1}, {bad, 2}, {3, 1}}).out));
    CHECK(std::isnan(row_of(normalizer::off_by_one{}, {{bad, 2}, {0, 1}}).out));
    CHECK(std::isnan(row_of(normalizer::grounded{1.0}, {{0, 1}, {bad, 2}}).out));
  }
  CHECK(std::isnan(row_of(normalizer::softmax{}, {{0, 1}, {-inf, inf}}).out));
}

template <class N>
void check_monoid(N const& n) {
  state const a = state_of(n, {three[0]}), b = state_of(n, {three[1], {-inf, 5}}),
              c = state_of(n, {three[2], {-40, 1}});
  state const unit = state_of(n, {});
  auto const merged = [](state x, state const& y) {
    x.template merge<N>(y);
    return x;
  };
  auto const same_bits = [](state const& x, state const& y) {
    return x.reference == y.reference && x.earned == y.earned && x.ground == y.ground && x.acc == y.acc;
  };
  CHECK(same_bits(merged(a, b), merged(b, a)));
  CHECK(same_bits(merged(c, unit), c));
  CHECK(same_bits(merged(unit, c), c));
  CHECK(same_bits(merged(unit, unit), unit));
  finished const whole = row_of(n, {three[0], three[1], {-inf, 5}, three[2], {-40, 1}});
  for (state const& s : {merged(merged(a, b), c), merged(a, merged(b, c)), merged(merged(c, a), merged(unit, b))}) {
    finished const got = finish(n, s, 5);
    check(got, whole.out, whole.ground_weight, whole.lse);
  }
}

TEST_CASE("merge: associative, commutative, with the empty state as unit; a sink's mass enters once") {
  check_monoid(normalizer::softmax{});
  check_monoid(normalizer::off_by_one{});
  check_monoid(normalizer::sink{ln2});
  check_monoid(normalizer::sink{-inf});
  check_monoid(normalizer::sink{inf});
  check_monoid(normalizer::grounded{ln2});
  check_monoid(normalizer::grounded{-inf});
  check_monoid(normalizer::grounded{inf});
  check_monoid(normalizer::grounded{50.0});
}

TEST_CASE("raise: to the same reference changes nothing, also at +inf") {
  state s{inf, 2, 3, 0, {4}, {}};
  s.raise<normalizer::softmax>(inf);
  CHECK(s.earned == 2);
  CHECK(s.ground == 3);
  s = {0, 2, 3, 0, {4}, {}};
  s.raise<normalizer::softmax>(ln2);
  CHECK(near(s.earned, 1));
  CHECK(near(s.ground, 1.5));
  CHECK(near(s.acc[0], 2));
  CHECK(s.reference == ln2);
}

/// Masses that nothing divides, and masses divided by K.
template <divisor Divisor>
struct undivided {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = Divisor, .reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return a; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

TEST_CASE("divisor one and count: raw sums and means, no reference") {
  visible_keys const keys{{2, 10}, {-1, 4}};  // 2 * 10 - 4
  CHECK(row_of(undivided<divisor::one>{}, keys).out == 16);
  CHECK(row_of(undivided<divisor::count>{}, keys).out == 8);
  CHECK(row_of(undivided<divisor::count>{}, {}).out == 0);
  CHECK(state_of(undivided<divisor::one>{}, keys).reference == 0);
}

}  // namespace
}  // namespace attune::test
