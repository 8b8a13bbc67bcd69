// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From a run-time problem to a compile-time operator and back: `instantiate(to, recipes::softmax)` compiles one preset for
// reference<double>, cpu<float> and cpu<double>, and for verdicts. What is a template on the operator is kept short: it is compiled for each.
#pragma once

#include <map>
#include <string>
#include <type_traits>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/probes.hpp>
#include <attune/testing/verdict.hpp>

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
  for (int f = 0; f <= int(field::v0); ++f)
    if (auto const& x = g.of(field(f)); !x.values.empty()) r.emplace(name_of(field(f)), stored(x.extents, x.values));
  for (auto const& p : g.parameters)
    if (p.values.extents.size() > 0) r.emplace(p.path, stored(p.values.extents, p.values.values));
  for (auto const& t : g.tables) r.emplace(t.path, stored(t.values.extents, t.values.values));
  return r;
}

template <class T, class View, class Op>
inputs<Op, View> inputs_of(problem const& p) {
  return make_inputs<Op, View>([&]<field F>() { return View(view<T>(p.tensors.at(name_of(F)))); }, p.offset);
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
    if (auto const found = p.cotangents.find(name); found != p.cotangents.end()) to = View(view<T>(found->second));
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
      from, constants{&p.constants}, mask,
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

template <auto const& Recipe>
results run(problem const& p) {
  auto const op = detail::operator_of(Recipe, p);
  if (p.on == executor::reference) return detail::run_on<double, any_tensor>(reference<double>{}, op, p);
  if (p.in == arithmetic::float64) return detail::run_on<double, tensor<double const>>(cpu<double>(p.threads), op, p);
  return detail::run_on<float, tensor<float const>>(cpu<float>(p.threads), op, p);
}

template <auto const& Recipe>
results gradient(problem const& p) {
  auto const op = detail::operator_of(Recipe, p);
  if (p.on == executor::reference) return detail::gradient_on<double, any_tensor>(reference<double>{}, op, p);
  if (p.in == arithmetic::float64) return detail::gradient_on<double, tensor<double const>>(cpu<double>(p.threads), op, p);
  return detail::gradient_on<float, tensor<float const>>(cpu<float>(p.threads), op, p);
}

namespace detail {
/// Calls judge(operator, inputs), with the masks that wrong kernels may have used.
template <auto const& Recipe, class Judge>
testing::verdict_report judged(problem const& p, Judge const& judge) {
  std::vector<aligned_mask::shifted> others;
  for (auto const& m : p.misaligned) others.push_back({m.by, m.memory.view});
  auto op = operator_of(Recipe, p, {p.mask.view, 0, others.data(), int(others.size())});
  auto const in = inputs_of<double, any_tensor, decltype(op)>(p);
  shape const out = attune::detail::output_shape(in);
  op.mask.offset = p.offset.value_or(p.tensors.at("v").extents.position - out.position);
  return judge(op, in);
}
}  // namespace detail

template <auto const& Recipe>
testing::verdict_report verdict(problem const& p, handed_back const& given) {
  testing::candidate theirs(detail::view<double>(given.outputs.at("out")), given.stored);
  auto const give = [&](char const* name, auto const& to) {
    if (auto const x = given.outputs.find(name); x != given.outputs.end()) to(detail::view<double>(x->second));
  };
  give("lse", [&](tensor<double const> const& x) { theirs.with_lse(natural_lse<double const>(x)); });
  give("ground_weight", [&](tensor<double const> const& x) { theirs.with_ground_weight(x); });
  return detail::judged<Recipe>(p, [&](auto const& op, auto const& in) { return testing::verdict(op, in, theirs, given.how); });
}

template <auto const& Recipe>
testing::verdict_report gradient_verdict(problem const& p, handed_back const& given) {
  testing::gradient_candidate theirs;
  for_each_field([&]<field F>() {
    if (auto const x = given.gradients.find(name_of(F)); x != given.gradients.end())
      theirs.with(F, detail::view<double>(x->second), given.stored);
  });
  return detail::judged<Recipe>(p, [&]<class Op>(Op const& op, auto const& in) {
    return testing::gradient_verdict(op, in, detail::cotangents_of<double, any_tensor, Op>(p), theirs, given.how);
  });
}

template <auto const& Recipe>
std::vector<probe_inputs> probes(problem const& p, testing::problem_extents const& extents, mask_maker const& mask_of,
                                 std::uint64_t seed) {
  std::vector<mask_memory> masks;  // of the operators below
  masks.reserve(64);
  auto const pack = testing::probe_pack_of(
      [&](testing::problem_extents const& e) {
        index_t const offset = e.offset.value_or(e.keys - e.queries);
        masks.push_back(mask_of({e.batch, e.heads, e.queries, e.keys}, offset));
        return detail::operator_of(Recipe, p, {masks.back().view, offset});
      },
      extents, seed);
  std::vector<probe_inputs> all;
  for (auto const& one : pack) {
    auto const numbers_of = [](testing::detail::drawn_tensor const& x) { return numbers{x.extents, x.doubles, {}}; };
    probe_inputs& to = all.emplace_back();
    to.name = one->name;
    to.reveals = one->reveals;
    for_each_field([&]<field F>() {
      if (auto const& x = one->problem.of(F); x.extents.size() != 0) to.tensors.emplace(name_of(F), numbers_of(x));
    });
    to.dout = numbers_of(one->problem.by_out());
  }
  return all;
}

template <auto const&... Recipes>
void instantiate(std::map<std::string, runner>& to) {
  (to.emplace(Recipes.name,
              runner{&run<Recipes>, &gradient<Recipes>, &verdict<Recipes>, &gradient_verdict<Recipes>, &probes<Recipes>}),
   ...);
}

}  // namespace attune::tool
