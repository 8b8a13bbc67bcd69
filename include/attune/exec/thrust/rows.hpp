// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_task(executor, n, program):   one task = one row, or a stretch of its features
//
// The parts of every row program: the problem as plain numbers and pointers, a row's view of its pairs, and
// accumulators of fixed size. No container, no library call that a device lacks, nothing of size Lq x Lk.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/exec/terms.hpp>
#include <attune/exec/thrust/device_ready.hpp>
#include <attune/exec/thrust/launch.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_thrust {

/// x. On a device, the compiler does not know where x comes from: it does not contract the last product of x with a sum
/// that uses x, and inlined copies of a function that ends here give the same bits.
template <class T>
ATTUNE_HD ATTUNE_INLINE T rounded_here(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>)
    asm("" : "+f"(x));
  else if constexpr (std::is_same_v<T, double>)
    asm("" : "+d"(x));
#endif
  return x;
}

using attune::detail::features;
using contraction::operand_of;
using contraction::operand_side;
using contraction::table_place;

/// The features that one task accumulates: as many as stay in registers, in float or double.
inline constexpr int stretch = 32;
/// The same for tasks that stream queries: there each pair binds a row again, which takes registers too.
inline constexpr int key_stretch = 16;
template <int N = stretch>
ATTUNE_HD constexpr index_t stretches(index_t width) {
  return (width + N - 1) / N;
}

/// N accumulators of a row. Loops over them have a constant length and unroll. Entries past the last feature are 0.
template <class T, int N = stretch>
struct accumulators {
  T x[N];
  ATTUNE_HD accumulators(std::size_t, T const& value) {
    for (int n = 0; n < N; ++n) x[n] = value;
  }
  ATTUNE_HD static constexpr std::size_t size() { return N; }
  ATTUNE_HD T& operator[](std::size_t n) { return x[n]; }
  ATTUNE_HD T const& operator[](std::size_t n) const { return x[n]; }
  ATTUNE_HD T* begin() { return x; }
  ATTUNE_HD T* end() { return x + N; }
  /// Writes the first `count` of them, or all.
  ATTUNE_HD void write(features<T> const& to, index_t count) const {
    ATTUNE_UNROLL
    for (int n = 0; n < N; ++n) {
      if (n >= count) break;
      to[n] = x[n];
    }
  }
};

using attune::detail::heads_served;

/// The data that a program reads. It is copied to where the program runs.
template <class T, class Op>
struct served_problem {
  static_assert(require_device_ready<Op>());
  using value_type = T;
  using inputs_type = inputs<Op, tensor<T const>>;
  Op op;
  inputs_type in;
  problem_shape p;
  heads_served serves = {};

  /// The index of a row among all B H Lq rows.
  ATTUNE_HD index_t row_number(index_t b, index_t h, index_t i) const { return (b * p.heads + h) * p.queries + i; }
};

/// A row's view of its pairs.
template <class T, class Op>
struct row_pairs {
  using contractions = typename Op::contractions;
  using bound = decltype(std::declval<Op const&>().bind(std::declval<row<T> const&>()));

  served_problem<T, Op> const& at;
  index_t b, h, i;

  /// The facts that policies bind to. Counts the visible keys.
  ATTUNE_HD row<T> facts() const { return attune::detail::scalar_row<T>(at.p, at.op.mask, b, h, i); }
  /// The same, with the number of visible keys from `counts`, if it is there (thrust/counts.hpp).
  ATTUNE_HD row<T> facts([[maybe_unused]] index_t const* counts) const {
    if constexpr (Op::mask_policy::form == mask_form::predicate)
      if (counts != nullptr) return attune::detail::row_of_count<T>(at.p, counts[at.row_number(b, h, i)], b, h, i);
    return facts();
  }

  /// The value of a contraction for the pair with key j. `owner`: the policy that names the contraction.
  template <class C, class Owner>
  ATTUNE_HD T contracted(Owner const& owner, index_t j) const {
    return attune::detail::contracted<C, T>(at.in, at.p, owner, {b, h, i, j});
  }
  /// d term / d operand N as a function of the feature, counted from `first`.
  template <class C, int N, class Owner>
  ATTUNE_HD auto slopes(Owner const& owner, index_t j, index_t first) const {
    return attune::detail::slopes<C, N, T>(at.in, at.p, owner, {b, h, i, j, first});
  }
  /// Visits (contraction, its policy, its number) in the operator's order.
  template <class Visit>
  ATTUNE_HD void each_contraction(Visit const& visit) const {
    each(visit, contractions{}, std::make_integer_sequence<int, contractions::size>{});
  }
  /// The values of the contractions from First to Last - 1 of the pair with key j, except derived ones: see
  /// thrust/ordered.hpp.
  template <int First = 0, int Last = contractions::size>
  ATTUNE_HD void contract(T* x, index_t j) const {
    each_contraction([&](auto c, auto const& owner, auto n) {
      if constexpr (constexpr int place = decltype(n)::value;
                    First <= place && place < Last && !contraction::is_derived<decltype(c)>)
        x[place] = contracted<decltype(c)>(owner, j);
    });
  }
  ATTUNE_HD T logit(bound const& f, index_t j) const {
    T x[contractions::size + 1];
    contract<0, Op::logit_contractions>(x, j);
    return f.logit(x, key<T>{T(double(j))});
  }

  /// v_j after the value gate, as a function of the feature, counted from `first`.
  ATTUNE_HD auto values([[maybe_unused]] bound const& f, index_t j, index_t first) const {
    index_t const head = at.p.group(h, at.p.value_heads);
    features const v(at.in.v, b, head, j, first);
    if constexpr (Op::has_value_gate) {
      auto const shared = attune::detail::broadcast(at.in.value_gate, b, head, j);
      return [v, gate = features(at.in.value_gate, shared.batch, shared.head, j, first), &f](index_t d) {
        return v[d] * f.value_gate.factor(T(gate[d]));
      };
    } else {
      return [v](index_t d) { return v[d]; };
    }
  }

  /// Calls visit(j) for every visible key, in ascending order.
  template <class Visit>
  ATTUNE_HD void for_each_key(Visit const& visit) const {
    mask_row const r = at.p.row(b, h, i);
    for (key_interval k = mask::next(at.op.mask, r, 0); !k.empty(); k = mask::next(at.op.mask, r, k.last))
      for (index_t j = k.first; j < k.last; ++j) visit(j);
  }

 private:
  template <class Visit, class... C, int... Index>
  ATTUNE_HD void each(Visit const& visit, contraction::list<C...>, std::integer_sequence<int, Index...>) const {
    (..., visit(C{}, at.op.template owner<Index>(), std::integral_constant<int, Index>{}));
  }
};

/// Task (b, h, piece, i) of B H pieces Lq: neighboring tasks are queries of one head, which read the same keys.
struct row_task {
  index_t b, h, piece, i;
  ATTUNE_HD row_task(index_t n, problem_shape const& p, index_t pieces)
      : b(n / (p.queries * pieces * p.heads)), h(n / (p.queries * pieces) % p.heads), piece(n / p.queries % pieces),
        i(n % p.queries) {}
  ATTUNE_HD static index_t count(problem_shape const& p, index_t pieces) {
    return p.batch * p.heads * pieces * p.queries;
  }
};

}  // namespace attune::exec_thrust
