// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <attune/exec/reference/forward.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies/gate/softplus.hpp>
#include <attune/policies/kernel/given_scores.hpp>
#include <attune/policies/mask/causal.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

template <class Op, class L, class G, class N, class M = mask::none>
constexpr bool is =
    std::is_same_v<Op,
                   attention_operator<kernel::dot_product, L, G, N, gate::no_value_factor, gate::no_output_factor, M>>;
using no_scale = length_scale::none;
using no_gate = gate::none;

TEST_CASE("presets: what they are composed of") {
  CHECK(is<decltype(softmax_attention()), no_scale, no_gate, normalizer::softmax>);
  CHECK(is<decltype(softmax_attention(mask::causal{})), no_scale, no_gate, normalizer::softmax, mask::causal>);
  CHECK(is<decltype(off_by_one_attention()), no_scale, no_gate, normalizer::off_by_one>);
  CHECK(is<decltype(sink_attention(1)), no_scale, no_gate, normalizer::sink>);
  CHECK(is<decltype(ssmax_attention({})), length_scale::ssmax, no_gate, normalizer::softmax>);
  CHECK(is<decltype(principled_attention({})), length_scale::margin, gate::softplus, normalizer::grounded>);
}

TEST_CASE("presets: parameters arrive where they belong") {
  CHECK(sink_attention(1.5).normalizer.logit.at(0, 0, 0) == 1.5);
  auto const s = ssmax_attention({.scale = 2, .bias = 3});
  CHECK(s.length_scale.scale.at(0, 0, 0) == 2);
  CHECK(s.length_scale.bias.at(0, 0, 0) == 3);
  auto const p = principled_attention({.alpha = 1, .beta = 2, .gamma = 3});
  CHECK(p.length_scale.alpha.at(0, 0, 0) == 1);
  CHECK(p.gate.beta.at(0, 0, 0) == 2);
  CHECK(p.length_scale.gamma.at(0, 0, 0) == 3);  // one gamma, two readers
  CHECK(p.normalizer.gamma.at(0, 0, 0) == 3);
  CHECK_FALSE(p.kernel.scale.is_set());
}

/// Softmax, without length scale and gates, over kernel K.
template <class Op, class K, class N = normalizer::softmax, class O = gate::no_output_factor, class M = mask::none>
constexpr bool scored_by = std::is_same_v<Op, attention_operator<K, no_scale, no_gate, N, gate::no_value_factor, O, M>>;
template <class A, class B>
using sum = kernel::sum<A, B>;
using dot = kernel::dot_product;

TEST_CASE("presets: other scores") {
  table const t;
  CHECK(scored_by<decltype(scalar_sort_attention(1)), kernel::scalar_sort>);
  CHECK(scored_by<decltype(scalar_laplacian_attention(1)), kernel::scalar_laplacian>);
  CHECK(scored_by<decltype(hybrid_attention(1)), sum<dot, kernel::scalar_sort>>);
  CHECK(scored_by<decltype(rbf_attention(1)), kernel::rbf>);
  CHECK(scored_by<decltype(l2_attention()), kernel::l2>);
  CHECK(scored_by<decltype(scaled_rbf_attention(1)), kernel::scaled_rbf>);
  CHECK(scored_by<decltype(inverse_distance_attention(1)), kernel::inverse_distance>);
  CHECK(scored_by<decltype(elliptical_attention(t)), kernel::elliptical>);
  CHECK(scored_by<decltype(bilinear_attention(t)), kernel::bilinear>);
  CHECK(scored_by<decltype(biased_attention()), sum<dot, kernel::bias>>);
  CHECK(scored_by<decltype(alibi_attention(1)), sum<dot, kernel::alibi>>);
  CHECK(scored_by<decltype(relative_bias_attention(t)), sum<dot, kernel::relative_bias>>);
  CHECK(scored_by<decltype(t5_attention({})), sum<dot, kernel::t5_bias>>);
  CHECK(scored_by<decltype(tupe_attention()), sum<kernel::tupe_content, kernel::tupe_position>>);
  CHECK(scored_by<decltype(transformer_xl_attention(t, t, t)), sum<kernel::xl_content, kernel::xl_position>>);
  CHECK(scored_by<decltype(smca_attention(1)), sum<dot, kernel::spatial_prior>>);
  CHECK(scored_by<decltype(goat_attention(1)), sum<kernel::tempered_dot, kernel::log_prior>>);
  CHECK(scored_by<decltype(goat_fourier_attention(1, {})),
                  sum<sum<kernel::tempered_dot, kernel::fourier_prior>, kernel::key_bias>>);
  CHECK(scored_by<decltype(softcap_attention(1)), kernel::mapped<dot, kernel::softcap>>);
}

