// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Where one operator becomes another: each limit and each special case that a policy's "Recovers" line states.
#include <functional>

#include <doctest/doctest.h>

#include <attune/exec/reference/forward.hpp>
#include <attune/policies.hpp>

#include "gradients/dense.hpp"

using namespace attune;
using namespace attune::test;

namespace {

using matrix = dense_head<double>::matrix;

/// Everything any of the operators below may want, for one head; key 1 of query 2 is hidden, and all keys of query 3.
struct data {
  static constexpr index_t queries = 4, keys = 6, width = 3;
  rng from{17};
  dense q = dense::random(from, {1, 1, queries, width}), k = dense::random(from, {1, 1, keys, width});
  dense v = dense::random(from, {1, 1, keys, 2}), v0 = dense::random(from, {1, 1, 1, 2});
  dense scores = dense::random(from, {1, 1, queries, keys}, -2, 2),
        gates = dense::random(from, {1, 1, queries, keys}, -2, 2);
  dense sort_q = dense::random(from, {1, 1, queries, 1}), sort_k = dense::random(from, {1, 1, keys, 1});
  dense bias = dense(shape{1, 1, queries, keys}, 0.25);
  std::vector<unsigned char> visible = std::vector<unsigned char>(queries * keys, 1);

  data() {
    visible[2 * keys + 1] = 0;
    for (std::size_t j = 0; j < keys; ++j) visible[3 * keys + j] = 0;
  }
  mask::runtime mask() const { return {.visible = visible.data(), .visible_shape = {1, 1, queries, keys}}; }

  /// The weights of an operator of given scores.
  template <class... Policies>
  dense_head<double> given(Policies... policies) const {
    auto const op = attention(kernel::given_scores{}, policies..., mask());
    using op_type = std::remove_const_t<decltype(op)>;
    if constexpr (op_type::uses(field::v0) && op_type::uses(field::gates))
      return forward(reference<>{}, op,
                     {.v = v.view(), .scores = scores.view(), .gates = gates.view(), .v0 = v0.view()})
          .heads[0];
    else if constexpr (op_type::uses(field::v0))
      return forward(reference<>{}, op, {.v = v.view(), .scores = scores.view(), .v0 = v0.view()}).heads[0];
    else if constexpr (op_type::uses(field::gates))
      return forward(reference<>{}, op, {.v = v.view(), .scores = scores.view(), .gates = gates.view()}).heads[0];
    else
      return forward(reference<>{}, op, {.v = v.view(), .scores = scores.view()}).heads[0];
  }
  /// The weights of a kernel of q and k.
  template <class Kernel>
  matrix compared(Kernel kernel) const {
    return forward(reference<>{}, attention(kernel, mask()), {.q = q.view(), .k = k.view(), .v = v.view()})
        .heads[0]
        .weights;
  }
};

double distance(matrix const& a, matrix const& b) { return (a - b).cwiseAbs().maxCoeff(); }
double row_sum(matrix const& w, index_t i) { return w.row(i).sum(); }

}  // namespace

