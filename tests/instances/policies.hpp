// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The policies of the registry, each named once. A new one is a line here and a line in one of the sources beside it.
#pragma once

#include "source.hpp"

namespace attune::instances {

/// One policy as the registry knows it: its name, and how it is made.
template <class Make>
struct named {
  std::string name;
  Make make;
};
template <class Make>
named(std::string, Make) -> named<Make>;

using source = parameter_source;

// Kernels
inline auto const dot = named{"dot", [](source const& p) { return kernel::dot_product{p("scale")}; }};
inline auto const given = named{"given", [](source const&) { return kernel::given_scores{}; }};
inline auto const dot_alibi =
    named{"dot+alibi", [](source const& p) { return kernel::dot_product{p("scale")} + kernel::alibi{p("slope", 0)}; }};
inline auto const dot_softcap = named{
    "dot|softcap", [](source const& p) { return kernel::dot_product{p("scale")} | kernel::softcap{p("cap", 30)}; }};
inline auto const given_softcap =
    named{"given|softcap", [](source const& p) { return kernel::given_scores{} | kernel::softcap{p("cap", 30)}; }};
inline auto const dot_alibi_softcap =
    named{"dot+alibi|softcap", [](source const& p) {
            return (kernel::dot_product{p("scale")} + kernel::alibi{p("slope", 0)}) | kernel::softcap{p("cap", 30)};
          }};
inline auto const rbf = named{"rbf", [](source const& p) { return kernel::rbf{p("tau", 1)}; }};
inline auto const l2 = named{"l2", [](source const& p) { return kernel::l2{p("scale")}; }};
inline auto const scaled_rbf =
    named{"scaled_rbf", [](source const& p) { return kernel::scaled_rbf{p("rbf_gamma", 1)}; }};
inline auto const inverse_distance =
    named{"inverse_distance", [](source const& p) { return kernel::inverse_distance{p("eps", 1)}; }};
inline auto const bilinear =
    named{"bilinear", [](source const& p) { return kernel::bilinear{p.table("metric"), p("scale")}; }};
inline auto const elliptical =
    named{"elliptical", [](source const& p) { return kernel::elliptical{p.table("metric"), p("scale")}; }};
inline auto const scalar_sort = named{"scalar_sort", [](source const& p) { return kernel::scalar_sort{p("tau", 1)}; }};
inline auto const scalar_laplacian =
    named{"scalar_laplacian", [](source const& p) { return kernel::scalar_laplacian{p("tau", 1)}; }};
inline auto const scalar_difference =
    named{"scalar_difference", [](source const&) { return kernel::scalar_difference{}; }};
inline auto const hybrid = named{"dot+scalar_sort", [](source const& p) {
                                   return kernel::dot_product{p("scale")} + kernel::scalar_sort{p("tau", 1)};
                                 }};
inline auto const dot_bias =
    named{"dot+bias", [](source const& p) { return kernel::dot_product{p("scale")} + kernel::bias{}; }};
inline auto const tempered_log_prior = named{
    "tempered_dot+log_prior", [](source const& p) { return kernel::tempered_dot{p("tau", 1)} + kernel::log_prior{}; }};
inline auto const dot_spatial_prior = named{
    "dot+spatial_prior",
    [](source const& p) { return kernel::dot_product{p("scale")} + kernel::spatial_prior{p("spatial_beta", 1)}; }};
inline auto const transformer_xl =
    named{"transformer_xl", [](source const& p) {
            return kernel::transformer_xl(p.table("bias_u"), p.table("bias_w"), p.table("relative"), p("scale"));
          }};
inline auto const tupe = named{"tupe", [](source const&) { return kernel::tupe(); }};
inline auto const dot_relative_bias =
    named{"dot+relative_bias",
          [](source const& p) { return kernel::dot_product{p("scale")} + kernel::relative_bias{p.table("values")}; }};
inline auto const dot_t5_bias = named{"dot+t5_bias", [](source const& p) {
                                        return kernel::dot_product{p("scale")} + kernel::t5_bias{p.table("values"), 32};
                                      }};
inline auto const dot_fourier_key_bias =
    named{"dot+fourier_prior+key_bias", [](source const& p) {
            return kernel::dot_product{p("scale")} +
                   kernel::fourier_prior{p.table("cosine"), p.table("sine"), p.table("frequency")} + kernel::key_bias{};
          }};
/// Of the kind a user writes: s = -c sum |q - k|.
struct absolute_difference {
  template <class T>
  static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
inline auto const elementwise =
    named{"elementwise", [](source const& p) { return kernel::elementwise<absolute_difference>{p("scale", 1)}; }};

// Length scales
inline auto const no_length_scale = named{"none", [](source const&) { return length_scale::none{}; }};
inline auto const margin = named{
    "margin", [](source const& p) { return length_scale::margin{.alpha = p("alpha", 0), .gamma = p("gamma", 0)}; }};
inline auto const ssmax = named{
    "ssmax", [](source const& p) { return length_scale::ssmax{.scale = p("ss_scale", 1), .bias = p("ss_bias", 0)}; }};
inline auto const logn = named{"logn", [](source const& p) { return length_scale::log_n{p("length0", 512)}; }};
inline auto const yarn = named{"yarn", [](source const& p) { return length_scale::yarn{p("extension", 1)}; }};

// Gates
inline auto const no_gate = named{"none", [](source const&) { return gate::none{}; }};
inline auto const softplus_gate = named{"softplus", [](source const& p) { return gate::softplus{p("beta", 0)}; }};
inline auto const given_softplus_gate =
    named{"given_softplus", [](source const& p) { return gate::given_softplus{p("beta", 0)}; }};
inline auto const two_sided_gate = named{"two_sided", [](source const& p) { return gate::two_sided{p("beta", 0)}; }};
inline auto const given_two_sided_gate =
    named{"given_two_sided", [](source const& p) { return gate::given_two_sided{p("beta", 0)}; }};
inline auto const sigmoid_output = named{"sigmoid_output", [](source const&) { return gate::sigmoid_output{}; }};
inline auto const sigmoid_value = named{"sigmoid_value", [](source const&) { return gate::sigmoid_value{}; }};

// Normalizers
inline auto const softmax = named{"softmax", [](source const&) { return normalizer::softmax{}; }};
inline auto const off_by_one = named{"off_by_one", [](source const&) { return normalizer::off_by_one{}; }};
inline auto const off_by_one_value =
    named{"off_by_one_value", [](source const&) { return normalizer::valued_off_by_one{}; }};
inline auto const sink = named{"sink", [](source const& p) { return normalizer::sink{p("sink", 0)}; }};
inline auto const sink_value =
    named{"sink_value", [](source const& p) { return normalizer::valued_sink{p("sink", 0)}; }};
inline auto const grounded = named{"grounded", [](source const& p) { return normalizer::grounded{p("gamma", 0)}; }};
inline auto const sigmoid = named{"sigmoid", [](source const& p) { return normalizer::sigmoid{p("sig_bias", 0)}; }};
inline auto const sigmoid_negk = named{"sigmoid_negk", [](source const&) { return normalizer::sigmoid{}; }};
inline auto const exponential = named{"exponential", [](source const&) { return normalizer::exponential{}; }};
inline auto const relu = named{"relu", [](source const&) { return normalizer::relu{}; }};
inline auto const mean_relu = named{"mean_relu", [](source const&) { return normalizer::mean_relu{}; }};
inline auto const normalized_relu =
    named{"normalized_relu", [](source const&) { return normalizer::normalized_relu{}; }};
inline auto const centered_relu = named{"centered_relu", [](source const&) { return normalizer::centered_relu{}; }};
inline auto const sparsemax = named{"sparsemax", [](source const&) { return normalizer::sparsemax{}; }};
inline auto const entmax15 = named{"entmax15", [](source const&) { return normalizer::entmax15{}; }};
inline auto const entmax = named{"entmax", [](source const& p) { return normalizer::entmax{p("ent_alpha", 1.5)}; }};
inline auto const top_3 = named{"top_k", [](source const&) { return normalizer::top_k{3}; }};
using normalizer::adjusted_ends;
using normalizer::adjusted_form;
inline auto const adjusted_product =
    named{"adjusted_product", [](source const&) { return normalizer::self_adjusted<adjusted_form::product>{}; }};
inline auto const adjusted_with_zero =
    named{"adjusted_with_zero", [](source const&) { return normalizer::self_adjusted<adjusted_form::with_zero>{}; }};
inline auto const adjusted_full_range =
    named{"adjusted_full_range", [](source const&) { return normalizer::self_adjusted<adjusted_form::full_range>{}; }};
inline auto const adjusted_with_zero_detached =
    named{"adjusted_with_zero_detached",
          [](source const&) { return normalizer::self_adjusted<adjusted_form::with_zero, adjusted_ends::detached>{}; }};

/// How the affine normalizers get their average: as it is, or as a moving average that this call updates.
enum class average_kind { fixed, update_stop, update_grad };

/// alpha = activation(alpha_pre), average, momentum.
template <normalizer::affine_count Count>
auto affine(std::string const& name, activation f, average_kind kind) {
  return named{
      name, [f, kind](source const& p) {
        parameter const alpha = p.activated("alpha_pre", f, 1), average = p("average", 1);
        if (kind == average_kind::fixed || !alpha.is_projected())
          return normalizer::affine<Count>{.alpha = alpha, .average = average};
        auto const gradient = kind == average_kind::update_grad ? average_gradient::passed : average_gradient::stopped;
        return normalizer::affine<Count>{
            .alpha = alpha, .average = parameter::moving_average(alpha, average, p.number("momentum", 0.9), gradient)};
      }};
}
/// The same with alpha and its average as plain parameters.
inline auto const affine_visible = named{"affine_visible", [](source const& p) {
                                           return normalizer::affine<normalizer::affine_count::visible>{
                                               .alpha = p("affine_alpha", 1), .average = p("average", 1)};
                                         }};
inline auto const affine_total = named{"affine_total", [](source const& p) {
                                         return normalizer::affine<normalizer::affine_count::total>{
                                             .alpha = p("affine_alpha", 1), .average = p("average", 1)};
                                       }};
inline auto const free_affine =
    named{"free_affine", [](source const& p) {
            return normalizer::free_affine<>{.alpha = p("affine_alpha", 1), .beta = p("affine_beta", 0)};
          }};

}  // namespace attune::instances
