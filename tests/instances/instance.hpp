// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From a run-time problem to a compile-time operator and back: `add(registry, policies...)` instantiates one operator
// on every executor and type. What is a template on the operator is kept short here: it is compiled once for each of
// them.
#pragma once

#if defined(ATTUNE_INSTANCES_THRUST)
#include "../thrust/instance.hpp"
#elif defined(ATTUNE_INSTANCES_ENCLOSURE)
#include "../enclosure/instance.hpp"
#elif defined(ATTUNE_INSTANCES_BF16_PRODUCTS)
#include "../bf16_products/instance.hpp"
#else

#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/split.hpp>

#include "bounds.hpp"
#include "digits.hpp"
#include "policies.hpp"
#include "registry.hpp"
#include "views.hpp"
#if defined(ATTUNE_INSTANCES_MPI)
#include "../mpi/operators/instance.hpp"  // run_cpu and vjp_cpu over ranks
#endif

namespace attune::instances {

namespace detail {

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

#if !defined(ATTUNE_INSTANCES_MPI)
inline constexpr bool splits_keys = true;

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
gradients vjp_cpu(Op const& op, problem const& p, cotangent const& by, slot_names const& names, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  loaded_cotangents<T> const d(by, o.odd_strides);
  return named_gradients(
      vjp(cpu<T>(o.threads), op, view_inputs<Op, tensor<T const>>(from, p), d.template views<Op, tensor<T const>>()), p,
      names);
}
#endif

template <class T, class Op>
result run_reference(Op const& op, problem const& p, options const& o) {
  loaded<double> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  shape const s = attune::detail::output_shape(in);
  reference<T> const exec{};
  if constexpr (splits_keys)
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

template <class T, class Op>
gradients vjp_reference(Op const& op, problem const& p, cotangent const& by, slot_names const& names) {
  loaded<double> const from(p, false);
  loaded_cotangents<double> const d(by, false);
  return named_gradients(
      vjp(reference<T>{}, op, view_inputs<Op, any_tensor>(from, p), d.template views<Op, any_tensor>()), p, names);
}

/// The weights of a centred normalizer before their mean is taken out.
template <class F>
constexpr attune::normalizer::generic<F, divisor::count> uncentered(attune::normalizer::centered<F> const&) {
  return {};
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
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from),
                     post.make(from)..., mask);
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
    if (!detail::splits_keys && !o.cuts.empty()) throw std::logic_error("no split of keys in this program");
    op const made = make(parameter_source(p), detail::mask_of(p));
    switch (on) {
      case backend::reference_double:
        return detail::run_reference<double>(made, p, o);
      case backend::reference_50:
        if constexpr (has(backend::reference_50)) return detail::run_reference<digits>(made, p, o);
        break;
      case backend::cpu_float:
        if constexpr (has(backend::cpu_float)) return detail::run_cpu<float>(made, p, o);
        break;
      case backend::cpu_double:
        if constexpr (has(backend::cpu_double)) return detail::run_cpu<double>(made, p, o);
    }
    throw std::logic_error("no such backend in this program");
  };
  e.bounds = [make](problem const& p, backend of) {
    return detail::bounds_of(make(parameter_source(p), detail::mask_of(p)), p, of);
  };
  auto const names = detail::names_of_slots(probe, recorded);
  e.vjp = [make, described, names](problem const& p, backend on, cotangent const& by, options const& o) {
    detail::check_names(p, described);
    op const made = make(parameter_source(p), detail::mask_of(p));
    switch (on) {
      case backend::reference_double:
        return detail::vjp_reference<double>(made, p, by, names);
      case backend::reference_50:
        if constexpr (has(backend::reference_50)) return detail::vjp_reference<digits>(made, p, by, names);
        break;
      case backend::cpu_float:
        if constexpr (has(backend::cpu_float)) return detail::vjp_cpu<float>(made, p, by, names, o);
        break;
      case backend::cpu_double:
        if constexpr (has(backend::cpu_double)) return detail::vjp_cpu<double>(made, p, by, names, o);
    }
    throw std::logic_error("no such backend in this program");
  };
  auto const vjp_with = [=](auto other) {
    auto const make_other = [=](parameter_source const& from, mask::runtime const& mask) {
      return attention(kernel.make(from), length_scale.make(from), gate.make(from), other, post.make(from)..., mask);
    };
    problem read;
    auto const slots = detail::names_of_slots(make_other(parameter_source::recording(read), {}), read);
    return [make_other, slots](problem const& p, cotangent const& by) {
      return detail::vjp_reference<double>(make_other(parameter_source(p), detail::mask_of(p)), p, by, slots);
    };
  };
  using weights = typename op::normalizer_policy;
  if constexpr (weights::traits.family == row_family::sparse_support)
    e.softmax_vjp = vjp_with(attune::normalizer::softmax{});
  if constexpr (requires(weights w) { detail::uncentered(w); })
    e.uncentered_vjp = vjp_with(detail::uncentered(weights{}));
  to.emplace(e.name, std::move(e));
}

}  // namespace attune::instances

#endif