TEST_SUITE("limits of normalizers") {
  TEST_CASE("entmax: softmax at 1 and continuously so, entmax 1.5 at 1.5, sparsemax at 2") {
    data const x;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK(distance(x.given(normalizer::entmax{1.0}).weights, softmax) < 1e-15);
    double last = 1;
    for (double const step : {1e-2, 1e-4, 1e-6, 1e-8}) {
      double const d = distance(x.given(normalizer::entmax{1 + step}).weights, softmax);
      CHECK(d < 2 * step);
      CHECK(d > 0.01 * step);  // it does depend on alpha
      CHECK(d < last);
      last = d;
    }
    CHECK(distance(x.given(normalizer::entmax{1.5}).weights, x.given(normalizer::entmax15{}).weights) < 1e-14);
    CHECK(distance(x.given(normalizer::entmax{2.0}).weights, x.given(normalizer::sparsemax{}).weights) < 1e-14);
    CHECK(distance(x.given(normalizer::entmax15{}).weights, softmax) > 0.01);
  }
  TEST_CASE("sparsemax: one key where its logit leads by 1 or more") {
    data x;
    for (std::size_t j = 0; j < data::keys; ++j) x.scores.values[j] = j == 4 ? 1.5 : 0.5;
    matrix const w = x.given(normalizer::sparsemax{}).weights;
    CHECK(w(0, 4) == 1);
    CHECK(w.row(0).cwiseAbs().sum() == 1);
  }
  TEST_CASE("top-k with k >= K is softmax; with k = 1 the largest key") {
    data const x;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK(distance(x.given(normalizer::top_k{6}).weights, softmax) < 1e-15);
    CHECK(distance(x.given(normalizer::top_k{100}).weights, softmax) < 1e-15);
    CHECK(distance(x.given(normalizer::top_k{5}).weights, softmax) > 1e-4);
    matrix const one = x.given(normalizer::top_k{1}).weights;
    index_t largest = 0;
    softmax.row(0).maxCoeff(&largest);
    CHECK(one(0, largest) == 1);
  }
  TEST_CASE(
      "off by one, sink and ground: softmax as the level sinks; off by one is a sink of 0; ground mass 1 as it rises") {
    data x;
    dense_head<double> const softmax = x.given(normalizer::softmax{});
    for (double const level : {-inf, -60.0}) {
      dense_head<double> const sink = x.given(normalizer::sink{level}), ground = x.given(normalizer::grounded{level});
      CHECK(distance(sink.weights, softmax.weights) < 1e-15);
      CHECK(distance(ground.weights, softmax.weights) < 1e-15);
      for (index_t i = 0; i < 3; ++i) {
        CHECK(std::fabs(ground.lse(i) - softmax.lse(i)) < 1e-15 * 8);
        CHECK(ground.ground_weight(i) == 0);
        CHECK(sink.ground_weight(i) < 1e-24);
      }
    }
    CHECK(distance(x.given(normalizer::sink{0.0}).weights, x.given(normalizer::off_by_one{}).weights) == 0);
    CHECK(distance(x.given(normalizer::valued_sink{0.0}).out, x.given(normalizer::valued_off_by_one{}).out) == 0);
    CHECK(distance(x.given(normalizer::sink{0.0}).weights, softmax.weights) > 0.01);
    CHECK(1 - x.given(normalizer::grounded{50.0}).ground_weight(0) < 1e-20);
    // Off by one of huge logits.
    for (double& s : x.scores.values) s += 60;
    CHECK(distance(x.given(normalizer::off_by_one{}).weights, softmax.weights) < 1e-14);
    CHECK(distance(x.given(normalizer::off_by_one{}).weights, x.given(normalizer::softmax{}).weights) < 1e-15);
  }
  TEST_CASE("affine: softmax at 1 and 1; row sum = average; the free form; off by one's row sum") {
    data const x;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK(distance(x.given(normalizer::affine<>{.alpha = 1, .average = 1}).weights, softmax) < 1e-15);
    CHECK(distance(x.given(normalizer::affine<normalizer::affine_count::total>{.alpha = 1, .average = 1}).weights,
                   softmax) < 1e-15);
    matrix const w = x.given(normalizer::affine<>{.alpha = 0.75, .average = 0.5}).weights;
    for (index_t i = 0; i < 3; ++i) CHECK(std::fabs(row_sum(w, i) - 0.5) < 1e-15);
    matrix const total =
        x.given(normalizer::affine<normalizer::affine_count::total>{.alpha = 0.75, .average = 0.5}).weights;
    CHECK(std::fabs(row_sum(total, 0) - 0.5) < 1e-15);
    CHECK(std::fabs(row_sum(total, 2) - (0.75 - 0.25 * 5 / 6)) < 1e-15);  // K = 5 of Lk = 6
    CHECK(distance(x.given(normalizer::free_affine<>{.alpha = 0.75, .beta = -0.25}).weights, w) < 1e-16);
    matrix const free = x.given(normalizer::free_affine<>{.alpha = 0.75, .beta = 0.5}).weights;
    for (index_t i = 0; i < 3; ++i) CHECK(std::fabs(row_sum(free, i) - 1.25) < 1e-15);
    // alpha = average = z / (1 + z)
    dense_head<double> const off = x.given(normalizer::off_by_one{});
    double const share = 1 - off.ground_weight(0);
    CHECK(std::fabs(row_sum(x.given(normalizer::affine<>{.alpha = share, .average = share}).weights, 0) -
                    row_sum(off.weights, 0)) < 1e-15);
  }
  TEST_CASE("sigmoid: row sum K / (K + 1) at scores of 0 and the default bias; softmax's ratios far below") {
    data x;
    for (double& s : x.scores.values) s = 0;
    matrix const w = x.given(normalizer::sigmoid{}).weights;
    CHECK(std::fabs(row_sum(w, 0) - 6.0 / 7) < 1e-15);
    CHECK(std::fabs(row_sum(w, 2) - 5.0 / 6) < 1e-15);
    data const y;
    matrix far = y.given(normalizer::sigmoid{-45.0}).weights;
    for (index_t i = 0; i < 3; ++i) far.row(i) /= far.row(i).sum();
    CHECK(distance(far, y.given(normalizer::softmax{}).weights) < 1e-14);
  }
  TEST_CASE("any function over its sum: exponentials are softmax, lse included") {
    data const x;
    dense_head<double> const softmax = x.given(normalizer::softmax{}),
                             general = x.given(normalizer::generic<normalizer::map::exponential>{});
    CHECK(distance(general.weights, softmax.weights) < 1e-15);
    for (index_t i = 0; i < 3; ++i) CHECK(std::fabs(general.lse(i) - softmax.lse(i)) < 1e-14);
    // e^a itself, and e^a / K.
    matrix const plain = x.given(normalizer::exponential{}).weights;
    matrix const by_count = x.given(normalizer::generic<normalizer::map::exponential, divisor::count>{}).weights;
    for (index_t i = 0; i < 3; ++i) CHECK(std::fabs(std::log(row_sum(plain, i)) - softmax.lse(i)) < 1e-14);
    CHECK(std::fabs(row_sum(by_count, 2) - row_sum(plain, 2) / 5) < 1e-15 * row_sum(plain, 2));
  }
  TEST_CASE("centered ReLU: weights sum to 0; with values of sum 0 it is the mean form") {
    data x;
    dense_head<double> const centered = x.given(normalizer::centered_relu{});
    for (index_t i = 0; i < 3; ++i) CHECK(std::fabs(row_sum(centered.weights, i)) < 1e-15);
    for (std::size_t d = 0; d < 2; ++d) {
      x.v.values[d] = 0;
      for (std::size_t j = 1; j < data::keys; ++j) x.v.values[d] -= x.v.values[2 * j + d];
    }
    matrix const of_sum_0 = x.given(normalizer::centered_relu{}).out, mean = x.given(normalizer::mean_relu{}).out;
    CHECK((of_sum_0.row(0) - mean.row(0)).cwiseAbs().maxCoeff() < 1e-15);
    CHECK(mean.row(0).cwiseAbs().maxCoeff() > 0.01);
  }
  TEST_CASE("self-adjusted: softmax where one key dominates; 0 where all logits are equal") {
    data x;
    using normalizer::adjusted_form;
    for (std::size_t j = 0; j < data::keys; ++j) x.scores.values[j] = j == 2 ? 40.0 : 0.5;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK((x.given(normalizer::self_adjusted<adjusted_form::with_zero>{}).weights - softmax)
              .row(0)
              .cwiseAbs()
              .maxCoeff() < 1e-15);
    CHECK((x.given(normalizer::self_adjusted<adjusted_form::full_range>{}).weights - softmax)
              .row(0)
              .cwiseAbs()
              .maxCoeff() < 1e-15);
    matrix const product = x.given(normalizer::self_adjusted<adjusted_form::product>{}).weights;
    CHECK(std::fabs(product(0, 2) - 40 * softmax(0, 2)) < 1e-13);
    for (double& s : x.scores.values) s = 0.5;
    CHECK(x.given(normalizer::self_adjusted<adjusted_form::full_range>{}).weights.cwiseAbs().maxCoeff() == 0);
  }
}

