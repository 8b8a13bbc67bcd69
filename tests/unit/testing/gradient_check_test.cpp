// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The gradient check passes what is right and finds every kind of wrong derivative that can be planted in a policy.
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using testing::check_gradients;
using testing::gradient_report;
using testing::problem_extents;

constexpr problem_extents small{.batch = 1, .heads = 2, .queries = 3, .keys = 4, .width = 2};

std::string printed(gradient_report const& r) {
  std::ostringstream s;
  s << r;
  return s.str();
}

/// What a policy may do to a score on its way. Each has a forward pass in order, and a derivative that is not.
enum class defect { none, dropped_tangent, rounded, slope_of_batches };

template <class T>
struct is_dual : std::false_type {};
template <class T, int N, chain_rule Rule>
struct is_dual<dual<T, N, Rule>> : std::true_type {};

template <defect D, class T>
T spoiled(T x) {
  if constexpr (D == defect::dropped_tangent && is_dual<T>::value) return T(x.value);
  if constexpr (D == defect::rounded && std::is_same_v<T, digits50>) return digits50(double(x));
  if constexpr (D == defect::slope_of_batches && is_dual<T>::value)
    if constexpr (!std::is_same_v<decltype(x.value), digits50>)
      for (auto& t : x.tangent) t = t + t;
  return x;
}

/// A score of rate <q, k>, whose derivative by the score is `ByScore` and by the rate `ByRate`.
template <defect ByScore, defect ByRate = defect::none>
struct rated {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter rate = 1;
  static constexpr auto parameters() { return std::tuple{listed("rate", &rated::rate)}; }
  template <class T>
  struct bound {
    T rate;
    T score(T const& x, key<T> const&) const { return rate * spoiled<ByScore>(x); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {spoiled<ByRate>(r(rate))};
  }
};

/// <q, k>, whose tangent is lost for queries that stand behind the last key: only an offset brings one there.
struct lost_behind {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T behind;
    T score(T const& x, key<T> const&) const {
      return math::select(behind > T(-1), spoiled<defect::dropped_tangent>(x), x);
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.position - r.keys};
  }
};

