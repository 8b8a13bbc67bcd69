// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_PAIRS_CALLS(CALL)      calls CALL(executor, call, accepted) for every call that rows make
//
// `accepted` is the library's own condition on an operator Op, an expression of constants.
#pragma once

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/problem.hpp>
#include <attune/operators/attention.hpp>

namespace attune::pairs {

/// An input tells the number of queries: calls without an output need one.
template <class Op>
inline constexpr bool tells_queries =
    attune::detail::tells_queries<Op>(input_side::query) || attune::detail::tells_queries<Op>(input_side::pair);
template <class Op>
inline constexpr bool has_states = offers_call<cpu<>, call_kind::accumulate, Op>;
template <class Op>
inline constexpr bool has_jvp = tells_queries<Op> && offers_call<cpu<>, call_kind::jvp, Op>;
template <class Op>
inline constexpr bool always = true;
template <class Op>
inline constexpr bool decodes = offers_call<cpu<>, call_kind::decode, Op>;
template <class Op>
inline constexpr bool forwards_few_bits = offers_call<cpu<bfloat16>, call_kind::forward, Op>;
template <class Op>
inline constexpr bool decodes_few_bits = offers_call<cpu<bfloat16>, call_kind::decode, Op>;

// clang-format off: a line, a call
#define ATTUNE_PAIRS_CALLS(CALL) \
  CALL(cpu_double, forward, always<Op>) \
  CALL(cpu_double, vjp, tells_queries<Op>) \
  CALL(cpu_double, jvp, has_jvp<Op>) \
  CALL(cpu_double, decode, decodes<Op>) \
  CALL(cpu_double, paged_decode, decodes<Op>) \
  CALL(cpu_double, split, has_states<Op>) \
  CALL(cpu_double, statistics, tells_queries<Op>) \
  CALL(cpu_float, forward, always<Op>) \
  CALL(cpu_float, vjp, tells_queries<Op>) \
  CALL(cpu_float, decode, decodes<Op>) \
  CALL(cpu_bfloat16, forward, forwards_few_bits<Op>) \
  CALL(cpu_bfloat16, decode, decodes_few_bits<Op>) \
  CALL(cpu_float16, forward, forwards_few_bits<Op>) \
  CALL(cpu_float16, decode, decodes_few_bits<Op>) \
  CALL(float8_cache, forward, forwards_few_bits<Op>) \
  CALL(float8_cache, decode, decodes_few_bits<Op>) \
  CALL(thrust_double, forward, always<Op>) \
  CALL(thrust_double, vjp, tells_queries<Op>)
// clang-format on

/// The executors of ATTUNE_PAIRS_CALLS. Every row calls cpu_double and one of the others.
enum class executor { cpu_double, cpu_float, cpu_bfloat16, cpu_float16, float8_cache, thrust_double };
enum class call { forward, vjp, jvp, decode, paged_decode, split, statistics };

struct named_call {
  executor on;
  call what;
  char const* name;
};
inline constexpr named_call all_calls[] = {
#define ATTUNE_PAIRS_CALL(on, what, accepted) {executor::on, call::what, #on " " #what},
    ATTUNE_PAIRS_CALLS(ATTUNE_PAIRS_CALL)
#undef ATTUNE_PAIRS_CALL
};
inline constexpr std::size_t call_count = std::size(all_calls);

/// Bit n: call number n accepts the operator.
template <class Op>
inline constexpr unsigned accepted_calls = [] {
  unsigned bits = 0, n = 0;
#define ATTUNE_PAIRS_CALL(on, what, accepted) bits |= unsigned(accepted) << n++;
  ATTUNE_PAIRS_CALLS(ATTUNE_PAIRS_CALL)
#undef ATTUNE_PAIRS_CALL
  return bits;
}();

}  // namespace attune::pairs