TEST_CASE("presets: other weights") {
  using namespace normalizer;
  CHECK(scored_by<decltype(affine_scaled_attention(1, 1)), dot, affine<affine_count::visible>>);
  CHECK(scored_by<decltype(affine_scaled_attention<affine_count::total>(1, 1)), dot, affine<affine_count::total>>);
  CHECK(scored_by<decltype(affine_gated_attention(1, 1)), dot, affine<affine_count::visible>, gate::sigmoid_output>);
  using difference = kernel::scalar_difference;
  CHECK(scored_by<decltype(sliced_relu_attention<sliced_relu_form::sum>()), difference, relu>);
  CHECK(scored_by<decltype(sliced_relu_attention<sliced_relu_form::mean>()), difference, mean_relu>);
  CHECK(scored_by<decltype(sliced_relu_attention<sliced_relu_form::centered>()), difference, centered_relu>);
  CHECK(scored_by<decltype(sliced_relu_attention<sliced_relu_form::normalized>()), difference, normalized_relu>);
  CHECK(scored_by<decltype(gaussian_attention(1)), kernel::rbf, exponential>);
  CHECK(scored_by<decltype(sigmoid_attention()), dot, normalizer::sigmoid>);
  CHECK(scored_by<decltype(sparsemax_attention()), dot, sparsemax>);
  CHECK(scored_by<decltype(entmax_attention(1.5)), dot, entmax>);
  CHECK(scored_by<decltype(entmax15_attention()), dot, entmax15>);
  CHECK(scored_by<decltype(top_k_attention(3)), dot, top_k>);
  CHECK(scored_by<decltype(self_adjusted_attention()), dot, self_adjusted<adjusted_form::with_zero>>);
  CHECK(scored_by<decltype(self_adjusted_attention<adjusted_form::product, adjusted_ends::detached>()), dot,
                  self_adjusted<adjusted_form::product, adjusted_ends::detached>>);
}

TEST_CASE("presets: something around softmax") {
  CHECK(is<decltype(margin_attention(1, 2)), length_scale::margin, no_gate, normalizer::softmax>);
  CHECK(is<decltype(log_n_attention(512)), length_scale::log_n, no_gate, normalizer::softmax>);
  CHECK(is<decltype(yarn_attention(4)), length_scale::yarn, no_gate, normalizer::softmax>);
  CHECK(is<decltype(two_sided_attention(1)), no_scale, gate::two_sided, normalizer::softmax>);
  CHECK(scored_by<decltype(gated_attention()), dot, normalizer::softmax, gate::sigmoid_output>);
  CHECK(std::is_same_v<decltype(value_gated_attention()),
                       attention_operator<dot, no_scale, no_gate, normalizer::softmax, gate::sigmoid_value,
                                          gate::no_output_factor, mask::none>>);
}

TEST_CASE("presets: each takes a mask last") {
  table const t;
  auto const causal = [](auto const& op) {
    return std::is_same_v<std::remove_cvref_t<decltype(op.mask)>, mask::causal>;
  };
  mask::causal const m;
  CHECK((causal(ssmax_attention({}, m)) && causal(principled_attention({}, m)) && causal(sink_attention(1, m))));
  CHECK((causal(off_by_one_attention(m)) && causal(margin_attention(1, 2, m)) && causal(log_n_attention(512, m))));
  CHECK((causal(yarn_attention(4, m)) && causal(two_sided_attention(1, m)) && causal(value_gated_attention(m))));
  CHECK(
      (causal(gated_attention(m)) && causal(scalar_sort_attention(1, m)) && causal(scalar_laplacian_attention(1, m))));
  CHECK((causal(hybrid_attention(1, m)) && causal(rbf_attention(1, m)) && causal(l2_attention({}, m))));
  CHECK((causal(scaled_rbf_attention(1, m)) && causal(inverse_distance_attention(1, m)) &&
         causal(elliptical_attention(t, m))));
  CHECK((causal(bilinear_attention(t, m)) && causal(biased_attention(m)) && causal(alibi_attention(1, m))));
  CHECK((causal(relative_bias_attention(t, m)) && causal(t5_attention({}, m)) && causal(tupe_attention(m))));
  CHECK((causal(transformer_xl_attention(t, t, t, m)) && causal(smca_attention(1, m)) && causal(goat_attention(1, m))));
  CHECK((causal(goat_fourier_attention(1, {}, m)) && causal(softcap_attention(1, m)) &&
         causal(affine_scaled_attention(1, 1, m))));
  CHECK((causal(affine_gated_attention(1, 1, m)) && causal(sliced_relu_attention<sliced_relu_form::centered>(m))));
  CHECK((causal(gaussian_attention(1, m)) && causal(sigmoid_attention({}, m)) && causal(sparsemax_attention(m))));
  CHECK((causal(entmax_attention(1.5, m)) && causal(entmax15_attention(m)) && causal(top_k_attention(3, m))));
  CHECK(causal(self_adjusted_attention(m)));
}

