// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A-priori bounds: numbers that a reader can redo, and correct kernels within them.
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/certify/error_bound.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using certify::error_bound;
using certify::error_bounds;
using certify::precision;
using certify::rounded;
using certify::storage;

TEST_SUITE_BEGIN("error bounds");

TEST_CASE("a sum of products counts the roundings that a term can meet, in any order") {
  rounded const x(3.0), y(-2.0), z(0.5);
  rounded const sum = rounded(0.0) + x * y + y * z + x * z;  // -6 - 1 + 1.5
  CHECK(sum.value == -5.5);
  CHECK(sum.size == 8.5);    // 6 + 1 + 1.5
  CHECK(sum.rounds == 2.0);  // a multiplication (1) and two additions (1/2 each)
  CHECK(sum.total() == 17.0);
  rounded const e = math::exp(sum);
  CHECK(near(e.total(), std::exp(-5.5) * (17 + 2.5)));
  CHECK(rounded(7.0).total() == 0);  // inputs are exact
}

TEST_CASE("one visible key has no condition: its value comes back exactly") {
  std::vector<double> const q{40, 1}, k{3, 5}, v{7};
  auto op = attention(kernel::dot_product{});
  inputs<decltype(op), any_tensor> const in{
      .q = tensor(q, {1, 1, 1, 2}), .k = tensor(k, {1, 1, 1, 2}), .v = tensor(v, {1, 1, 1, 1})};
  error_bounds const b = error_bound(op, in);
  CHECK(b.at_out(0, 0, 0, 0).value == 7);
  CHECK(b.at_out(0, 0, 0, 0).bound < 12 * 7 * 0x1p-23);
  CHECK(b.at_lse(0, 0, 0).bound > 125 / std::sqrt(2.) * 0x1p-23);  // the logit's own error is all there
}

TEST_CASE("storage: half a unit of the last place, and probabilities rounded where they usually are") {
  std::vector<double> const q{0}, k{0, 0}, v{1, 2};
  auto op = attention(kernel::dot_product{});
  inputs<decltype(op), any_tensor> const in{
      .q = tensor(q, {1, 1, 1, 1}), .k = tensor(k, {1, 1, 2, 1}), .v = tensor(v, {1, 1, 2, 1})};
  auto const bound = [&](precision p) { return error_bound(op, in, p).at_out(0, 0, 0, 0).bound; };
  CHECK(near(bound({storage::bf16, storage::fp32, storage::fp32}), 1.5 * 0x1p-8, 1e-2));
  CHECK(near(bound(storage::bf16), 3 * 1.5 * 0x1p-8, 2e-2));  // out, numerator, denominator
  CHECK(near(bound(storage::fp16), 3 * 1.5 * 0x1p-11, 2e-2));
  CHECK(bound(storage::fp64) < 1e-14);
}

/// The worst error / bound of a call in float.
template <class Op>
double share_used(Op const& op, testing::problem_extents const& e, int cases) {
  double worst = 0;
  for (int seed = 1; seed <= cases; ++seed) {
    testing::detail::normal_numbers random{std::uint64_t(seed)};
    testing::drawn_problem<Op> const p(e, random);
    error_bounds const b = error_bound(op, p.template inputs<any_tensor>());
    problem_shape const& x = b.extents;
    std::vector<float> out(b.out.size()), lse(b.lse.size()), w0(b.ground_weight.size());
    outputs<Op, float> to{.out = tensor<float>(out, {x.batch, x.heads, x.queries, x.value_width})};
    if constexpr (Op::has_lse) to.lse = natural_lse(tensor<float>(lse, {x.batch, x.heads, x.queries, 1}));
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<float>(w0, {x.batch, x.heads, x.queries, 1});
    forward(cpu<float>{1}, op, p.template inputs<tensor<float const>>(), to);
    auto const compare = [&](std::vector<float> const& got, std::vector<certify::bounded_number> const& wanted) {
      for (std::size_t n = 0; n < got.size(); ++n)
        if (double const r = std::fabs(double(got[n]) - wanted[n].value) / wanted[n].bound; !(r <= worst)) worst = r;
    };
    compare(out, b.out);
    compare(lse, b.lse);
    compare(w0, b.ground_weight);
  }
  return worst;
}

