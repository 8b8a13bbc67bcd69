// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_PAIRS_CHOICES(CHOICE)     calls CHOICE(name, expression) for every policy that rows of the design are made of
//
// At least one policy for each contraction, each hook and each trait. `c` is the drawn call. Parameters and tables that
// the expression leaves out are drawn (row.hpp). Rows leave out what begins with no_. If the program `pairs` says that no choice has a contraction or an
// input, add a line here.
#pragma once

#include <tuple>

#include <attune/policies.hpp>

#include "../support/contraction_lists.hpp"
#include "../support/cope.hpp"
#include "../support/factor_of_sums.hpp"
#include "../support/fire.hpp"
#include "../support/own_contractions.hpp"
#include "../support/per_key.hpp"
#include "../support/stick_breaking.hpp"
#include "../support/weight_gates.hpp"
#include "drawn_call.hpp"

namespace attune::pairs {

/// -c sum |q - k|, of the kind a user writes.
struct absolute_difference {
  template <class T>
  ATTUNE_HD static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
/// A bias by the pair, in a table of 31 rows.
struct hashed_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &hashed_bias::values, table_width::one)}; }
  ATTUNE_HD index_t index(index_t i, index_t j) const { return ((3 * i + 5 * j) % 31 + 31) % 31; }
  template <class T>
  ATTUNE_HD kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
