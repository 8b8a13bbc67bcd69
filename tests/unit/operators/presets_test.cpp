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
constexpr bool is = std::is_same_v<Op, attention_operator<kernel::dot_product, L, G, N, M>>;
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

/// The largest |w - softmax| and w0 of principled attention on given scores and gates, dense, in double.
struct difference {
  double weights, ground_weight;
};
difference from_softmax(principled_parameters const& p, std::vector<double> const& s, std::vector<double> const& g) {
  auto const op = attention(kernel::given_scores{}, length_scale::margin{p.alpha, p.gamma}, gate::given_softplus{p.beta},
                            normalizer::grounded{p.gamma});
  index_t const keys = index_t(s.size());
  std::vector<double> const v(s.size());
  shape const pairs{1, 1, 1, keys};
  auto const r = forward(
      reference<double>{}, op,
      {.v = tensor(v, shape{1, 1, keys, 1}), .scores = tensor(s, pairs), .gates = tensor(g, pairs), .v0 = zeros<double>(1)});
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
          if (keys == 2) s = {0.4 * score_bound, 0.4 * score_bound}, g = {gate_bound, -gate_bound};  // the worst for the gate
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
