// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   one call of an operator on a line: checked inputs -> what the algorithms take, and back
#pragma once

#include <vector>

#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/exec/problem.hpp>
#include <attune/line/operators.hpp>
#include <attune/sorted/problem.hpp>
#include <attune/sorted/sight.hpp>
#include <attune/sorted/workers.hpp>

namespace attune::line::detail {

/// A call whose arguments fit: what the dense operator would have refused has been refused, with the same words.
template <class T, class Op>
class call {
 public:
  using dense_type = decltype(std::declval<Op const&>().dense());
  using view = tensor<T const>;

  call(char const* function, Op const& op, inputs<Op, view> const& in, shape const& out)
      : dense_(op.dense()), mask_(op.mask),
        in_(make_inputs<dense_type, view>([&]<field F>() { return member<F>(in); }, in.offset)),
        p_(attune::detail::checked_problem(function, dense_, in_, out)) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "attune: operators on a line run on cpu<float> and cpu<double>");
    sorted::detail::require_finite(function, "sort_q", in_.sort_q);
    sorted::detail::require_finite(function, "sort_k", in_.sort_k);
    if constexpr (requires { op.tau; })
      if (op.tau.extents().position != 1)
        throw error(function, "tau", "one value per query",
                    "one value, or one per head: sums over sorted keys serve queries of one bandwidth; for one per "
                    "query take the certified window or the dense operator");
    if constexpr (requires { op.tolerance; }) sorted::detail::check_tolerance(function, op.tolerance);
    sorted::detail::require_intervals(function, mask_, p_);
  }

  sorted::arrays<T> arrays() const { return {in_.sort_q, in_.sort_k, in_.v}; }
  sorted::detail::extents extents() const {
    return {p_.batch, p_.heads, in_.sort_k.extents().head, p_.value_heads, p_.queries, p_.keys, p_.value_width};
  }
  bool empty() const { return p_.batch * p_.heads * p_.queries == 0; }
  /// The sight of a head.
  auto sees() const {
    return [this](index_t b, index_t h) { return sorted::detail::sight(mask_, p_, b, h); };
  }
  problem_shape const& problem() const { return p_; }

  dense_gradients<T> blank() const { return attune::detail::blank_gradients<T>(dense_, in_); }
  static sorted::gradients<T> views(dense_gradients<T>& to) {
    auto const of = [&](field f) { return tensor<T>(to.of(f).values.data(), to.of(f).extents); };
    return {of(field::sort_q), of(field::sort_k), of(field::v), {}};
  }
  /// Gives the gradients by the bandwidth of each (batch, head) to the parameter, and to what it is projected from.
  template <class W>
  void give_bandwidth(std::vector<W> const& by_tau, dense_gradients<T>& to) const {
    gradient_array<T>& tau = to.parameters.at(0).values;
    std::vector<W> sums(tau.values.size(), W(0));
    shape const e = tau.extents;
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t h = 0; h < p_.heads; ++h) {
        W& sum = sums[std::size_t((e.batch == 1 ? 0 : b) * e.head + (e.head == 1 ? 0 : h))];
        sum = sum + by_tau[std::size_t(b * p_.heads + h)];
      }
    for (std::size_t n = 0; n < sums.size(); ++n) tau.values[n] = T(sums[n]);
    auto const listed = listed_parameters(dense_);
    attune::detail::pull_projections<T>(listed, to);
  }

 private:
  dense_type dense_;
  std::remove_cvref_t<decltype(std::declval<Op const&>().mask)> mask_;
  inputs<dense_type, view> in_;
  problem_shape p_;
};

template <class T, class Op>
sorted::results<T> results_of(outputs<Op, T> const& to) {
  if constexpr (Op::has_lse)
    return {to.out, to.lse.values};
  else
    return {to.out, {}};
}
template <class T, class Op>
sorted::cotangents<T> cotangents_of(cotangents<Op, tensor<T const>> const& d) {
  if constexpr (Op::has_lse)
    return {d.out, d.lse};
  else
    return {d.out, {}};
}
template <class T, class Arch>
sorted::workers workers_of(cpu<T, Arch> const& exec) {
  return {exec.threads, exec.executor};
}

}  // namespace attune::line::detail
