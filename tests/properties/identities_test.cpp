// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What each operator becomes in the limits that its documentation names, on every backend and under every mask.

#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "../support/affine_row.hpp"
#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("identities");

using instances::find;

/// The problem as another operator wants it: without the tensors and parameters that it does not read.
problem for_operator(entry const& e, problem p) {
  for (auto at = p.tensors.begin(); at != p.tensors.end();)
    at = contains(e.tensors, at->first) ? std::next(at) : p.tensors.erase(at);
  for (auto at = p.parameters.begin(); at != p.parameters.end();)
    at = contains(e.parameters, at->first) ? std::next(at) : p.parameters.erase(at);
  for (auto at = p.tables.begin(); at != p.tables.end();)
    at = contains(e.tables, at->first) ? std::next(at) : p.tables.erase(at);
  return p;
}

/// "X recovers Y when ...": in names that contain `from`, `from` becomes `to`, once `set` has put the problem at the
/// limit.
struct recovery {
  std::string what, from, to;
  std::function<void(problem&, dimensions const&)> set;
  std::string only = "";  ///< operators whose name begins so
  /// What else the problem of `to` needs.
  std::function<void(problem&, dimensions const&)> also = [](problem&, dimensions const&) {};
  bool same_level = true;  ///< lse and threshold agree too, not just weights

  /// The operator that e becomes, if this is about e.
  entry const* partner(entry const& e) const {
    std::size_t const at = e.name.find(from);
    if (at == std::string::npos || e.name.compare(0, only.size(), only) != 0) return nullptr;
    if (from.front() == '/' && from.back() != '/' && from.back() != '_' && at + from.size() != e.name.size())
      return nullptr;  // "/sink" is not "/sink_value"
    return find(std::string(e.name).replace(at, from.size(), to));
  }
};

