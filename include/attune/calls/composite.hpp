// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls of folds and mixtures on any executor, made of the rows of their operators. An engine gives:
//   numbers_for(engine, exec, n, T())                        memory where rows are computed, with data()
//   add_terms(engine, exec, folded, layout, terms, out)      out = sum_c c_c O_c, rounded once to the type of `out`
//   spread_terms(engine, exec, folded, layout, terms, by_out, spread)
//       spread: c_c d out of all terms; returns <d out, O_c> of all rows, in the order (c, b, h, i)
//   fill_rows(engine, exec, p, serves, to, value)            a number for each row of the heads of an operator
#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/calls/fold.hpp>
#include <attune/calls/mixture.hpp>
#include <attune/calls/pages.hpp>
#include <attune/calls/rows.hpp>

namespace attune::detail {

/// One call of a fold.
template <Executor Exec, Fold Op>
class folded_call {
  using engine = typename Exec::engine;
  using view = typename Exec::view;
  using T = number_of<Exec>;

 public:
  /// Checks the coefficients. out: (B, H, Lq, Dv) of `out`.
  folded_call(char const* function, Exec const& exec, Op const& folded, inputs<Op, view> const& in, shape const& out)
      : function_(function), exec_(exec), folded_(folded), in_(in),
        layout_(checked_fold(function, folded, in, out, memory_of<Exec>())) {}

  fold_layout<Op> const& layout() const { return layout_; }

  template <class S>
  void forward(outputs<Op, S> const& out) const {
    require_distinct(function_, "out", out.out);
    auto terms = numbers_for(engine{}, exec_, layout_.size(), T());
    evaluate(terms.data());
    add(terms.data(), out.out);
  }
  /// The outputs of all terms, from caches.
  template <class Cache, class S>
  void decode(Cache const& cache, outputs<Op, S> const& out) const {
    require_distinct(function_, "out", out.out);
    auto terms = numbers_for(engine{}, exec_, layout_.size(), T());
    for_each_operator(folded_, [&](auto const& op, index_t number, std::string const&) {
      using part = std::remove_cvref_t<decltype(op)>;
      auto const own = cache.template of<part>();
      decode_rows(engine{}, exec_, op, own, checked_cache(function_, op, own, layout_.of_operator()),
                  outputs<part, T>{.out = layout_.operator_at(terms.data(), number)});
    });
    add(terms.data(), out.out);
  }
  /// out = sum_c c_c O_c.
  template <class S>
  void add(T const* terms, tensor<S> const& out) const {
    add_terms(engine{}, exec_, folded_, layout_, terms, out);
  }
  /// The outputs of all terms, with the saved rows of all operators.
  saved_fold<T, Op> save() const {
    saved_fold<T, Op> all{.extents = layout_.out, .rows = {}, .terms = std::vector<T>(std::size_t(layout_.size()))};
    for_each_operator(folded_, [&](auto const& op, auto number, std::string const&) {
      using part = std::remove_cvref_t<decltype(op)>;
      auto const own = narrowed<part>(in_);
      outputs<part, T> const to{.out = layout_.operator_at(all.terms.data(), number)};
      problem_shape const p = extents(op, own);
      saved_rows<T, part> rows(op, p);
      save_rows(engine{}, exec_, op, own, p, &to, rows, heads_served{});
      std::get<number()>(all.rows) = std::move(rows);
    });
    return all;
  }
  /// The gradients, from what save() returned.
  dense_gradients<T> gradients(saved_fold<T, Op> const& saved, cotangents<Op, view> const& d) const {
    require_shape("vjp", "saved", saved.extents, layout_.out, ", the shape of out");
    return pull(saved.terms.data(), d, [&](auto const& op, auto const& own, auto number, auto const& by) {
      return gradients_of_rows(exec_, op, own, extents(op, own), std::get<number()>(saved.rows), by);
    });
  }
  /// The gradients. Runs the forward pass itself.
  dense_gradients<T> gradients(cotangents<Op, view> const& d) const {
    if constexpr (reads_saved_rows<Exec>) {
      return gradients(save(), d);
    } else {
      auto terms = numbers_for(engine{}, exec_, layout_.size(), T());
      evaluate(terms.data());
      return pull(terms.data(), d, [&](auto const& op, auto const& own, auto, auto const& by) {
        return gradients_of_call(exec_, op, own, extents(op, own), by);
      });
    }
  }

