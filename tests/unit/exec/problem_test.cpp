// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every text of checked_problem, on both executors; and nothing is written when it throws.
#include <algorithm>
#include <string>
#include <vector>

#include <attune/exec/problem.hpp>

#include "../check.hpp"
#include "operators.hpp"

namespace attune::test {
namespace {

std::vector<float> const source(4096, 0.25f);

/// Runs a call and gives its error's text ("" if it ran); says so if a call that threw had written anything.
template <class T, class Op, class In, class Executor>
std::string run(Executor const& exec, Op const& op, In const& in, call_shapes const& s) {
  T const untouched = T(777);
  std::vector<T> out(4096, untouched), lse = out, ground_weight = out;
  outputs<Op, T> to{.out = tensor<T>(out.data(), s.out), .lse = natural_lse(tensor<T>(lse.data(), s.lse))};
  if constexpr (Op::has_ground_weight) to.ground_weight = tensor<T>(ground_weight.data(), s.ground_weight);
  std::string text = error_of([&] { forward(exec, op, in, to); });
  auto const clean = [&](std::vector<T> const& x) { return std::count(x.begin(), x.end(), untouched) == 4096; };
  if (!text.empty() && !(clean(out) && clean(lse) && clean(ground_weight))) text += " (but something was written)";
  return text;
}

tensor<float const> view(char const*, shape const& s) { return {source.data(), s}; }

/// The text on the CPU; "executors differ" if the reference has another.
std::string principled(call_shapes const& s, principled_parameters const& p = {}, mask::runtime const& m = {}) {
  principled_operator const op = principled_attention(p, m);
  std::string const text = run<float>(cpu<float>{1}, op, principled_inputs<tensor<float const>>(s, view), s);
  return run<double>(reference<double>{}, op, principled_inputs<any_tensor>(s, view), s) == text ? text
                                                                                                 : "executors differ";
}
std::string given(call_shapes const& s) {
  given_operator const op{};
  std::string const text = run<float>(cpu<float>{1}, op, given_inputs<tensor<float const>>(s, view), s);
  return run<double>(reference<double>{}, op, given_inputs<any_tensor>(s, view), s) == text ? text : "executors differ";
}

struct bad_extent {
  shape call_shapes::* argument;
  shape value;
  std::string text;
};

TEST_CASE("a consistent call runs") {
  CHECK(principled({}) == "");
  CHECK(given({}) == "");
}

TEST_CASE("extents: each disagreement names argument, value and expectation") {
  using s = call_shapes;
  for (bad_extent const& bad : {
           bad_extent{&s::v, {3, 1, 5, 7}, "v has batch extent 3; expected 2, the batch of out"},
           {&s::v, {2, 3, 5, 7}, "v has head extent 3; expected a divisor of 4, the number of query heads"},
           {&s::v, {2, 0, 5, 7}, "v has head extent 0; expected at least 1, a divisor of 4, the number of query heads"},
           {&s::v, {2, 8, 5, 7}, "v has head extent 8; expected a divisor of 4, the number of query heads"},
           {&s::v, {2, 1, 5, 0}, "v has feature extent 0; expected at least 1"},
           {&s::v, {2, 1, 6, 7}, "k has position extent 5; expected 6, the keys of v"},
           {&s::out, {2, 4, 3, 8}, "out has feature extent 8; expected 7, the width of v"},
           {&s::out, {2, 4, 2, 7}, "q has position extent 3; expected 2, the queries of out"},
           {&s::q, {1, 4, 3, 6}, "q has batch extent 1; expected 2, the batch of out"},
           {&s::q, {2, 2, 3, 6}, "q has head extent 2; expected 4, the heads of out"},
           {&s::q, {2, 4, 3, 0}, "q has feature extent 0; expected at least 1"},
           {&s::k, {1, 2, 5, 6}, "k has batch extent 1; expected 2, the batch of out"},
           {&s::k, {2, 3, 5, 6}, "k has head extent 3; expected a divisor of 4, the number of query heads"},
           {&s::k, {2, 2, 5, 8}, "k has feature extent 8; expected 6, the width of q"},
           {&s::gate_q, {2, 4, 4, 2}, "gate_q has position extent 4; expected 3, the queries of out"},
           {&s::gate_k, {2, 3, 5, 2}, "gate_k has head extent 3; expected a divisor of 4, the number of query heads"},
           {&s::gate_k, {2, 2, 5, 1}, "gate_k has feature extent 1; expected 2, the width of gate_q"},
           {&s::v0, {1, 1, 1, 6}, "v0 has shape (1, 1, 1, 6); expected (1 or 2, 1 or 4, 1 or 3, 7)"},
           {&s::v0, {1, 2, 1, 7}, "v0 has shape (1, 2, 1, 7); expected (1 or 2, 1 or 4, 1 or 3, 7)"},
           {&s::lse, {2, 4, 3, 2}, "lse has shape (2, 4, 3, 2); expected (2, 4, 3, 1): one number per row"},
           {&s::ground_weight,
            {2, 4, 1, 1},
            "ground_weight has shape (2, 4, 1, 1); expected (2, 4, 3, 1): one number per row"},
       }) {
    call_shapes changed;
    changed.*bad.argument = bad.value;
    CHECK(principled(changed) == "attune::forward: " + bad.text);
  }
  for (bad_extent const& bad :
       {bad_extent{&s::scores,
                   {2, 4, 5, 3},
                   "scores has shape (2, 4, 5, 3); expected (1 or 2, 1 or 4, 1 or 3, 5): (batch, head, query, key)"},
        {&s::gates,
         {1, 3, 3, 5},
         "gates has shape (1, 3, 3, 5); expected (1 or 2, 1 or 4, 1 or 3, 5): (batch, head, query, key)"}}) {
    call_shapes changed;
    changed.*bad.argument = bad.value;
    CHECK(given(changed) == "attune::forward: " + bad.text);
  }
}

TEST_CASE("parameters: shape and value, of every policy") {
  std::vector<double> const three(3), zeros_and_nan{0, 0, nan, 0};
  std::string const at = "attune::forward: parameter ", row = " at (batch, head, query) = (0, 0, 0); expected ";
  CHECK(principled({}, {.gamma = per_head(three)}) ==
        at + "gamma has shape (1, 3, 1, 1); expected (1 or 2, 1 or 4, 1 or 3, 1)");
  CHECK(principled({}, {.alpha = inf}) == at + "alpha has the value inf" + row + "a finite number or -inf");
  CHECK(principled({}, {.beta = nan}) == at + "beta has the value nan" + row + "a finite number or -inf");
  CHECK(principled({}, {.gamma = per_head(zeros_and_nan)}) ==
        at + "gamma has the value nan at (batch, head, query) = (0, 2, 0); expected a number, -inf or +inf");
  CHECK(principled({}, {-inf, -inf, -inf}) == "");
  CHECK(principled({}, {.gamma = inf}) == "");
}

TEST_CASE("the mask is checked against the extents of the call") {
  std::vector<key_interval> const hulls(4);
  CHECK(principled({}, {}, {hulls.data(), {1, 1, 4, 1}}) ==
        "attune::mask::runtime: the array of hulls has shape (1, 1, 4, 1); expected (1 or 2, 1 or 4, 3, 1)");
}

TEST_CASE("accumulate: an interval of keys outside the call") {
  plain_operator const op{};
  auto const on_cpu = plain_inputs<tensor<float const>>({}, view);
  auto const on_reference = plain_inputs<any_tensor>({}, view);
  for (auto const& [keys, words] :
       {std::pair<key_interval, std::string>{{-1, 3}, "[-1, 3)"}, {{2, 6}, "[2, 6)"}, {{4, 3}, "[4, 3)"}}) {
    std::string const text = "attune::accumulate: keys has the interval " + words + "; expected one within [0, 5)";
    CHECK(error_of([&, k = keys] { accumulate(cpu<float>{1}, op, on_cpu, k); }) == text);
    CHECK(error_of([&, k = keys] { accumulate(reference<double>{}, op, on_reference, k); }) == text);
  }
}

TEST_CASE("forward_row: a row outside the call") {
  plain_operator const op{};
  CHECK(error_of([&] { forward_row(reference<double>{}, op, plain_inputs<any_tensor>({}, view), 0, 4, 2); }) ==
        "attune::forward_row: (batch, head, query) has the value (0, 4, 2); expected indices below (2, 4, 3)");
}

TEST_CASE("problem_shape: head h of H reads head h G / H of G; positions are query + offset") {
  problem_shape p;
  p.heads = 6;
  p.queries = 3;
  p.keys = 7;
  p.set_offset(4);
  index_t const of_two[6] = {0, 0, 0, 1, 1, 1}, of_three[6] = {0, 0, 1, 1, 2, 2};
  for (index_t h = 0; h < 6; ++h) {
    CHECK(p.group(h, 1) == 0);
    CHECK(p.group(h, 2) == of_two[h]);
    CHECK(p.group(h, 3) == of_three[h]);
    CHECK(p.group(h, 6) == h);
  }
  CHECK(p.row(0, 1, 2).position == 6);
  CHECK(p.row(0, 1, 2).keys == 7);
}

}  // namespace
}  // namespace attune::test
