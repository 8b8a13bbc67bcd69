// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_OPERATOR(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_LIBRARY(mine)
//
// Operators as a shared library for other languages: c_abi.h. In the expression, m is the mask, `open` a parameter that
// the caller sets, and c("k", 8) a constant with its default; a default without a point makes it a whole number.
// c.array("x") is a view of numbers that the caller gives, and c.angles("x") the same as angles of kernel::rotary. A
// fold is an operator, too. Compile with -shared -fPIC -fvisibility=hidden.
// ATTUNE_C_TYPES chooses the element types: the sum of 1 (float32), 2 (float64) and 4 (bf16 and fp16, with float32).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/decode.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_description.hpp>
#include <attune/interop/c_library.hpp>
#include <attune/interop/c_results.hpp>
#include <attune/interop/host_executor.hpp>

namespace attune::interop {

/// The functions of one operator. Make: a function of the mask and the constants that returns the operator. Unit
/// multiplies bf16.
template <class Make, class Unit = unit_of_machine>
struct operator_functions {
  /// The operator.
  using op_type = typename bound_call<Make>::op_type;

  /// The operator as C sees it, made once.
  static attune_operator const* get(char const* name, char const* expression = "") {
    static std::string const text = description(expression);
    static attune_operator const op{name, text.c_str(), &saved_size, &forward, &vjp};
    return &op;
  }

 private:
  using bound = bound_call<Make>;

  /// Whether decode() takes it, with tensors of T.
  template <class T>
  static constexpr bool decodes_from = offers_call<cpu<T>, call_kind::decode, op_type>;

  static int saved_size(attune_call const* c, int64_t* count, attune_text text) {
    return guarded(text, [&] {
      bound const call(*c);
      with_type(*c, [&]<class T>(T) { *count = attune::saved_size(call.op, call.template in<T>()); });
    });
  }
  static int forward(attune_call const* c, void* saved, int64_t count, attune_text text) {
    return guarded(text, [&] {
      bound const call(*c);
      with_type(*c, [&]<class T>(T) {
        using number = arithmetic_t<T>;
        auto const in = call.template in<T>();
        auto const out = call.template out<T>();
        if constexpr (decodes_from<T>)
          if (!saved && reads_like_decode(out.out.extents())) return decode(cpu<T>(c->threads), call.op, in, out);
        with_executor<T, Unit, op_type>(*c, [&]<class Exec>(Exec const& exec) {
          if (saved) {
            forward_and_save(exec, call.op, in, out, std::span(static_cast<number*>(saved), std::size_t(count)));
          } else if constexpr (!offers_call<Exec, call_kind::forward, op_type>) {
            std::vector<number> memory(std::size_t(attune::saved_size(call.op, in)));
            forward_and_save(exec, call.op, in, out, std::span(memory));
          } else {
            attune::forward(exec, call.op, in, out);
          }
        });
      });
    });
  }
  static int vjp(attune_call const* c, void const* saved, int64_t count, attune_gradients const* g, attune_text text) {
    return guarded(text, [&] {
      bound const call(*c);
      with_type(*c, [&]<class T>(T) {
        using number = arithmetic_t<T>;
        auto const d = call.template cotangents_by<tensor<T const>>(
            g->cotangents, [](std::string_view name, attune_tensor const& x) { return view<T const>(name, x); },
            [](std::string_view name, attune_tensor const& x) { return view<number const>(name, x); });
        auto const to = gradient_outputs_of<op_type, T>(*g);
        auto const in = call.template in<T>();
        with_executor<T, Unit, op_type>(*c, [&](auto const& exec) {
          if (saved)
            attune::vjp(exec, call.op, in, std::span(static_cast<number const*>(saved), std::size_t(count)), d, to);
          else
            attune::vjp(exec, call.op, in, d, to);
        });
      });
    });
  }

 public:
  /// attune_operator.description, which needs no executor's code.
  static std::string description(char const* expression) {
    operator_facts facts{.types = ATTUNE_C_TYPES,
                         .heads_each = attune::detail::heads_of_inputs<op_type>,
                         .decodes = decodes_from<float>,
                         .has_lse = op_type::has_lse,
                         .has_ground_weight = op_type::has_ground_weight,
                         .has_threshold = op_type::has_threshold,
                         .expression = expression};
    op_type const op = Make::make(mask_policy{}, call_constants{nullptr, &facts.constants});
    for (std::size_t n = 0; n < field_count; ++n)
      if (op_type::uses(field(n))) facts.fields.push_back(field(n));
    for (operator_parameter const& p : listed_parameters(op)) {
      facts.required.push_back(bound::required(op, facts.parameters.size(), p));
      facts.parameters.push_back(p);
    }
    for (operator_table const& t : listed_tables(op)) facts.tables.push_back(t);
    facts.arrays = bound::arrays();
    return description_of(facts);
  }
};

/// The library of some operators, which the caller keeps: pointers to them, made once.
inline attune_library const* library_of(std::span<attune_operator const* const> operators) {
  static attune_library const all{
      ATTUNE_ABI_VERSION, std::int32_t(operators.size()), operators.data(), built_for(), &own_pool(), &use_pool_of};
  return &all;
}

}  // namespace attune::interop

/// Makes an operator for ATTUNE_C_LIBRARY. NAME: its name; the expression: see the top of this header.
#define ATTUNE_C_OPERATOR(NAME, ...)                                                                             \
  ATTUNE_C_MAKE(NAME, __VA_ARGS__)                                                                               \
  namespace attune::interop {                                                                                    \
  attune_operator const* operator_##NAME() { return operator_functions<make_##NAME>::get(#NAME, #__VA_ARGS__); } \
  }

/// Exports a library of one operator, made by ATTUNE_C_OPERATOR.
#define ATTUNE_C_LIBRARY(NAME)                                                                 \
  extern "C" __attribute__((visibility("default"))) attune_library const* attune_library_1() { \
    static attune_operator const* const only[] = {::attune::interop::operator_##NAME()};       \
    return ::attune::interop::library_of(only);                                                \
  }