TEST_SUITE("limits of gates and length scales") {
  TEST_CASE("gates are off at beta = -inf and as beta falls; at g = 0 the two-sided one is") {
    data x;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK(distance(x.given(gate::given_softplus{-inf}).weights, softmax) == 0);
    CHECK(distance(x.given(gate::given_two_sided{-inf}).weights, softmax) == 0);
    CHECK(distance(x.given(gate::given_softplus{-40.0}).weights, softmax) < 1e-15);
    CHECK(distance(x.given(gate::given_two_sided{-40.0}).weights, softmax) < 1e-15);
    CHECK(distance(x.given(gate::given_softplus{1.0}).weights, softmax) > 0.01);
    CHECK(distance(x.given(gate::given_two_sided{1.0}).weights, softmax) > 0.01);
    for (double& g : x.gates.values) g = 0;
    CHECK(distance(x.given(gate::given_two_sided{1.0}).weights, softmax) == 0);
    for (double& g : x.gates.values) g = inf;
    CHECK(distance(x.given(gate::given_softplus{1.0}).weights, softmax) == 0);
  }
  TEST_CASE("length scales that leave scores alone") {
    data const x;
    matrix const softmax = x.given(normalizer::softmax{}).weights;
    CHECK(distance(x.given(length_scale::yarn{1.0}).weights, softmax) == 0);
    CHECK(distance(x.given(length_scale::yarn{0.5}).weights, softmax) == 0);
    CHECK(distance(x.given(length_scale::yarn{8.0}).weights, softmax) > 1e-3);
    CHECK(distance(x.given(length_scale::ssmax{.scale = 0, .bias = 1}).weights, softmax) == 0);
    CHECK(distance(x.given(length_scale::log_n{6.0}).weights.topRows(2), softmax.topRows(2)) < 1e-15);
    CHECK(distance(x.given(length_scale::margin{.alpha = -inf, .gamma = 3}).weights, softmax) == 0);
    CHECK(distance(x.given(length_scale::margin{.alpha = -45, .gamma = 3}).weights, softmax) < 1e-15);
    // gamma has no effect on softmax weights, near or far.
    matrix const m = x.given(length_scale::margin{.alpha = 0.5, .gamma = 0}).weights;
    for (double const gamma : {3.0, -31.0, 33.0, 1e6})
      CHECK(distance(x.given(length_scale::margin{.alpha = 0.5, .gamma = gamma}).weights, m) < 1e-13);
  }
  TEST_CASE("Principled Attention within its softmax-equivalent parameters") {
    data const x;
    dense_head<double> const softmax = x.given(normalizer::softmax{});
    for (double const epsilon : {1e-2, 1e-6}) {
      principled_parameters const p =
          softmax_equivalent({.epsilon = epsilon, .score_bound = 2, .gate_bound = 2, .max_keys = 6});
      dense_head<double> const w = x.given(length_scale::margin{.alpha = p.alpha, .gamma = p.gamma},
                                           gate::given_softplus{p.beta}, normalizer::grounded{p.gamma});
      CHECK(distance(w.weights, softmax.weights) <= epsilon);
      CHECK(w.ground_weight(0) == 0);
    }
  }
}