/// What no list of kernels knows: a cubic score, and weights log(1 + e^a) / sum.
struct cubic {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x * x * x * T(0.125); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct soft_relu {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T shift;
    T earned(T const& a, T const&) const { return math::softplus(T(a + shift)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};

TEST_CASE("the CPU in float keeps within the bound, and not by chance of a bound that is none") {
  testing::problem_extents const wide{.queries = 6, .keys = 70, .width = 16},
      small{.queries = 5, .keys = 4, .width = 3};
  auto const check = [&](char const* name, auto const& op) {
    double const w = share_used(op, wide, 10), s = share_used(op, small, 30);
    INFO(std::string(name) << ": " << w << " of the bound at 70 keys, " << s << " at 4");
    CHECK(w < 1);
    CHECK(s < 1);
    CHECK(s > 0.01);
  };
  check("principled", principled_attention({.alpha = 0.1, .beta = 0.2, .gamma = 0.3}, mask::causal{}));
  check("a user's policies", attention(cubic{}, soft_relu{}));
}

/// Four keys behind gates that float's exponential takes to 0, or just not.
struct shut_gates {
  std::vector<float> q{0.5f}, k{0.1f, 0.2f, 0.3f, 0.4f}, v{1000, 900, 1100, 1000}, gates;
  explicit shut_gates(float x) : gates(4, x) {}
  static tensor<float const> view(std::vector<float> const& numbers, index_t positions) {
    return {numbers.data(), {1, 1, positions, 1}};
  }
  /// error / bound of the CPU's output.
  template <class Op>
  static double share(Op const& op, inputs<Op, any_tensor> const& in, inputs<Op, tensor<float const>> const& same) {
    float out = 0;
    forward(cpu<float>(1), op, same, {.out = tensor<float>(&out, {1, 1, 1, 1})});
    auto const b = error_bound(op, in, storage::fp32).at_out(0, 0, 0, 0);
    return std::abs(double(out) - b.value) / b.bound;
  }
};

TEST_CASE("gates that underflow take with them what they were to multiply") {
  for (float x : {-86.5f, -87.1f, -87.3f, -88.f, -90.f, -104.f}) {
    shut_gates const g(x);
    auto const q = g.view(g.q, 1), k = g.view(g.k, 4), v = g.view(g.v, 4), row = g.view(g.gates, 1),
               keys = g.view(g.gates, 4);
    auto const of_output = attention(kernel::dot_product{}, gate::sigmoid_output{});
    CHECK(g.share(of_output, {.q = q, .k = k, .v = v, .output_gate = row},
                  {.q = q, .k = k, .v = v, .output_gate = row}) < 1);
    auto const of_values = attention(kernel::dot_product{}, gate::sigmoid_value{});
    CHECK(g.share(of_values, {.q = q, .k = k, .v = v, .value_gate = keys},
                  {.q = q, .k = k, .v = v, .value_gate = keys}) < 1);
  }
}

// The CPU sums p (a - max a) v and p v: for a key close to the lower end two large sums cancel.
TEST_CASE("self-adjusted: the weight of a key far below the highest is the difference of two sums") {
  auto const op = attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{});
  using type = std::remove_const_t<decltype(op)>;
  double worst = 0;
  for (int n = 1; n < 64; ++n) {
    std::vector<float> const scores{16, 0.0037f * float(n)}, v{0, 1};
    auto const s = tensor<float const>(scores, {1, 1, 1, 2}), values = tensor<float const>(v, {1, 1, 2, 1});
    float out = 0;
    forward(cpu<float>(1), op, inputs<type, tensor<float const>>{.v = values, .scores = s},
            {.out = tensor<float>(&out, {1, 1, 1, 1})});
    auto const b = error_bound(op, inputs<type, any_tensor>{.v = values, .scores = s}).at_out(0, 0, 0, 0);
    worst = std::fmax(worst, std::fabs(double(out) - b.value) / b.bound);
  }
  INFO(worst);
  CHECK(worst < 1);
  CHECK(worst > 0.05);
}

TEST_CASE("top-k: nothing jumps unless two logits are within reach of each other") {
  std::vector<double> q{1}, k{3, 2, 1}, v{1, 10, 100};
  auto const op = attention(kernel::dot_product{1.0}, normalizer::top_k{2});
  auto const bound = [&] {
    return error_bound(op, {.q = tensor<double const>(q, {1, 1, 1, 1}),
                            .k = tensor<double const>(k, {1, 1, 3, 1}),
                            .v = tensor<double const>(v, {1, 1, 3, 1})})
        .at_out(0, 0, 0, 0)
        .bound;
  };
  CHECK(bound() < 1e-4);
  k[2] = 2 - 1e-8;
  CHECK(bound() > 20);  // which of 10 and 100 is kept is open
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
