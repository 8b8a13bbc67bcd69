// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(on_ranks(ranks, cpu{}), mixture(which, first, second), inputs, outputs)
//
// Each operator runs on all ranks, for its own heads, one after the other.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <attune/calls/mixture.hpp>
#include <attune/exec/mpi/gradients.hpp>

namespace attune {

namespace exec_mpi {

/// The facts about a mixture that its operators do not have.
template <class... Ops>
auto facts_of(mixture_operator<Ops...> const& mixed) {
  return [&mixed](call_facts& facts) {
    std::string which;
    for (index_t h = 0; h < mixed.heads; ++h) which += (h == 0 ? "" : " ") + std::to_string(mixed.which[h]);
    facts.add("which", "the numbers", std::string_view(which));
  };
}
template <class... Ops>
void check_heads(char const* function, mixture_operator<Ops...> const& mixed, communicator const& ranks,
                 index_t heads) {
  reach_all(ranks, function, [&] {
    if (mixed.heads != heads)
      throw error(function, "which", attune::detail::text(mixed.heads, " entries"),
                  attune::detail::text(heads, ", one per head"));
  });
}

}  // namespace exec_mpi

/// forward() of a mixture over ranks.
template <class T, class Arch, class... Ops>
void forward(across_ranks<cpu<T, Arch>> const& exec, mixture_operator<Ops...> const& mixed,
             inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
             outputs<mixture_operator<Ops...>, T> const& out) {
  using whole = mixture_operator<Ops...>;
  shape const e = out.out.extents();
  exec_mpi::check_heads("forward", mixed, exec.ranks, e.head);
  detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    auto const runs = [&](index_t h) { return mixed.which[h] == number; };
    exec_mpi::forward_of_heads<T>(exec, op, detail::narrowed<part>(in), detail::narrowed<part>(out), runs,
                                  exec_mpi::facts_of(mixed));
    auto const fill = [&](tensor<T> const& to, T value) {
      if (to.absent()) return;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position && runs(h); ++i) to(b, h, i, 0) = value;
    };
    if constexpr (whole::has_ground_weight && !part::has_ground_weight) fill(out.ground_weight, T(0));
    if constexpr (whole::has_threshold && !part::has_threshold)
      fill(out.threshold, std::numeric_limits<T>::quiet_NaN());
  });
}

/// vjp() of a mixture over ranks. Paths of parameters and tables begin with the number of their operator:
/// "0.kernel.scale".
template <class T, class Arch, class... Ops>
dense_gradients<T> vjp(across_ranks<cpu<T, Arch>> const& exec, mixture_operator<Ops...> const& mixed,
                       inputs<mixture_operator<Ops...>, tensor<T const>> const& in,
                       cotangents<mixture_operator<Ops...>, tensor<T const>> const& d) {
  shape const rows = d.out.absent() ? detail::output_shape(in) : d.out.extents();
  exec_mpi::check_heads("vjp", mixed, exec.ranks, rows.head);
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (mixture_operator<Ops...>::uses(F)) to.of(F) = gradient_array<T>(member<F>(in).extents());
  });
  detail::for_each_operator(mixed, [&](auto const& op, index_t number) {
    using part = std::remove_cvref_t<decltype(op)>;
    exec_mpi::head_choice const runs = [&](index_t h) { return mixed.which[h] == number; };
    auto const own = detail::narrowed<part>(in);
    auto const by = detail::narrowed<part>(d);
    auto const saved = exec_mpi::rows_for_vjp(exec, op, own, by, runs, exec_mpi::facts_of(mixed));
    detail::add_gradients(to,
                          exec_mpi::gradients_of_heads<T>(exec, op, own, saved, by, runs, exec_mpi::facts_of(mixed)),
                          std::to_string(number) + ".");
  });
  return to;
}

}  // namespace attune
