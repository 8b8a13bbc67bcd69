// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cache::decode(cpu{}, kv, queries, window, decoded)  ->  decode(cpu{}, line::windowed{tau, window}, kv, ...)
//
// The sorted cache under its names of version 0.1. Version 0.3 removes them.
#pragma once

#include <attune/line/decode.hpp>

namespace attune::cache {

template <class T>
using sorted = line::sorted_cache<T>;
using sorted_layout = line::cache_layout;
using sorted_memory = line::cache_memory;
using line::decoded;
using line::expected_keys;
using line::half;
using line::nearest;
using line::radius;
using line::radius_of;
using line::row_report;
using line::sort_keys;
using line::token;
using line::uniform_tail;

struct certified {
  double eps = 1e-6;
};

template <class T>
struct queries {
  tensor<T const> sort_q;
  parameter tau = 1.0;
  tensor<T const> q = {};
  parameter scale = {};
};

namespace detail {

template <class Window>
Window window_of(Window const& w) {
  return w;
}
inline line::certified window_of(certified const& w) { return {w.eps}; }

}  // namespace detail

template <class T, class Arch, class Window>
ATTUNE_DEPRECATED("call decode(cpu{}, line::windowed{tau, window} or line::hybrid, cache, queries, decoded)")
void decode(cpu<T, Arch> const& exec, line::sorted_cache<T> const& kv, queries<std::type_identity_t<T>> const& in,
            Window const& window, line::decoded<std::type_identity_t<T>> const& to) {
  auto const which = detail::window_of(window);
  line::queries<T> const rows{in.sort_q, in.q};
  if (kv.layout().key_width > 0)
    attune::decode(exec, line::hybrid{in.tau, which, mask::none{}, line::no_sink{}, in.scale}, kv, rows, to);
  else
    attune::decode(exec, line::windowed{in.tau, which}, kv, rows, to);
}

}  // namespace attune::cache
