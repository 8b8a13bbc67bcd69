// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What each operator becomes in the limits that its documentation names, on every backend and under every mask.

#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("identities");

entry const* find(std::string const& name) {
  auto const found = instances::registry().find(name);
  return found == instances::registry().end() ? nullptr : &found->second;
}

/// The problem as another operator wants it: without the tensors and parameters that it does not read.
problem for_operator(entry const& e, problem p) {
  for (auto at = p.tensors.begin(); at != p.tensors.end();)
    at = contains(e.tensors, at->first) ? std::next(at) : p.tensors.erase(at);
  for (auto at = p.parameters.begin(); at != p.parameters.end();)
    at = contains(e.parameters, at->first) ? std::next(at) : p.parameters.erase(at);
  return p;
}

/// "X recovers Y when ...": in names that contain `from`, `from` becomes `to`, once `set` has put the problem at the limit.
struct recovery {
  std::string what, from, to;
  std::function<void(problem&, dimensions const&)> set;
  std::string only = "";  ///< operators whose name begins so

  /// The operator that e becomes, if this is about e.
  entry const* partner(entry const& e) const {
    std::size_t const at = e.name.find(from);
    if (at == std::string::npos || e.name.compare(0, only.size(), only) != 0) return nullptr;
    if (from.front() == '/' && from.back() != '/' && at + from.size() != e.name.size())
      return nullptr;  // "/sink" is not "/sink_value"
    return find(std::string(e.name).replace(at, from.size(), to));
  }
};

void fill(problem& p, char const* tensor, double value) {
  std::fill(p.tensors.at(tensor).data.begin(), p.tensors.at(tensor).data.end(), value);
}
void unmask(problem& p) { p.visible.clear(), p.visible_shape.clear(); }

