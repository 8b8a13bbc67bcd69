// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   static constexpr call_table offers{.forward = every_operator, .vjp = without(every_operator, &offer::mixtures)};
//
// An executor has types, and a table of the calls that it offers. One rule refuses everything else.
#pragma once

#include <cstddef>
#include <tuple>

#include <attune/core/storage.hpp>
#include <attune/core/tensor.hpp>
#include <attune/operators/fold.hpp>
#include <attune/operators/mixture.hpp>
#include <attune/policies/concepts.hpp>
#include <attune/policies/fields.hpp>
#include <attune/policies/ordered_sum.hpp>

namespace attune {

/// The calls that an executor may offer.
enum class call_kind {
  forward,           ///< forward()
  forward_and_save,  ///< forward_and_save()
  vjp,               ///< vjp()
  jvp,               ///< jvp()
  decode,            ///< decode()
  paged_decode,      ///< decode() from pages
  accumulate,        ///< accumulate() and finish()
  statistics,        ///< statistics()
};

/// The operators that a call accepts.
struct offer {
  bool operators = false,      ///< the call exists: it accepts an operator of attention()
      folds = false,           ///< fold()
      mixtures = false,        ///< mixture()
      candidate_sets = false,  ///< normalizers whose weights depend on a threshold: sparsemax, entmax, top-k
      extremes = false,        ///< normalizers of family range_weighted: self-adjusted attention
      ordered_sums = false,    ///< contractions that are sums over the keys before or after a key
      value_gates = false,     ///< gates of values
      pair_inputs = false,     ///< inputs with a number for each pair of a query and a key
      pair_values = false;     ///< value terms: keys that add other numbers to the value sums of other queries
};
/// Everything.
inline constexpr offer every_operator{true, true, true, true, true, true, true, true, true};
/// An offer without some kinds of operators.
template <class... Kind>
constexpr offer without(offer x, Kind offer::*... kinds) {
  (..., (x.*kinds = false));
  return x;
}

/// Where forward_and_save() and vjp() leave their results.
enum class result_place {
  returned,  ///< objects that they return
  memory,    ///< the caller's memory
  either,    ///< the caller chooses
};

/// The offers of an executor, by call. A call that is left out does not exist.
struct call_table {
  offer forward = {},                           ///< forward()
      forward_and_save = {},                    ///< forward_and_save()
      vjp = {},                                 ///< vjp()
      jvp = {},                                 ///< jvp()
      decode = {},                              ///< decode()
      paged_decode = {},                        ///< decode() from pages
      accumulate = {},                          ///< accumulate() and finish()
      statistics = {};                          ///< statistics()
  result_place results = result_place::either;  ///< of forward_and_save() and vjp()
  /// The row of a call.
  constexpr offer const& of(call_kind which) const {
    offer const* const rows[] = {&forward, &forward_and_save, &vjp,        &jvp,
                                 &decode,  &paged_decode,     &accumulate, &statistics};
    return *rows[int(which)];
  }
};

/// Runs operators. Types: value_type of the tensors, view of an input, engine: a type in the namespace of the functions
/// forward_rows(), vjp_rows(), ... that compute rows, and instead: an executor that offers more.
template <class E>
concept Executor = requires {
  typename E::value_type;
  typename E::view;
  typename E::engine;
  typename E::instead;
  E::offers.of(call_kind::forward);
};

namespace detail {

template <class>
inline constexpr bool is_mixture = false;
template <class... Ops>
inline constexpr bool is_mixture<mixture_operator<Ops...>> = true;

/// Whether an operator reads a number for each pair.
template <class Op>
constexpr bool reads_pairs() {
  bool found = false;
  for_each_field([&]<field F>() { found = found || (Op::uses(F) && side_of(F) == input_side::pair); });
  return found;
}

/// Whether a call accepts an operator of attention().
template <class Op>
constexpr bool accepts_operator(offer const& x) {
  return x.operators && (x.candidate_sets || Op::normalizer_is.family != row_family::sparse_support) &&
         (x.extremes || Op::normalizer_is.family != row_family::range_weighted) &&
         (x.ordered_sums || !has_ordered_sums<Op>) && (x.value_gates || !Op::has_value_gate) &&
         (x.pair_inputs || !detail::reads_pairs<Op>()) && (x.pair_values || !Op::has_pair_values);
}
template <class Op>
struct accepts {
  static constexpr bool by(offer const& x) { return detail::accepts_operator<Op>(x); }
};
template <class... Ops>
struct accepts<mixture_operator<Ops...>> {
  static constexpr bool by(offer const& x) { return x.mixtures && (accepts<Ops>::by(x) && ...); }
};
template <std::size_t N, class... Ops>
struct accepts<fold_operator<N, Ops...>> {
  static constexpr bool by(offer const& x) { return x.folds && (accepts<Ops>::by(x) && ...); }
};

/// Refuses a call that is not in the table of the executor. The compiler prints the call, the executor, the executor to
/// use instead and the operator: they are the arguments of this function.
template <call_kind Call, class Exec, class Instead, class Op>
constexpr bool require_offer() {
  constexpr offer x = Exec::offers.of(Call);
  static_assert(x.operators, "attune: this executor (Exec) does not offer this call (Call): use another one (Instead)");
  if constexpr (is_fold<Op>) {
    static_assert(
        x.folds || !x.operators,
        "attune: this call (Call) of this executor (Exec) takes no folds: call it for an operator of the fold");
  } else if constexpr (is_mixture<Op>) {
    static_assert(x.mixtures || !x.operators,
                  "attune: this call (Call) of this executor (Exec) takes no mixtures: call it for each operator with "
                  "its own heads");
  } else if constexpr (x.operators) {
    static_assert(
        x.candidate_sets || Op::normalizer_is.family != row_family::sparse_support,
        "attune: this call (Call) of this executor (Exec) takes no candidate sets (sparsemax, entmax, top-k): "
        "use another executor (Instead), or forward()");
    static_assert(x.extremes || Op::normalizer_is.family != row_family::range_weighted,
                  "attune: this call (Call) of this executor (Exec) takes no self-adjusted rows: use another executor "
                  "(Instead)");
    static_assert(
        x.ordered_sums || !has_ordered_sums<Op>,
        "attune: this call (Call) of this executor (Exec) takes no ordered sums, which need all keys of a row "
        "in one piece: use another executor (Instead), or forward(). See "
        "docs/reference/policies.md#ordered-sums");
    static_assert(x.value_gates || !Op::has_value_gate,
                  "attune: this call (Call) of this executor (Exec) takes no value gates: use another executor "
                  "(Instead), or forward()");
    static_assert(x.pair_inputs || !detail::reads_pairs<Op>(),
                  "attune: this call (Call) of this executor (Exec) does not read scores, gates and biases given for "
                  "each pair: use another executor (Instead)");
    static_assert(x.pair_values || !Op::has_pair_values,
                  "attune: this call (Call) of this executor (Exec) takes no value terms, which add a vector of the "
                  "distance to each value: use another executor (Instead)");
  }
  return accepts<Op>::by(x);
}

}  // namespace detail

/// Whether an executor offers a call for an operator.
template <class Exec, call_kind Call, class Op>
inline constexpr bool offers_call = detail::accepts<Op>::by(Exec::offers.of(Call));

namespace detail {

/// offers_call; where it is false, a message of the compiler says why.
template <call_kind Call, class Exec, class Op>
constexpr bool offered() {
  bool const whole = require_offer<Call, Exec, typename Exec::instead, Op>();
  if constexpr (is_fold<Op> || is_mixture<Op>)
    return whole && []<class... Ops>(std::tuple<Ops...> const*) {
      return (require_offer<Call, Exec, typename Exec::instead, Ops>() && ...);
    }(static_cast<decltype(Op::operators) const*>(nullptr));
  else
    return whole;
}

/// Where an executor does not leave its results does not compile.
template <class Exec, result_place Place>
constexpr bool leaves_results() {
  constexpr bool there = Exec::offers.results == result_place::either || Exec::offers.results == Place;
  static_assert(there || Place != result_place::returned,
                "attune: this executor (Exec) writes saved rows and gradients to the caller's memory: "
                "forward_and_save(exec, op, in, out, memory), vjp(exec, op, in, d, gradient_outputs)");
  static_assert(there || Place != result_place::memory,
                "attune: this executor (Exec) returns saved rows and gradients: forward_and_save(exec, op, in, out), "
                "vjp(exec, op, in, d)");
  return there;
}

/// Where the tensors of a call must be.
template <class Exec>
constexpr memory_kind memory_of() {
  if constexpr (requires { Exec::memory; })
    return Exec::memory;
  else
    return memory_kind::host;
}
/// The type of numbers per row, of parameters' and tables' gradients.
template <class Exec>
using number_of = arithmetic_t<typename Exec::value_type>;

/// The heads that an operator of a mixture runs; all heads without a mixture.
struct heads_served {
  index_t const* which = nullptr;  ///< numbers of the operators of H heads, in memory that the executor reads
  index_t number = 0;
  ATTUNE_HD bool operator()(index_t h) const { return which == nullptr || which[h] == number; }
};

}  // namespace detail
}  // namespace attune
