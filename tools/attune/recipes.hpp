// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Each preset of attune/operators/presets.hpp, once, by the name that the command line knows. The catalogue describes them, the
// instances compile them; parameters and tables are set afterwards, by their paths, so that here all of them are left open.
#pragma once

#include <map>
#include <string>

#include <attune/operators/listing.hpp>
#include <attune/operators/presets.hpp>

#include "aligned_mask.hpp"

namespace attune::tool {

/// Constants that are no parameters, with their defaults where the command line says nothing.
struct constants {
  std::map<std::string, long> const* given = nullptr;
  std::map<std::string, long>* asked = nullptr;  ///< what is asked for, recorded with its default
  long operator()(char const* name, long fallback) const {
    if (asked != nullptr) asked->emplace(name, fallback);
    if (given == nullptr) return fallback;
    auto const found = given->find(name);
    return found == given->end() ? fallback : found->second;
  }
};

template <class Make>
struct recipe {
  char const* name;
  Make make;  ///< (constants, mask) -> operator
};
template <class Make>
recipe(char const*, Make) -> recipe<Make>;

namespace recipes {

using mask_type = aligned_mask;
using normalizer::adjusted_form;
using normalizer::affine_count;
inline parameter const open{};  ///< to be set

// Softmax and what suppresses it.
inline auto const softmax = recipe{"softmax", [](constants const&, mask_type m) { return softmax_attention(m); }};
inline auto const off_by_one = recipe{"off_by_one", [](constants const&, mask_type m) { return off_by_one_attention(m); }};
inline auto const sink = recipe{"sink", [](constants const&, mask_type m) { return sink_attention(open, m); }};
inline auto const principled = recipe{"principled", [](constants const&, mask_type m) { return principled_attention({}, m); }};

// Length scales and gates.
inline auto const ssmax = recipe{"ssmax", [](constants const&, mask_type m) { return ssmax_attention({}, m); }};
inline auto const log_n = recipe{"log_n", [](constants const&, mask_type m) { return log_n_attention(open, m); }};
inline auto const margin = recipe{"margin", [](constants const&, mask_type m) { return margin_attention(open, open, m); }};
inline auto const yarn = recipe{"yarn", [](constants const&, mask_type m) { return yarn_attention(open, m); }};
inline auto const gated = recipe{"gated", [](constants const&, mask_type m) { return gated_attention(m); }};
inline auto const value_gated = recipe{"value_gated", [](constants const&, mask_type m) { return value_gated_attention(m); }};
inline auto const two_sided = recipe{"two_sided", [](constants const&, mask_type m) { return two_sided_attention(open, m); }};

// Affine-scaled.
inline auto const affine_scaled =
    recipe{"affine_scaled", [](constants const&, mask_type m) { return affine_scaled_attention(open, open, m); }};
inline auto const affine_scaled_total = recipe{"affine_scaled_total", [](constants const&, mask_type m) {
                                                 return affine_scaled_attention<affine_count::total>(open, open, m);
                                               }};
inline auto const affine_gated =
    recipe{"affine_gated", [](constants const&, mask_type m) { return affine_gated_attention(open, open, m); }};
inline auto const affine_gated_total = recipe{"affine_gated_total", [](constants const&, mask_type m) {
                                                return affine_gated_attention<affine_count::total>(open, open, m);
                                              }};

// Scalars and distances.
inline auto const scalar_sort =
    recipe{"scalar_sort", [](constants const&, mask_type m) { return scalar_sort_attention(open, m); }};
inline auto const scalar_laplacian =
    recipe{"scalar_laplacian", [](constants const&, mask_type m) { return scalar_laplacian_attention(open, m); }};
inline auto const hybrid = recipe{"hybrid", [](constants const&, mask_type m) { return hybrid_attention(open, m); }};
inline auto const rbf = recipe{"rbf", [](constants const&, mask_type m) { return rbf_attention(open, m); }};
inline auto const l2 = recipe{"l2", [](constants const&, mask_type m) { return l2_attention(open, m); }};
inline auto const scaled_rbf =
    recipe{"scaled_rbf", [](constants const&, mask_type m) { return scaled_rbf_attention(open, m); }};
inline auto const inverse_distance =
    recipe{"inverse_distance", [](constants const&, mask_type m) { return inverse_distance_attention(open, m); }};
inline auto const elliptical = recipe{"elliptical", [](constants const&, mask_type m) { return elliptical_attention({}, m); }};
inline auto const bilinear = recipe{"bilinear", [](constants const&, mask_type m) { return bilinear_attention({}, m); }};

// Positions, biases, caps.
inline auto const biased = recipe{"biased", [](constants const&, mask_type m) { return biased_attention(m); }};
inline auto const alibi = recipe{"alibi", [](constants const&, mask_type m) { return alibi_attention(open, m); }};
inline auto const relative_bias =
    recipe{"relative_bias", [](constants const&, mask_type m) { return relative_bias_attention({}, m); }};
inline auto const smca = recipe{"smca", [](constants const&, mask_type m) { return smca_attention(open, m); }};
inline auto const t5 = recipe{"t5", [](constants const& c, mask_type m) {
                                return t5_attention({{}, int(c("max_distance", 128)), c("bidirectional", 1) != 0}, m);
                              }};
inline auto const tupe = recipe{"tupe", [](constants const&, mask_type m) { return tupe_attention(m); }};
inline auto const transformer_xl =
    recipe{"transformer_xl", [](constants const&, mask_type m) { return transformer_xl_attention({}, {}, {}, m); }};
inline auto const goat = recipe{"goat", [](constants const&, mask_type m) { return goat_attention(open, m); }};
inline auto const goat_fourier =
    recipe{"goat_fourier", [](constants const&, mask_type m) { return goat_fourier_attention(open, {}, m); }};
inline auto const softcap = recipe{"softcap", [](constants const&, mask_type m) { return softcap_attention(open, m); }};

// Other weights.
inline auto const gaussian = recipe{"gaussian", [](constants const&, mask_type m) { return gaussian_attention(open, m); }};
inline auto const sliced_relu_sum =
    recipe{"sliced_relu_sum", [](constants const&, mask_type m) { return sliced_relu_attention<sliced_relu_form::sum>(m); }};
inline auto const sliced_relu_mean =
    recipe{"sliced_relu_mean", [](constants const&, mask_type m) { return sliced_relu_attention<sliced_relu_form::mean>(m); }};
inline auto const sliced_relu_centered = recipe{
    "sliced_relu_centered", [](constants const&, mask_type m) { return sliced_relu_attention<sliced_relu_form::centered>(m); }};
inline auto const sliced_relu_normalized = recipe{"sliced_relu_normalized", [](constants const&, mask_type m) {
                                                    return sliced_relu_attention<sliced_relu_form::normalized>(m);
                                                  }};
inline auto const sigmoid = recipe{"sigmoid", [](constants const&, mask_type m) { return sigmoid_attention(open, m); }};
inline auto const sparsemax = recipe{"sparsemax", [](constants const&, mask_type m) { return sparsemax_attention(m); }};
inline auto const entmax = recipe{"entmax", [](constants const&, mask_type m) { return entmax_attention(open, m); }};
inline auto const entmax15 = recipe{"entmax15", [](constants const&, mask_type m) { return entmax15_attention(m); }};
inline auto const top_k = recipe{"top_k", [](constants const& c, mask_type m) { return top_k_attention(c("k", 8), m); }};
inline auto const self_adjusted =
    recipe{"self_adjusted", [](constants const&, mask_type m) { return self_adjusted_attention(m); }};
inline auto const self_adjusted_product = recipe{
    "self_adjusted_product", [](constants const&, mask_type m) { return self_adjusted_attention<adjusted_form::product>(m); }};
inline auto const self_adjusted_full_range = recipe{"self_adjusted_full_range", [](constants const&, mask_type m) {
                                                      return self_adjusted_attention<adjusted_form::full_range>(m);
                                                    }};

}  // namespace recipes

/// The recipe's operator with the parameters and tables of `set` at their paths: set(path, parameter&), set(path, table&).
template <class Make, class SetParameter, class SetTable>
auto cooked(recipe<Make> const& from, constants const& c, aligned_mask const& m, SetParameter const& parameter_of,
            SetTable const& table_of) {
  auto op = from.make(c, m);
  // the lists show members of `op`, which is no constant: to write through them is what it is for here.
  for (operator_parameter const& p : listed_parameters(op)) parameter_of(p.path(), p, const_cast<parameter&>(*p.at));
  for (operator_table const& x : listed_tables(op)) table_of(x.path(), x, const_cast<table&>(*x.at));
  return op;
}

}  // namespace attune::tool
