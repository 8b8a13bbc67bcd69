// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(reference<T>{}, fold(inner, {1.0, minus_lambda}), inputs)      vjp(...), jvp(...), jvp_of_vjp(...) likewise
//
// The sum of a fold as its definition writes it, in any scalar: out_h = c_0 out_{N h} + c_1 out_{N h + 1} + ...
#pragma once

#include <vector>

#include <attune/calls/fold.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/directional.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/split.hpp>

namespace attune {

namespace detail {

/// Reads coefficients in T. A dual number also reads the direction of the coefficient.
template <class T, Fold Op>
struct coefficients_in {
  Op const& folded;
  folded_direction<Op> const* moves = nullptr;
  T operator()(index_t c, index_t b, index_t h, index_t i) const {
    auto const n = std::size_t(c);
    if constexpr (requires(T x) { x.tangent; }) {
      using value = typename T::value_type;
      T x(folded.coefficients[n].template value<value>(b, h, i));
      if (moves != nullptr && moves->coefficients[n].is_set())
        x.tangent[0] = moves->coefficients[n].template value<value>(b, h, i);
      return x;
    } else {
      return folded.coefficients[n].template value<T>(b, h, i);
    }
  }
};

/// The cotangent of an operator of a fold, element by element: c_c d out.
template <class T, Fold Op, class View>
struct spread_view {
  View by_out;
  coefficients_in<T, Op> const* coefficients = nullptr;
  index_t number = 0;  ///< of the operator

  bool absent() const { return by_out.absent(); }
  shape extents() const {
    shape s = by_out.extents();
    s.head *= Op::heads_each;
    return s;
  }
};
template <class T, Fold Op, class View>
T read(spread_view<T, Op, View> const& x, index_t b, index_t h, index_t i, index_t d) {
  constexpr index_t each = Op::heads_each;
  index_t const c = each == 1 ? x.number : h % each;
  return (*x.coefficients)(c, b, h / each, i) * read<T>(x.by_out, b, h / each, i, d);
}

/// Dense results of all operators of a fold; direction_of(number) gives the numbers of an operator in T.
template <class T, Fold Op, class View, class Evaluate>
std::vector<dense_result<T>> dense_terms(char const* function, Op const& folded, inputs<Op, View> const& in,
                                         shape const& out, Evaluate const& evaluate) {
  checked_fold(function, folded, in, out);
  std::vector<dense_result<T>> all;
  for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = narrowed<part>(in);
    problem_shape const p =
        checked_problem(function, op, own, {out.batch, Op::heads_each * out.head, out.position, out.feature});
    all.push_back(evaluate(op, own, p, number));
  });
  return all;
}
/// O_c of row (b, h, i), feature d.
template <Fold Op, class T>
T const& element_of_term(std::vector<dense_result<T>> const& all, index_t c, index_t b, index_t h, index_t i,
                         index_t d) {
  if constexpr (Op::heads_each == 1)
    return all[std::size_t(c)].at(b, h).out(i, d);
  else
    return all.front().at(b, h * Op::heads_each + c).out(i, d);
}
/// The heads of a fold: `out` alone, everything else is empty.
template <class T, Fold Op>
dense_result<T> dense_fold(std::vector<dense_result<T>> const& all, coefficients_in<T, Op> const& coefficient,
                           shape const& out) {
  dense_result<T> result{all.front().extents, {}};
  result.extents.heads = out.head;
  for (index_t b = 0; b < out.batch; ++b)
    for (index_t h = 0; h < out.head; ++h) {
      dense_head<T>& head = result.heads.emplace_back();
      head.out.setConstant(out.position, out.feature, T(0));
      for (index_t i = 0; i < out.position; ++i)
        for (index_t d = 0; d < out.feature; ++d) {
          T sum = coefficient(0, b, h, i) * element_of_term<Op>(all, 0, b, h, i, d);
          for (index_t c = 1; c < Op::terms; ++c)
            sum = sum + coefficient(c, b, h, i) * element_of_term<Op>(all, c, b, h, i, d);
          head.out(i, d) = sum;
        }
    }
  return result;
}

/// The gradients of a fold in any scalar. numbers_of(op, number) calls its last argument with the operator's numbers.
template <class T, Fold Op, class View, class WithNumbers>
dense_gradients<T> dense_vjp_of_fold(char const* function, Op const& folded, inputs<Op, View> const& in,
                                     cotangents<Op, View> const& d, coefficients_in<T, Op> const& coefficient,
                                     WithNumbers const& with_numbers) {
  shape const out = folded_shape(function, in);
  check_folded_cotangent(d, out);
  auto const all = dense_terms<T>(function, folded, in, out,
                                  [&](auto const& op, auto const& own, problem_shape const& p, index_t number) {
                                    return with_numbers(op, number, [&](auto const& moved, lift<T> const& numbers) {
                                      return dense_forward<T>(moved, own, p, numbers);
                                    });
                                  });
  return gradients_of_fold<T, T>(
      folded, in,
      [&](index_t c, gradient_array<T>& sums) {
        add_rows_of_coefficient(sums, out, 0, [&](index_t b, index_t h, index_t i) {
          T sum(0);
          for (index_t f = 0; f < out.feature && !d.out.absent(); ++f)
            sum = sum + read<T>(d.out, b, h, i, f) * element_of_term<Op>(all, c, b, h, i, f);
          return sum;
        });
      },
      [&](auto const& op, index_t number) {
        using part = std::remove_cvref_t<decltype(op)>;
        cotangents<part, spread_view<T, Op, View>> by;
        by.out = {d.out, &coefficient, number};
        return with_numbers(op, number, [&](auto const& moved, lift<T> const& numbers) {
          return dense_vjp<T>(moved, narrowed<part>(in), all[std::size_t(number)].extents, by, numbers);
        });
      });
}