/// sum_d q_d r_d with a row r of features by the pair.
struct term_by_pair
    : contraction::sum_of<contraction::of_query<field::q>, contraction::by_pair<contraction::tables::values>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& r, S const&, S const&) {
    return q * r;
  }
};
struct features_by_pair : hashed_bias {
  using contraction = term_by_pair;
  static constexpr auto tables() { return std::array{listed("values", &hashed_bias::values, table_width::query)}; }
};
/// Every trait of a mass that is relative to the running maximum.
struct crowded_softmax {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .ground_mass = true, .constant_mass = true, .ground_value = true, .weight_factor = true, .uniform_share = true};
  parameter gamma = -0.3, sink = 0.2, rate = 0.5;
  static constexpr auto parameters() {
    return std::array{listed("gamma", &crowded_softmax::gamma), listed("sink", &crowded_softmax::sink),
                      listed("rate", &crowded_softmax::rate)};
  }
  template <class T>
  struct bound {
    T gamma, sink, rate;
    ATTUNE_HD T earned(T const& a, T const& m) const { return math::exp(T(a - m)); }
    ATTUNE_HD T ground(T const& a, T const& m) const {
      return math::larger(T(math::exp(T(gamma - m)) - math::exp(T(a - m))), T(0));
    }
    ATTUNE_HD T constant(T const& m) const { return math::exp(T(sink - m)); }
    ATTUNE_HD T lowest_reference() const { return math::larger(gamma, sink); }
    ATTUNE_HD T weight_factor() const { return T(1) + T(0.25) * rate; }
    ATTUNE_HD T uniform_share(T const&, T const& visible) const { return rate / (T(1) + visible); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(gamma) - r.logit_shift, r(sink) - r.logit_shift, r(rate)};
  }
};
/// Divided by K, with a factor, a share and a ground: masses as they are.
struct counted_softplus {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::count, .reference = mass_reference::none, .weight_factor = true, .uniform_share = true};
  parameter rate = 0.5;
  static constexpr auto parameters() { return std::array{listed("rate", &counted_softplus::rate)}; }
  template <class T>
  struct bound {
    T rate;
    ATTUNE_HD T earned(T const& a, T const&) const { return math::softplus(a); }
    ATTUNE_HD T weight_factor(T const& earned, T const& visible) const { return T(1) + rate * earned / visible; }
    ATTUNE_HD T uniform_share(T const& earned, T const& visible) const {
      return T(0.25) * earned / ((T(1) + visible) * (T(1) + visible));
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate)};
  }
};
/// 1 / (1 + (rate n)^2) for keys at the distance n: a weight gate that reads positions alone.
struct distance_decay {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::none;
  parameter rate = 0.1;
  static constexpr auto parameters() { return std::array{listed("rate", &distance_decay::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    ATTUNE_HD T factor(key<T> const& k) const {
      T const x = rate * (position - k.position);
      return T(1) / (T(1) + x * x);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};
/// Every third pair is hidden.
struct two_of_three {
  ATTUNE_HD constexpr bool operator()(mask_row const& r, index_t j) const {
    return ((r.position + j + r.batch) % 3 + 3) % 3 != 1;
  }
};
struct near_keys {
  ATTUNE_HD constexpr key_interval operator()(mask_row const& r, index_t) const {
    return {r.position - 6 < 0 ? 0 : r.position - 6, r.position + 4};
  }
};
struct near_two_of_three {
  ATTUNE_HD constexpr bool operator()(mask_row const& r, index_t j) const {
    return two_of_three{}(r, j) && j >= r.position - 6 && j < r.position + 4;
  }
};

using attune::contraction::dot;
using attune::contraction::earlier_sum;
using attune::contraction::earlier_sum_with_own;
using attune::contraction::later_sum;
using normalizer::adjusted_ends;
using normalizer::adjusted_form;

inline mask::padding drawn_lengths(drawn_call& c) { return mask::padding(c.integers(c.batch, 0, c.keys)); }
inline mask::block_sparse drawn_blocks(drawn_call& c) {
  return {c.blocks((c.queries + 2) / 3 * ((c.keys + 4) / 5)), 3, 5};
}

// clang-format off: a line, a policy
#define ATTUNE_PAIRS_CHOICES(CHOICE) \
  CHOICE(dot_product, kernel::dot_product{}) \
  CHOICE(alibi, kernel::alibi{}) \
  CHOICE(l2, kernel::l2{}) \
  CHOICE(bilinear, kernel::bilinear{}) \
  CHOICE(elliptical, kernel::elliptical{}) \
  CHOICE(elementwise, kernel::elementwise<absolute_difference>{}) \
  CHOICE(transformer_xl, kernel::transformer_xl(table{}, table{}, table{})) \
  CHOICE(rotary, (kernel::rotary{c.angles(), c.layout(), c.stored_keys()})) \
  CHOICE(tupe, kernel::tupe()) \
  CHOICE(scalar_sort, kernel::scalar_sort{}) \
  CHOICE(spatial_prior, kernel::spatial_prior{}) \
  CHOICE(relative_bias, kernel::relative_bias{}) \
  CHOICE(bias_by_pair, hashed_bias{}) \
  CHOICE(learned_keys, test::learned_keys{}) \
  CHOICE(warped, test::warped_kernel{}) \
  CHOICE(fading, test::tableless_kernel<test::own::fading>{}) \
  CHOICE(gatv2, test::gatv2{}) \
  CHOICE(by_pair, features_by_pair{}) \
  CHOICE(cauchy, test::cauchy_kernel{}) \
  CHOICE(fourier_prior, kernel::fourier_prior{}) \
  CHOICE(bias, kernel::bias{}) \
  CHOICE(key_bias, kernel::key_bias{}) \
  CHOICE(given_scores, kernel::given_scores{}) \
  CHOICE(stick_breaking, test::stick_breaking{}) \
  CHOICE(later_count, (test::counted_distance<later_sum<dot, test::sigmoid_of>>{})) \
  CHOICE(earlier_count, (test::counted_distance<earlier_sum<dot, test::sigmoid_of>>{})) \
  CHOICE(earlier_count_with_own, (test::counted_distance<earlier_sum_with_own<dot, test::sigmoid_of>>{})) \
  CHOICE(cope, test::cope{}) \
  CHOICE(fire, test::fire{c.drawn_table(3, test::fire::width)}) \
  CHOICE(softcap, kernel::softcap{}) \
  CHOICE(bent_map, test::bent{c.drawn_table(1, 2)}) \
  CHOICE(no_length_scale, length_scale::none{}) \
  CHOICE(margin, length_scale::margin{}) \
  CHOICE(ssmax, length_scale::ssmax{}) \
  CHOICE(no_score_gate, gate::none{}) \
  CHOICE(softplus_gate, gate::softplus{}) \
  CHOICE(given_gate, gate::given_softplus{}) \
  CHOICE(decay_gate, test::decay_gate{}) \
  CHOICE(no_weight_gate, gate::no_weight_factor{}) \
  CHOICE(dropout, (gate::dropout{.rate = 0.3, .seed = 7})) \
  CHOICE(weight_decay, distance_decay{}) \
  CHOICE(weight_sigmoid, test::weight_sigmoid{}) \
  CHOICE(softmax, normalizer::softmax{}) \
  CHOICE(crowded, crowded_softmax{}) \
  CHOICE(crowded_unshifted, test::crowded_sum{}) \
  CHOICE(counted, counted_softplus{}) \
  CHOICE(retention, test::retention_sum{}) \
  CHOICE(grounded, normalizer::grounded{}) \
  CHOICE(sparsemax, normalizer::sparsemax{}) \
  CHOICE(top_3, normalizer::top_k{3}) \
  CHOICE(adjusted, normalizer::self_adjusted<adjusted_form::with_zero>{}) \
  CHOICE(adjusted_detached, (normalizer::self_adjusted<adjusted_form::with_zero, adjusted_ends::detached>{})) \
  CHOICE(no_value_gate, gate::no_value_factor{}) \
  CHOICE(value_sigmoid, gate::sigmoid_value{}) \
  CHOICE(no_value_term, value_term::none{}) \
  CHOICE(relative_values, value_term::relative{c.drawn_table(5, c.value_width)}) \
  CHOICE(no_output_gate, gate::no_output_factor{}) \
  CHOICE(output_sigmoid, gate::sigmoid_output{}) \
  CHOICE(causal, mask::causal{}) \
  CHOICE(lengths, drawn_lengths(c)) \
  CHOICE(sink_window, (mask::sink_window{2, 5})) \
  CHOICE(blocks, drawn_blocks(c)) \
  CHOICE(predicate, mask::predicate{two_of_three{}}) \
  CHOICE(bounded_predicate, (mask::bounded_predicate{near_two_of_three{}, near_keys{}})) \
  CHOICE(causal_lengths, mask::causal{} & drawn_lengths(c)) \
  CHOICE(causal_or_lengths, mask::causal{} | drawn_lengths(c))
// clang-format on

namespace choice {
#define ATTUNE_PAIRS_CHOICE(name, ...)                 \
  struct name {                                        \
    static auto make([[maybe_unused]] drawn_call& c) { \
      using namespace attune::pairs;                   \
      return __VA_ARGS__;                              \
    }                                                  \
    static constexpr char const* text = #name;         \
  };
ATTUNE_PAIRS_CHOICES(ATTUNE_PAIRS_CHOICE)
#undef ATTUNE_PAIRS_CHOICE
}  // namespace choice

template <class Choice>
using policy_of = decltype(Choice::make(std::declval<drawn_call&>()));

}  // namespace attune::pairs