TEST_SUITE("limits of kernels") {
  TEST_CASE("rbf is the softmax of 2 q k / tau where keys have equal norms; any form of it") {
    data x;
    for (std::size_t j = 0; j < data::keys; ++j) {
      double norm = 0;
      for (std::size_t d = 0; d < 3; ++d) norm += x.k.values[3 * j + d] * x.k.values[3 * j + d];
      for (std::size_t d = 0; d < 3; ++d) x.k.values[3 * j + d] /= std::sqrt(norm);
    }
    CHECK(distance(x.compared(kernel::rbf{0.5}), x.compared(kernel::dot_product{4.0})) < 1e-14);
    data const y;
    CHECK(distance(y.compared(kernel::rbf{0.5}), y.compared(kernel::dot_product{4.0})) > 0.01);
    CHECK(distance(y.compared(kernel::rbf{0.5}), y.compared(kernel::scaled_rbf{2.0})) < 1e-14);
    CHECK(distance(y.compared(kernel::rbf{0.5}), y.compared(kernel::l2{2.0})) < 1e-15);
    CHECK(distance(y.compared(kernel::l2{}), y.compared(kernel::rbf{std::sqrt(3.0)})) < 1e-15);
  }
  TEST_CASE("metrics of 1; tempered dot; bilinear = elliptical where sum m k^2 is constant") {
    data x;
    dense const ones({1, 1, 1, 3}, 1.0), metric({1, 1, 1, 3}, std::vector<double>{0.5, 2, 1.25});
    CHECK(distance(x.compared(kernel::elliptical{ones.view(), 0.5}), x.compared(kernel::rbf{4.0})) < 1e-15);
    CHECK(distance(x.compared(kernel::bilinear{ones.view()}), x.compared(kernel::dot_product{})) < 1e-15);
    CHECK(distance(x.compared(kernel::tempered_dot{0.25}), x.compared(kernel::dot_product{4.0})) < 1e-15);
    CHECK(distance(x.compared(kernel::bilinear{metric.view()}), x.compared(kernel::elliptical{metric.view()})) > 0.01);
    for (std::size_t j = 0; j < data::keys; ++j) {
      double norm = 0;
      for (std::size_t d = 0; d < 3; ++d) norm += metric.values[d] * x.k.values[3 * j + d] * x.k.values[3 * j + d];
      for (std::size_t d = 0; d < 3; ++d) x.k.values[3 * j + d] /= std::sqrt(norm);
    }
    CHECK(distance(x.compared(kernel::bilinear{metric.view()}), x.compared(kernel::elliptical{metric.view()})) < 1e-14);
  }
  TEST_CASE("inverse distance: weights proportional to 1 / (eps + d^2)") {
    data const x;
    matrix w = x.compared(kernel::inverse_distance{0.25});
    matrix expected = matrix::Zero(4, 6);
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 6; ++j) {
        double distance = 0.25;
        for (index_t d = 0; d < 3; ++d) distance += std::pow(x.q.view()(0, 0, i, d) - x.k.view()(0, 0, j, d), 2);
        expected(i, j) = x.visible[std::size_t(i * 6 + j)] / distance;
      }
    for (index_t i = 0; i < 3; ++i) expected.row(i) /= expected.row(i).sum();
    CHECK(distance(w, expected) < 1e-15);
  }
  TEST_CASE("hybrid: the renormalised product of the two softmaxes; spatial prior on one axis of spread 1") {
    data const x;
    dense const spread({1, 1, 4, 1}, 1.0);
    auto const sorted = [&](auto kernel) {
      return forward(reference<>{}, attention(kernel, x.mask()),
                     {.v = x.v.view(), .sort_q = x.sort_q.view(), .sort_k = x.sort_k.view()})
          .heads[0]
          .weights;
    };
    matrix const hybrid =
        forward(
            reference<>{}, attention(kernel::dot_product{} + kernel::scalar_sort{0.5}, x.mask()),
            {.q = x.q.view(), .k = x.k.view(), .v = x.v.view(), .sort_q = x.sort_q.view(), .sort_k = x.sort_k.view()})
            .heads[0]
            .weights;
    matrix product = x.compared(kernel::dot_product{}).cwiseProduct(sorted(kernel::scalar_sort{0.5}));
    for (index_t i = 0; i < 3; ++i) product.row(i) /= product.row(i).sum();
    CHECK(distance(hybrid, product) < 1e-15);
    matrix const spatial =
        forward(reference<>{}, attention(kernel::spatial_prior{0.5}, x.mask()),
                {.v = x.v.view(), .center = x.sort_q.view(), .spread = spread.view(), .place = x.sort_k.view()})
            .heads[0]
            .weights;
    CHECK(distance(spatial, sorted(kernel::scalar_sort{0.5})) < 1e-15);
    CHECK(distance(sorted(kernel::scalar_laplacian{0.5}), sorted(kernel::scalar_sort{0.5})) > 0.01);
    // tau -> inf: uniform; tau -> 0: the nearest key.
    CHECK(std::fabs(sorted(kernel::scalar_sort{1e18})(2, 0) - 0.2) < 1e-15);
    CHECK(std::fabs(sorted(kernel::scalar_laplacian{1e-9}).row(0).maxCoeff() - 1) < 1e-15);
  }
  TEST_CASE("position kernels that say nothing: zero tables, zero inputs, equal priors") {
    data const x;
    matrix const softmax = x.compared(kernel::dot_product{});
    dense const rows({1, 1, 3, 1}, 0.0), frequency({1, 1, 3, 1}, 0.5), zeros3({1, 1, 1, 3}, 0.0),
        relative({1, 1, 13, 3}, 0.0);
    kernel::fourier_prior prior;
    prior.cosine = rows.view();
    prior.sine = rows.view();
    prior.frequency = frequency.view();
    CHECK(distance(x.compared(kernel::dot_product{} + prior), softmax) == 0);
    CHECK(distance(x.compared(kernel::transformer_xl(zeros3.view(), zeros3.view(), relative.view())), softmax) == 0);
    CHECK(distance(x.compared(kernel::dot_product{} + kernel::alibi{0.0}), softmax) == 0);
    CHECK(distance(x.compared(kernel::dot_product{} + kernel::alibi{0.5}), softmax) > 0.01);
    matrix const with_prior = forward(reference<>{}, attention(kernel::dot_product{} + kernel::log_prior{}, x.mask()),
                                      {.q = x.q.view(), .k = x.k.view(), .v = x.v.view(), .bias = x.bias.view()})
                                  .heads[0]
                                  .weights;
    CHECK(distance(with_prior, softmax) < 1e-15);
    dense const position_q({1, 1, 4, 2}, 0.0), position_k({1, 1, 6, 2}, 0.0);
    matrix const tupe = forward(reference<>{}, attention(kernel::tupe(), x.mask()),
                                {.q = x.q.view(),
                                 .k = x.k.view(),
                                 .v = x.v.view(),
                                 .position_q = position_q.view(),
                                 .position_k = position_k.view()})
                            .heads[0]
                            .weights;
    CHECK(distance(tupe, x.compared(kernel::dot_product{1 / std::sqrt(6.0)})) < 1e-15);
  }
  TEST_CASE("a cap that is out of reach") {
    data const x;
    matrix const softmax = x.compared(kernel::dot_product{});
    CHECK(distance(x.compared(kernel::dot_product{} | kernel::softcap{1e9}), softmax) < 1e-15);
    CHECK(distance(x.compared(kernel::dot_product{} | kernel::softcap{0.5}), softmax) > 1e-3);
  }
}
