// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(cpu{}, folded, in, {.out = O});   g = vjp(cpu{}, folded, in, rows, {.out = dO})
//   g.parameter("fold.1")                                     r = jvp(cpu{}, folded, moving inputs, direction)
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <attune/exec/cpu/fold/forward.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/gradients/jvp.hpp>
#include <attune/exec/cpu/gradients/stored.hpp>

namespace attune {

namespace exec_cpu {

/// Returns a function that calls run(b, h, query, row) for every row of a fold's outputs, on all threads. Here a row is
/// its query. The function refers to `exec`.
template <class T, class Arch>
auto rows_of_fold(cpu<T, Arch> const& exec, shape const& out) {
  return [&exec, out](auto const& run) {
    for_each_row<T>(exec, out, 0, [&](index_t b, index_t h, index_t i, T*) { run(b, h, i, i); });
  };
}

/// The cotangents of all terms: c_c d out. each_row: as rows_of_fold() makes it.
template <class T, Fold Op, class EachRow>
std::vector<T> spread_cotangent(EachRow const& each_row, Op const& folded,
                                attune::detail::fold_layout<Op> const& layout, tensor<T const> const& by_out) {
  std::vector<T> memory(std::size_t(layout.size()));
  fixed_coefficients<Op> const coefficients(folded);
  auto const terms = layout.all_terms(memory.data());
  index_t const step = by_out.steps().feature;
  each_row([&](index_t b, index_t h, index_t query, index_t i) {
    T const* const from = by_out.row(b, h, i);
    for (index_t c = 0; c < Op::terms; ++c) {
      T const x = coefficients.template value<T>(c, b, h, query);
      T* const to = terms[std::size_t(c)].row(b, h, i);
      for (index_t d = 0; d < layout.out.feature; ++d) to[d] = x * from[d * step];
    }
  });
  return memory;
}

/// <d out, O_c> of every row of every term, in double.
template <Fold Op>
class products_of_terms {
 public:
  template <class T, class EachRow>
  products_of_terms(EachRow const& each_row, attune::detail::fold_layout<Op> const& layout, std::vector<T> const& saved,
                    tensor<T const> const& by_out)
      : rows_{layout.out.batch, layout.out.head, layout.out.position, 1},
        values_(std::size_t(Op::terms * rows_.size())) {
    auto const terms = layout.all_terms(saved.data());
    each_row([&](index_t b, index_t h, index_t, index_t i) {
      for (index_t c = 0; c < Op::terms; ++c) {
        double sum = 0;
        for (index_t d = 0; d < layout.out.feature; ++d)
          sum += double(by_out(b, h, i, d)) * double(terms[std::size_t(c)](b, h, i, d));
        values_[at(c, b, h, i)] = sum;
      }
    });
  }
  double operator()(index_t c, index_t b, index_t h, index_t i) const { return values_[at(c, b, h, i)]; }