recovery const recoveries[] = {
    {"alibi of slope 0", "+alibi", "", [](problem& p, dimensions const&) { set_parameter(p, "slope", 0); }},
    {"a huge softcap", "|softcap", "", [](problem& p, dimensions const&) { set_parameter(p, "cap", 1e18); }},
    {"ssmax of scale 0, bias 1", "/ssmax/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "ss_scale", 0), set_parameter(p, "ss_bias", 1); }},
    {"ssmax of scale 1 / log K", "/ssmax/", "/none/",
     [](problem& p, dimensions const& n) {
       unmask(p);
       set_parameter(p, "ss_scale", n.keys > 1 ? 1 / std::log(static_cast<double>(n.keys)) : 1);
       set_parameter(p, "ss_bias", n.keys > 1 ? 0 : 1);
     }},
    {"log n at the training length", "/logn/", "/none/",
     [](problem& p, dimensions const& n) {
       unmask(p);
       set_parameter(p, "length0", static_cast<double>(n.keys));
     }},
    {"margin of alpha -inf", "/margin/", "/none/", [](problem& p, dimensions const&) { set_parameter(p, "alpha", -infinity); }},
    {"softplus gate of beta -inf", "/softplus/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "beta", -infinity); }},
    {"given gate of beta -inf", "/given_softplus/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "beta", -infinity); }},
    {"given gate of +inf", "/given_softplus/", "/none/", [](problem& p, dimensions const&) { fill(p, "gates", infinity); }},
    {"grounded at gamma -inf", "/grounded", "/softmax",
     [](problem& p, dimensions const&) { set_parameter(p, "gamma", -infinity); }},
    {"a sink of -inf", "/sink", "/softmax", [](problem& p, dimensions const&) { set_parameter(p, "sink", -infinity); }},
    {"a sink of 0", "/sink", "/off_by_one", [](problem& p, dimensions const&) { set_parameter(p, "sink", 0); }},
    {"a valued sink with v0 = 0", "/sink_value", "/sink", [](problem& p, dimensions const&) { fill(p, "v0", 0); }},
    {"valued off-by-one with v0 = 0", "/off_by_one_value", "/off_by_one",
     [](problem& p, dimensions const&) { fill(p, "v0", 0); }},
    {"off-by-one of large logits", "/off_by_one", "/softmax",
     [](problem& p, dimensions const&) {
       for (auto& [name, a] : p.tensors)
         if (name == "scores")
           for (double& x : a.data) x += 256;
     },
     "given/none/none/"}};

TEST_CASE("each policy recovers what its documentation says") {
  for (recovery const& r : recoveries) {
    int pairs = 0;
    for (auto const& named : instances::registry()) {
      entry const& e = named.second;
      entry const* const plain = r.partner(e);
      if (plain == nullptr) continue;
      ++pairs;
      under_every_mask(e, [&](problem& p, dimensions const& n, backend b, std::string const& where, rng&) {
        if (r.from == "/logn/" && n.keys < 2) return;
        r.set(p, n);
        result got = e.run(p, b, {});
        result const exact = e.run(p, backend::reference_double, {}),
                     expected = plain->run(for_operator(*plain, p), backend::reference_double, {});
        if (expected.ground_weight.empty() && !got.ground_weight.empty()) {
          index left = 0;
          each_row(n, [&](index bb, index h, index i) {  // no ground is left, but for rows without a key
            bool const empty = visible_count(p, n, bb, h, i) == 0;
            double const w0 = at(got.ground_weight, n, bb, h, i);
            left += (empty ? w0 == 1 : w0 <= 1e-30) ? 0 : 1;
            if (empty)  // out is v0, lse the remaining mass there: another convention than the plain operator's
              for (index d = 0; d < n.value_width; ++d)
                element(got.out, n.heads, bb, h, i, d) = element(expected.out, n.heads, bb, h, i, d);
            if (empty) element(got.lse, n.heads, bb, h, i) = -infinity;
          });
          CHECK_MESSAGE(left == 0, where << ", " << r.what << ": rows with a wrong ground weight: " << left);
          got.ground_weight = {};
        }
        bounds bound = bounds_of(e, p, n, exact, accuracy_of(b));
        if (expected.ground_weight.empty()) bound.ground_weight = {};
        comparison const c = compare(got, expected, bound);
        CHECK_MESSAGE(c.failure.empty(), where << ", " << r.what << ": " << c.failure);
      });
    }
    CHECK_MESSAGE(pairs > 0, r.what << " is claimed but no operator of the registry shows it");
  }
}

/// v = (identity, 3 random features): out holds the weights and an ordinary output.
void make_values_telling(problem& p, dimensions& n, rng& random) {
  n.value_width = n.keys + 3;
  array v = random_array({n.batch, n.value_heads, n.keys, n.value_width}, random);
  for (index b = 0; b < n.batch; ++b)
    for (index g = 0; g < n.value_heads; ++g)
      for (index j = 0; j < n.keys; ++j)
        for (index d = 0; d < n.keys; ++d) element(v, n.value_heads, b, g, j, d) = d == j ? 1 : 0;
  p.tensors["v"] = std::move(v);
  if (p.tensors.count("v0")) p.tensors["v0"] = random_array({1, 1, 1, n.value_width}, random);
}

// Along every path alpha, beta, gamma -> -inf the weights, out and w0 become those of softmax:
// a = s + kappa (s - gamma) - b differs from s by the row constant -kappa gamma and by kappa s - b, so
// |w_j - softmax_j| <= softmax_j (e^R - 1), R = kappa (max s - min s) + max b - min b. The row constant stays in the logits
// and in lse, which converges only if kappa |gamma| -> 0.
TEST_CASE("principled attention recovers softmax along every path; its lse does not") {
  entry const& principled = *find("dot/margin/softplus/grounded");
  entry const& softmax = *find("dot/none/none/softmax");
  index far = 0, near = 0, not_far = 0, not_near = 0;  // rows whose lse should (not) be that of softmax
  under_every_mask(principled, [&](problem& p, dimensions n, backend b, std::string const& where, rng& random) {
    make_values_telling(p, n, random);
    result const plain = softmax.run(for_operator(softmax, p), backend::reference_double, {});
    for (double alpha : {-5., -20., -80., -infinity})
      for (double beta : {-5., -20., -80., -infinity})
        for (double gamma : {-40., -1e4, -1e16, -infinity}) {
          if (b == backend::reference_50 && !random.chance(0.1)) continue;
          set_parameter(p, "alpha", alpha), set_parameter(p, "beta", beta), set_parameter(p, "gamma", gamma);
          std::string const here = where + ", alpha " + std::to_string(alpha) + ", beta " + std::to_string(beta) + ", gamma " +
                                   std::to_string(gamma);
          result const got = principled.run(p, b, {}), exact = principled.run(p, backend::reference_double, {});
          bounds bound = bounds_of(principled, p, n, exact, accuracy_of(b));
          result expected = plain;
          expected.ground_weight = make_array({n.batch, n.heads, n.queries, 1});
          each_row(n, [&](index bb, index h, index i) {
            index const count = visible_count(p, n, bb, h, i);
            if (count == 0) {  // another convention: checked with the contracts
              for (index d = 0; d < n.value_width; ++d)
                element(expected.out, n.heads, bb, h, i, d) = element(exact.out, n.heads, bb, h, i, d);
              element(expected.ground_weight, n.heads, bb, h, i) = 1;
              return;
            }
            double const kappa = detail::softplus(alpha) * std::log(static_cast<double>(count)), gate = detail::softplus(beta);
            double low = infinity, high = -infinity, least = infinity, most = 0;
            for (index j = 0; j < n.keys; ++j) {
              if (!visible(p, bb, h, i, j)) continue;
              double const s = element(plain.scores, n.heads, bb, h, i, j);
              double const g = detail::dot(p.tensors.at("gate_q"), p.tensors.at("gate_k"), n.heads, bb, h, i, j),
                           penalty = gate * detail::softplus(-g);
              low = std::fmin(low, s), high = std::fmax(high, s), least = std::fmin(least, penalty),
              most = std::fmax(most, penalty);
            }
            double const change = std::expm1(kappa * (high - low) + most - least);
            for (index d = 0; d < n.value_width; ++d) {
              double sum = 0;
              for (index j = 0; j < n.keys; ++j)
                if (visible(p, bb, h, i, j))
                  sum += element(plain.weights, n.heads, bb, h, i, j) *
                         std::fabs(element(p.tensors.at("v"), n.heads, bb, h, j, d));
              element(bound.out, n.heads, bb, h, i, d) += sum * change;
            }
            double const shift = std::isfinite(gamma) ? -kappa * gamma : 0,
                         move = kappa * std::fmax(std::fabs(low), std::fabs(high)) + most;
            element(expected.lse, n.heads, bb, h, i) += shift;
            element(bound.lse, n.heads, bb, h, i) += move;
            element(bound.ground_weight, n.heads, bb, h, i) = 0;  // every key clears gamma: exactly nothing is left
            double const lse = element(plain.lse, n.heads, bb, h, i),
                         error = std::fabs(element(got.lse, n.heads, bb, h, i) - lse);
            if (shift > 1e5) ++far, not_far += error > 1e4 ? 0 : 1;
            if (shift < 1e-9 && move < 1e-9) ++near, not_near += error <= 1e-5 * (1 + std::fabs(lse)) ? 0 : 1;
          });
          comparison const c = compare(got, expected, bound);
          CHECK_MESSAGE(c.failure.empty(), here << ": " << c.failure);
        }
  });
  CHECK(far > 0);  // alpha = -20, gamma = -1e16: the same weights, an lse off by millions
  CHECK(not_far == 0);
  CHECK(near > 0);
  CHECK(not_near == 0);
}

TEST_CASE("grounded is softmax when every logit reaches gamma") {
  for (auto const& named : instances::registry()) {
    entry const& e = named.second;
    policies const what = policies_of(e);
    if (!what.grounded() || what.length_scale != "none") continue;
    under_every_mask(e, [&](problem& p, dimensions const& n, backend b, std::string const& where, rng&) {
      result const exact = e.run(p, backend::reference_double, {});
      double const lowest = std::accumulate(exact.logits.data.begin(), exact.logits.data.end(), 0.,
                                            [](double x, double y) { return std::fmin(x, y); });
      set_parameter(p, "gamma", f32(lowest) - 1e-3 * std::fabs(lowest));
      result const got = e.run(p, b, {});
      index grounded = 0;
      each_row(n, [&](index bb, index h, index i) {
        grounded += visible_count(p, n, bb, h, i) > 0 && at(got.ground_weight, n, bb, h, i) != 0 ? 1 : 0;
      });
      CHECK_MESSAGE(grounded == 0, where << ": rows with a ground weight: " << grounded);
    });
  }
}

TEST_CASE("weights and ground weight sum to 1") {
  for (auto const& named : instances::registry())
    under_every_mask(named.second, [&, &e = named.second](problem& p, dimensions n, backend b, std::string const& where, rng&) {
      make_values_identity(p, n);
      result const got = e.run(p, b, {});
      double worst = 0;
      each_row(n, [&](index bb, index h, index i) {
        index const count = visible_count(p, n, bb, h, i);
        double sum = got.ground_weight.empty() ? 0 : at(got.ground_weight, n, bb, h, i);
        for (index j = 0; j < n.keys; ++j) sum += at(got.out, n, bb, h, i, j);
        double const expected = count == 0 && got.ground_weight.empty() ? 0 : 1;
        worst = std::fmax(worst, std::fabs(sum - expected) / (4 + accuracy_of(b).terms(count)));
      });
      CHECK_MESSAGE(worst <= accuracy_of(b).c * accuracy_of(b).eps, where << ": off by " << worst);
    });
}

// The printed ground weight of Principled Attention (sum e^max(gamma, a) - sum e^a) / sum e^max(gamma, a) is right in exact arithmetic and
// cancels in floating point; a sum of shortfalls does not.
TEST_CASE("two forms of the ground weight: one is stable") {
  entry const& e = *find("given/none/none/grounded");
  dimensions n;
  n.queries = 2, n.keys = 8;
  rng random(1);
  problem p = make_problem(e, n, {}, random);
  set_parameter(p, "gamma", 1);
  // Row 0: well conditioned. Row 1: one key far above gamma, the others a hair below it.
  p.tensors["scores"].data = {0,  1.5,         -2,          0.5,         3,           -1,          0.25,        2,
                              31, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20};
  result const exact = e.run(p, backend::reference_50, {});
  for (index i = 0; i < 2; ++i) {
    double ground = 0, earned = 0, weights = 0;
    for (index j = 0; j < n.keys; ++j) {
      double const a = at(exact.logits, n, 0, 0, i, j);
      ground += std::exp(std::fmax(a, 1)), earned += std::exp(a), weights += at(exact.weights, n, 0, 0, i, j);
    }
    double const w0 = at(exact.ground_weight, n, 0, 0, i);
    auto const error = [&](double x) { return std::fabs(x - w0) / w0; };
    double const printed = error((ground - earned) / ground), complement = error(1 - weights);
    CHECK((i == 0 ? printed < 1e-14 : printed > 1e-3));
    CHECK((i == 0 ? complement < 1e-14 : complement > 1e-3));
    CHECK(w0 == doctest::Approx(i == 0 ? 0.1903 : 6.2e-19).epsilon(0.5));
    for (backend b : {backend::reference_double, backend::cpu_double})
      CHECK(error(at(e.run(p, b, {}).ground_weight, n, 0, 0, i)) < 1e-12);
    CHECK(error(at(e.run(p, backend::cpu_float, {}).ground_weight, n, 0, 0, i)) < 1e-5);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
