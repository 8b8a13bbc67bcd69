// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(reference, run_reference<double, make_mine>)
//   ATTUNE_C_COMPANION(reference50, run_reference<attune::digits50, make_mine>)
//
// The reference executor for other languages, as separate libraries: c_abi.h, attune_reference. Numbers are computed in
// T and rounded once. For digits50 include exec/reference/multiprecision.hpp in front.
#pragma once

#include <string_view>

#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>
#include <attune/interop/c_results.hpp>

namespace attune::interop {

/// A read-only view of float32 or float64.
inline any_tensor any_view(std::string_view name, attune_tensor const& x) {
  if (x.type == attune_float64) return any_tensor(view<double const>(name, x));
  return any_tensor(view<float const>(name, x));
}
/// The inputs of a call, as the reference reads them.
template <class Make>
auto inputs_of_any(bound_call<Make> const& call) {
  return call.template inputs_by<any_tensor, double>(&any_view);
}
/// The cotangents of a call, as the reference reads them.
template <class Make>
auto cotangents_of_any(bound_call<Make> const& call, attune_tensor const* x) {
  return call.template cotangents_by<any_tensor>(x, &any_view, &any_view);
}

/// attune_companion::run of the reference in the scalar T. More: attune_reference.
template <class T, class Make>
int run_reference(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& to = *static_cast<attune_reference const*>(more);
    dense_result<T> const all = forward(reference<T>{}, call.op, inputs_of_any(call));
    problem_shape const& p = all.extents;
    auto const write = [&]<class E>(E, char const* name, attune_tensor const& x, index_t width, auto member) {
      write_table<E>("reference", name, x, {p.batch, p.heads, p.queries, width},
                     [&](index_t b, index_t h, index_t i, index_t d) { return (all.at(b, h).*member)(i, d); });
    };
    using head = dense_head<T>;
    write(double{}, "out", to.out, p.value_width, &head::out);
    using op_type = typename bound_call<Make>::op_type;
    if constexpr (op_type::has_lse) write(double{}, "lse", to.lse, 1, &head::lse);
    if constexpr (op_type::has_ground_weight)
      write(double{}, "ground_weight", to.ground_weight, 1, &head::ground_weight);
    if constexpr (op_type::has_threshold) write(double{}, "threshold", to.threshold, 1, &head::threshold);
    write(double{}, "scores", to.scores, p.keys, &head::scores);
    write(double{}, "logits", to.logits, p.keys, &head::logits);
    write(double{}, "weights", to.weights, p.keys, &head::weights);
    write(static_cast<unsigned char>(0), "visible", to.visible, p.keys, &head::visible);
  });
}

/// The same of the gradients. More: attune_gradients.
template <class T, class Make>
int run_reference_vjp(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& to = *static_cast<attune_gradients const*>(more);
    dense_gradients<T> const all =
        vjp(reference<T>{}, call.op, inputs_of_any(call), cotangents_of_any(call, to.cotangents));
    write_gradients<typename bound_call<Make>::op_type, double>("reference", to, all);
  });
}

}  // namespace attune::interop
