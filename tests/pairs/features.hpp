// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   features_of<Policy>()  ==  {"contraction rotary_dot", "input k", "input q", "parameters"}
//
// What a policy is made of, read from its traits and its contractions: inputs, contractions, hooks, families of rows,
// forms of masks. A trait that is new is a compile error here until it has a name.
#pragma once

#include <set>
#include <string>
#include <typeinfo>

#include <attune/core/type_name.hpp>
#include <attune/policies.hpp>

namespace attune::pairs {

using names = std::set<std::string>;

/// How a term reads a table.
constexpr char const* name_of_place(contraction::table_place place) {
  switch (place) {
    case contraction::table_place::column:
      return " by feature";
    case contraction::table_place::row:
      return " by term";
    case contraction::table_place::of_distance:
      return " by distance";
    case contraction::table_place::of_pair:
      return " by pair";
    case contraction::table_place::of_key:
      return " by key";
  }
  return "";
}
template <class Operand>
std::string name_of_table() {
  if constexpr (Operand::side == contraction::operand_side::table)
    return name_of_place(Operand::place);
  else
    return "";
}
/// The name of a contraction: as in policies/contraction.hpp, or "own term", with the tables that the term reads.
template <class C>
std::string name_of_contraction() {
  if constexpr (contraction::is_interpolated<C>) {
    return "interpolated";
  } else if constexpr (contraction::is_ordered<C>) {
    return std::string(C::order == contraction::key_order::later ? "later" : "earlier") + "_sum" +
           (C::own == contraction::own_key::included ? "_with_own" : "");
  } else {
    std::string const all = attune::detail::readable_name(typeid(C)), prefix = "attune::contraction::";
    if (all.starts_with(prefix))
      return all.substr(prefix.size(), all.find('<') == std::string::npos ? all.npos : all.find('<') - prefix.size());
    if constexpr (requires { typename C::x; })
      return "own term" + name_of_table<typename C::x>() + name_of_table<typename C::y>() +
             name_of_table<typename C::z>();
    else
      return all;
  }
}

namespace detail {

template <class C>
void add_contraction(names& to) {
  to.insert("contraction " + name_of_contraction<C>());
  for_each_field([&]<field F>() {
    if (C::uses(F)) to.insert(std::string("input ") + name_of(F));
  });
}
template <class... C>
void add_contractions(names& to, contraction::list<C...>) {
  (detail::add_contraction<C>(to), ...);
}

template <class Policy>
void add_lists(names& to) {
  if constexpr (std::tuple_size_v<decltype(parameters_of<Policy>())> != 0) to.insert("parameters");
  if constexpr (std::tuple_size_v<decltype(tables_of<Policy>())> != 0) to.insert("tables");
  if constexpr (ReadsEntries<Policy>) to.insert("tables in bind");
}
/// The parts of a kernel.
template <class K>
void add_parts(names& to) {
  if constexpr (attune::detail::is_sum<K>) {
    add_parts<decltype(K::first)>(to);
    add_parts<decltype(K::second)>(to);
  } else if constexpr (attune::detail::is_mapped<K>) {
    add_parts<decltype(K::inner)>(to);
    add_lists<decltype(K::map)>(to);
    to.insert("score map");
  } else {
    add_lists<K>(to);
    if constexpr (contraction::named_by<K>::size == 0) to.insert("contraction none");
  }
}

inline void add_traits(names& to, normalizer_traits const& traits) {
  auto const [family, divided_by, reference, ground_mass, constant_mass, ground_value, weight_factor, uniform_share,
              detached_ends, threshold] = traits;
  auto const add_if = [&](bool has, char const* name) {
    if (has) to.insert(name);
  };
  switch (family) {
    case row_family::masses:
      to.insert("masses");
      break;
    case row_family::range_weighted:
      to.insert("range-weighted masses");
      break;
    case row_family::sparse_support:
      to.insert("candidate sets");
      break;
  }
  switch (divided_by) {
    case divisor::sum:
      add_if(family == row_family::masses, "masses divided by their sum");
      break;
    case divisor::one:
      to.insert("masses divided by 1");
      break;
    case divisor::count:
      to.insert("masses divided by K");
      break;
  }
  add_if(reference == mass_reference::none, "masses as they are");
  add_if(family == row_family::masses && reference != mass_reference::none, "masses relative to the largest logit");
  add_if(family == row_family::masses && !ground_mass && !constant_mass && !weight_factor && !uniform_share,
         "plain masses");
  add_if(ground_mass, "ground mass");
  add_if(constant_mass, "constant mass");
  add_if(ground_value, "ground value");
  add_if(ground_value, "input v0");
  add_if(weight_factor, "weight factor");
  add_if(uniform_share, "uniform share");
  add_if(detached_ends, "detached ends");
  add_if(family == row_family::range_weighted && !detached_ends, "ends that move");
  add_if(threshold == threshold_rule::sum, "threshold of a sum");
  add_if(threshold == threshold_rule::selection, "threshold that selects");
}

}  // namespace detail

/// The features of a policy. That an operator has no gate and no length scale is a feature too: executors have faster
/// code for it.
template <class P>
names features_of() {
  names to;
  if constexpr (P::role == policy_role::kernel) {
    using contractions = typename kernel::evaluation<P>::contractions;
    detail::add_parts<P>(to);
    detail::add_contractions(to, contractions{});
  } else if constexpr (P::role == policy_role::score_map) {
    detail::add_lists<P>(to);
    to.insert("score map");
  } else if constexpr (P::role == policy_role::length_scale) {
    detail::add_lists<P>(to);
    auto const [row_constant] = P::traits;
    to.insert(std::is_same_v<P, length_scale::none> ? "no length scale"
              : row_constant                        ? "length scale with a row constant"
                                                    : "length scale");
  } else if constexpr (P::role == policy_role::gate) {
    detail::add_lists<P>(to);
    detail::add_contractions(to, contraction::named_by<P>{});
    to.insert(std::is_same_v<P, gate::none> ? "no score gate" : "score gate");
  } else if constexpr (P::role == policy_role::weight_gate) {
    detail::add_lists<P>(to);
    if constexpr (std::is_same_v<P, gate::no_weight_factor>) {
      to.insert("no weight gate");
    } else {
      detail::add_contraction<typename P::contraction>(to);
      to.insert("weight gate");
    }
  } else if constexpr (P::role == policy_role::value_gate) {
    if constexpr (std::is_same_v<P, gate::no_value_factor>)
      to.insert("no value gate");
    else
      to.insert({"value gate", "input value_gate"});
  } else if constexpr (P::role == policy_role::value_term) {
    detail::add_lists<P>(to);
    to.insert(std::is_same_v<P, value_term::none> ? "no value term" : "value term");
  } else if constexpr (P::role == policy_role::output_gate) {
    if constexpr (std::is_same_v<P, gate::no_output_factor>)
      to.insert("no output gate");
    else
      to.insert({"output gate", "input output_gate"});
  } else if constexpr (P::role == policy_role::normalizer) {
    detail::add_lists<P>(to);
    detail::add_traits(to, P::traits);
    if constexpr (OffersWeightFactorOfSums<P>) to.insert("weight factor of sums");
  } else {
    static_assert(P::role == policy_role::mask);
    switch (P::form) {
      case mask_form::interval:
        to.insert("mask of an interval");
        break;
      case mask_form::intervals:
        to.insert("mask of intervals");
        break;
      case mask_form::predicate:
        to.insert("mask by a predicate");
        break;
    }
    if constexpr (BoundsKeys<P>) to.insert("mask with bounds");
    if constexpr (ChecksShape<P>) to.insert("mask over arrays");
  }
  return to;
}

/// The features of an operator.
template <class Op>
names features_of_operator() {
  names to{"input v"};
  for (names const& some :
       {features_of<typename Op::kernel_policy>(), features_of<typename Op::length_scale_policy>(),
        features_of<typename Op::gate_policy>(), features_of<typename Op::weight_gate_policy>(),
        features_of<typename Op::normalizer_policy>(), features_of<typename Op::value_gate_policy>(),
        features_of<typename Op::value_term_policy>(), features_of<typename Op::output_gate_policy>(),
        features_of<typename Op::mask_policy>()})
    to.insert(some.begin(), some.end());
  return to;
}

}  // namespace attune::pairs
