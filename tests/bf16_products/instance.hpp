// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operators of tests/instances by products of bf16: `add(registry, policies...)` lets each run on cpu<float> also
// run on cpu_bf16_products, with the tensors rounded to bf16, and throws where a result leaves its bound
// (docs/reference/error_bounds.md). What the run returns stays the result of cpu<float>. The sources that
// tests/CMakeLists.txt generates compile with this header where ATTUNE_INSTANCES_BF16_PRODUCTS is defined.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <attune/certify/error_bound.hpp>
#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/cpu/gradients/bf16/backward.hpp>

#include "../instances/policies.hpp"
#include "../instances/views.hpp"

namespace attune::instances {

namespace detail {

/// The unit under test: the instructions where there are any, or -DATTUNE_PRODUCTS_UNIT=amx_emulated (amx_tiles, ...).
#ifdef ATTUNE_PRODUCTS_UNIT
using products_unit = ATTUNE_PRODUCTS_UNIT;
#else
using products_unit = std::conditional_t<bf16_instructions::there, bf16_instructions, bf16_emulated>;
#endif
using products_executor = cpu_bf16_products<xsimd::default_arch, float, products_unit>;

/// What has products of bf16 and a bound that is written down without the numbers of a gate.
template <class Op>
inline constexpr bool held_to_products =
    Op::normalizer_is.family != row_family::sparse_support && !Op::uses(field::scores) && !Op::uses(field::gates) &&
    !Op::uses(field::bias) && !Op::has_value_gate && !Op::has_output_gate && !has_ordered_sums<Op>;

inline array rounded_to_bf16(array a) {
  for (double& x : a.data) x = double(float(bfloat16(float(x))));
  return a;
}
inline problem rounded_to_bf16(problem p) {
  for (auto& [name, a] : p.tensors) a = rounded_to_bf16(std::move(a));
  return p;
}

/// Throws where one of the numbers is farther from the exact ones than is promised.
template <class Numbers>
void hold(Numbers const& computed, std::vector<certify::bounded_number> const& promised, std::string const& what) {
  for (std::size_t n = 0; n < promised.size() && n < computed.size(); ++n) {
    certify::bounded_number const& is = promised[n];
    if (!std::isfinite(is.value) || !std::isfinite(is.bound)) continue;
    if (double const x = double(computed[n]); !(std::fabs(x - is.value) <= is.bound))
      throw std::runtime_error("products of bf16: " + what + " " + std::to_string(n) + " is " + std::to_string(x) +
                               ", not " + std::to_string(is.value) + " +- " + std::to_string(is.bound));
  }
}

/// How products of bf16 compute.
inline constexpr certify::precision by_products{certify::storage::fp32, certify::storage::fp32, certify::storage::bf16};

template <class Op>
void hold_forward(Op const& op, problem const& p, options const& o) {
  loaded<double> const exact(p, false);
  loaded<float> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, tensor<float const>>(from, p);
  results<Op, float> to(attune::detail::output_shape(in), o.odd_strides);
  forward(products_executor(cpu<float>(o.threads)), op, in, to.views());
  auto const bounds = certify::error_bound(op, view_inputs<Op, any_tensor>(exact, p), by_products);
  result const r = to.dense();
  hold(r.out.data, bounds.out, "out");
  hold(r.lse.data, bounds.lse, "lse");
  hold(r.ground_weight.data, bounds.ground_weight, "ground weight");
}

template <class Op>
void hold_gradients(Op const& op, problem const& p, cotangent const& by, options const& o) {
  loaded<double> const exact(p, false);
  loaded<float> const from(p, o.odd_strides);
  loaded_cotangents<float> const d(by, o.odd_strides);
  loaded_cotangents<double> const exact_d(by, false);
  auto const g = vjp(products_executor(cpu<float>(o.threads)), op, view_inputs<Op, tensor<float const>>(from, p),
                     d.template views<Op, tensor<float const>>());
  auto const bounds = certify::gradient_error_bound(op, view_inputs<Op, any_tensor>(exact, p),
                                                    exact_d.template views<Op, any_tensor>(), by_products);
  for (std::size_t f = 0; f < g.fields.size(); ++f)
    hold(g.fields[f].values, bounds.fields[f], std::string("gradient of ") + name_of(field(f)));
  // A parameter that multiplies the value sum has a bound that gradient_error_bound does not know.
  constexpr bool multiplies_sums = Op::normalizer_is.uniform_share;
  for (std::size_t n = 0; n < g.parameters.size(); ++n)
    if (!multiplies_sums || g.parameters[n].path.rfind("normalizer.", 0) != 0)
      hold(g.parameters[n].values.values, bounds.parameters[n].numbers, "gradient of " + g.parameters[n].path);
  for (std::size_t n = 0; n < g.tables.size(); ++n)
    hold(g.tables[n].values.values, bounds.tables[n].numbers, "gradient of " + g.tables[n].path);
}

}  // namespace detail

/// Makes this function another one than those of the other instance.hpp for the linker.
struct products_run;

template <class Run = products_run, class K, class L, class G, class N, class... Post>
void add(std::map<std::string, entry>& to, named<K> const& kernel, named<L> const& length_scale, named<G> const& gate,
         named<N> const& normalizer, named<Post> const&... post) {
  auto const make = [=](parameter_source const& from, mask::runtime const& mask) {
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from),
                     post.make(from)..., mask);
  };
  using op = decltype(make(std::declval<parameter_source const&>(), {}));
  if constexpr (detail::held_to_products<op>) {
    std::string name = kernel.name + "/" + length_scale.name + "/" + gate.name + "/" + normalizer.name;
    ((name += "/" + post.name), ...);
    auto const found = to.find(name);
    if (found == to.end()) throw std::logic_error("tests/bf16_products: " + name + " is not in the registry");
    entry& e = found->second;
    e.run = [make, other = e.run](problem const& given, backend on, options const& o) {
      if (on == backend::cpu_float && o.cuts.empty()) {
        problem const p = detail::rounded_to_bf16(given);
        detail::hold_forward(make(parameter_source(p), detail::mask_of(p)), p, o);
      }
      return other(given, on, o);
    };
    if constexpr (!OffersWeightFactorOfSums<typename op::normalizer_policy>)
      e.vjp = [make, other = e.vjp](problem const& given, backend on, cotangent const& by, options const& o) {
        if (on == backend::cpu_float) {
          problem const p = detail::rounded_to_bf16(given);
          cotangent d = by;
          d.out = detail::rounded_to_bf16(std::move(d.out));
          detail::hold_gradients(make(parameter_source(p), detail::mask_of(p)), p, d, o);
        }
        return other(given, on, by, o);
      };
  }
}

}  // namespace attune::instances
