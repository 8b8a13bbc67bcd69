// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From a run-time problem to a compile-time operator and back: `add(registry, policies...)` instantiates one operator on every
// executor and type. What is a template on the operator is kept short here: it is compiled once for each of them.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/split.hpp>

#include "digits.hpp"
#include "policies.hpp"
#include "registry.hpp"
#include "source.hpp"

namespace attune::instances {

namespace detail {

template <class Op, class View, class T>
inputs<Op, View> view_inputs(loaded<T> const& from, problem const& p) {
  return make_inputs<Op, View>([&]<field F>() { return View(from.at(name_of(F))); }, p.offset);
}

/// The outputs of an operator in memory.
template <class Op, class T>
struct results {
  storage<T> out, lse, ground_weight, threshold;
  results(shape const& s, bool odd)
      : out(s, odd, 0), lse({s.batch, s.head, s.position, 1}, odd, 1), ground_weight({s.batch, s.head, s.position, 1}, odd, 2),
        threshold({s.batch, s.head, s.position, 1}, odd, 3) {}
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

/// States of all parts, merged pairwise in a random order.
template <class Exec, class Op, class Inputs>
auto merged_states(Exec const& exec, Op const& op, Inputs const& in, index_t keys, options const& o) {
  std::vector<decltype(accumulate(exec, op, in, {0, 0}))> parts;
  index_t from = 0;
  for (std::size_t c = 0; c <= o.cuts.size(); ++c) {
    index_t const to = c < o.cuts.size() ? o.cuts[c] : keys;
    parts.push_back(accumulate(exec, op, in, {from, to}));
    from = to;
  }
  std::mt19937_64 random(o.tree_seed);
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    auto last = std::move(parts.back());
    parts.pop_back();
    auto& other = parts[random() % parts.size()];
    other = merge(std::move(other), last);
  }
  return std::move(parts.front());
}

/// The moving average among the parameters of an operator.
template <class T, class Op>
array average_of(Op const& op) {
  array a;
  for_each_parameter(op, [&](auto const& listed, auto const& policy, std::string const&) {
    parameter const& p = policy.*listed.member;
    if (!p.is_average()) return;
    a.shape = {1, p.extents().head, 1, 1};
    for (index_t h = 0; h < p.extents().head; ++h) a.data.push_back(double(p.template value<T>(0, h, 0)));
  });
  return a;
}

template <class T, class Op>
result run_cpu(Op const& op, problem const& p, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, tensor<T const>>(from, p);
  results<Op, T> to(attune::detail::output_shape(in), o.odd_strides);
  cpu<T> const exec(o.threads);
  if (o.cuts.empty())
    forward(exec, op, in, to.views());
  else
    finish(op, in, merged_states(exec, op, in, in.v.extents().position, o), to.views());
  result r = to.dense();
  r.average = average_of<T>(op);
  return r;
}

template <class T, class Op>
result run_reference(Op const& op, problem const& p, options const& o) {
  loaded<double> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  shape const s = attune::detail::output_shape(in);
  reference<T> const exec{};
  if (!o.cuts.empty()) {
    results<Op, T> to(s, false);
    finish(op, in, merged_states(exec, op, in, in.v.extents().position, o), to.views());
    return to.dense();
  }
  auto const dense = forward(exec, op, in);
  index_t const keys = dense.extents.keys;
  result r;
  auto const rows = [&](index_t width) { return array{{s.batch, s.head, s.position, width}, {}}; };
  r.out = rows(s.feature);
  r.scores = r.logits = r.weights = rows(keys);
  r.row_sum = rows(1);
  if constexpr (Op::has_lse) r.lse = rows(1);
  if constexpr (Op::has_ground_weight) r.ground_weight = rows(1);
  if constexpr (Op::has_threshold) r.threshold = rows(1);
  for (auto const& head : dense.heads)
    for (index_t i = 0; i < s.position; ++i) {
      for (index_t d = 0; d < s.feature; ++d) r.out.data.push_back(double(head.out(i, d)));
      T sum(0);
      for (index_t j = 0; j < keys; ++j) {
        bool const seen = head.visible(i, j);
        r.scores.data.push_back(seen ? double(head.scores(i, j)) : 0);
        r.logits.data.push_back(seen ? double(head.logits(i, j)) : 0);
        r.weights.data.push_back(double(head.weights(i, j)));
        sum = sum + head.weights(i, j);
      }
      r.row_sum.data.push_back(double(sum));
      if constexpr (Op::has_lse) r.lse.data.push_back(double(head.lse(i)));
      if constexpr (Op::has_ground_weight) r.ground_weight.data.push_back(double(head.ground_weight(i)));
      if constexpr (Op::has_threshold) r.threshold.data.push_back(double(head.threshold(i)));
    }
  r.average = average_of<T>(op);
  return r;
}

/// For every parameter and table slot of an operator, in the operator's order: the name that the registry reads it under, "" if
/// none or if no gradient reaches it. `made` is the operator of the recorded problem.
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
  for_each_parameter(made, [&](auto const& listed, auto const& policy, std::string const&) {
    parameter const& p = policy.*listed.member;
    auto const source = p.source().x;
    bool const stopped = p.is_average() && !p.passes_gradient();
    names.parameters.push_back(stopped ? "" : named(recorded.parameters, source.absent() ? p.at(0, 0, 0) : source(0, 0, 0, 0)));
  });
  for_each_table(made, [&](auto const& listed, auto const& policy, std::string const&) {
    names.tables.push_back(named(recorded.tables, (policy.*listed.member)(0, 0, 0, 0)));
  });
  return names;
}

/// Sums in T of gradients with the same name, rounded once at the end.
template <class T>
struct gradient_sums {
  std::map<std::string, gradient_array<T>> of;
  void add(std::string const& name, gradient_array<T> const& g) {
    if (name.empty() || g.values.empty()) return;
    auto const [at, first] = of.emplace(name, g);
    for (std::size_t n = 0; !first && n < g.values.size(); ++n) at->second.values[n] = at->second.values[n] + g.values[n];
  }
  void store(gradients& to, std::size_t axes) const {
    for (auto const& [name, g] : of) {
      shape const& e = g.extents;
      array& a = to[name] = {{e.batch, e.head, e.position, e.feature}, {}};
      a.shape.resize(axes);
      for (T const& x : g.values) a.data.push_back(double(x));
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

/// Gradients by the names that the registry knows.
template <class T>
gradients named_gradients(dense_gradients<T> const& g, problem const& p, slot_names const& names) {
  gradients to;
  gradient_sums<T> tensors, parameters, tables;
  for (auto const& t : p.tensors)
    for (int f = 0; f <= int(field::v0); ++f)
      if (t.first == name_of(field(f))) tensors.add(t.first, g.of(field(f)));
  for (std::size_t n = 0; n < g.parameters.size(); ++n) {
    auto const& slot = g.parameters[n];
    if (p.parameters.count(names.parameters[n]) == 0) continue;
    parameters.add(names.parameters[n], slot.x.values.empty() ? slot.values : slot.x);
  }
  for (std::size_t n = 0; n < g.tables.size(); ++n) tables.add(names.tables[n], g.tables[n].values);
  tensors.store(to, 4);
  parameters.store(to, 3);
  tables.store(to, 4);
  return to;
}

template <class T, class Op>
gradients vjp_reference(Op const& op, problem const& p, cotangent const& by, slot_names const& names) {
  loaded<double> const from(p, false);
  loaded_cotangents<double> const d(by, false);
  return named_gradients(vjp(reference<T>{}, op, view_inputs<Op, any_tensor>(from, p), d.template views<Op, any_tensor>()), p,
                         names);
}

template <class T, class Op>
gradients vjp_cpu(Op const& op, problem const& p, cotangent const& by, slot_names const& names, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  loaded_cotangents<T> const d(by, o.odd_strides);
  return named_gradients(
      vjp(cpu<T>(o.threads), op, view_inputs<Op, tensor<T const>>(from, p), d.template views<Op, tensor<T const>>()), p, names);
}

}  // namespace detail

/// Instantiates one operator on all executors and types and registers it.
template <class K, class L, class G, class N, class... Post>
void add(std::map<std::string, entry>& to, named<K> const& kernel, named<L> const& length_scale, named<G> const& gate,
         named<N> const& normalizer, named<Post> const&... post) {
  entry e;
  e.name = kernel.name + "/" + length_scale.name + "/" + gate.name + "/" + normalizer.name;
  ((e.name += "/" + post.name), ...);
  auto const make = [=](parameter_source const& from, mask::runtime const& mask) {
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from), post.make(from)...,
                     mask);
  };
  problem recorded;
  auto const probe = make(parameter_source::recording(recorded), {});
  using op = std::remove_const_t<decltype(probe)>;
  for (int f = 0; f <= static_cast<int>(field::v0); ++f)
    if (op::uses(static_cast<field>(f))) e.tensors.emplace_back(name_of(static_cast<field>(f)));
  for (auto const& p : recorded.parameters) e.parameters.push_back(p.first);
  for (auto const& t : recorded.tables) e.tables.push_back(t.first);
  e.has_lse = op::has_lse;
  e.has_ground_weight = op::has_ground_weight;
  e.has_ground_value = op::uses(field::v0);
  e.has_threshold = op::has_threshold;
  entry const described = e;
  e.run = [make, described](problem const& p, backend on, options const& o) {
    detail::check_names(p, described);
    op const made = make(parameter_source(p), detail::mask_of(p));
    switch (on) {
      case backend::reference_double:
        return detail::run_reference<double>(made, p, o);
      case backend::reference_50:
        return detail::run_reference<digits>(made, p, o);
      case backend::cpu_float:
        return detail::run_cpu<float>(made, p, o);
      case backend::cpu_double:
        if constexpr (has_double) return detail::run_cpu<double>(made, p, o);
    }
    throw std::logic_error("no such backend in this program");
  };
  auto const names = detail::names_of_slots(probe, recorded);
  e.vjp = [make, described, names](problem const& p, backend on, cotangent const& by, options const& o) {
    detail::check_names(p, described);
    op const made = make(parameter_source(p), detail::mask_of(p));
    switch (on) {
      case backend::reference_double:
        return detail::vjp_reference<double>(made, p, by, names);
      case backend::reference_50:
        return detail::vjp_reference<digits>(made, p, by, names);
      case backend::cpu_float:
        return detail::vjp_cpu<float>(made, p, by, names, o);
      case backend::cpu_double:
        if constexpr (has_double) return detail::vjp_cpu<double>(made, p, by, names, o);
    }
    throw std::logic_error("no such backend in this program");
  };
  to.emplace(e.name, std::move(e));
}

}  // namespace attune::instances
