// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound_call<Make> const call(c);   call.op, call.in<float>(), call.out<float>()
//
// An operator with the parameters, tables and mask of a call through the C interface. Make::make(mask, constants)
// returns the operator; ATTUNE_C_MAKE writes it. ATTUNE_C_TYPES chooses the element types that a library is compiled
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <attune/calls/executor.hpp>
#include <attune/exec/problem.hpp>
#include <attune/interop/c_abi.h>
#include <attune/interop/c_arguments.hpp>
#include <attune/operators/fold.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/operators/listing.hpp>
#include <attune/operators/numbering.hpp>

#ifndef ATTUNE_C_TYPES
/// The element types: the sum of 1 (float32), 2 (float64) and 4 (bf16 and fp16, with float32).
#define ATTUNE_C_TYPES 7
#endif
static_assert(ATTUNE_C_TYPES > 0 && ATTUNE_C_TYPES < 8 && ATTUNE_C_TYPES != 4,
              "attune: ATTUNE_C_TYPES is the sum of 1 (float32), 2 (float64) and 4 (16 bits, with float32)");

namespace attune::interop {

/// The names of the element types that a library was compiled for.
inline char const* types_of_calls() {
  constexpr char const* names[] = {"",        "float32",
                                   "float64", "float32 or float64",
                                   "",        "float32, bfloat16 or float16",
                                   "",        "float32, float64, bfloat16 or float16"};
  return names[ATTUNE_C_TYPES];
}
/// Calls f with a value of the element type of the call.
template <class F>
void with_type(attune_call const& c, F const& f) {
  if constexpr ((ATTUNE_C_TYPES & 1) != 0)
    if (c.type == attune_float32) return f(float{});
  if constexpr ((ATTUNE_C_TYPES & 2) != 0)
    if (c.type == attune_float64) return f(double{});
  if constexpr ((ATTUNE_C_TYPES & 4) != 0) {
    if (c.type == attune_bfloat16) return f(bfloat16{});
    if (c.type == attune_float16) return f(float16{});
  }
  throw error("call", "the element type", name_of_type(c.type), types_of_calls());
}

/// Of each parameter, in the order of listed_parameters(): whether its policy computes it where it is not set, for
/// example 1/sqrt(D) for a scale. Other policies have a number by default, and 0 is no substitute for it.
template <class Op>
std::vector<bool> computed_if_not_set(Op const& op) {
  std::vector<bool> all;
  attune::detail::for_each_policy(op, attune::detail::no_path{}, [&]<class P>(P const&, attune::detail::no_path) {
    std::apply(
        [&](auto const&... x) {
          if constexpr (sizeof...(x) > 0 && std::is_default_constructible_v<P>)
            (all.push_back(!(P{}.*x.member).is_set()), ...);
          else
            (all.push_back((static_cast<void>(x), false)), ...);
        },
        parameters_of<P>());
  });
  return all;
}
/// Nothing computes a coefficient of a fold.
template <Fold Op>
std::vector<bool> computed_if_not_set(Op const& op) {
  std::vector<bool> all(op.coefficients.size());
  attune::detail::for_each_operator(op, [&](auto const& part, index_t, std::string const&) {
    std::vector<bool> const more = computed_if_not_set(part);
    all.insert(all.end(), more.begin(), more.end());
  });
  return all;
}

/// An operator with the parameters, tables and mask of a call. Make: a function of the mask and the constants that
/// returns the operator.
template <class Make>
struct bound_call {
  /// The operator's type.
  using op_type = std::remove_cvref_t<decltype(Make::make(mask_policy{}, call_constants{}))>;