TEST_CASE("presets: the parameters of the others arrive where they belong") {
  double const number = 7;
  table const u = tensor<double const>(&number, shape{1, 1, 1, 1});
  auto const is = [](parameter const& p, double x) { return p.is_set() && p.at(0, 0, 0) == x; };
  auto const is_u = [](table const& t) { return t.is_set() && t(0, 0, 0, 0) == 7; };
  CHECK(is(scalar_sort_attention(2).kernel.tau, 2));
  CHECK(is(scalar_laplacian_attention(2).kernel.tau, 2));
  CHECK(is(hybrid_attention(2).kernel.second.tau, 2));
  CHECK(is(rbf_attention(2).kernel.tau, 2));
  CHECK(is(l2_attention(2).kernel.scale, 2));
  CHECK_FALSE(l2_attention().kernel.scale.is_set());  // 1 / sqrt(D)
  CHECK(is(scaled_rbf_attention(2).kernel.gamma, 2));
  CHECK(is(inverse_distance_attention(2).kernel.eps, 2));
  CHECK(is_u(elliptical_attention(u).kernel.metric));
  CHECK_FALSE(elliptical_attention(u).kernel.scale.is_set());
  CHECK(is_u(bilinear_attention(u).kernel.metric));
  CHECK(is(alibi_attention(2).kernel.second.slope, 2));
  CHECK(is_u(relative_bias_attention(u).kernel.second.values));
  auto const t5 = t5_attention({u, 64, false});
  CHECK(is(t5.kernel.first.scale, 1));  // T5 has no 1 / sqrt(D)
  CHECK(is_u(t5.kernel.second.values));
  CHECK(t5.kernel.second.max_distance == 64);
  CHECK_FALSE(t5.kernel.second.bidirectional);
  CHECK(is_u(transformer_xl_attention(u, {}, {}).kernel.first.bias));
  CHECK(is_u(transformer_xl_attention({}, u, {}).kernel.second.bias));
  CHECK(is_u(transformer_xl_attention({}, {}, u).kernel.second.relative));
  CHECK(is(smca_attention(2).kernel.second.beta, 2));
  CHECK(is(goat_attention(2).kernel.first.tau, 2));
  CHECK(is(goat_fourier_attention(2, {}).kernel.first.first.tau, 2));
  CHECK(is_u(goat_fourier_attention(2, {u, {}, {}}).kernel.first.second.cosine));
  CHECK(is(softcap_attention(2).kernel.map.cap, 2));
  CHECK(is(affine_scaled_attention(2, 3).normalizer.alpha, 2));
  CHECK(is(affine_scaled_attention(2, 3).normalizer.average, 3));
  CHECK(is(affine_gated_attention(2, 3).normalizer.alpha, 2));
  CHECK(is(affine_gated_attention(2, 3).normalizer.average, 3));
  CHECK(is(gaussian_attention(2).kernel.tau, 2));
  CHECK(is(sigmoid_attention(2).normalizer.bias, 2));
  CHECK_FALSE(sigmoid_attention().normalizer.bias.is_set());  // -log K
  CHECK(is(entmax_attention(2).normalizer.alpha, 2));
  CHECK(top_k_attention(2).normalizer.k == 2);
  CHECK(is(margin_attention(2, 3).length_scale.alpha, 2));
  CHECK(is(margin_attention(2, 3).length_scale.gamma, 3));
  CHECK(is(log_n_attention(2).length_scale.training_length, 2));
  CHECK(is(yarn_attention(2).length_scale.extension, 2));
  CHECK(is(two_sided_attention(2).gate.beta, 2));
}

