// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (operator_parameter const& p : listed_parameters(op)) ... *p.at, p.path() ...
//
// The parameters and tables of all policies of an operator, parts of composites included, in the order of the pipeline.
// There is one list per operator type. Its elements do not depend on the operator type, so code that uses them is
// compiled once, not once per policy.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <attune/operators/attention.hpp>

namespace attune {

/// A parameter of an operator, and what its policy declares about it.
struct operator_parameter {
  parameter const* at = nullptr;  ///< a member of the given operator, or of a part of it
  char const* name = "";          ///< "gamma"
  domain values = domain::real;   ///< the numbers that it may hold
  std::string policy;             ///< "normalizer.", "kernel.1." (terms of a composite)

  /// Tells equal names of several policies apart: "length_scale.gamma", "normalizer.gamma", "kernel.1.slope".
  std::string path() const { return policy + name; }
};

/// A table of an operator, and what its policy declares about it.
struct operator_table {
  table const* at = nullptr;               ///< a member of the given operator, or of a part of it
  char const* name = "";                   ///< "metric"
  table_width width = table_width::any;    ///< the number of features that its rows must have
  std::string policy;                      ///< "kernel.", "kernel.1." (terms of a composite)
  table_use use = table_use::contraction;  ///< who reads it

  /// Tells equal names of several policies apart: "kernel.metric".
  std::string path() const { return policy + name; }
};

namespace detail {

/// The number of parameters and tables of an operator or a policy.
template <class P>
struct count_of {
  static constexpr int parameters = int(std::tuple_size_v<decltype(parameters_of<P>())>);
  static constexpr int tables = int(std::tuple_size_v<decltype(tables_of<P>())>);
};
template <class... P>
struct count_of_all {
  static constexpr int parameters = (0 + ... + count_of<P>::parameters), tables = (0 + ... + count_of<P>::tables);
};
template <class A, class B>
struct count_of<kernel::sum<A, B>> : count_of_all<A, B> {};
template <class K, class M>
struct count_of<kernel::mapped<K, M>> : count_of_all<K, M> {};
template <class... P>
struct count_of<attention_operator<P...>> : attention_operator<P...>::template policies<count_of_all> {};

}  // namespace detail

/// The number of parameters of an operator.
template <class Op>
inline constexpr int parameter_count = detail::count_of<std::remove_const_t<Op>>::parameters;
/// The number of tables of an operator.
template <class Op>
inline constexpr int table_count = detail::count_of<std::remove_const_t<Op>>::tables;

namespace detail {

/// The path of a policy. Its text is made where somebody reads it: most policies list nothing.
struct policy_path {
  policy_path const* before = nullptr;
  char const* last = "";

  friend policy_path operator+(policy_path const& path, char const* part) { return {&path, part}; }
  std::string text() const { return before ? before->text() + last : last; }
};

/// The parameters and tables of all parts of an operator.
template <class Op>
struct listing {
  explicit listing(Op const& op) {
    std::size_t parameter = 0, table = 0;
    for_each_policy(op, policy_path{}, [&]<class P>(P const& policy, policy_path const& path) {
      std::apply(
          [&](auto const&... x) {
            ((parameters[parameter++] = {&(policy.*x.member), x.name, x.values, path.text()}), ...);
          },
          parameters_of<P>());
      std::apply(
          [&](auto const&... x) {
            ((tables[table++] = {&(policy.*x.member), x.name, x.width, path.text(), x.use}), ...);
          },
          tables_of<P>());
    });
  }
  std::array<operator_parameter, std::size_t(parameter_count<Op>)> parameters;
  std::array<operator_table, std::size_t(table_count<Op>)> tables;
};

/// Whether a name ("gamma" or "normalizer.gamma") means the parameter at `path`: the name is the path, or the end of
/// the path after a dot.
inline bool is_called(std::string const& path, std::string const& name) {
  return path.ends_with(name) && (path.size() == name.size() || path[path.size() - name.size() - 1] == '.');
}

}  // namespace detail

/// The parameters of an operator, as a std::array. The elements point into the operator, which must
/// outlive the list.
template <class Op>
auto listed_parameters(Op const& op) {
  return detail::listing<Op>(op).parameters;
}
/// The same for its tables.
template <class Op>
auto listed_tables(Op const& op) {
  return detail::listing<Op>(op).tables;
}
template <class Op>
auto listed_parameters(Op const&&) = delete;  // the addresses would dangle
template <class Op>
auto listed_tables(Op const&&) = delete;

}  // namespace attune