void fill(problem& p, char const* tensor, double value) {
  std::fill(p.tensors.at(tensor).data.begin(), p.tensors.at(tensor).data.end(), value);
}
void fill_table(problem& p, char const* table, double value) {
  std::fill(p.tables.at(table).data.begin(), p.tables.at(table).data.end(), value);
}
/// A parameter with one value for all, whether the problem has it or not.
void give(problem& p, char const* key, double value) { p.parameters[key] = make_array({1, 1, 1}, value); }
double width_of(dimensions const& n) { return static_cast<double>(n.width); }
void nothing(problem&, dimensions const&) {}
/// alpha = average = 1, from pre-activations.
void plain_affine(problem& p, dimensions const&) {
  set_parameter(p, "alpha_pre", 64), set_parameter(p, "affine_alpha", 1), set_parameter(p, "average", 1);
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
    {"margin of alpha -inf", "/margin/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "alpha", -infinity); }},
    {"softplus gate of beta -inf", "/softplus/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "beta", -infinity); }},
    {"given gate of beta -inf", "/given_softplus/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "beta", -infinity); }},
    {"given gate of +inf", "/given_softplus/", "/none/",
     [](problem& p, dimensions const&) { fill(p, "gates", infinity); }},
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
     "given/none/none/"},
    {"two-sided gate of beta -inf", "/two_sided/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "beta", -infinity); }},
    {"given two-sided gate of 0", "/given_two_sided/", "/none/",
     [](problem& p, dimensions const&) { fill(p, "gates", 0); }},
    {"yarn without extension", "/yarn/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "extension", 1); }},
    {"a shrinking yarn", "/yarn/", "/none/",
     [](problem& p, dimensions const&) { set_parameter(p, "extension", 0.25); }},
    {"affine of alpha = average = 1", "/affine_visible", "/softmax", plain_affine},
    {"affine of clipped alpha = average = 1", "/affine_visible_clipping_given", "/softmax", plain_affine},
    {"affine of sigmoid alpha = average = 1", "/affine_visible_sigmoid_given", "/softmax", plain_affine},
    {"affine of alpha = moving average = 1", "/affine_visible_sigmoid_update_stop", "/softmax", plain_affine},
    {"affine over all keys of alpha = average = 1", "/affine_total_clipping_given", "/softmax", plain_affine},
    {"gated affine of alpha = average = 1", "/affine_visible_sigmoid_given/", "/softmax/", plain_affine},
    {"affine over all keys, all visible", "/affine_total_", "/affine_visible_",
     [](problem& p, dimensions const&) { unmask(p); }},
    {"gradients through the average change no value", "_update_grad", "_update_stop", nothing},
    {"a moving average of momentum near 1", "_update_stop", "_given",
     [](problem& p, dimensions const&) { set_parameter(p, "momentum", 1 - 0x1p-53); }, "dot/"},
    {"free affine of alpha 1, beta 0", "/free_affine", "/softmax",
     [](problem& p, dimensions const&) { set_parameter(p, "affine_alpha", 1), set_parameter(p, "affine_beta", 0); }},
    {"free affine of beta = average - alpha", "/free_affine", "/affine_visible",
     [](problem& p, dimensions const&) {
       set_parameter(p, "affine_alpha", 0.75), set_parameter(p, "affine_beta", -0.5);
     },
     "", [](problem& p, dimensions const&) { give(p, "average", 0.25); }},
    {"detached ends change no value", "_detached", "", nothing},
    {"entmax of alpha 1", "/entmax", "/softmax",
     [](problem& p, dimensions const&) { set_parameter(p, "ent_alpha", 1); }},
    {"entmax of alpha 3/2", "/entmax", "/entmax15",
     [](problem& p, dimensions const&) { set_parameter(p, "ent_alpha", 1.5); }},
    {"entmax of alpha 2", "/entmax", "/sparsemax",
     [](problem& p, dimensions const&) { set_parameter(p, "ent_alpha", 2); }},
    {"top-k of few keys", "/top_k", "/softmax",
     [](problem& p, dimensions const& n) {
       problem const old = p;
       set_mask(p, n.batch, n.heads, n.queries, n.keys, [&](index b, index h, index i, index j) {
         return j % (n.keys / 3 + 1) == 0 && visible(old, b, h, i, j);
       });
     }},
    {"hybrid of infinite tau", "dot+scalar_sort", "dot",
     [](problem& p, dimensions const&) { set_parameter(p, "tau", 1e30); }},
    {"bias 0", "+bias", "", [](problem& p, dimensions const&) { fill(p, "bias", 0); }},
    {"prior 1", "tempered_dot+log_prior", "dot",
     [](problem& p, dimensions const& n) { fill(p, "bias", 1), give(p, "tau", std::sqrt(width_of(n))); }},
    {"relative biases 0", "+relative_bias", "", [](problem& p, dimensions const&) { fill_table(p, "values", 0); }},
    {"T5 biases 0", "+t5_bias", "", [](problem& p, dimensions const&) { fill_table(p, "values", 0); }},
    {"a Fourier series of 0", "+fourier_prior+key_bias", "",
     [](problem& p, dimensions const&) {
       fill_table(p, "cosine", 0), fill_table(p, "sine", 0), fill(p, "key_bias", 0);
     }},
    {"a wide spatial prior", "+spatial_prior", "",
     [](problem& p, dimensions const&) { set_parameter(p, "spatial_beta", 1e30); }},
    {"Transformer-XL without biases and distances", "transformer_xl", "dot",
     [](problem& p, dimensions const&) { fill_table(p, "bias_u", 0), fill_table(p, "relative", 0); }},
    {"TUPE without positions", "tupe", "dot", [](problem& p, dimensions const&) { fill(p, "position_q", 0); }, "",
     [](problem& p, dimensions const& n) { give(p, "scale", 1 / std::sqrt(2 * width_of(n))); }},
    {"a bilinear metric of 1", "bilinear", "dot", [](problem& p, dimensions const&) { fill_table(p, "metric", 1); }},
    {"an elliptical metric of 1", "elliptical", "l2",
     [](problem& p, dimensions const&) { fill_table(p, "metric", 1), give(p, "scale", 0.75); }, "",
     [](problem& p, dimensions const&) { give(p, "scale", 0.375); }},
    {"l2 of scale 1 / tau", "l2", "rbf", [](problem& p, dimensions const&) { give(p, "scale", 0.5); }, "",
     [](problem& p, dimensions const&) { give(p, "tau", 2); }},
    {"scaled rbf of gamma 1 / tau", "scaled_rbf", "rbf",
     [](problem& p, dimensions const&) { give(p, "rbf_gamma", 0.5); }, "",
     [](problem& p, dimensions const&) { give(p, "tau", 2); }, false},
    {"inverse distance of infinite eps", "inverse_distance", "dot",
     [](problem& p, dimensions const&) { give(p, "eps", 1e30); }, "",
     [](problem& p, dimensions const&) { give(p, "scale", 0); }, false},
    {"an open output gate", "/sigmoid_output", "",
     [](problem& p, dimensions const&) { fill(p, "output_gate", infinity); }},
    {"an open value gate", "/sigmoid_value", "",
     [](problem& p, dimensions const&) { fill(p, "value_gate", infinity); }},
    {"a sigmoid of bias -log K", "/sigmoid", "/sigmoid_negk", [](problem& p, dimensions const& n) {
       unmask(p);
       set_parameter(p, "sig_bias", -std::log(static_cast<double>(n.keys)));
     }}};

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
        problem other = for_operator(*plain, p);
        r.also(other, n);
        result expected = plain->run(other, backend::reference_double, {});
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
        bounds bound = e.bounds(p, b);
        if (expected.ground_weight.empty()) bound.ground_weight = {};
        for (array result::* output : {&result::lse, &result::threshold, &result::average})  // what both have
          if (!r.same_level || (got.*output).empty() || (expected.*output).empty()) got.*output = expected.*output = {};
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
// a = s + kappa (s - gamma) - b differs from s by the row constant -kappa gamma and by kappa s - b, so |w_j -
// softmax_j| <= softmax_j (e^R - 1), R = kappa (max s - min s) + max b - min b. The row constant stays in the logits
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
          std::string const here = where + ", alpha " + std::to_string(alpha) + ", beta " + std::to_string(beta) +
                                   ", gamma " + std::to_string(gamma);
          result const got = principled.run(p, b, {}), exact = principled.run(p, backend::reference_double, {});
          bounds bound = principled.bounds(p, b);
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
            auto const softplus = [](double x) { return std::log1p(std::exp(x)); };
            double const kappa = softplus(alpha) * std::log(static_cast<double>(count)), gate = softplus(beta);
            double low = infinity, high = -infinity, least = infinity, most = 0;
            for (index j = 0; j < n.keys; ++j) {
              if (!visible(p, bb, h, i, j)) continue;
              double const s = element(plain.scores, n.heads, bb, h, i, j);
              double g = 0;
              for (index d = 0; d < n.gate_width; ++d)
                g += element(p.tensors.at("gate_q"), n.heads, bb, h, i, d) *
                     element(p.tensors.at("gate_k"), n.heads, bb, h, j, d);
              double const penalty = gate * softplus(-g);
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

/// What the weights of a row sum to, ground weight included, and a bound of sum |w|: { sum, size }. NaN: no law.
std::pair<double, double> wanted_sum(policies const& what, problem const& p, dimensions const& n, result const& r,
                                     index b, index h, index i) {
  bool const has_ground = !r.ground_weight.empty();
  bool const dead = !has_ground && ((!r.lse.empty() && at(r.lse, n, b, h, i) == -infinity) ||
                                    (!r.threshold.empty() && std::isnan(at(r.threshold, n, b, h, i))));
  if (dead || visible_count(p, n, b, h, i) == 0) return {has_ground ? 1 : 0, 1};
  if (what.affine()) {
    auto const x = affine_of(what, p, n, r, b, h, i);
    double const share = x.share * static_cast<double>(visible_count(p, n, b, h, i)) / x.keys;
    return {x.alpha + share, std::fabs(x.alpha) + std::fabs(share) + std::fabs(x.average) + 1};
  }
  if (what.is("centered_relu")) return {0, 4};
  if (what.sums_to_one() || what.is("normalized_relu")) return {1, 1};
  return {not_a_number, 0};
}

/// What the sum of so many weights loses, in units of the spacing: all K / 2 of a long sum, a random walk of a short one.
double lost_in_sum(index count) {
  double const terms = static_cast<double>(count);
  return 16 + std::fmax(4 * std::sqrt(terms), terms / 2);
}

TEST_CASE("weights, with the ground weight, sum to what their normalizer says") {
  for (auto const& named : instances::registry())
    under_every_mask(
        named.second, [&, &e = named.second](problem& p, dimensions n, backend b, std::string const& where, rng&) {
          policies const what = policies_of(e);
          make_values_identity(p, n);
          result const got = e.run(p, b, {});
          double worst = 0;
          index outside = 0;
          each_row(n, [&](index bb, index h, index i) {
            index const count = visible_count(p, n, bb, h, i);
            double sum = got.ground_weight.empty() ? 0 : at(got.ground_weight, n, bb, h, i), largest = 0;
            for (index j = 0; j < n.keys; ++j) {
              double const w = at(got.out, n, bb, h, i, j);
              sum += w;
              largest = std::fmax(largest, w);
              bool const may_be_negative = what.affine() || what.is("adjusted_product") || what.is("centered_relu");
              bool const may_be_large =
                  may_be_negative || what.is("exponential") || what.is("relu") || what.is("mean_relu");
              double const slack = 16 * accuracy_of(b).eps;
              double const least_weight =
                  what.adjusted() ? -slack : 0;  // a difference of sums: that of the lowest key rounds
              outside += (!may_be_negative && w < least_weight) || (!may_be_large && w > 1 + slack) ? 1 : 0;
            }
            double const least = accuracy_of(b).eps * lost_in_sum(count);
            if (what.adjusted() && !what.is("adjusted_product")) outside += sum > 1 + least ? 1 : 0;
            if (what.is("sigmoid")) outside += sum > static_cast<double>(count) * (1 + least) ? 1 : 0;
            auto const [expected, size] = wanted_sum(what, p, n, got, bb, h, i);
            if (!std::isnan(expected))
              worst = std::fmax(worst, std::fabs(sum - expected) / lost_in_sum(count) / std::fmax(size, largest));
          });
          CHECK_MESSAGE(worst <= accuracy_of(b).eps, where << ": off by " << worst);
          CHECK_MESSAGE(outside == 0, where << ": weights or sums out of their range: " << outside);
        });
}

// The printed ground weight of Principled Attention (sum e^max(gamma, a) - sum e^a) / sum e^max(gamma, a) is right in
// exact arithmetic and cancels in floating point; a sum of shortfalls does not.
TEST_CASE("two forms of the ground weight: one is stable") {
  entry const& e = *find("given/none/none/grounded");
  dimensions n;
  n.queries = 2, n.keys = 8;
  rng random(1);
  problem p = make_problem(e, n, {}, random);
  set_parameter(p, "gamma", 1);
  // Row 0: well conditioned. Row 1: one key far above gamma, the others a hair below it.
  p.tensors["scores"].data = {0,           1.5,         -2,          0.5,         3,           -1,
                              0.25,        2,           31,          1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20,
                              1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20, 1 - 0x1p-20};
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