/// The largest |w - softmax| and w0 of principled attention on given scores and gates, dense, in double.
struct difference {
  double weights, ground_weight;
};
difference from_softmax(principled_parameters const& p, std::vector<double> const& s, std::vector<double> const& g) {
  auto const op = attention(kernel::given_scores{}, length_scale::margin{p.alpha, p.gamma},
                            gate::given_softplus{p.beta}, normalizer::grounded{p.gamma});
  index_t const keys = index_t(s.size());
  std::vector<double> const v(s.size());
  shape const pairs{1, 1, 1, keys};
  auto const r = forward(reference<double>{}, op,
                         {.v = tensor(v, shape{1, 1, keys, 1}),
                          .scores = tensor(s, pairs),
                          .gates = tensor(g, pairs),
                          .v0 = zeros<double>(1)});
  double const top = *std::max_element(s.begin(), s.end());
  double z = 0, worst = 0;
  for (double x : s) z += std::exp(x - top);
  for (index_t j = 0; j < keys; ++j)
    worst = std::fmax(worst, std::fabs(r.at(0, 0).weights(0, j) - std::exp(s[std::size_t(j)] - top) / z));
  return {worst, r.at(0, 0).ground_weight(0)};
}

TEST_CASE("softmax_equivalent: within epsilon of softmax, and w0 = 0, wherever the bounds hold") {
  std::mt19937 random(1);
  auto const within = [&](double bound) { return bound * (2 * double(random() % 4096) / 4095 - 1); };
  for (double epsilon : {1.0, 1e-3, 1e-6, 1e-12})
    for (double score_bound : {0.0, 1.0, 30.0, 1000.0})
      for (double gate_bound : {0.0, 5.0, 1000.0})
        for (index_t keys : {1, 2, 37}) {
          principled_parameters const p = softmax_equivalent({epsilon, score_bound, gate_bound, 64});
          std::vector<double> s, g;
          for (index_t j = 0; j < keys; ++j) s.push_back(within(score_bound)), g.push_back(within(gate_bound));
          if (keys == 2)
            s = {0.4 * score_bound, 0.4 * score_bound}, g = {gate_bound, -gate_bound};  // the worst for the gate
          difference const d = from_softmax(p, s, g);
          CAPTURE(epsilon);
          CAPTURE(score_bound);
          CAPTURE(gate_bound);
          CAPTURE(keys);
          CHECK(d.weights <= epsilon + 1e-15);
          CHECK(d.ground_weight == 0);
        }
}

TEST_CASE("softmax_equivalent: finite parameters over the whole range of bounds") {
  for (double epsilon : {1.0, 1e-6, 1e-200})
    for (double score_bound : {0.0, 30.0, 1e6})
      for (double max_keys : {1.0, 2.0, 1e12}) {
        principled_parameters const p = softmax_equivalent({epsilon, score_bound, 30, max_keys});
        double const alpha = p.alpha.at(0, 0, 0), beta = p.beta.at(0, 0, 0), gamma = p.gamma.at(0, 0, 0);
        CHECK(std::isfinite(alpha));
        CHECK(std::isfinite(beta));
        CHECK(gamma == -score_bound - 2);
        // kappa (S - gamma) = epsilon at the largest K, softplus(beta) softplus(G) = epsilon
        double const kappa = math::softplus(alpha) * std::log(std::fmax(max_keys, 2));
        CHECK(near(kappa * (2 * score_bound + 2), epsilon, 1e-12));
        CHECK(near(math::softplus(beta) * math::softplus(30.0), epsilon, 1e-12));
      }
}

TEST_CASE("softmax_equivalent: bad bounds are named") {
  auto const text = [](softmax_equivalent_bounds const& b) { return error_of([&] { softmax_equivalent(b); }); };
  std::string const at = "attune::softmax_equivalent: ";
  CHECK(text({.epsilon = 0}) == at + "epsilon has the value 0; expected a number in (0, 1]");
  CHECK(text({.epsilon = 2}) == at + "epsilon has the value 2; expected a number in (0, 1]");
  CHECK(text({.epsilon = nan}) == at + "epsilon has the value nan; expected a number in (0, 1]");
  CHECK(text({.score_bound = -1}) == at + "score_bound has the value -1; expected a finite number >= 0");
  CHECK(text({.score_bound = inf}) == at + "score_bound has the value inf; expected a finite number >= 0");
  CHECK(text({.gate_bound = nan}) == at + "gate_bound has the value nan; expected a finite number >= 0");
  CHECK(text({.max_keys = 0.5}) == at + "max_keys has the value 0.5; expected a finite number >= 1");
  CHECK(text({.max_keys = inf}) == at + "max_keys has the value inf; expected a finite number >= 1");
  CHECK(text({}) == "");
}

}  // namespace
}  // namespace attune::test
