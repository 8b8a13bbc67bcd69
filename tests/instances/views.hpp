// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The inputs, outputs and gradients of an operator as views of a run-time problem, and back: the same for every
// executor.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/gradients.hpp>

#include "source.hpp"

namespace attune::instances::detail {

template <class Op, class View, class T>
inputs<Op, View> view_inputs(loaded<T> const& from, problem const& p) {
  return make_inputs<Op, View>([&]<field F>() { return View(from.at(name_of(F))); }, p.offset);
}

/// The outputs of an operator in memory.
template <class Op, class T>
struct results {
  storage<T> out, lse, ground_weight, threshold;
  results(shape const& s, bool odd)
      : out(s, odd, 0), lse({s.batch, s.head, s.position, 1}, odd, 1),
        ground_weight({s.batch, s.head, s.position, 1}, odd, 2), threshold({s.batch, s.head, s.position, 1}, odd, 3) {}
  outputs<Op, T> views() {
    outputs<Op, T> o{.out = out.view()};
    if constexpr (Op::has_lse) o.lse = natural_lse<T>(lse.view());
    if constexpr (Op::has_ground_weight) o.ground_weight = ground_weight.view();
    if constexpr (Op::has_threshold) o.threshold = threshold.view();
    return o;
  }
  result dense() const {
    result r;
    r.out = out.dense();
    if constexpr (Op::has_lse) r.lse = lse.dense();
    if constexpr (Op::has_ground_weight) r.ground_weight = ground_weight.dense();
    if constexpr (Op::has_threshold) r.threshold = threshold.dense();
    return r;
  }
};

/// Calls visit(parameter) for each moving average among the parameters of an operator.
template <class Op, class Visit>
void for_each_average(Op const& op, Visit const& visit) {
  for (operator_parameter const& p : listed_parameters(op))
    if (p.at->is_average()) visit(*p.at);
}
/// The moving average among the parameters of an operator.
template <class T, class Op>
array average_of(Op const& op) {
  array a;
  for_each_average(op, [&](parameter const& p) {
    a.shape = {1, p.extents().head, 1, 1};
    for (index_t h = 0; h < p.extents().head; ++h) a.data.push_back(double(p.template value<T>(0, h, 0)));
  });
  return a;
}

/// For every parameter and table slot of an operator, in the operator's order: the name that the registry reads it
/// under, "" if none or if no gradient reaches it. `made` is the operator of the recorded problem.
struct slot_names {
  std::vector<std::string> parameters, tables;
};
template <class Op>
slot_names names_of_slots(Op const& made, problem const& recorded) {
  slot_names names;
  auto const named = [](std::map<std::string, array> const& all, double value) {
    for (auto const& [name, a] : all)
      if (a.data.front() == value) return name;
    return std::string();
  };
  for (operator_parameter const& listed : listed_parameters(made)) {
    parameter const& p = *listed.at;
    auto const source = p.source().x;
    bool const stopped = p.is_average() && !p.passes_gradient();
    names.parameters.push_back(
        stopped ? "" : named(recorded.parameters, source.absent() ? p.at(0, 0, 0) : source(0, 0, 0, 0)));
  }
  for (operator_table const& x : listed_tables(made))
    names.tables.push_back(named(recorded.tables, (*x.at)(0, 0, 0, 0)));
  return names;
}

/// Sums in T of gradients with the same name, rounded once at the end.
template <class T>
struct gradient_sums {
  std::map<std::string, gradient_array<T>> of;
  void add(std::string const& name, gradient_array<T> const& g) {
    if (name.empty() || g.values.empty()) return;
    auto const [at, first] = of.emplace(name, g);
    for (std::size_t n = 0; !first && n < g.values.size(); ++n)
      at->second.values[n] = at->second.values[n] + g.values[n];
  }
  template <class Convert>
  void store(gradients& to, std::size_t axes, Convert const& convert) const {
    for (auto const& [name, g] : of) {
      shape const& e = g.extents;
      array& a = to[name] = {{e.batch, e.head, e.position, e.feature}, {}};
      a.shape.resize(axes);
      for (T const& x : g.values) a.data.push_back(convert(x));
    }
  }
};

/// The cotangents of a run, in memory of their own.
template <class E>
struct loaded_cotangents {
  storage<E> out, lse, ground_weight;
  explicit loaded_cotangents(cotangent const& by, bool odd)
      : out(load(by.out, "out", odd)), lse(load(by.lse, "lse", odd)),
        ground_weight(load(by.ground_weight, "ground_weight", odd)) {}
  template <class Op, class View>
  cotangents<Op, View> views() const {
    cotangents<Op, View> d;
    auto const give = [](auto& to, storage<E> const& x) {
      if (!x.memory.empty()) to = View(x.view());
    };
    give(d.out, out);
    if constexpr (Op::has_lse) give(d.lse, lse);
    if constexpr (Op::has_ground_weight) give(d.ground_weight, ground_weight);
    return d;
  }

 private:
  static storage<E> load(array const& a, char const* name, bool odd) {
    return a.empty() ? storage<E>() : storage<E>(a, name, odd, 0);
  }
};

/// Gradients by the names that the registry knows, each as the number that convert(T) makes of it.
template <class T, class Convert>
gradients named_gradients(dense_gradients<T> const& g, problem const& p, slot_names const& names,
                          Convert const& convert) {
  gradients to;
  gradient_sums<T> tensors, parameters, tables;
  for (auto const& t : p.tensors)
    for (int f = 0; f < int(field_count); ++f)
      if (t.first == name_of(field(f))) tensors.add(t.first, g.of(field(f)));
  for (std::size_t n = 0; n < g.parameters.size(); ++n) {
    auto const& slot = g.parameters[n];
    if (p.parameters.count(names.parameters[n]) == 0) continue;
    parameters.add(names.parameters[n], slot.x.values.empty() ? slot.values : slot.x);
  }
  for (std::size_t n = 0; n < g.tables.size(); ++n) tables.add(names.tables[n], g.tables[n].values);
  tensors.store(to, 4, convert);
  parameters.store(to, 3, convert);
  tables.store(to, 4, convert);
  return to;
}
template <class T>
gradients named_gradients(dense_gradients<T> const& g, problem const& p, slot_names const& names) {
  return named_gradients(g, p, names, [](T const& x) { return double(x); });
}

}  // namespace attune::instances::detail
