// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What float cannot hold: masses, factors of gates and slopes below its least normal number, each in the place where it
// is multiplied by the most. The CPU keeps within its bounds there, and uses a part of them that one can see.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/certify/gradient_bound.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using certify::bounded_number;

/// One query and its keys, numbers of width 1.
template <class Op>
class one_row {
 public:
  one_row(Op const& op, index_t keys)
      : op_(op), problem_({.heads = 1, .queries = 1, .keys = keys, .width = 1}, random_) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) all(F, 0);
    });
  }
  one_row& all(field f, double x) {
    for (std::size_t n = 0; n < problem_.of(f).doubles.size(); ++n) set(f, n, x);
    return *this;
  }
  one_row& set(field f, std::size_t n, double x) {
    problem_.of(f).floats[n] = float(x);
    problem_.of(f).doubles[n] = float(x);
    return *this;
  }
  one_row& by_out(float x) { return given(by_out_, x); }
  one_row& by_lse(float x) { return given(by_lse_, x); }
  one_row& by_ground_weight(float x) { return given(by_ground_weight_, x); }

  struct numbers {
    std::vector<float> out{0}, lse{0}, ground_weight{0};
  };
  numbers outputs_of() const {
    numbers x;
    shape const one{1, 1, 1, 1};
    outputs<Op, float> to{.out = tensor<float>(x.out, one)};
    if constexpr (Op::has_lse) to.lse = natural_lse(tensor<float>(x.lse, one));
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<float>(x.ground_weight, one);
    forward(cpu<float>{1}, op_, problem_.template inputs<tensor<float const>>(), to);
    return x;
  }
  std::vector<float> gradient(field f) const {
    auto const g =
        vjp(cpu<float>{1}, op_, problem_.template inputs<tensor<float const>>(), cotangents_of<tensor<float const>>());
    auto const& values = g.of(f).values;
    return {values.begin(), values.end()};
  }
  /// The largest error / bound of the outputs.
  double share_of_outputs() const {
    numbers const x = outputs_of();
    auto const b = certify::error_bound(op_, problem_.template inputs<any_tensor>());
    return std::fmax(share(x.out, b.out), std::fmax(share(x.lse, b.lse), share(x.ground_weight, b.ground_weight)));
  }
  /// The same of the gradient by one input.
  double share_of_gradient(field f) const {
    auto const b =
        certify::gradient_error_bound(op_, problem_.template inputs<any_tensor>(), cotangents_of<any_tensor>());
    return share(gradient(f), b.of(f));
  }

 private:
  one_row& given(std::vector<float>& to, float x) {
    to = {x};
    return *this;
  }
  template <class View>
  cotangents<Op, View> cotangents_of() const {
    auto const view = [](std::vector<float> const& x) {
      return x.empty() ? View{} : View(tensor<float const>(x, {1, 1, 1, 1}));
    };
    cotangents<Op, View> d;
    d.out = view(by_out_);
    if constexpr (Op::has_lse) d.lse = view(by_lse_);
    if constexpr (Op::has_ground_weight) d.ground_weight = view(by_ground_weight_);
    return d;
  }
  static double share(std::vector<float> const& got, std::vector<bounded_number> const& wanted) {
    double worst = 0;
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      REQUIRE(std::isfinite(wanted[n].bound));
      worst = std::fmax(worst, std::fabs(double(got[n]) - wanted[n].value) / wanted[n].bound);
    }
    return worst;
  }

  Op op_;
  testing::detail::normal_numbers random_{1};
  testing::drawn_problem<Op> problem_;
  std::vector<float> by_out_, by_lse_, by_ground_weight_;
};

/// Around where float's masses count as 0: above it nothing is lost, below it everything is.
constexpr double depths[] = {-60., -64., -66.4, -66.8, -67., -67.4, -70., -87., -95., -104.};

TEST_SUITE_BEGIN("underflow");

