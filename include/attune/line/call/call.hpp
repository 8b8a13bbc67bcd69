// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   one call of an operator on a line: checked inputs -> arguments of the algorithms, and results back
#pragma once

#include <utility>
#include <vector>

#include <attune/exec/gradients.hpp>
#include <attune/exec/problem.hpp>
#include <attune/line/call/problem.hpp>
#include <attune/line/operators.hpp>
#include <attune/line/order/sight.hpp>

namespace attune::line::detail {

/// Sums over sorted keys use one bandwidth for all queries of a head.
template <class Op>
void require_bandwidth_of_head(char const* function, Op const& op) {
  if (op.tau.extents().position != 1)
    throw error(function, "tau", "one value per query",
                "one value, or one per head: sums over sorted keys serve queries of one bandwidth; for one per query "
                "take line::windowed or the dense operator");
}

/// A call with checked arguments. Whatever the dense operator rejects was rejected here, with the same message. Numbers
/// in device memory are not read.
template <class T, class Op>
class call {
 public:
  using dense_type = decltype(std::declval<Op const&>().dense());
  using mask_type = std::remove_cvref_t<decltype(std::declval<Op const&>().mask)>;
  using view = tensor<T const>;

  call(char const* function, Op const& op, inputs<Op, view> const& in, shape const& out,
       memory_kind where = memory_kind::host)
      : dense_(op.dense()), mask_(op.mask),
        in_(make_inputs<dense_type, view>([&]<field F>() { return member<F>(in); }, in.offset, in.offsets)),
        p_(attune::detail::checked_problem(function, dense_, in_, out, where)) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "attune: operators on a line run on cpu<float> and cpu<double>");
    if (where == memory_kind::device && p_.has_offsets())
      throw error(function, "offsets", "numbers in device memory",
                  "one offset for all batch elements: operators on a line read offsets on the host");
    if (where == memory_kind::host) {
      require_finite(function, "sort_q", in_.sort_q);
      require_finite(function, "sort_k", in_.sort_k);
    }
    require_intervals(function, mask_, p_);
  }

  line::detail::arrays<T> arrays() const { return {in_.sort_q, in_.sort_k, in_.v}; }
  line::detail::extents extents() const {
    return {p_.batch, p_.heads, in_.sort_k.extents().head, p_.value_heads, p_.queries, p_.keys, p_.value_width};
  }
  inputs<dense_type, view> const& in() const { return in_; }
  bool empty() const { return p_.batch * p_.heads * p_.queries == 0; }
  /// The sight (the intervals of visible keys) of a head.
  auto sees() const {
    return [this](index_t b, index_t h) { return sight(mask_, p_, b, h); };
  }
  problem_shape const& problem() const { return p_; }

  dense_gradients<T> blank() const { return attune::detail::blank_gradients<T>(dense_, in_); }
  static tensor<T> view_of(gradient_array<T>& x) { return {x.values.data(), x.extents}; }
  static gradient_views<T> views(dense_gradients<T>& to) {
    return {view_of(to.of(field::sort_q)), view_of(to.of(field::sort_k)), view_of(to.of(field::v))};
  }
  /// Adds the gradients by the bandwidth of each (batch, head) to the parameter, and to the activations that it is
  /// projected from (not for parameters in device memory).
  template <class W>
  void give_bandwidth(std::vector<W> const& by_tau, dense_gradients<T>& to,
                      memory_kind where = memory_kind::host) const {
    gradient_array<T>& tau = to.parameters.at(0).values;
    std::vector<W> sums(tau.values.size(), W(0));
    shape const e = tau.extents;
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t h = 0; h < p_.heads; ++h) {
        W& sum = sums[std::size_t((e.batch == 1 ? 0 : b) * e.head + (e.head == 1 ? 0 : h))];
        sum = sum + by_tau[std::size_t(b * p_.heads + h)];
      }
    for (std::size_t n = 0; n < sums.size(); ++n) tau.values[n] = T(sums[n]);
    if (where == memory_kind::host) pull_projections(to);
  }
  void pull_projections(dense_gradients<T>& to) const {
    auto const listed = listed_parameters(dense_);
    attune::detail::pull_projections<T>(listed, to);
  }

 private:
  dense_type dense_;
  mask_type mask_;
  inputs<dense_type, view> in_;
  problem_shape p_;
};

template <class T, class Op>
results<T> results_of(outputs<Op, T> const& to) {
  if constexpr (Op::has_lse)
    return {to.out, to.lse.values};
  else
    return {to.out, {}};
}
template <class T, class Op>
result_cotangents<T> cotangents_of(cotangents<Op, tensor<T const>> const& d) {
  if constexpr (Op::has_lse)
    return {d.out, d.lse};
  else
    return {d.out, {}};
}

}  // namespace attune::line::detail
