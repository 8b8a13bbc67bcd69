// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What attention() puts together: roles, kernels added and mapped, two policies of one role.
#include "policies.hpp"

template <class T>
struct nothing {};

// expect-error no_role: a policy has no role\. Write in it: static constexpr auto role
struct mine {
  template <class T>
  int bind(row<T> const&) const {
    return 0;
  }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error no_bind: a policy must bind to a row: template <class T> bound<T> bind
struct mine {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error no_kernel: attention\(\) needs a KernelPolicy
auto op = attention(normalizer::softmax{});

// expect-error two_kernels: takes one KernelPolicy, two were given: add them
auto op = attention(kernel::dot_product{}, kernel::alibi{1});

// expect-error two_masks: takes one mask, two were given: combine them
auto op = attention(kernel::dot_product{}, mask::causal{}, mask::window{3});

// expect-error two_normalizers: takes one NormalizerPolicy, two were given
auto op = attention(kernel::dot_product{}, normalizer::softmax{}, normalizer::off_by_one{});

// expect-error two_output_gates: takes one output gate, two were given
auto op = attention(kernel::dot_product{}, gate::sigmoid_output{}, gate::sigmoid_output{});

// expect-error two_value_gates: takes one value gate, two were given
auto op = attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_value{});

// expect-error two_weight_gates: takes one weight gate, two were given
auto op = attention(kernel::dot_product{}, gate::dropout{}, gate::dropout{.rate = 0.2});

// expect-error cap_beside_kernel: a score map is applied to the kernel, not given beside it
auto op = attention(kernel::dot_product{}, kernel::softcap{30});

// expect-error incomplete_behind_bar: a score map: bind\(row\) must return an object with T map
auto op = kernel::dot_product{} | policy_of<policy_role::score_map, nothing>{};

// expect-error incomplete_behind_plus: KernelPolicy: bind\(row\) must return an object with T score
auto op = kernel::dot_product{} + kernel_of<nothing, contraction::none>{};

// expect-no-error variants
struct city_block {
  template <class T>
  static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
template <class T>
struct shared {
  T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
  T weight_factor() const { return T(2); }
  T uniform_share(T const& earned, T const& visible) const { return earned / visible; }
};
template <class T>
struct factor_of_sums {
  T earned(T const& a, T const&) const { return a; }
  T weight_factor(T const& earned, T const& visible) const { return earned / visible; }
};
template <class T>
struct first_key {
  template <class Column>
  candidate_threshold<T> solve(Column&) const {
    return {};
  }
  T weight(candidate_threshold<T> const&, T const&, key<T> const& k) const {
    return math::select(k.position < T(1), T(1), T(0));
  }
  T reported(candidate_threshold<T> const& at) const { return at.level; }
};
template <class T>
struct ranged {
  adjustment<T> ends(T const& lowest, T const& highest) const { return {lowest, highest}; }
};
template <class T>
struct larger_of_two {
  T score(T const& x, T const& y, key<T> const&) const { return math::larger(x, y); }
};
template <class T>
struct sum_of_two {
  T gate(T const& s, T const& x, T const& y) const { return s + x + y; }
};
template <class T>
struct times_entry {
  table_entries<T> w;
  T scale(T const& s) const { return s * w[0]; }
};
struct entries_in_length_scale : with_entries<policy_role::length_scale, times_entry> {
  static constexpr length_scale_traits traits{};
};
using two_contractions = kernel_of_list<larger_of_two, contraction::dot, contraction::scalar_difference>;
using gate_of_two = policy_of_list<policy_role::gate, sum_of_two, contraction::dot, contraction::scalar_difference>;
constexpr traits both{.weight_factor = true, .uniform_share = true};
constexpr traits of_sums{.reference = mass_reference::none, .weight_factor = true};
constexpr traits selection{.family = row_family::sparse_support, .threshold = threshold_rule::selection};
constexpr traits range{.family = row_family::range_weighted};
auto a = attention(kernel::elementwise<city_block>{}, gate::sigmoid_value{}, gate::sigmoid_output{},
                   normalizer_of<shared, both>{});
auto b = attention(kernel::dot_product{}, normalizer_of<factor_of_sums, of_sums>{});
auto c = attention(kernel::dot_product{}, normalizer_of<first_key, selection>{});
auto d = attention(kernel::dot_product{} + two_contractions{}, gate_of_two{}, entries_in_length_scale{});
auto e = attention(kernel::dot_product{}, normalizer_of<ranged, range>{});
int main() {
  call(scalar_sort_attention(1), {.v = x, .sort_q = x, .sort_k = x}, {.out = y});
  call(smca_attention(1), {.q = x, .k = x, .v = x, .center = x, .spread = x, .place = x}, {.out = y});
  call(tupe_attention(), {.q = x, .k = x, .v = x, .position_q = x, .position_k = x}, {.out = y});
  call(biased_attention(), {.q = x, .k = x, .v = x, .bias = x}, {.out = y, .lse = natural_lse(y)});
  call(attention(kernel::dot_product{} + kernel::key_bias{}), {.q = x, .k = x, .v = x, .key_bias = x}, {.out = y});
  call(value_gated_attention(), {.q = x, .k = x, .v = x, .value_gate = x}, {.out = y});
  call(gated_attention(), {.q = x, .k = x, .v = x, .output_gate = x}, {.out = y});
  call(sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y, .threshold = y});
}