TEST_CASE("a mass times the place of its logit") {
  for (double a : depths) {
    one_row row(attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{}), 2);
    row.set(field::scores, 1, a).set(field::v, 1, 1).by_out(1);
    INFO(a);
    CHECK(row.share_of_outputs() < 1);
    CHECK(row.share_of_gradient(field::scores) < 1);
    CHECK(row.share_of_gradient(field::v) < 1);
    // Far from 0, places are as large.
    row.set(field::scores, 0, 1000).set(field::scores, 1, 1000 + a);
    CHECK(row.share_of_outputs() < 1);
    CHECK(row.share_of_gradient(field::scores) < 1);
    CHECK(row.share_of_gradient(field::v) < 1);
  }
}

TEST_CASE("a mass times the cotangent of the lse") {
  for (double a : depths) {
    INFO(a);
    one_row plain(attention(kernel::given_scores{}), 2);
    CHECK(plain.set(field::scores, 1, a).by_lse(1000).share_of_gradient(field::scores) < 1);
    one_row adjusted(
        attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}), 2);
    CHECK(adjusted.set(field::scores, 1, a).by_lse(1000).share_of_gradient(field::scores) < 1);
  }
}

TEST_CASE("masses that are lost together are the whole row term of another key") {
  for (double a : depths) {
    INFO(a);
    auto const lost = [&](auto const& op) {
      one_row row(op, 1000);
      row.all(field::scores, a).all(field::v, 1).set(field::scores, 0, 0).set(field::v, 0, 0).by_out(1);
      CHECK(row.share_of_outputs() < 1);
      return row.share_of_gradient(field::scores);
    };
    CHECK(lost(attention(kernel::given_scores{})) < 1);
    CHECK(lost(attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{})) <
          1);
    CHECK(lost(attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{})) <
          1);
    CHECK(lost(attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{})) < 1);
  }
}

/// e^a of logits that are known to be below 0, relative to nothing.
struct decaying {
  template <class T>
  static T map(T const& a) {
    return math::exp_nonpositive(a);
  }
};

TEST_CASE("masses of a normalizer without a reference are small together") {
  for (double a : depths) {
    if (a < -67.2) continue;  // the row's whole mass may be lost: nothing is promised
    INFO(a);
    one_row row(attention(kernel::given_scores{}, normalizer::generic<decaying>{}), 3);
    row.set(field::scores, 0, a).set(field::scores, 1, a + 2).set(field::scores, 2, a + 3);
    row.set(field::v, 0, 1).set(field::v, 1, 2).set(field::v, 2, -1).by_out(1);
    CHECK(row.share_of_outputs() < 1);
    CHECK(row.share_of_gradient(field::scores) < 1);
    CHECK(row.share_of_gradient(field::v) < 1);
  }
}

bool all_zero(std::vector<float> const& x) {
  return std::all_of(x.begin(), x.end(), [](float y) { return y == 0; });
}