/// For dense_vjp_of_fold: nothing moves.
struct still_numbers {
  template <class Op, class Run>
  auto operator()(Op const& op, index_t, Run const& run) const {
    return run(op, {});
  }
};
/// For dense_vjp_of_fold: the operators move along their directions.
template <class T, Fold Op>
struct moving_folds {
  folded_direction<Op> const& moves;
  template <class Part, class Run>
  auto operator()(Part const& original, index_t number, Run const& run) const {
    Part const op = numbered(original);
    moving_numbers<T> const moving(op, moves.operators[std::size_t(number)]);
    return run(op, moving.numbers());
  }
};

}  // namespace detail

/// Evaluates a fold densely for an output of extents (B, H, Lq, Dv). Heads of the result hold `out`; their other
/// members are empty.
template <class T, Fold Op>
dense_result<T> forward(reference<T>, Op const& folded, inputs<Op, any_tensor> const& in, shape const& extents) {
  auto const all = detail::dense_terms<T>("forward", folded, in, extents,
                                          [](auto const& op, auto const& own, problem_shape const& p, index_t) {
                                            return detail::dense_forward<T>(op, own, p);
                                          });
  return detail::dense_fold<T, Op>(all, {folded}, extents);
}
/// The same; the inputs determine the extents.
template <class T, Fold Op>
dense_result<T> forward(reference<T> exec, Op const& folded, inputs<Op, any_tensor> const& in) {
  return forward(exec, folded, in, detail::folded_shape("forward", in));
}
/// The same call as on every other executor: writes `out` as T.
template <class T, Fold Op>
void forward(reference<T> exec, Op const& folded, inputs<Op, any_tensor> const& in, outputs<Op, T> const& to) {
  detail::require_distinct("forward", "out", to.out);
  shape const e = to.out.extents();
  auto const result = forward(exec, folded, in, e);
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) to.out(b, h, i, d) = result.at(b, h).out(i, d);
}

/// Gradients of sum <d.out, out> by every input, coefficient ("fold.0", ...), parameter and table, in any scalar.
template <class T, Fold Op>
dense_gradients<T> vjp(reference<T>, Op const& folded, inputs<Op, any_tensor> const& in,
                       cotangents<Op, any_tensor> const& d) {
  return detail::dense_vjp_of_fold<T>("vjp", folded, in, d, detail::coefficients_in<T, Op>{folded},
                                      detail::still_numbers{});
}

/// Values and directional derivatives of `out`. Names are the same as for vjp().
template <class T, Fold Op>
dense_result<dual<T, 1>> jvp(reference<T>, Op const& folded, inputs<Op, tangent_tensor> const& in,
                             policy_direction const& direction = {}) {
  using D = dual<T, 1>;
  shape const out = detail::folded_shape("jvp", in);
  detail::check_directions("jvp", in);
  detail::folded_direction<Op> const moves(folded, direction);
  detail::moving_folds<T, Op> const with_numbers{moves};
  auto const all = detail::dense_terms<D>(
      "jvp", folded, in, out, [&](auto const& op, auto const& own, problem_shape const& p, index_t number) {
        return with_numbers(op, number, [&](auto const& moved, lift<D> const& numbers) {
          return detail::dense_forward<D>(moved, own, p, numbers);
        });
      });
  return detail::dense_fold<D, Op>(all, {folded, &moves}, out);
}

/// Gradients and how they change along a direction, as for a single operator.
template <class T, Fold Op>
dense_gradients<dual<T, 1>> jvp_of_vjp(reference<T>, Op const& folded, inputs<Op, tangent_tensor> const& in,
                                       cotangents<Op, tangent_tensor> const& d,
                                       policy_direction const& direction = {}) {
  using D = dual<T, 1>;
  detail::check_directions("jvp_of_vjp", in);
  detail::check_direction("jvp_of_vjp", "the gradient of out", d.out);
  detail::folded_direction<Op> const moves(folded, direction);
  return detail::dense_vjp_of_fold<D>("jvp_of_vjp", folded, in, d, detail::coefficients_in<D, Op>{folded, &moves},
                                      detail::moving_folds<T, Op>{moves});
}

/// The states of a fold of one operator are the states of its operator, with all heads.
template <class T, Fold Op>
states_of<T, detail::only_operator<Op>> accumulate(reference<T> exec, Op const& folded,
                                                   inputs<Op, any_tensor> const& in, key_interval keys) {
  detail::require_one_operator<Op>();
  detail::checked_fold("accumulate", folded, in, detail::folded_shape("accumulate", in));
  return accumulate(exec, std::get<0>(folded.operators), detail::narrowed<detail::only_operator<Op>>(in), keys);
}

}  // namespace attune
