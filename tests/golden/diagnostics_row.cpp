// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json: what needs one row, one sample or no tensor at all.
#include <attune/analysis/gradient_norms.hpp>
#include <attune/analysis/heads.hpp>
#include <attune/analysis/kolmogorov_smirnov.hpp>
#include <attune/analysis/length_law.hpp>
#include <attune/analysis/row_shape.hpp>
#include <attune/core/activation.hpp>
#include <attune/core/log_domain.hpp>
#include <attune/exec/reference/multiprecision.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/none.hpp>
#include <attune/policies/length_scale/ssmax.hpp>

#include "diagnostics.hpp"

namespace attune::golden {
namespace {

template <class T>
results rows(reader<T> const& in) {
  auto const w = in("w");
  analysis::points<T> const table(w, in.width("w"));
  results r;
  for (index i = 0; i < table.count(); ++i) {
    auto const s = analysis::shape_of(table[i]);
    auto const add = [&](char const* name, T const& x) { r[name].push_back(static_cast<double>(x)); };
    add("mass", s.mass);
    add("entropy", s.entropy);
    add("entropy_normalized_mass", s.normalized_entropy);
    add("eff_keys", s.effective_keys);
    add("max", s.highest);
    add("first", s.first_key);
  }
  return r;
}

template <class T>
results gradient_norms(reader<T> const& in, golden_case const& c) {
  auto const g = in("g");
  auto const s = analysis::statistics_of(g);
  results r{{"mean", plain(s.mean)},
            {"var_population", plain(s.population_variance)},
            {"var_sample", plain(s.sample_variance)},
            {"std_population", plain(s.population_deviation)},
            {"cv_population", plain(s.variation)},
            {"median", plain(s.median)},
            {"mad", plain(s.absolute_deviation)}};
  for (auto const& k : c.params.at("k")) {
    std::string const name = "k" + std::to_string(k.get<int>());
    r["threshold_" + name] = plain(analysis::spike_threshold(s, T(k.get<double>())));
    r["spikes_" + name] = {static_cast<double>(analysis::spikes(g, T(k.get<double>())))};
  }
  return r;
}

/// T: a scalar of Boost.Math.
template <class T>
results two_samples(reader<T> const& in) {
  auto const a = in("a"), b = in("b");
  auto const n = analysis::count_of(a), m = analysis::count_of(b);
  T const d = analysis::kolmogorov_smirnov(a, b);
  return {{"D", plain(d)},
          {"p_asymptotic", plain(analysis::kolmogorov_smirnov_p(d, n, m))},
          {"critical_D_dkw", plain(analysis::kolmogorov_smirnov_critical(in.param("alpha"), n, m))}};
}

template <class T>
results length_law(reader<T> const& in, golden_case const& c) {
  results r;
  T const gap = in.one("gap");
  length_scale::ssmax const ssmax{c.inputs.at("ss").data.at(0)};
  length_scale::margin const margin{.alpha = c.inputs.at("alpha").data.at(0), .gamma = 0};
  for (auto const& k : c.params.at("K")) {
    auto const keys = k.get<index>();
    auto const add = [&](char const* name, auto const& law) {
      r[name].push_back(static_cast<double>(analysis::leading_weight(law, keys, gap)));
    };
    add("softmax", length_scale::none{});
    add("ssmax", ssmax);
    add("principled_norm_no_ground", margin);
  }
  return r;
}

template <class T>
results coverage(reader<T> const& in) {
  results r;
  T const p = in.one("p");
  for (index h = 1; h <= index(static_cast<double>(in.param("H"))); ++h)
    r["coverage"].push_back(static_cast<double>(analysis::head_coverage(p, h)));
  r["heads_needed"] = {static_cast<double>(analysis::heads_needed(p, in.param("target")))};
  return r;
}

template <class T>
results primitives(reader<T> const& in) {
  results r;
  for (T const& x : in("x")) {
    auto const add = [&](char const* name, T const& y) { r[name].push_back(static_cast<double>(y)); };
    T const nan = math::infinity<T>() - math::infinity<T>();
    add("softplus", math::softplus(x));
    add("sigmoid", math::sigmoid(x));
    add("logsigmoid", math::log_sigmoid(x));
    add("linear_clipping", activate(activation::linear_clipping, x));
    add("expm1", math::expm1(x));
    add("log1p", x < T(-1) ? nan : math::log1p(x));
    add("log1mexp_negabs", math::log1m_exp(x));
    add("softplus_inv", x == T(0) ? nan : math::softplus_inverse(x));
  }
  return r;
}

}  // namespace

results diagnose_row(golden_case const& c, instances::backend executor) {
  if (c.operation == "ks_two_sample") {  // Boost's own digits: its distribution wants them
    if (executor == instances::backend::reference_50) return two_samples(reader<digits50>(c));
    return executor == instances::backend::cpu_float ? two_samples(reader<float>(c)) : two_samples(reader<double>(c));
  }
  return in_scalar_of(executor, [&]<class T>(T const&) {
    reader<T> const in(c);
    if (c.operation == "entropy") return rows(in);
    if (c.operation == "grad_norm_stats") return gradient_norms(in, c);
    if (c.operation == "length_scaling_law") return length_law(in, c);
    if (c.operation == "head_coverage") return coverage(in);
    if (c.operation == "primitives") return primitives(in);
    return results{};
  });
}

}  // namespace attune::golden