TEST_CASE("a row is divided by no number whose inverse overflows") {
  constexpr double least = std::numeric_limits<float>::min();
  // Masses relative to nothing: the sum is a number, or none. exp is 0 where it would be subnormal.
  for (double a : {-86., -87., -87.5, -88., -88.4, -89., -90., -91., -95., -103.}) {
    INFO(a);
    one_row row(attention(kernel::given_scores{}, normalizer::generic<normalizer::map::exponential>{}), 3);
    row.set(field::scores, 0, a - 1).set(field::scores, 1, a).set(field::scores, 2, a - 1.5);
    row.set(field::v, 0, 1).set(field::v, 1, 2).set(field::v, 2, -1).by_out(1);
    auto const mass = [](double x) { return std::exp(x) < least ? 0 : std::exp(x); };
    double const sum = mass(a) + mass(a - 1) + mass(a - 1.5);
    auto const x = row.outputs_of();
    auto const by_scores = row.gradient(field::scores), by_values = row.gradient(field::v);
    if (sum < 0.9 * least) {
      CHECK(x.out[0] == 0);
      CHECK(x.lse[0] == -std::numeric_limits<float>::infinity());
      CHECK(all_zero(by_scores));
      CHECK(all_zero(by_values));
    } else if (sum > 1.1 * least) {
      CHECK(x.out[0] > 0.9);  // 1.23 but for masses that are lost
      CHECK(x.out[0] < 2.1);
      CHECK(x.lse[0] > -87.4);
      CHECK(!all_zero(by_values));
    }
  }
  // Ends that lie close: a logit has a place between them, or they count as equal.
  for (double range : {8., 1.01, 0.99, 0.26, 0.24, 1e-3, 0.}) {
    INFO(range << " times the least normal number");
    one_row row(attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}),
                2);
    row.set(field::scores, 1, range * least).all(field::v, 1).by_out(1);
    auto const x = row.outputs_of();
    CHECK(x.out[0] == (range < 1 ? 0.f : 0.5f));
    CHECK(x.lse[0] == doctest::Approx(std::log(2.)));
    auto const by_scores = row.gradient(field::scores);
    CHECK(std::isfinite(by_scores[0]));
    CHECK(std::isfinite(by_scores[1]));
    if (range < 1) CHECK(all_zero(by_scores));
  }
}

TEST_CASE("the mass of a ground, before v0 and the cotangents") {
  for (double a : depths) {
    INFO(a);
    one_row row(attention(kernel::given_scores{}, normalizer::grounded{}), 2);
    row.set(field::scores, 0, -a).set(field::scores, 1, -1).all(field::v0, 1e6).by_out(1e6).by_ground_weight(1e6);
    CHECK(row.share_of_outputs() < 1);
    CHECK(row.share_of_gradient(field::scores) < 1);
    CHECK(row.share_of_gradient(field::v0) < 1);
    one_row sink(attention(kernel::given_scores{}, normalizer::sink{0}), 1);
    sink.set(field::scores, 0, -a).by_out(1e6).by_ground_weight(1e6);
    CHECK(sink.share_of_outputs() < 1);
    CHECK(sink.share_of_gradient(field::scores) < 1);
  }
}

TEST_CASE("factors of gates, and their slopes") {
  for (double x : depths) {
    INFO(x);
    one_row output(attention(kernel::given_scores{}, gate::sigmoid_output{}), 2);
    output.all(field::output_gate, x).all(field::v, 1000).set(field::v, 1, -2000).by_out(1000);
    CHECK(output.share_of_outputs() < 1);
    for (field f : {field::scores, field::v, field::output_gate}) CHECK(output.share_of_gradient(f) < 1);
    // Open, above an output that is lost.
    one_row open(attention(kernel::given_scores{}, gate::sigmoid_output{}), 2);
    open.all(field::v, 1e6).set(field::v, 0, 0).set(field::scores, 1, x).by_out(1e6);
    CHECK(open.share_of_outputs() < 1);
    for (field f : {field::scores, field::v, field::output_gate}) CHECK(open.share_of_gradient(f) < 1);
    one_row values(attention(kernel::given_scores{}, gate::sigmoid_value{}), 2);
    values.all(field::value_gate, x).all(field::v, 1000).set(field::v, 1, -2000).by_out(1000);
    CHECK(values.share_of_outputs() < 1);
    for (field f : {field::scores, field::v, field::value_gate}) CHECK(values.share_of_gradient(f) < 1);
    one_row logits(attention(kernel::given_scores{}, gate::softplus{}), 2);
    logits.all(field::gate_q, -x)
        .all(field::gate_k, 1)
        .set(field::gate_k, 1, 1.01)
        .all(field::v, 1e6)
        .set(field::v, 1, 0)
        .by_out(1e6);
    for (field f : {field::scores, field::v, field::gate_q, field::gate_k}) CHECK(logits.share_of_gradient(f) < 1);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
