// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = softmax_j(c <q_i, k_j> - (sort_q_i - sort_k_j)^2 / tau) v      over the keys in a window
//
//   line::sorted_cache<float> kv({.heads = H, .value_width = Dv});
//   decode(cpu{}, line::windowed{0.1, line::certified{1e-6}}, kv, {.sort_q = S}, {.out = O, .rows = reports})
//
// Scalar Sort's decode step, with a proof per row of how much weight is dropped. The paper claims such a bound without
// proof.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <attune/core/distinct.hpp>
#include <attune/core/lse.hpp>
#include <attune/core/parameter.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/line/cache/row_decoder.hpp>
#include <attune/line/windowed.hpp>

namespace attune::line {

/// The queries; the keys are in the cache.
template <class T>
struct queries {
  tensor<T const> sort_q;  ///< (1, H, Lq, 1)
  tensor<T const> q = {};  ///< (1, H, Lq, D): for line::hybrid, with caches that have vector keys
};

/// The outputs. `rows` is empty, or has one report per head and query, head by head.
template <class T>
struct decoded {
  tensor<T> out;                    ///< (1, H, Lq, Dv)
  natural_lse<T> lse = {};          ///< (1, H, Lq, 1), over the keys that were kept
  std::span<row_report> rows = {};  ///< empty, or H Lq reports; row (h, i) is at h Lq + i
};

namespace detail {

template <class T>
void check_tensor(char const* name, tensor<T> const& x, shape const& wanted) {
  if (!(x.extents() == wanted))
    throw error("decode", name, attune::detail::text("shape ", to_string(x.extents())), to_string(wanted));
}
template <class T>
void check_numbers(char const* name, tensor<T const> const& x) {
  shape const e = x.extents();
  double const largest = double((std::numeric_limits<T>::max)()) / 16;
  for (index_t h = 0; h < e.head; ++h)
    for (index_t i = 0; i < e.position; ++i)
      for (index_t d = 0; d < e.feature; ++d)
        if (double const v = double(x(0, h, i, d)); !(std::fabs(v) <= largest))
          throw error("decode", name, attune::detail::text("the value ", v, " at head ", h, ", query ", i),
                      attune::detail::text("finite numbers up to ", largest));
}

template <class T>
std::vector<row_query<T>> checked_rows(sorted_cache<T> const& kv, parameter const& tau, parameter const& scale,
                                       queries<T> const& in, decoded<T> const& to) {
  cache_layout const& l = kv.layout();
  shape const e = in.sort_q.extents();
  shape const rows{1, l.heads, e.position, 1};
  check_tensor("sort_q", in.sort_q, rows);
  check_numbers("sort_q", in.sort_q);
  if (in.q.absent() != (l.key_width == 0))
    throw error("decode", "q", in.q.absent() ? "no data" : "data",
                in.q.absent() ? "queries for the vector keys of the cache" : "none: the cache has no vector keys");
  if (!in.q.absent()) {
    check_tensor("q", in.q, {1, l.heads, e.position, l.key_width});
    check_numbers("q", in.q);
  }
  check_tensor("out", to.out, {1, l.heads, e.position, l.value_width});
  if (!to.lse.values.absent()) check_tensor("lse", to.lse.values, rows);
  attune::detail::require_distinct("decode", "out", to.out);
  attune::detail::require_distinct("decode", "lse", to.lse.values);
  if (!to.rows.empty() && index_t(to.rows.size()) != l.heads * e.position)
    throw error("decode", "rows", attune::detail::text(to.rows.size(), " reports"),
                attune::detail::text(l.heads * e.position));
  if (!tau.is_set()) throw error("decode", "tau", "no value", "a finite number > 0");
  attune::detail::check_parameter("decode", "tau", tau, domain::positive, 1, l.heads, e.position);
  attune::detail::check_parameter("decode", "scale", scale, domain::real, 1, l.heads, e.position);

  std::vector<row_query<T>> all;
  for (index_t h = 0; h < l.heads; ++h)
    for (index_t i = 0; i < e.position; ++i)
      all.push_back({h, double(in.sort_q(0, h, i, 0)), tau.at(0, h, i), in.q.absent() ? nullptr : in.q.row(0, h, i),
                     in.q.steps().feature, scale.is_set() ? scale.at(0, h, i) : 1 / std::sqrt(double(l.key_width))});
  return all;
}

template <class T, class Arch, class Window>
void decode_rows(cpu<T, Arch> const& exec, parameter const& tau, parameter const& scale, Window const& window,
                 sorted_cache<T> const& kv, queries<T> const& in, decoded<T> const& to) {
  check_window("decode", window);
  auto const rows = checked_rows(kv, tau, scale, in, to);
  using worker = row_decoder<T, Arch>;
  if constexpr (std::is_same_v<Window, certified>) {
    worker of_rounding(kv);
    for (auto const& r : rows)
      if (double const least = of_rounding.rounding(r) / 2; !(window.tolerance >= least))
        throw error("decode", "tolerance", attune::detail::text("the value ", window.tolerance),
                    attune::detail::text("at least ", least, ", half of the rounding of head ", r.head));
  }
  index_t const queries = in.sort_q.extents().position, count = index_t(rows.size());
  exec_cpu::parallel(exec, count, [&] {
    return [&, w = worker(kv)](index_t n) mutable {
      index_t const h = n / queries, i = n % queries;
      row_report const report = w.run(rows[std::size_t(n)], window, to.out.row(0, h, i), to.out.steps().feature);
      if (!to.lse.values.absent()) to.lse.values(0, h, i, 0) = T(report.lse);
      if (!to.rows.empty()) to.rows[std::size_t(n)] = report;
    };
  });
}

}  // namespace detail
}  // namespace attune::line

