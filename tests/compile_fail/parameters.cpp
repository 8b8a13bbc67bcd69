// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Parameters and tables that a policy lists.
#include "policies.hpp"

template <class T>
struct slope_of_position {
  T score(key<T> const& k) const { return k.position; }
};

// expect-error unlisted_parameter: a policy has room for a parameter that parameters\(\) does not list
struct mine : kernel_of<slope_of_position, contraction::none> {
  parameter rate = 1, other = 2;
  static constexpr auto parameters() { return std::array{listed("rate", &mine::rate)}; }
};
auto op = attention(mine{});

// expect-error unlisted_parameters: a policy with members must list its parameters
struct mine : normalizer_of<normalizer::softmax::bound> {
  parameter strength = 1;
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error member_listed_twice: lists a member or a name twice
struct mine : kernel_of<slope_of_position, contraction::none> {
  parameter rate, slope;
  static constexpr auto parameters() { return std::array{listed("rate", &mine::rate), listed("slope", &mine::rate)}; }
};
auto op = attention(kernel::dot_product{} + mine{});

// expect-error name_listed_twice: lists a member or a name twice
struct mine : kernel_of<slope_of_position, contraction::none> {
  parameter rate, slope;
  static constexpr auto parameters() { return std::array{listed("rate", &mine::rate), listed("rate", &mine::slope)}; }
};
auto op = attention(kernel::dot_product{} + mine{});

// expect-error unlisted_table: has room for a parameter that parameters\(\) does not list
struct mine : kernel_of<score_of_one, contraction::metric_dot> {
  table metric, other;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("metric", &mine::metric, table_width::query)}; }
};
auto op = attention(mine{});

// expect-error entries_in_normalizer: only kernels, score maps, length scales and score gates may read tables in bind
template <class T>
struct bound {
  table_entries<T> w;
  T earned(T const& a, T const&) const { return a * w[0]; }
};
struct mine : with_entries<policy_role::normalizer, bound> {
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error entries_with_row_constant: a length scale with a row_constant reads no table in bind
template <class T>
struct bound {
  table_entries<T> w;
  T scale(T const& s) const { return s; }
  T row_constant() const { return w[0]; }
};
struct mine : with_entries<policy_role::length_scale, bound> {
  static constexpr length_scale_traits traits{.row_constant = true};
};
auto op = attention(kernel::dot_product{}, mine{});