 private:
  std::size_t at(index_t c, index_t b, index_t h, index_t i) const {
    return std::size_t(((c * rows_.batch + b) * rows_.head + h) * rows_.position + i);
  }
  shape rows_;
  std::vector<double> values_;
};

/// Throws unless the caller's memory for saved numbers has their size.
ATTUNE_NOINLINE inline void require_size(char const* function, std::size_t given, index_t size) {
  if (index_t(given) != size)
    throw error(function, "memory", attune::detail::text("a span of ", given, " numbers"),
                attune::detail::text(size, ", as saved_size() says"));
}

/// The fold's forward pass, which also saves what vjp() needs.
template <class T, class Arch, Fold Op>
saved_fold<T, Op> save_fold(char const* function, cpu<T, Arch> const& exec, Op const& folded,
                            inputs<Op, tensor<T const>> const& in, shape const& out) {
  auto const layout = attune::detail::checked_fold(function, folded, in, out);
  saved_fold<T, Op> all{.extents = out, .rows = {}, .terms = std::vector<T>(std::size_t(layout.size()))};
  attune::detail::for_each_operator(folded, [&](auto const& op, auto number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const own = attune::detail::narrowed<part>(in);
    outputs<part, T> const to{.out = layout.operator_at(all.terms.data(), number)};
    problem_shape const p = attune::detail::checked_problem(function, op, own, to.out.extents());
    saved_rows<T, part> rows(op, p);
    stream(
        exec, op, own, p, {0, p.keys}, [](index_t) { return true; },
        [&](auto& tile, auto const& memory) {
          tile.finish(own, to, memory);
          save_rows<part>(tile, rows, true);
        });
    std::get<number()>(all.rows) = std::move(rows);
  });
  return all;
}

}  // namespace exec_cpu

/// forward(), which also returns what vjp() needs: the saved rows of the operators, and the outputs of all terms.
template <class T, class Arch, Fold Op>
saved_fold<T, Op> forward_and_save(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                                   outputs<Op, T> const& out) {
  detail::require_distinct("forward_and_save", "out", out.out);
  auto all = exec_cpu::save_fold("forward_and_save", exec, folded, in, out.out.extents());
  exec_cpu::fold_terms<T>(exec, folded, detail::fold_layout<Op>{all.extents}.all_terms(all.terms.data()), out.out);
  return all;
}

/// The same, in the caller's memory of saved_size(folded, in) numbers.
/// Memory: as above, before it is copied.
template <class T, class Arch, Fold Op>
void forward_and_save(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                      outputs<Op, T> const& out, std::span<T> memory) {
  index_t const size = detail::saved_size_of_fold("forward_and_save", folded, in, out.out.extents());
  exec_cpu::require_size("forward_and_save", memory.size(), size);
  auto const all = forward_and_save(exec, folded, in, out);
  detail::each_array_of_fold(all, [&](auto const& x, index_t n) {
    std::copy(x.begin(), x.end(), memory.begin());
    memory = memory.subspan(std::size_t(n));
  });
}

/// Gradients of sum <d.out, out> by every input, coefficient, parameter and table. Coefficients are called "fold.0",
/// "fold.1", ... Parameters of a fold of one operator keep their paths. With several operators, a path begins with the
/// number of the operator: "0.kernel.scale".
/// Memory: as for the operators, and the cotangents of all terms: B H Lq Dv numbers of T per coefficient.
template <class T, class Arch, Fold Op>
dense_gradients<T> vjp(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       saved_fold<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d) {
  auto const layout = detail::checked_fold("vjp", folded, in, detail::folded_shape("vjp", in));
  detail::require_shape("vjp", "saved", saved.extents, layout.out, ", the shape of out");
  detail::check_folded_cotangent(d, layout.out);
  bool const given = !d.out.absent();
  auto const each_row = exec_cpu::rows_of_fold(exec, layout.out);
  std::vector<T> spread;
  std::optional<exec_cpu::products_of_terms<Op>> products;
  if (given) {
    spread = exec_cpu::spread_cotangent(each_row, folded, layout, d.out);
    products.emplace(each_row, layout, saved.terms, d.out);
  }
  return detail::gradients_of_fold<double, T>(
      folded, in,
      [&](index_t c, gradient_array<double>& sums) {
        if (given)
          detail::add_rows_of_coefficient(sums, layout.out, 0,
                                          [&](index_t b, index_t h, index_t i) { return (*products)(c, b, h, i); });
      },
      [&](auto const& op, auto number) {
        using part = std::remove_cvref_t<decltype(op)>;
        cotangents<part, tensor<T const>> by;
        if (given) by.out = layout.template operator_at<T const>(spread.data(), number);
        auto const own = detail::narrowed<part>(in);
        return exec_cpu::fused_vjp(exec, op, own, detail::checked_problem("vjp", op, own, layout.of_operator()),
                                   std::get<number()>(saved.rows), by, [](index_t) { return true; });
      });
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, Fold Op>
dense_gradients<T> vjp(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  return vjp(exec, folded, in, exec_cpu::save_fold("vjp", exec, folded, in, detail::folded_shape("vjp", in)), d);
}

/// The same gradients, of the inputs, parameters and tables that `to` names, in the caller's memory. All are computed.
/// `saved`: the numbers that forward_and_save() wrote to the caller's memory.
template <class T, class Arch, Fold Op>
void vjp(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in, std::span<T const> saved,
         cotangents<Op, tensor<T const>> const& d, gradient_outputs<Op, T> const& to) {
  shape const out = detail::folded_shape("vjp", in);
  auto const layout = detail::checked_fold("vjp", folded, in, out);
  exec_cpu::require_size("vjp", saved.size(), detail::saved_size_of_fold("vjp", folded, in, out));
  saved_fold<T, Op> all{.extents = out, .rows = {}, .terms = std::vector<T>(std::size_t(layout.size()))};
  detail::for_each_operator(folded, [&](auto const& op, auto number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    std::get<number()>(all.rows) =
        saved_rows<T, part>(op, detail::checked_problem("vjp", op, detail::narrowed<part>(in), layout.of_operator()));
  });
  detail::each_array_of_fold(all, [&](std::vector<T>& x, index_t n) {
    std::copy_n(saved.begin(), n, x.begin());
    saved = saved.subspan(std::size_t(n));
  });
  detail::copy_gradients(vjp(exec, folded, in, all, d), folded, in, to);
}
/// Overload that runs the forward pass itself.
template <class T, class Arch, Fold Op>
  requires(!storage_only<T>)
void vjp(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in,
         cotangents<Op, tensor<T const>> const& d, gradient_outputs<Op, T> const& to) {
  detail::copy_gradients(vjp(exec, folded, in, d), folded, in, to);
}

/// forward() of 16-bit tensors, which also writes what vjp() needs to `memory`: saved_size(folded, in) floats.
/// Memory: copies of all inputs as floats while it runs.
template <storage_only S, class Arch, Fold Op>
void forward_and_save(cpu<S, Arch> exec, Op const& folded, inputs<Op, tensor<S const>> const& in,
                      outputs<Op, S> const& out, std::span<float> memory) {
  detail::require_distinct("forward_and_save", "out", out.out);
  exec_cpu::float_copies copies;
  outputs<Op, float> const wide{.out = copies.blank(out.out)};
  forward_and_save(exec_cpu::of_floats(exec), folded, copies.of(in), wide, memory);
  exec_cpu::float_copies::round(wide.out, out.out);
}

/// Values and directional derivatives of `out`: sum_c c_c dO_c + dc_c O_c. Names are the same as for vjp().
/// Requires: normalizers made of masses, as jvp() of an operator.
template <class T, class Arch, Fold Op>
directional_result<T> jvp(cpu<T, Arch> exec, Op const& folded, inputs<Op, moving_tensor<T>> const& in,
                          policy_direction const& direction = {}) {
  auto const values = make_inputs<Op, tensor<T const>>([&]<field F>() { return member<F>(in).value; }, in.offset);
  auto const layout = detail::checked_fold("jvp", folded, values, detail::folded_shape("jvp", values));
  detail::folded_direction<Op> const moves(folded, direction);
  std::vector<T> terms, along;
  detail::for_each_operator(folded, [&](auto const& op, index_t number, std::string const&) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const r = jvp(exec, op, detail::narrowed<part>(in), moves.operators[std::size_t(number)]);
    terms.insert(terms.end(), r.out.values.begin(), r.out.values.end());
    along.insert(along.end(), r.out_along.values.begin(), r.out_along.values.end());
  });
  directional_result<T> to{gradient_array<T>(layout.out), gradient_array<T>(layout.out), {}, {}, {}, {}};
  auto const of_values = layout.template all_terms<T const>(terms.data());
  exec_cpu::fold_terms<T>(exec, folded, of_values, tensor<T>(to.out.values, layout.out));
  exec_cpu::fold_terms<T>(exec, folded, layout.template all_terms<T const>(along.data()),
                          tensor<T>(to.out_along.values, layout.out));
  for (index_t c = 0; c < Op::terms; ++c)
    if (parameter const& by = moves.coefficients[std::size_t(c)]; by.is_set())
      exec_cpu::for_each_row<T>(exec, layout.out, 0, [&](index_t b, index_t h, index_t i, T*) {
        for (index_t d = 0; d < layout.out.feature; ++d)
          to.out_along(b, h, i, d) += T(by.at(b, h, i)) * of_values[std::size_t(c)](b, h, i, d);
      });
  return to;
}

}  // namespace attune
