// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(decode, run_decode<make_mine, float>)
//
// decode() for other languages, as a separate library for one element type: c_abi.h, attune_decode. Masks and offsets
// of the call say how long sequences are.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/decode.hpp>
#include <attune/exec/cpu/decode/float8_cache.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>

namespace attune::interop {

/// decode() with or without pages. One instance of the executor serves both: without pages, every sequence is a page.
template <class Exec, class Op>
void decode_either(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                   std::optional<page_table> const& pages, outputs<Op, typename Exec::value_type> const& out) {
  if (pages) return attune::decode(exec, op, in, *pages, out);
  std::vector<std::int32_t> numbers(std::size_t(out.out.extents().batch));
  std::iota(numbers.begin(), numbers.end(), 0);
  page_table const each(numbers, index_t(numbers.size()));
  attune::detail::decode_cache(exec, op, attune::detail::paged_cache<Op, typename Exec::view>{in, in, each}, out);
}

/// Keys or values of a call: 8-bit numbers of type E with their factors, or a tensor of T.
template <class T, class E>
float8_view<T, E> view_of_codes(char const* name, attune_tensor const& x, char const* scale_name,
                                attune_tensor const& scale) {
  if (x.type != type_code<E>) {
    if (scale.given)
      throw error("decode", scale_name, "a tensor", attune::detail::text("none: ", name, " has no 8-bit numbers"));
    return view<T const>(name, x);
  }
  auto const codes = view<E const>(name, x);
  auto const factors = view<float const>(scale_name, scale);
  if (factors.absent()) return {codes, 1.0f};
  if (factors.extents() == shape{1, 1, 1, 1}) return {codes, factors(0, 0, 0, 0)};
  return {codes, factors};
}

/// attune_companion::run of decode, for calls of T. More: attune_decode. Codes: float8_e4m3fn or float8_e5m2 where keys
/// or values have 8 bits; void where they are of T.
template <class Make, class T, class Codes = void>
int run_decode(attune_call const* c, void const* more, attune_text text) {
  using bound = bound_call<Make>;
  return guarded(text, [&] {
    auto const& from = *static_cast<attune_decode const*>(more);
    if (c->type != type_code<T>)
      throw error("decode", "the element type", name_of_type(c->type), name_of_type(type_code<T>));
    bound const call(*c);
    std::optional<page_table> pages;
    if (from.pages.given) {
      auto const numbers = dense<std::int32_t>("page_table", from.pages);
      pages.emplace(numbers.data(), index_t(from.pages.extents[2]), index_t(from.pages.extents[3]));
    }
    auto const out = call.template out<T>();
    if constexpr (std::is_void_v<Codes>) {
      for (auto const& [name, scale] : {std::pair("k_scale", &from.k_scale), std::pair("v_scale", &from.v_scale)})
        if (scale->given) throw error("decode", name, "a tensor", "none: keys and values do not have 8 bits");
      decode_either(cpu<T>(c->threads), call.op, call.template in<T>(), pages, out);
    } else {
      cpu_float8_cache<Codes, T> const exec(c->threads);
      auto const in =
          call.template inputs_by<float8_view<T, Codes>, T>([&](std::string_view name, attune_tensor const& x) {
            if (name == "k") return view_of_codes<T, Codes>("k", x, "k_scale", from.k_scale);
            if (name == "v") return view_of_codes<T, Codes>("v", x, "v_scale", from.v_scale);
            return float8_view<T, Codes>(view<T const>(name, x));
          });
      decode_either(exec, call.op, in, pages, out);
    }
  });
}

}  // namespace attune::interop
