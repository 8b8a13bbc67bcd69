// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From a run-time problem to a compile-time operator's inputs and outputs and back, whatever the executor. What is a
// template on the operator is kept short: it is compiled for each.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/exec/gradients.hpp>
#include <attune/exec/problem.hpp>

#include "problem.hpp"
#include "recipes.hpp"

namespace attune::tool {
namespace detail {

template <class T>
tensor<T const> view(numbers const& x) {
  if constexpr (std::is_same_v<T, float>)
    return {x.floats.data(), x.extents};
  else
    return {x.doubles.data(), x.extents};
}

/// What an executor in T reads. The reference reads what is stored.
template <class T, class View>
View view_as(numbers const& x) {
  if constexpr (std::is_same_v<View, any_tensor>)
    if (x.doubles.empty()) return view<float>(x);
  return view<T>(x);
}

template <class T>
numbers stored(shape const& e, std::vector<T> const& values) {
  return {e, std::vector<double>(values.begin(), values.end()), {}};
}

/// The outputs of one call in memory.
template <class T>
struct output_memory {
  shape extents, rows;
  std::vector<T> out, lse, ground_weight, threshold;
  explicit output_memory(shape const& e)
      : extents(e), rows{e.batch, e.head, e.position, 1}, out(std::size_t(e.size())), lse(std::size_t(rows.size())),
        ground_weight(lse.size()), threshold(lse.size()) {}
  template <class Op>
  outputs<Op, T> views() {
    outputs<Op, T> o{.out = tensor<T>(out, extents)};
    if constexpr (Op::has_lse) o.lse = natural_lse<T>(tensor<T>(lse, rows));
    if constexpr (Op::has_ground_weight) o.ground_weight = tensor<T>(ground_weight, rows);
    if constexpr (Op::has_threshold) o.threshold = tensor<T>(threshold, rows);
    return o;
  }
  results named(bool has_lse, bool has_ground_weight, bool has_threshold) const {
    results r{{"out", stored(extents, out)}};
    if (has_lse) r.emplace("lse", stored(rows, lse));
    if (has_ground_weight) r.emplace("ground_weight", stored(rows, ground_weight));
    if (has_threshold) r.emplace("threshold", stored(rows, threshold));
    return r;
  }
};

template <class T>
results named(dense_gradients<T> const& g) {
  results r;
  for (int f = 0; f < int(field_count); ++f)
    if (auto const& x = g.of(field(f)); !x.values.empty()) r.emplace(name_of(field(f)), stored(x.extents, x.values));
  for (auto const& p : g.parameters)
    if (p.values.extents.size() > 0) r.emplace(p.path, stored(p.values.extents, p.values.values));
  for (auto const& t : g.tables) r.emplace(t.path, stored(t.values.extents, t.values.values));
  return r;
}

template <class T, class View, class Op>
inputs<Op, View> inputs_of(problem const& p) {
  return make_inputs<Op, View>([&]<field F>() { return view_as<T, View>(p.tensors.at(name_of(F))); }, p.offset,
                               p.offsets.empty() ? std::nullopt : std::optional(std::span<index_t const>(p.offsets)));
}

template <class T, class View, class Exec, class Op>
results run_on(Exec const& exec, Op const& op, problem const& p) {
  auto const in = inputs_of<T, View, Op>(p);
  output_memory<T> to(attune::detail::output_shape(in));
  forward(exec, op, in, to.template views<Op>());
  return to.named(Op::has_lse, Op::has_ground_weight, Op::has_threshold);
}

template <class T, class View, class Op>
cotangents<Op, View> cotangents_of(problem const& p) {
  cotangents<Op, View> d;
  auto const give = [&](char const* name, View& to) {
    if (auto const found = p.cotangents.find(name); found != p.cotangents.end()) to = view_as<T, View>(found->second);
  };
  give("out", d.out);
  if constexpr (Op::has_lse) give("lse", d.lse);
  if constexpr (Op::has_ground_weight) give("ground_weight", d.ground_weight);
  return d;
}

template <class T, class View, class Exec, class Op>
results gradient_on(Exec const& exec, Op const& op, problem const& p) {
  return named(vjp(exec, op, inputs_of<T, View, Op>(p), cotangents_of<T, View, Op>(p)));
}

template <class Recipe>
auto operator_of(Recipe const& from, problem const& p, aligned_mask const& mask) {
  return cooked(
      from, constants{&p.constants, nullptr, &p.arrays}, mask,
      [&](std::string const& path, auto const&, parameter& to) {
        if (auto const x = p.parameters.find(path); x != p.parameters.end()) to = view<double>(x->second);
      },
      [&](std::string const& path, auto const&, table& to) {
        if (auto const x = p.tables.find(path); x != p.tables.end()) to = view<double>(x->second);
      });
}
template <class Recipe>
auto operator_of(Recipe const& from, problem const& p) {
  return operator_of(from, p, {.right = p.mask.view});
}

}  // namespace detail

}  // namespace attune::tool

/// What generated sources make of a row of the catalogue (CMakeLists.txt).
#define ATTUNE_INSTANTIATE(name, ...) instantiate<recipes::name>(to);