TEST_SUITE("gradient check") {
  TEST_CASE("a second problem draws offsets: what is wrong behind the last key is found") {
    int found = 0, without = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      auto const r = check_gradients(attention(lost_behind{}), small, seed);
      CHECK(r.varied.find("offsets ") != std::string::npos);
      found += !r.passed();
      without += !check_gradients(attention(lost_behind{}), small, seed, {.vary = false}).passed();
    }
    CHECK(found >= 3);
    CHECK(without == 0);
  }

  TEST_CASE("right policies pass, by every route") {
    std::vector<double> rates{0.7, -0.4};
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      auto const r = check_gradients(attention(rated<defect::none>{per_head(rates)}, mask::causal{}), small, seed);
      INFO(printed(r));
      CHECK(r.passed());
      REQUIRE(r.lines.size() == 4);
      CHECK(r.line("input k").differences.compared == 8);  // one key head of 4 keys
      CHECK(r.line("parameter kernel.rate").differences.compared == 2);
      CHECK(r.line("parameter kernel.rate").cpu_double.compared == 2);
      CHECK(r.directions.differences.compared == 4);
      CHECK(r.line("input q").differences.largest < 1e-12);
      CHECK(printed(r).find("gradients agree (seed ") != std::string::npos);
    }
  }

  TEST_CASE("a dropped tangent is found by differences") {
    auto const r = check_gradients(attention(rated<defect::dropped_tangent>{0.7}), small, 1);
    INFO(printed(r));
    CHECK_FALSE(r.passed());
    CHECK_FALSE(r.line("input q").differences.passed());
    CHECK(r.line("input v").passed());  // the weights are in order
    CHECK_FALSE(r.directions.passed());
    CHECK(r.line("input q").cpu_double.passed());  // it drops them too: only differences can tell
    CHECK(printed(r).find("WRONG input q") != std::string::npos);
  }

  TEST_CASE("a dropped tangent of a parameter is found") {
    auto const r = check_gradients(attention(rated<defect::none, defect::dropped_tangent>{0.7}), small, 1);
    INFO(printed(r));
    CHECK_FALSE(r.passed());
    CHECK_FALSE(r.line("parameter kernel.rate").passed());
    CHECK(r.line("input q").passed());
  }

  TEST_CASE("arithmetic that is not carried through in T is found") {
    auto const r = check_gradients(attention(rated<defect::rounded>{0.7}), small, 1);
    INFO(printed(r));
    CHECK_FALSE(r.passed());
    CHECK_FALSE(r.line("input q").differences.passed());
  }

  TEST_CASE("a wrong derivative on the CPU alone is found there") {
    auto const r = check_gradients(attention(rated<defect::slope_of_batches>{0.7}), small, 1);
    INFO(printed(r));
    CHECK_FALSE(r.passed());
    CHECK(r.line("input q").differences.passed());
    CHECK_FALSE(r.line("input q").cpu_double.passed());
    CHECK_FALSE(r.line("input q").cpu_float.passed());
    CHECK(r.line("input v").passed());
  }

  TEST_CASE("ground value, lse, gate and tables take part") {
    std::vector<double> const metric{0.5, 1.5};
    attune::table const m(tensor<double const>(metric, {1, 1, 1, 2}));
    auto const r = check_gradients(
        attention(kernel::bilinear{m}, length_scale::margin{0.3, 0.4}, gate::softplus{-0.2}, normalizer::grounded{0.4}),
        small, 5);
    INFO(printed(r));
    CHECK(r.passed());
    for (char const* name :
         {"input gate_q", "input gate_k", "input v0", "table kernel.metric", "parameter normalizer.gamma"}) {
      CHECK(r.line(name).differences.compared > 0);
      CHECK(r.line(name).magnitude > 0);
    }
    CHECK(r.line("parameter kernel.scale").note == "it is not set, so the policy computes it");
  }

  TEST_CASE(
      "what a parameter is projected from moves; an average moves by its value; the edge of a domain stands still") {
    std::vector<double> const x{0.5, -1, 0.25, 2, 1, -0.5}, w{0.3, -0.7, 0.2, 0.4}, bias{0.1, -0.2};
    shape const per_head_shape{1, 2, 1, 1};
    parameter const alpha(projection{.x = tensor<double const>(x, {1, 1, 3, 2}),
                                     .weight = tensor<double const>(w, {1, 2, 1, 2}),
                                     .bias = tensor<double const>(bias, per_head_shape),
                                     .activation = activation::sigmoid});
    auto const average = parameter::moving_average(alpha, 0.4, 0.9);
    auto const r = check_gradients(attention(kernel::dot_product{}, normalizer::affine<>{alpha, average}), small, 7);
    INFO(printed(r));
    CHECK(r.passed());
    CHECK(r.line("parameter normalizer.alpha").note == "what it is projected from moves");
    CHECK(r.line("parameter normalizer.alpha.x").differences.compared == 6);
    CHECK(r.line("parameter normalizer.alpha.weight").differences.compared == 4);
    CHECK(r.line("parameter normalizer.alpha.bias").differences.compared == 2);
    CHECK(r.line("parameter normalizer.average").differences.compared == 2);

    auto const edge = check_gradients(attention(kernel::dot_product{}, normalizer::entmax{4.0}), small, 7);
    INFO(printed(edge));
    CHECK(edge.passed());
    CHECK(edge.line("parameter normalizer.alpha").note == "infinite, or at the edge of the domain");
  }

  TEST_CASE("inputs from a domain, misuse, nothing to check") {
    auto const prior = attention(kernel::dot_product{} + kernel::log_prior{});
    auto const right = check_gradients(prior, small, 1);
    INFO(printed(right));
    CHECK(right.passed());
    auto const outside = check_gradients(
        prior, small, 1, {.draw = [](field f, double x) { return f == field::bias ? -1.0 : x; }});  // log of -1
    CHECK_FALSE(outside.passed());
    auto const flat =
        check_gradients(prior, small, 1, {.draw = [](field f, double) { return f == field::bias ? 1.0 : 0.0; }});
    CHECK(flat.line("input q").magnitude == 0);

    CHECK(error_of([&] { check_gradients(prior, {.queries = 0}, 1); }) ==
          "attune::check_gradients: extents.queries has the value 0; expected at least 1");
    CHECK(error_of([&] { right.line("input x"); }).find("input x") != std::string::npos);
  }
}

}  // namespace
}  // namespace attune::test
