// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// `instantiate<recipes::softmax>(to)` compiles one preset for reference<double>, cpu<float> and cpu<double>, and for
// verdicts; where ATTUNE_TOOL_THRUST is defined, for the Thrust executor. What is a template on the operator is kept
// short: it is compiled for each.
#pragma once

#if defined(ATTUNE_TOOL_THRUST)
#include "thrust_instance.hpp"
#else

#include <map>
#include <string>
#include <type_traits>

#include <attune/attune.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/probes.hpp>
#include <attune/testing/verdict.hpp>

#include "calls.hpp"

namespace attune::tool {

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
  if (p.in == arithmetic::float64)
    return detail::gradient_on<double, tensor<double const>>(cpu<double>(p.threads), op, p);
  return detail::gradient_on<float, tensor<float const>>(cpu<float>(p.threads), op, p);
}

namespace detail {
/// Calls judge(operator, inputs), with the masks that wrong kernels may have used.
template <auto const& Recipe, class Judge>
testing::verdict_report judged(problem const& p, Judge const& judge) {
  std::vector<aligned_mask::shifted> others;
  for (auto const& m : p.misaligned) others.push_back({m.by, m.top_left, m.memory.view});
  auto op = operator_of(Recipe, p, {p.mask.view, 0, nullptr, others.data(), int(others.size())});
  auto const in = inputs_of<double, any_tensor, decltype(op)>(p);
  shape const out = attune::detail::output_shape(in);
  op.mask.offset = p.offset.value_or(p.tensors.at("v").extents.position - out.position);
  if (!p.offsets.empty()) op.mask.offsets = p.offsets.data();
  return judge(op, in);
}
}  // namespace detail

template <auto const& Recipe>
testing::verdict_report verdict(problem const& p, handed_back&& given) {
  numbers& out = given.outputs.at("out");
  testing::candidate theirs(std::move(out.doubles), out.extents, given.stored);
  auto const give = [&](char const* name, auto const& to) {
    if (auto const x = given.outputs.find(name); x != given.outputs.end()) to(detail::view<double>(x->second));
  };
  give("lse", [&](tensor<double const> const& x) {
    certify::storage const stored = given.other_types.at("lse");
    if (given.base_two)
      theirs.with_base_two_lse(x, stored);
    else
      theirs.with_lse(natural_lse<double const>(x), stored);
  });
  give("ground_weight",
       [&](tensor<double const> const& x) { theirs.with_ground_weight(x, given.other_types.at("ground_weight")); });
  return detail::judged<Recipe>(
      p, [&](auto const& op, auto const& in) { return testing::verdict(op, in, theirs, given.how); });
}

template <auto const& Recipe>
testing::verdict_report gradient_verdict(problem const& p, handed_back const& given) {
  testing::gradient_candidate theirs;
  auto rest = given.gradients;
  for_each_field([&]<field F>() {
    if (auto const x = given.gradients.find(name_of(F)); x != given.gradients.end())
      theirs.with(testing::gradient_name(F), detail::view<double>(x->second), given.stored);
    rest.erase(name_of(F));
  });
  for (auto const& [name, x] : rest)
    theirs.with(testing::gradient_name(name), detail::view<double>(x), given.other_types.at(name));
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
      extents, seed, true);
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

/// Writes one entry.
template <auto const& Recipe, entry Wanted>
void instantiate_entry(runner& to) {
  if constexpr (Wanted == entry::run) to.run = &run<Recipe>;
  if constexpr (Wanted == entry::gradient) to.gradient = &gradient<Recipe>;
  if constexpr (Wanted == entry::verdict) to.verdict = &verdict<Recipe>;
  if constexpr (Wanted == entry::gradient_verdict) to.gradient_verdict = &gradient_verdict<Recipe>;
  if constexpr (Wanted == entry::probes) to.probes = &probes<Recipe>;
}
template <auto const& Recipe>
void instantiate(std::map<std::string, runner>& to) {
  to.emplace(Recipe.name,
             runner{&run<Recipe>, &gradient<Recipe>, &verdict<Recipe>, &gradient_verdict<Recipe>, &probes<Recipe>});
}

}  // namespace attune::tool

#endif
