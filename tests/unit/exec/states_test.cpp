// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <string>
#include <vector>

#include <attune/exec/cpu/tile/split.hpp>
#include <attune/exec/reference/split.hpp>
#include <attune/exec/states.hpp>

#include "../check.hpp"
#include "calls.hpp"

namespace attune::test {
namespace {

problem_shape extents(index_t batch, index_t heads, index_t queries, index_t value_width) {
  problem_shape p;
  p.batch = batch;
  p.heads = heads;
  p.queries = queries;
  p.value_width = value_width;
  return p;
}

using plain_states = row_states<double, normalizer::softmax>;

TEST_CASE("row_states: rows are stored batch, head, query") {
  plain_states s(0, extents(2, 3, 4, 5));
  CHECK(s.reference.size() == 24);
  CHECK(s.acc.size() == 120);
  CHECK(s.at(1, 2, 3) == 23);  // (1 * 3 + 2) * 4 + 3
  s.store(7, {1, 2, 3, 0, {4, 5, 6, 7, 8}, {}});
  CHECK(s.acc[35] == 4);  // 7 * 5
  CHECK(s.acc[40] == 0);
  row_state<double> const r = s.load(7);
  CHECK(r.reference == 1);
  CHECK(r.earned == 2);
  CHECK(r.ground == 3);
  CHECK(r.acc == std::vector<double>{4, 5, 6, 7, 8});
}

TEST_CASE("merge: row by row") {
  plain_states a(0, extents(1, 1, 2, 1)), b = a;
  a.store(0, {0, 2, 1, 0, {6}, {}});
  b.store(0, {ln2, 3, 5, 0, {1}, {}});
  plain_states const m = merge(a, b);
  CHECK(m.reference[0] == ln2);
  CHECK(near(m.earned[0], 4));    // 2 / 2 + 3
  CHECK(near(m.ground[0], 5.5));  // 1 / 2 + 5
  CHECK(near(m.acc[0], 4));       // 6 / 2 + 1
  CHECK(m.earned[1] == 0);
}

TEST_CASE("merge: states of another call, even if it has as many rows") {
  plain_states const a(0, extents(1, 2, 3, 4));
  std::string const at = "attune::merge: the second state has rows of shape ",
                    wanted = "; expected (1, 2, 3, 4), as the first";
  CHECK(error_of([&] { merge(a, plain_states(0, extents(1, 2, 4, 4))); }) == at + "(1, 2, 4, 4)" + wanted);
  CHECK(error_of([&] { merge(a, plain_states(0, extents(1, 2, 3, 5))); }) == at + "(1, 2, 3, 5)" + wanted);
  CHECK(error_of([&] { merge(a, plain_states(0, extents(1, 3, 2, 4))); }) == at + "(1, 3, 2, 4)" + wanted);
}

double distance(double x, double y) { return x == y ? 0 : std::fabs(x - y) / std::fmax(1, std::fabs(y)); }
template <class T>
double distance(results<T> const& x, results<T> const& y) {
  double worst = 0;
  for (auto part : {&results<T>::out, &results<T>::lse, &results<T>::ground_weight})
    for (std::size_t n = 0; n < (x.*part).size(); ++n) {
      double const d = distance(double((x.*part)[n]), double((y.*part)[n]));
      if (!(d <= worst)) worst = d;
    }
  return worst;
}

/// Parts of the keys, merged in two orders, against the whole.
template <class Executor, class Op, class In>
void parts_make_the_whole(Executor const& exec, Op const& op, In const& in, call_shapes const& s, double tolerance) {
  using T = typename Executor::value_type;
  results<T> const whole = run(exec, op, in, s);
  index_t const keys = s.v.position, third = keys / 3;
  auto const part = [&](index_t first, index_t last) { return accumulate(exec, op, in, {first, last}); };
  auto const a = part(0, third), none = part(third, third), b = part(third, keys - 1), c = part(keys - 1, keys);
  for (auto const& merged : {merge(merge(a, b), merge(none, c)), merge(c, merge(merge(none, b), a)), part(0, keys)}) {
    results<T> got(s);
    finish(op, in, merged, got.template views<Op>(s));
    CHECK(distance(got, whole) <= tolerance);
  }
}

TEST_CASE("accumulate parts, merge in any order, finish: forward") {
  call_shapes const s = call_of(2, 4, 2, 1, 5, 70);
  arrays const a = random_arrays(s);
  // Rows see up to 70 keys, one, none. K counts the keys of all parts.
  std::vector<key_interval> const hulls{{0, 70}, {3, 50}, {60, 61}, {30, 30}, {0, 12}};
  mask::runtime const mask{hulls.data(), {1, 1, 5, 1}};
  plain_operator plain{};
  plain.mask = mask;
  principled_operator const principled = principled_attention({-1.0, 0.2, 0.05}, mask);
  principled_operator const shifted = principled_attention({-1.0, 0.2, -40.0}, mask);  // with a row constant
  given_operator given{};
  given.mask = mask;
  given.normalizer.logit = 2;
  cpu<float> const fast{2};
  reference<double> const exact{};
  parts_make_the_whole(fast, plain, plain_inputs<tensor<float const>>(s, dense(a)), s, 2e-6);
  parts_make_the_whole(fast, principled, principled_inputs<tensor<float const>>(s, dense(a)), s, 2e-6);
  parts_make_the_whole(fast, shifted, principled_inputs<tensor<float const>>(s, dense(a)), s, 2e-6);
  parts_make_the_whole(fast, given, given_inputs<tensor<float const>>(s, dense(a)), s, 2e-6);
  parts_make_the_whole(exact, plain, plain_inputs<any_tensor>(s, dense(a)), s, 1e-14);
  parts_make_the_whole(exact, principled, principled_inputs<any_tensor>(s, dense(a)), s, 1e-14);
  parts_make_the_whole(exact, shifted, principled_inputs<any_tensor>(s, dense(a)), s, 1e-14);
  parts_make_the_whole(exact, given, given_inputs<any_tensor>(s, dense(a)), s, 1e-14);
}

/// The text of what finish() throws; says so if it had written anything.
std::string finish_text(states_of<float, principled_operator> const& states, shape const& lse,
                        shape const& ground_weight) {
  call_shapes const s = call_of(1, 2, 2, 1, 3, 4);
  arrays const a = random_arrays(s);
  std::vector<float> memory(4096, 777.f);
  std::vector<float> const untouched = memory;
  outputs<principled_operator, float> const to{.out = tensor<float>(memory.data(), s.out),
                                               .lse = natural_lse(tensor<float>(memory.data() + 1024, lse)),
                                               .ground_weight = tensor<float>(memory.data() + 2048, ground_weight)};
  std::string const text =
      error_of([&] { finish(principled_operator{}, principled_inputs<tensor<float const>>(s, dense(a)), states, to); });
  return text.empty() || memory == untouched ? text : text + " (but something was written)";
}

TEST_CASE("finish: states of another call, even if it has as many value sums; outputs of another shape") {
  states_of<float, principled_operator> const states(principled_operator{}, extents(1, 2, 3, 7));
  shape const rows{1, 2, 3, 1};
  CHECK(finish_text(states, rows, rows) == "");
  std::string const wanted = "; expected (1, 2, 3, 7), the shape of out";
  CHECK(finish_text(states_of<float, principled_operator>(principled_operator{}, extents(1, 2, 4, 7)), rows, rows) ==
        "attune::finish: states has rows of shape (1, 2, 4, 7)" + wanted);
  CHECK(finish_text(states_of<float, principled_operator>(principled_operator{}, extents(1, 3, 2, 7)), rows, rows) ==
        "attune::finish: states has rows of shape (1, 3, 2, 7)" + wanted);
  CHECK(finish_text(states, {1, 2, 4, 1}, rows) ==
        "attune::finish: lse has shape (1, 2, 4, 1); expected (1, 2, 3, 1): one number per row");
  CHECK(finish_text(states, rows, {1, 2, 1, 1}) ==
        "attune::finish: ground_weight has shape (1, 2, 1, 1); expected (1, 2, 3, 1): one number per row");
}

}  // namespace
}  // namespace attune::test