  attune_call const& c;  ///< the call
  mask_of_call mask;     ///< its mask, which the operator may refer to
  op_type op;            ///< the operator
  /// Reads a call, which must outlive this. Throws attune::error if an argument is wrong.
  explicit bound_call(attune_call const& call)
      : c(call), mask(call),
        op(Make::make(mask.mask(), call_constants{&call, nullptr, &arrays(), table_count<op_type>})) {
    std::size_t n = 0;
    for (operator_parameter const& p : listed_parameters(op)) {
      attune_parameter const& x = c.parameters[n++];
      auto& to = const_cast<parameter&>(*p.at);  // a member of `op`
      int const number = to.number();
      if (x.how == 0 && required(op, n - 1, p))
        throw error("call", p.path(), "no value", "a number or a tensor: it has no default");
      if (x.how == 1) to = parameter(x.number);
      if (x.how == 2) to = parameter(numbers(p.path(), x.tensor));
      to.number(number);
    }
    n = 0;
    for (operator_table const& t : listed_tables(op)) {
      attune_tensor const& x = c.tables[n++];
      auto& to = const_cast<table&>(*t.at);
      if (!x.given) continue;
      int const number = to.number(), first = to.first_entry();
      to = table(numbers(t.path(), x));
      to.number(number);
      to.first_entry(first);
    }
  }
  /// The inputs, of the type of the call.
  template <class T>
  inputs<op_type, tensor<T const>> in() const {
    return inputs_by<tensor<T const>, T>(
        [](std::string_view name, attune_tensor const& x) { return interop::view<T const>(name, x); });
  }
  /// The inputs as the views that read(name, tensor) returns. Zero: the type of a v0 that is not given.
  template <class View, class Zero, class Read>
  inputs<op_type, View> inputs_by(Read const& read) const {
    std::size_t n = 0;
    std::optional<std::span<index_t const>> offsets;
    if (c.offsets.given) {
      auto const all = dense<std::int64_t>("offsets", c.offsets);
      offsets = std::span<index_t const>(reinterpret_cast<index_t const*>(all.data()), all.size());
    }
    return make_inputs<op_type, View>(
        [&]<field F>() -> View {
          attune_tensor const& x = c.fields[n++];
          if constexpr (F == field::v0)
            if (!x.given) return zeros<Zero>(value_width());
          if (!x.given) throw error("call", name_of(F), "no tensor", fields[std::size_t(F)].extents);
          return read(name_of(F), x);
        },
        c.has_offset ? std::optional<index_t>(index_t(c.offset)) : std::nullopt, offsets);
  }
  /// The cotangents of out, lse and ground_weight: out as read(name, tensor) returns it, the others by rows(name,
  /// tensor).
  template <class View, class Read, class Rows>
  cotangents<op_type, View> cotangents_by(attune_tensor const* x, Read const& read, Rows const& rows) const {
    cotangents<op_type, View> d;
    d.out = read("the gradient of out", x[0]);
    auto const demand = [&](bool has, int n, char const* name) {
      if (x[n].given && !has) throw error("call", name, "a tensor", "none: this operator has no such output");
    };
    constexpr char const *lse = "the gradient of lse", *ground = "the gradient of ground_weight";
    demand(op_type::has_lse, 1, lse);
    demand(op_type::has_ground_weight, 2, ground);
    if constexpr (op_type::has_lse) d.lse = rows(lse, x[1]);
    if constexpr (op_type::has_ground_weight) d.ground_weight = rows(ground, x[2]);
    return d;
  }
  /// Dv.
  index_t value_width() const {
    std::size_t n = 0, v = 0;
    for_each_field([&]<field F>() {
      if constexpr (op_type::uses(F)) {
        if (F == field::v) v = n;
        ++n;
      }
    });
    return index_t(c.fields[v].extents[3]);
  }
  /// The outputs.
  template <class T>
  outputs<op_type, T> out() const {
    using number = arithmetic_t<T>;
    outputs<op_type, T> to{.out = view<T>("out", c.outputs[0])};
    auto const rows = [&](bool has, int n, char const* name) {
      if (c.outputs[n].given && !has) throw error("call", name, "a tensor", "none: this operator has no such output");
      return view<number>(name, c.outputs[n]);
    };
    auto const lse = rows(op_type::has_lse, 1, "lse"), ground = rows(op_type::has_ground_weight, 2, "ground_weight"),
               threshold = rows(op_type::has_threshold, 3, "threshold");
    if constexpr (op_type::has_lse)
      if (!lse.absent()) to.lse = natural_lse<number>(lse);
    if constexpr (op_type::has_ground_weight) to.ground_weight = ground;
    if constexpr (op_type::has_threshold) to.threshold = threshold;
    return to;
  }

  /// Names of the arrays that the expression takes, in the order in which it takes them. They stand behind the tables.
  static std::vector<std::string>& arrays() {
    static std::vector<std::string> names = [] {
      std::vector<std::string> all;
      Make::make(mask_policy{}, call_constants{nullptr, nullptr, &all});
      return all;
    }();
    return names;
  }
  /// Whether the caller must set parameter n of an operator of this type: the expression leaves it open, and its policy
  /// does not compute it.
  static bool required(op_type const& op, std::size_t n, operator_parameter const& p) {
    static std::vector<bool> const computed = computed_if_not_set(op);
    return !p.at->is_set() && !computed[n];
  }
};

}  // namespace attune::interop

/// Defines attune::interop::make_NAME, the `Make` of an expression; top of c_operator.hpp.
#define ATTUNE_C_MAKE(NAME, ...)                                                                 \
  namespace attune::interop {                                                                    \
  struct make_##NAME {                                                                           \
    static auto make([[maybe_unused]] mask_policy m, [[maybe_unused]] call_constants const& c) { \
      using namespace ::attune;                                                                  \
      [[maybe_unused]] parameter const open;                                                     \
      return __VA_ARGS__;                                                                        \
    }                                                                                            \
  };                                                                                             \
  }
