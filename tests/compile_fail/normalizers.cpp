// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Normalizers and length scales: their hooks and what their traits declare.
#include <cmath>

#include <attune/exec/thrust/device_ready.hpp>

#include "policies.hpp"

template <class T>
struct masses {
  T earned(T const& a, T const& m) const { return a - m; }
};
template <class T>
struct factor_of_sums {
  T earned(T const& a, T const&) const { return a; }
  T weight_factor(T const& earned, T const&) const { return earned; }
};
template <class T>
struct search {
  template <class Column>
  candidate_threshold<T> solve(Column&) const {
    return {};
  }
  T reported(candidate_threshold<T> const& at) const { return at.level; }
};

// expect-error misspelled_earned: must return an object with T earned\(T const& logit, T const& reference\) const
template <class T>
struct bound {
  T earnd(T const& a, T const& m) const { return a - m; }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound>{});

// expect-error branch_on_score: comparison_of_scores_is_not_a_bool_use_math_select
template <class T>
struct bound {
  T earned(T const& a, T const&) const { return a > T(0) ? a : T(0); }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound, traits{.reference = mass_reference::none}>{});

// expect-error if_on_score: comparison_of_scores_is_not_a_bool_use_math_select
// [snippet: if_on_score]
struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const {
      if (a > T(0)) return a;
      return T(0);
    }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = attention(kernel::dot_product{}, mine{});
// [/snippet]

// expect-error function_of_std: scalar_that_only_functions_of_math_take
template <class T>
struct bound {
  T earned(T const& a, T const&) const { return std::exp(a); }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound, traits{.reference = mass_reference::none}>{});

// expect-error declared_ground_missing: traits declare ground_mass but the bound object has no T ground
template <class T>
struct bound : masses<T> {
  T lowest_reference() const { return T(0); }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound, traits{.ground_mass = true}>{});

// expect-error undeclared_ground: has ground\(\) but traits do not declare it
template <class T>
struct bound : masses<T> {
  T ground(T const& a, T const& m) const { return a - m; }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound>{});

// expect-error undeclared_row_constant: has row_constant\(\) but traits do not declare it
template <class T>
struct bound {
  T scale(T const& s) const { return s; }
  T row_constant() const { return T(0); }
};
struct mine : policy_of<policy_role::length_scale, bound> {
  static constexpr length_scale_traits traits{};
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error declared_uniform_share_missing: uniform_share\(T const& earned, T const& visible\) const of the bound object belong together
auto op = attention(kernel::dot_product{}, normalizer_of<masses, traits{.uniform_share = true}>{});

// expect-error undeclared_uniform_share: uniform_share\(T const& earned, T const& visible\) const of the bound object belong together
template <class T>
struct bound : masses<T> {
  T uniform_share(T const& earned, T const&) const { return earned; }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound>{});

// expect-error declared_weight_factor_missing: weight_factor = true\} and T weight_factor\(\) const of the bound object belong together
auto op = attention(kernel::dot_product{}, normalizer_of<masses, traits{.weight_factor = true}>{});

// expect-error undeclared_weight_factor: weight_factor = true\} and T weight_factor\(\) const of the bound object belong together
template <class T>
struct bound : masses<T> {
  T weight_factor() const { return T(2); }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound>{});

// expect-error undeclared_weight_factor_of_sums: weight_factor = true\} and T weight_factor\(\) const of the bound object belong together
auto op = attention(kernel::dot_product{}, normalizer_of<factor_of_sums, traits{.reference = mass_reference::none}>{});

// expect-error two_weight_factors: the bound object has weight_factor\(\) and weight_factor\(earned, visible\)
template <class T>
struct bound {
  T earned(T const& a, T const&) const { return a; }
  T weight_factor() const { return T(2); }
  T weight_factor(T const& earned, T const&) const { return earned; }
};
constexpr traits declared{.reference = mass_reference::none, .weight_factor = true};
auto op = attention(kernel::dot_product{}, normalizer_of<bound, declared>{});

// expect-error weight_factor_of_relative_masses: weight_factor\(earned, visible\) needs the sum of the masses as they are
auto op = attention(kernel::dot_product{}, normalizer_of<factor_of_sums, traits{.weight_factor = true}>{});

// expect-error undivided_running_maximum: masses that are divided by nothing or by the count are held as they are
auto op = attention(kernel::dot_product{}, normalizer_of<sigmoid_of_logit, traits{.divided_by = divisor::one}>{});

// expect-error adjusted_without_ends: of family range_weighted: bind\(row\) must return an object with attune::adjustment<T> ends
auto op = attention(kernel::dot_product{}, normalizer_of<masses, traits{.family = row_family::range_weighted}>{});

// expect-error candidates_without_rule: say how the threshold comes about, for the gradient follows from it
template <class T>
struct bound : search<T> {
  T weight(candidate_threshold<T> const&, T const& a, key<T> const&) const { return math::larger(a, T(0)); }
};
auto op = attention(kernel::dot_product{}, normalizer_of<bound, traits{.family = row_family::sparse_support}>{});

// expect-error candidates_without_weight: of family sparse_support: bind\(row\) must return an object with attune::candidate_threshold<T> solve
constexpr traits declared{.family = row_family::sparse_support, .threshold = threshold_rule::sum};
auto op = attention(kernel::dot_product{}, normalizer_of<search, declared>{});

// expect-error owning_bound_on_device: on Thrust what bind\(row\) of the normalizer policy returns is copied byte by byte
template <class T>
struct bound {
  std::vector<T> levels;
  T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
};
static_assert(exec_thrust::require_device_ready<decltype(attention(kernel::dot_product{}, normalizer_of<bound>{}))>());

// expect-no-error bound_on_device
template <class T>
struct bound {
  T level[2];
  T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
};
static_assert(exec_thrust::require_device_ready<decltype(attention(kernel::dot_product{}, normalizer_of<bound>{}))>());