namespace attune {

/// Attention of few queries over a sorted cache; reads only the keys in a window.
/// Windows:    certified, nearest, half, radius (line/windows.hpp).
/// Guarantee:  each row's report bounds the weight that is missing. It also bounds the distance of `out` from softmax
///             over all keys in exact arithmetic on the stored numbers: 2 discarded max|v| + rounding max|v|, in the
///             Euclidean norm.
/// Errors:     attune::error; then nothing is written. A tolerance below half of a row's rounding is an error that
///             states that rounding. An empty cache gives out = 0, lse = -inf, like a row without a visible key. So
///             does a radius without a key in it; that report says that all weight is missing.
/// Complexity: O(log n + window (1 + D + Dv)) per row; certified: O(log n) nodes and the blocks that it opens.
/// Memory:     12 to 24 bytes per key read, per thread.
/// Determinism: bitwise the same for any number of threads. The keys that `certified` reads depend on how keys are
///             divided into blocks, and so on the history of the cache; a snapshot gives the same bits.
/// Source:     Scalar Sort, "Binary search at inference" and "Hybrid architecture, inference".
template <class T, class Arch, class Window>
void decode(cpu<T, Arch> const& exec, line::windowed<Window> const& op, line::sorted_cache<T> const& kv,
            line::queries<std::type_identity_t<T>> const& in, line::decoded<std::type_identity_t<T>> const& to) {
  line::detail::decode_rows(exec, op.tau, {}, op.window, kv, in, to);
}
/// The same for hybrid attention. The cache must have vector keys (key_width > 0), else attune::error.
template <class T, class Arch, class Window>
void decode(cpu<T, Arch> const& exec, line::hybrid<Window> const& op, line::sorted_cache<T> const& kv,
            line::queries<std::type_identity_t<T>> const& in, line::decoded<std::type_identity_t<T>> const& to) {
  if (kv.layout().key_width == 0)
    throw error("decode", "the cache", "no vector keys", "a cache with key_width > 0, or line::windowed");
  line::detail::decode_rows(exec, op.tau, op.scale, op.window, kv, in, to);
}

}  // namespace attune
