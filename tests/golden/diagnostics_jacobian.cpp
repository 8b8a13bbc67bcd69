// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json: Jacobians and what follows from them, entropic programs, kernels.
#include <attune/analysis/grouping.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/analysis/similarity.hpp>
#include <attune/policies/normalizer/generic.hpp>

#include "diagnostics.hpp"
#include "plan.hpp"

namespace attune::golden {
namespace {

struct softplus_map {
  template <class T>
  static T map(T const& x) {
    return math::softplus(x);
  }
};
template <int Offset>
struct affine_map {
  template <class T>
  static T map(T const& x) {
    return x + T(Offset);
  }
};
struct square_map {
  template <class T>
  static T map(T const& x) {
    return T(1) + x * x;
  }
};

template <class T>
results softmax_jacobian(reader<T> const& in) {
  T const temperature = in.one("T");
  auto const l = in("l");
  auto const p = analysis::softmax(l, temperature);
  auto const s = analysis::sensitivity_of_softmax(p, temperature);
  return {{"p", plain(p)},
          {"spectral", plain(s.spectral)},
          {"frobenius", plain(s.frobenius)},
          {"max_entry", plain(s.largest_entry)},
          {"bound_corrected_1_over_2T", plain(s.bound)},
          {"bound_printed_cor3", plain(s.printed)},
          {"lse_lambda", plain(analysis::potential(l, temperature))}};
}

/// F(l / T): its derivatives by l are those by l / T, divided by T.
template <class F, class T>
results general_jacobian(reader<T> const& in) {
  T const temperature = in.one("T");
  auto const l = analysis::tempered(in("l"), temperature);
  auto g = analysis::general<F>(l);
  g.steepest = g.steepest / temperature;
  analysis::matrix<T> j = analysis::jacobian(normalizer::generic<F>{}, l);
  for (index r = 0; r < j.rows(); ++r)
    for (index c = 0; c < j.columns(); ++c) j(r, c) = j(r, c) / temperature;
  auto const range = analysis::vanishing_weights(g.least, g.greatest, analysis::count_of(l));
  T const keys = T(static_cast<double>(l.size()));
  return {{"alpha", plain(g.alpha)},
          {"spectral", plain(analysis::spectral_norm(j))},
          {"max_entry", plain(analysis::largest_entry(j))},
          {"bound_printed_entrywise", plain(g.entry_bound())},
          {"bound_printed_lemma2", plain(g.printed())},
          {"bound_corrected_tight", plain(g.bound())},
          {"bound_corrected_minmax", plain(g.bound_by_extremes())},
          {"lemma1_C1", plain(T(range.lower * keys))},
          {"lemma1_C2", plain(T(range.upper * keys))}};
}
template <class T>
results general_jacobian(reader<T> const& in, golden_case const& c) {
  auto const map = *text_param(c, "F");
  if (map == "exp") return general_jacobian<normalizer::map::exponential>(in);
  if (map == "softplus") return general_jacobian<softplus_map>(in);
  if (map == "square1") return general_jacobian<square_map>(in);
  if (map == "affine" && c.params.at("c") == 6) return general_jacobian<affine_map<6>>(in);
  throw unplannable("has the unknown function " + map);
}

template <class T>
results finite_difference(reader<T> const& in) {
  results r;
  T const temperature = in.one("T");
  for (T const& eps : in("eps")) {
    r["g"].push_back(
        static_cast<double>(analysis::finite_difference(normalizer::softmax{}, in("l"), in("dl"), temperature, eps)));
    r["bound_corrected"].push_back(static_cast<double>(analysis::finite_difference_bound(temperature, eps)));
  }
  return r;
}

template <class T>
results entropic_program(reader<T> const& in) {
  T const temperature = in.one("T");
  auto const z = in("z");
  auto q = in("q");
  T const mass = analysis::sum(q);
  for (T& x : q) x = x / mass;
  auto const p = analysis::softmax(z, temperature);
  T const kl = analysis::divergence(q, p);
  return {{"p", plain(p)},
          {"objective_star", plain(analysis::gibbs_objective(p, z, temperature))},
          {"objective_q", plain(analysis::gibbs_objective(q, z, temperature))},
          {"T_lse", plain(analysis::potential(z, temperature))},
          {"kl", plain(kl)},
          {"gap_T_KL", plain(T(temperature * kl))}};
}

template <class T>
results rbf_identity(reader<T> const& in) {
  auto q = in("q"), k = in("k");
  index const width = in.width("k");
  auto const rescale = [&](auto first, auto last) {
    T const factor = in.one("c") / analysis::norm(std::vector<T>(first, last));
    for (; first != last; ++first) *first = *first * factor;
  };
  rescale(q.begin(), q.end());
  for (auto row = k.begin(); row != k.end(); row += width) rescale(row, row + width);
  analysis::points<T> const keys(k, width);
  T const sigma2 = analysis::rbf_bandwidth(in.one("T"), width);
  return {{"softmax", plain(analysis::softmax(analysis::dot_scores(q, keys, sigma2)))},
          {"rbf", plain(analysis::softmax(analysis::rbf_scores(q, keys, sigma2)))},
          {"sigma2", plain(sigma2)}};
}

template <class T>
results implicit_kernel(reader<T> const& in) {
  auto const q = in("q"), k = in("k");
  analysis::points<T> const keys(k, in.width("k"));
  auto const f = analysis::factors_of(q, keys);
  return {
      {"softmax", plain(analysis::softmax(analysis::dot_scores(q, keys, analysis::rbf_bandwidth(T(1), keys.width()))))},
      {"rbf_factor", plain(f.similarity)},
      {"magnitude_factor", plain(f.magnitude)},
      {"product_normalized", plain(analysis::product_of_experts(f.similarity, f.magnitude))}};
}

template <class T>
results grouping(reader<T> const& in) {
  auto const q = in("q"), own = in("kh"), shared = in("kg");
  auto const g = analysis::drift_of_grouping(q, analysis::points<T>(own, in.width("kh")),
                                             analysis::points<T>(shared, in.width("kg")), in.one("T"));
  return {{"drift", plain(g.drift)},
          {"op_norm_dK", plain(g.operator_norm)},
          {"bound_tight_logit", plain(g.by_logits)},
          {"bound_tight_op", plain(g.by_operator)},
          {"bound_printed_logit", plain(T(T(2) * g.by_logits))},
          {"bound_printed_op", plain(T(T(2) * g.by_operator))}};
}

template <class T>
results experts(reader<T> const& in) {
  auto const a = in("s_dot"), b = in("s_rbf");
  auto const p = analysis::softmax(a), q = analysis::softmax(b);
  std::vector<T> both;
  for (std::size_t j = 0; j < a.size(); ++j) both.push_back(a[j] + b[j]);
  return {{"p_dot", plain(p)},
          {"p_rbf", plain(q)},
          {"product_renormalized", plain(analysis::product_of_experts(p, q))},
          {"softmax_sum", plain(analysis::softmax(both))}};
}

}  // namespace

results diagnose_jacobian(golden_case const& c, instances::backend executor) {
  return in_scalar_of(executor, [&]<class T>(T const&) {
    reader<T> const in(c);
    if (c.operation == "jacobian_softmax") return softmax_jacobian(in);
    if (c.operation == "jacobian_general") return general_jacobian(in, c);
    if (c.operation == "finite_difference_jacobian") return finite_difference(in);
    if (c.operation == "maxent") return entropic_program(in);
    if (c.operation == "rbf_identity") return rbf_identity(in);
    if (c.operation == "implicit_kernel") return implicit_kernel(in);
    if (c.operation == "grouping_stability") return grouping(in);
    if (c.operation == "product_of_experts") return experts(in);
    return results{};
  });
}

}  // namespace attune::golden