 private:
  template <class Part>
  problem_shape extents(Part const& op, inputs<Part, view> const& own) const {
    return checked_problem(function_, op, own, layout_.of_operator(), memory_of<Exec>());
  }
  void evaluate(T* terms) const {
    for_each_operator(folded_, [&](auto const& op, index_t number, std::string const&) {
      using part = std::remove_cvref_t<decltype(op)>;
      auto const own = narrowed<part>(in_);
      forward_rows(engine{}, exec_, op, own, extents(op, own),
                   outputs<part, T>{.out = layout_.operator_at(terms, number)}, heads_served{});
    });
  }
  /// of_operator(operator, its inputs, its number, its cotangents) returns the gradients of an operator.
  template <class OfOperator>
  dense_gradients<T> pull(T const* terms, cotangents<Op, view> const& d, OfOperator const& of_operator) const {
    check_folded_cotangent(d, layout_.out);
    bool const given = !d.out.absent();
    auto spread = numbers_for(engine{}, exec_, given ? layout_.size() : 0, T());
    std::vector<double> products;
    if (given) products = spread_terms(engine{}, exec_, folded_, layout_, terms, d.out, spread.data());
    return gradients_of_fold<double, T>(
        folded_, in_,
        [&](index_t c, gradient_array<double>& sums) {
          if (given)
            add_rows_of_coefficient(sums, layout_.out, 0, [&](index_t b, index_t h, index_t i) {
              return products[std::size_t(c * layout_.rows().size() + layout_.row(b, h, i))];
            });
        },
        [&](auto const& op, auto number) {
          using part = std::remove_cvref_t<decltype(op)>;
          cotangents<part, view> by;
          if (given) by.out = layout_.template operator_at<T const>(spread.data(), number);
          return of_operator(op, narrowed<part>(in_), number, by);
        },
        memory_of<Exec>());
  }

  char const* function_;
  Exec const& exec_;
  Op const& folded_;
  inputs<Op, view> const& in_;
  fold_layout<Op> layout_;
};

/// jvp() of a fold: sum_c c_c dO_c + dc_c O_c.
template <class Exec, Fold Op>
auto jvp_of_fold(Exec const& exec, Op const& folded, inputs<Op, typename Exec::moving_view> const& in,
                 policy_direction const& direction) {
  using T = number_of<Exec>;
  using view = typename Exec::view;
  auto const values = make_inputs<Op, view>([&]<field F>() { return member<F>(in).value; }, in.offset, in.offsets);
  folded_call<Exec, Op> const call("jvp", exec, folded, values, folded_shape("jvp", values));
  shape const& out = call.layout().out;
  folded_direction<Op> const moves(folded, direction);
  std::vector<T> terms, along;
  for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const r = jvp_of_call(exec, op, narrowed<part>(in), moves.operators[std::size_t(number)]);
    terms.insert(terms.end(), r.out.values.begin(), r.out.values.end());
    along.insert(along.end(), r.out_along.values.begin(), r.out_along.values.end());
  });
  directional_result<T> to{gradient_array<T>(out), gradient_array<T>(out), {}, {}, {}, {}};
  call.add(terms.data(), tensor<T>(to.out.values, out));
  call.add(along.data(), tensor<T>(to.out_along.values, out));
  auto const of_values = call.layout().template all_terms<T const>(terms.data());
  for (index_t c = 0; c < Op::terms; ++c)
    if (parameter const& by = moves.coefficients[std::size_t(c)]; by.is_set())
      for (index_t b = 0; b < out.batch; ++b)
        for (index_t h = 0; h < out.head; ++h)
          for (index_t i = 0; i < out.position; ++i)
            for (index_t d = 0; d < out.feature; ++d)
              to.out_along(b, h, i, d) += T(by.at(b, h, i)) * of_values[std::size_t(c)](b, h, i, d);
  return to;
}

/// forward() of a mixture whose arguments are checked.
template <class Exec, class... Ops>
void forward_of_mixture(Exec const& exec, mixture_operator<Ops...> const& mixed,
                        inputs<mixture_operator<Ops...>, typename Exec::view> const& in, problem_shape const& all,
                        outputs<mixture_operator<Ops...>, typename Exec::value_type> const& out) {
  using whole = mixture_operator<Ops...>;
  using engine = typename Exec::engine;
  using T = typename Exec::value_type;
  for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = narrowed<part>(in);
    heads_served const serves{mixed.which, number};
    forward_rows(engine{}, exec, op, own, checked_problem("forward", op, own, out.out.extents(), memory_of<Exec>()),
                 narrowed<part>(out), serves);
    [[maybe_unused]] auto const fill = [&](tensor<T> const& to, T value) {
      if (!to.absent()) fill_rows(engine{}, exec, all, serves, to, value);
    };
    if constexpr (whole::has_ground_weight && !part::has_ground_weight) fill(out.ground_weight, T(0));
    if constexpr (whole::has_threshold && !part::has_threshold)
      fill(out.threshold, std::numeric_limits<T>::quiet_NaN());
  });
}
/// The gradients of a mixture.
template <class Exec, class... Ops>
dense_gradients<number_of<Exec>> gradients_of_mixture(
    Exec const& exec, mixture_operator<Ops...> const& mixed,
    inputs<mixture_operator<Ops...>, typename Exec::view> const& in,
    cotangents<mixture_operator<Ops...>, typename Exec::view> const& d) {
  return gradients_of_operators<number_of<Exec>>(
      mixed, in, d,
      [&](auto const& op, auto const& own, problem_shape const& p, auto const& by, index_t number) {
        return gradients_of_call(exec, op, own, p, by, {mixed.which, number});
      },
      memory_of<Exec>());
}

}  // namespace attune::detail
