// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(exec, op, in, {.out = O});   g = vjp(exec, op, in, rows, {.out = dO})
//   forward_and_save(exec, op, in, {.out = O}, memory);  vjp(exec, op, in, memory, {.out = dO}, to)
//   r = jvp(exec, op, {.q = {Q, dQ}, .k = K, .v = V}, direction)
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include <attune/calls/composite.hpp>
#include <attune/calls/float_copies.hpp>
#include <attune/calls/rows.hpp>
#include <attune/exec/direction.hpp>

namespace attune {

namespace detail {

/// The result of forward_and_save(), which vjp() and statistics() read.
template <class Exec, class Op>
struct saved_by {
  using type = saved_rows<number_of<Exec>, Op>;
};
template <class Exec, Fold Op>
struct saved_by<Exec, Op> {
  using type = saved_fold<number_of<Exec>, Op>;
};
template <class Exec, class... Ops>
struct saved_by<Exec, mixture_operator<Ops...>> {
  struct type {};  ///< mixtures save nothing
};
template <class Exec, class Op>
using saved_of = typename saved_by<Exec, Op>::type;

/// An executor whose gradients of 16-bit tensors are computed from copies in float.
template <class Exec>
inline constexpr bool copies_to_floats = storage_only<typename Exec::value_type> &&
                                         requires(Exec const& exec) { float_executor(typename Exec::engine{}, exec); };
/// The extents of a call of vjp().
template <class Exec, class Op>
problem_shape checked_vjp(Op const& op, inputs<Op, typename Exec::view> const& in) {
  return detail::checked_inputs("vjp", op, in, memory_of<Exec>());
}

}  // namespace detail

/// forward(), which also returns what vjp() and statistics() need: a few numbers per row, and for rows of masses the
/// value sum; of a fold also the outputs of all terms. On Thrust, in host memory.
template <Executor Exec, class Op>
detail::saved_of<Exec, Op> forward_and_save(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                                            outputs<Op, typename Exec::value_type> const& out) {
  detail::saved_of<Exec, Op> all;
  if constexpr (detail::offered<call_kind::forward_and_save, Exec, Op>() &&
                detail::leaves_results<Exec, result_place::returned>()) {
    if constexpr (Fold<Op>) {
      detail::folded_call<Exec, Op> const call("forward_and_save", exec, op, in, out.out.extents());
      detail::require_distinct("forward_and_save", "out", out.out);
      all = call.save();
      call.add(all.terms.data(), out.out);
    } else {
      problem_shape const p =
          detail::checked_problem("forward_and_save", op, in, out.out.extents(), detail::memory_of<Exec>());
      detail::check_outputs("forward_and_save", out, p);
      all = detail::saved_of<Exec, Op>(op, p);
      save_rows(typename Exec::engine{}, exec, op, in, p, &out, all, detail::heads_served{});
    }
  }
  return all;
}

/// The same, in the caller's memory of saved_size(op, in) numbers, which has the memory kind of the executor. Tensors
/// of 16 bits are copied to floats while it runs, except on tensor cores.
template <Executor Exec, class Op>
void forward_and_save(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                      outputs<Op, typename Exec::value_type> const& out, std::span<detail::number_of<Exec>> memory) {
  if constexpr (detail::offered<call_kind::forward_and_save, Exec, Op>() &&
                detail::leaves_results<Exec, result_place::memory>()) {
    if constexpr (detail::copies_to_floats<Exec>) {
      if constexpr (Fold<Op>)
        detail::require_distinct("forward_and_save", "out", out.out);
      else
        detail::check_outputs("forward_and_save", out,
                              detail::checked_problem("forward_and_save", op, in, out.out.extents()));
      detail::float_copies copies;
      detail::rounded_once(out, [&](auto const& wide) {
        forward_and_save(float_executor(typename Exec::engine{}, exec), op, copies.of(in), wide, memory);
      });
    } else if constexpr (Fold<Op>) {
      index_t const size = detail::saved_size_of_fold("forward_and_save", op, in, out.out.extents());
      detail::require_size("forward_and_save", memory.size(), size);
      auto const all = forward_and_save(exec, op, in, out);
      detail::each_array_of_fold(all, [&](auto const& x, index_t n) {
        std::copy(x.begin(), x.end(), memory.begin());
        memory = memory.subspan(std::size_t(n));
      });
    } else {
      problem_shape const p =
          detail::checked_problem("forward_and_save", op, in, out.out.extents(), detail::memory_of<Exec>());
      detail::check_outputs("forward_and_save", out, p);
      auto rows = detail::rows_in<Op>("forward_and_save", memory, p);
      if constexpr (detail::memory_of<Exec>() == memory_kind::host)
        std::fill(memory.begin(), memory.end(), detail::number_of<Exec>(0));
      save_rows(typename Exec::engine{}, exec, op, in, p, &out, rows, detail::heads_served{});
    }
  }
}

/// Gradients of sum <d.out, out> + <d.lse, lse> + <d.ground_weight, w0> by every input, parameter and table. Fused:
/// nothing of size Lq x Lk exists. `saved` is the result of forward_and_save for the same operator and inputs.
/// Names:       paths of parameters and tables; "fold.0", ... for the coefficients of a fold. With several operators, a
///              path begins with the number of the operator: "0.kernel.scale".
/// Conventions at kinks and ties, and for degenerate rows: docs/reference/contracts.md.
/// Errors:      attune::error names the argument, the value and the expectation.
/// Complexity:  5/2 of the products of forward(); memory for the gradients and the key sides of at most 32 tasks; of a
///              fold also the cotangents of all terms.
/// Determinism: bitwise the same for any number of threads.
/// In a loop, g = vjp(..., std::move(g)) reuses the memory of the last call.
template <Executor Exec, class Op>
dense_gradients<detail::number_of<Exec>> vjp(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                                             detail::saved_of<Exec, Op> const& saved,
                                             cotangents<Op, typename Exec::view> const& d,
                                             dense_gradients<detail::number_of<Exec>> memory = {}) {
  if constexpr (detail::offered<call_kind::vjp, Exec, Op>() && detail::leaves_results<Exec, result_place::returned>()) {
    static_assert(detail::reads_saved_rows<Exec>,
                  "attune: vjp() of this executor (Exec) runs the forward pass itself: vjp(exec, op, in, {.out = dO})");
    if constexpr (Fold<Op>)
      return detail::folded_call<Exec, Op>("vjp", exec, op, in, detail::folded_shape("vjp", in)).gradients(saved, d);
    else
      return detail::gradients_of_rows(exec, op, in, detail::checked_vjp<Exec>(op, in), saved, d, {},
                                       std::move(memory));
  } else {
    return memory;
  }
}
/// Overload that runs the forward pass itself.
template <Executor Exec, class Op>
dense_gradients<detail::number_of<Exec>> vjp(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
                                             cotangents<Op, typename Exec::view> const& d) {
  if constexpr (!detail::offered<call_kind::vjp, Exec, Op>() || !detail::leaves_results<Exec, result_place::returned>())
    return {};
  else if constexpr (Fold<Op>)
    return detail::folded_call<Exec, Op>("vjp", exec, op, in, detail::folded_shape("vjp", in)).gradients(d);
  else if constexpr (detail::is_mixture<Op>)
    return detail::gradients_of_mixture(exec, op, in, d);
  else
    return detail::gradients_of_call(exec, op, in, detail::checked_vjp<Exec>(op, in), d);
}

/// The same gradients, of the inputs, parameters and tables that `to` names, in the caller's memory. Key sides that
/// `to` does not name are not computed. `saved`: the numbers that forward_and_save() wrote to the caller's memory.
/// Tensors of 16 bits: copied to floats while it runs; gradients are rounded once. Gradients by parameters and tables,
/// and cotangents of outputs with one number per row, are floats.
template <Executor Exec, class Op>
void vjp(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
         std::span<detail::number_of<Exec> const> saved, cotangents<Op, typename Exec::view> const& d,
         gradient_outputs<Op, typename Exec::value_type> const& to) {
  if constexpr (detail::offered<call_kind::vjp, Exec, Op>() && detail::leaves_results<Exec, result_place::memory>()) {
    if constexpr (detail::copies_to_floats<Exec>)
      detail::vjp_of_copies(in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
        vjp(float_executor(typename Exec::engine{}, exec), op, wide, saved, by, results);
      });
    else if constexpr (Fold<Op>)
      detail::copy_gradients(vjp(exec, op, in, detail::saved_fold_in(op, in, saved), d), op, in, to);
    else {
      problem_shape const p = detail::checked_vjp<Exec>(op, in);
      detail::gradients_to(exec, op, in, p, detail::rows_in<Op>("vjp", saved, p), d,
                           detail::views_of(to, op, in, detail::memory_of<Exec>()));
    }
  }
}
/// The same, from rows that forward_and_save() returned.
template <Executor Exec, class Op>
void vjp(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
         detail::saved_of<Exec, Op> const& saved, cotangents<Op, typename Exec::view> const& d,
         gradient_outputs<Op, typename Exec::value_type> const& to) {
  if constexpr (detail::offered<call_kind::vjp, Exec, Op>() && detail::leaves_results<Exec, result_place::memory>()) {
    if constexpr (Fold<Op>) {
      detail::copy_gradients(vjp(exec, op, in, saved, d), op, in, to);
    } else if constexpr (detail::memory_of<Exec>() == memory_kind::device) {
      static_assert(detail::never<Op>,
                    "attune: vjp() of this executor (Exec) reads saved rows in memory of the device: give it the span "
                    "that forward_and_save() wrote");
    } else {
      problem_shape const p = detail::checked_vjp<Exec>(op, in);
      detail::gradients_to(exec, op, in, p, detail::view_of<detail::number_of<Exec>, Op>(saved), d,
                           detail::views_of(to, op, in));
    }
  }
}
/// Overload that runs the forward pass itself.
template <Executor Exec, class Op>
void vjp(Exec const& exec, Op const& op, inputs<Op, typename Exec::view> const& in,
         cotangents<Op, typename Exec::view> const& d, gradient_outputs<Op, typename Exec::value_type> const& to) {
  if constexpr (detail::offered<call_kind::vjp, Exec, Op>() && detail::leaves_results<Exec, result_place::memory>()) {
    if constexpr (detail::copies_to_floats<Exec>)
      detail::vjp_of_copies(in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
        vjp(float_executor(typename Exec::engine{}, exec), op, wide, by, results);
      });
    else if constexpr (Fold<Op>)
      detail::copy_gradients(vjp(exec, op, in, d), op, in, to);
    else if constexpr (detail::is_mixture<Op>)
      static_assert(detail::never<Op>,
                    "attune: vjp() of a mixture returns its gradients: vjp(exec, op, in, {.out = dO})");
    else if constexpr (detail::memory_of<Exec>() == memory_kind::device)
      vjp_without_rows(typename Exec::engine{}, exec, op, in, d,
                       detail::views_of(to, op, in, detail::memory_of<Exec>()));
    else
      vjp(exec, op, in, detail::rows_alone(exec, op, in, detail::checked_vjp<Exec>(op, in)), d, to);
  }
}

/// Values and directional derivatives of the outputs of an operator or a fold. Fused: nothing of size Lq x Lk exists.
/// Names of parameters and tables are the same as for vjp().
/// Errors:      attune::error names the argument, the value and the expectation.
/// Complexity:  up to three times the products of forward().
/// Determinism: bitwise the same for any number of threads.
template <Executor Exec, class Op>
auto jvp(Exec const& exec, Op const& op, inputs<Op, typename Exec::moving_view> const& in,
         policy_direction const& direction = {}) {
  if constexpr (!detail::offered<call_kind::jvp, Exec, Op>())
    return 0;
  else if constexpr (Fold<Op>)
    return detail::jvp_of_fold(exec, op, in, direction);
  else
    return detail::jvp_of_call(exec, op, in, direction);
}

}  // namespace attune
