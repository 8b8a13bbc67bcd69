// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Folds and mixtures in any scalar, as their definitions write them: out_h = c_0 out_{N h} + c_1 out_{N h + 1} + ...
#pragma once

#include <vector>

#include <attune/calls/executor.hpp>
#include <attune/calls/fold.hpp>
#include <attune/calls/mixture.hpp>
#include <attune/exec/direction.hpp>
#include <attune/exec/reference/dense.hpp>
#include <attune/exec/reference/dense_vjp.hpp>

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

/// The heads of a fold: `out` alone, everything else is empty.
template <class T, Fold Op>
dense_result<T> dense_forward_of_fold(Op const& folded, inputs<Op, any_tensor> const& in, shape const& extents) {
  auto const all = dense_terms<T>(
      "forward", folded, in, extents,
      [](auto const& op, auto const& own, problem_shape const& p, index_t) { return dense_forward<T>(op, own, p); });
  return dense_fold<T, Op>(all, {folded}, extents);
}

/// Each head by its operator. Columns that an operator lacks are empty in its heads.
template <class T, class... Ops>
dense_result<T> dense_forward_of_mixture(mixture_operator<Ops...> const& mixed,
                                         inputs<mixture_operator<Ops...>, any_tensor> const& in, shape const& extents) {
  problem_shape const all = checked_problem("forward", mixed, in, extents);
  dense_result<T> result{all, std::vector<dense_head<T>>(std::size_t(all.batch * all.heads))};
  for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = narrowed<part>(in);
    problem_shape const p = checked_problem("forward", op, own, extents);
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h) {
        if (mixed.which[h] != number) continue;
        dense_head<T>& head = result.heads[std::size_t(b * p.heads + h)];
        head = blank_head<T, part>(p, p.queries);
        for (index_t i = 0; i < p.queries; ++i) dense_row<T>(op, own, p, b, h, i, head, i);
      }
  });
  return result;
}
template <class T, class... Ops>
dense_gradients<T> dense_vjp_of_mixture(mixture_operator<Ops...> const& mixed,
                                        inputs<mixture_operator<Ops...>, any_tensor> const& in,
                                        cotangents<mixture_operator<Ops...>, any_tensor> const& d) {
  return gradients_of_operators<T>(
      mixed, in, d, [&](auto const& op, auto const& own, problem_shape const& p, auto const& by, index_t number) {
        return dense_vjp<T>(op, own, p, by, lift<T>{}, [&](index_t h) { return mixed.which[h] == number; });
      });
}

}  // namespace detail
}  // namespace attune
