// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Kernels and gates by what they contract, lists of contractions, contractions of one's own.
#include "policies.hpp"

template <class Table>
struct waves : contraction::sum_of<contraction::of_query<field::q>, Table> {
  template <class S>
  static S term(S const& q, S const& w, S const&, S const& n) {
    return q * math::cos(S(w * n));
  }
};

// expect-error kernel_without_contraction: KernelPolicy: name what it needs: using contraction
auto op = attention(policy_of<policy_role::kernel, score_of_one>{});

// expect-error wrong_score_signature: must return an object with T score\(T const& contraction
template <class T>
struct bound {
  T score(T const& x) const { return x; }
};
auto op = attention(kernel_of<bound, contraction::dot>{});

// expect-error elementwise_without_pair: static T pair\(T const& q, T const& k\)
struct city_block {
  template <class T>
  static T between(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
auto op = attention(kernel::elementwise<city_block>{});

// expect-error gathered_without_index: contraction::gathered: the policy needs attune::table values
auto op = attention(kernel_of<score_of_one, contraction::gathered>{});

// expect-error gathered_by_pair_without_index: contraction::gathered_by_pair: the policy needs attune::table values
auto op = attention(kernel_of<score_of_one, contraction::gathered_by_pair>{});

// expect-error gathered_by_pair_of_distance: index\(attune::index_t i, attune::index_t j\) const, the row of values for a query at position i and key j
struct rows : kernel_of<score_of_one, contraction::gathered_by_pair> {
  table values;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &rows::values, table_width::one)}; }
  index_t index(index_t distance) const { return distance; }
};
auto op = attention(rows{});

// expect-error rotary_without_angles: contraction::rotary_dot: the policy needs attune::rotary_rows angles
auto op = attention(kernel_of<score_of_one, contraction::rotary_dot>{});

// expect-no-error rotary
struct turned : kernel_of<score_of_one, contraction::rotary_dot> {
  rotary_rows angles;
  rotary_layout layout = rotary_layout::half;
  rotary_keys keys = rotary_keys::plain;
  static constexpr std::size_t constants = sizeof(rotary_rows) + sizeof(rotary_layout) + sizeof(rotary_keys);
  static constexpr auto parameters() { return std::tuple<>{}; }
};
auto op = attention(turned{});

// expect-error list_beside_contraction: a policy names either contraction or contractions
struct mine : kernel_of<score_of_one, contraction::dot> {
  using contractions = attune::contraction::list<attune::contraction::dot>;
};
auto op = attention(mine{});

// expect-error list_branch_on_score: comparison_of_scores_is_not_a_bool_use_math_select
template <class T>
struct bound {
  T score(T const& x, T const& y, key<T> const&) const { return x > y ? x : y; }
};
auto op = attention(kernel_of_list<bound, contraction::dot, contraction::scalar_difference>{});

// expect-error list_of_unknown: has an entry that is no contraction
struct unknown {};
auto op = attention(kernel_of_list<score_of_two, contraction::dot, unknown>{});

// expect-error list_score_of_too_few: KernelPolicy with a list of contractions: bind\(row\) must return an object with T score\(T const& x, T const& y
auto op = attention(kernel_of_list<score_of_one, contraction::dot, contraction::scalar_difference>{});

// expect-error list_score_of_too_many: KernelPolicy with a list of contractions: bind\(row\) must return an object with T score\(T const& x, T const& y
auto op = attention(kernel_of_list<score_of_three, contraction::dot, contraction::scalar_difference>{});

// expect-error list_that_is_none: contractions of a policy is no list
struct mine : policy_of<policy_role::kernel, score_of_one> {
  using contractions = contraction::dot;
};
auto op = attention(mine{});

// expect-error list_without_table: the contraction of this policy reads tables
auto op = attention(kernel_of_list<score_of_two, contraction::dot, contraction::metric_dot>{});

// expect-error pairs_beside_terms: none of these is a companion of by_term
struct mixed : contraction::sum_of<contraction::by_term<contraction::tables::cosine>,
                                   contraction::by_pair<contraction::tables::values>> {};
static_assert(mixed::operands == 2);

// expect-error terms_beside_inputs: contraction::by_term stands with other tables alone
bool reads = waves<contraction::by_term<contraction::tables::frequency>>::uses(field::q);

// expect-error value_as_operand: values and their gates are no operands of a contraction
struct product_with_value
    : contraction::product<contraction::plain_left, contraction::of_query<field::q>, contraction::of_key<field::v>> {};
bool reads = product_with_value::uses(field::v);

// expect-no-error own_contraction
using by_feature = waves<contraction::by_feature<contraction::tables::frequency>>;
struct product_with_key
    : contraction::product<contraction::plain_left, contraction::of_query<field::q>, contraction::of_key<field::k>> {};
bool reads = by_feature::uses(field::q) && product_with_key::uses(field::k);

// expect-no-error places
// Rows of pairs, bounds of predicates, and offsets.
#include <attune/attune.hpp>
struct rows : kernel_of<score_of_one, contraction::gathered_by_pair> {
  table values;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &rows::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const { return i + j; }
};
struct both : contraction::sum_of<contraction::by_feature<contraction::tables::metric>,
                                  contraction::by_pair<contraction::tables::values>> {};
static_assert(both::operands == 2);
struct mine : mask_of<mask_form::predicate> {
  static constexpr bool bounds_keys = true;
  bool visible(mask_row const&, index_t) const { return true; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};
auto op = attention(rows{}, mine{});
void call(tensor<float const> Q, tensor<float const> K, tensor<float const> V, tensor<float> O) {
  auto const causal = attention(kernel::dot_product{}, mask::causal{});
  // [snippet: offsets]
  std::vector<index_t> const offsets{4095, 17, 1023};  // the position of query 0 in each of 3 batch elements
  decode(cpu{}, causal, {.q = Q, .k = K, .v = V, .offsets = offsets}, {.out = O});
  // [/snippet]
}
