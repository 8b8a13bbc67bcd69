// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Loops over operators, backends and rows that the tests of contracts and identities share.
#pragma once

#include <string>
#include <utility>

#include "comparison.hpp"

namespace attune::test {

inline constexpr dimensions small{1, 2, 1, 2, 5, 7, 3, 3, 2};              // every backend
inline constexpr dimensions several_blocks{1, 2, 1, 1, 37, 141, 5, 3, 2};  // CPU: partial tiles in every direction

inline bool is_cpu(backend b) { return b == backend::cpu_float || b == backend::cpu_double; }

/// The same operator under another name: how gradients pass an average does not show here.
inline bool is_twin(entry const& e) { return e.name.find("_update_grad") != std::string::npos; }

/// f(operator, policies, sizes, backend, where, random) for every operator and backend; the larger sizes on CPU
/// backends only.
template <class F>
void everywhere(F f) {
  for (auto const& [_, e] : instances::registry()) {
    if (is_twin(e)) continue;
    for (backend b : instances::all_backends)
      for (dimensions const& n : {small, several_blocks}) {
        if (n.keys > small.keys && !is_cpu(b)) continue;
        rng random(static_cast<std::uint64_t>(n.keys));  // the same problem on each backend
        f(e, policies_of(e), n, b, e.name + " on " + instances::name(b) + ", Lk " + std::to_string(n.keys), random);
      }
  }
}

/// f(problem, sizes, backend, where, random) for operator e under a share of the masks, another share for each length
/// of its name; small problems where 50 digits run.
template <class F>
void under_every_mask(entry const& e, F f) {
  for (mask_kind kind : all_mask_kinds)
    for (backend b : instances::all_backends) {
      int const number = static_cast<int>(kind);
      int const share = case_count() < 1000 ? 6 : 3;
      if ((number + static_cast<int>(e.name.size())) % share != 0) continue;
      if (b == backend::reference_50 && number % 4 != 0) continue;
      rng random(static_cast<std::uint64_t>(1000 + number));
      dimensions n = random_dimensions(random, b == backend::reference_50 ? 6 : is_cpu(b) ? 80 : 20, 6);
      recipe how;
      how.mask = kind;
      problem p = make_problem(e, n, how, random);
      f(p, n, b, e.name + " on " + instances::name(b) + ", mask " + name(kind), random);
    }
}

template <class F>
void each_row(dimensions const& n, F f) {
  for (index b = 0; b < n.batch; ++b)
    for (index h = 0; h < n.heads; ++h)
      for (index i = 0; i < n.queries; ++i) f(b, h, i);
}

/// The same value in all entries of a parameter that the problem has.
inline void set_parameter(problem& p, std::string const& key, double value) {
  if (auto const found = p.parameters.find(key); found != p.parameters.end())
    std::fill(found->second.data.begin(), found->second.data.end(), value);
}

inline double at(array const& a, dimensions const& n, index b, index h, index i, index d = 0) {
  return element(a, n.heads, b, h, i, d);
}

/// v = identity (out is then the row of weights), v0 = 0, gates of values and outputs open; sets the value width.
inline void make_values_identity(problem& p, dimensions& n) {
  n.value_width = n.keys;
  array v = make_array({n.batch, n.value_heads, n.keys, n.keys});
  for (index b = 0; b < n.batch; ++b)
    for (index g = 0; g < n.value_heads; ++g)
      for (index j = 0; j < n.keys; ++j) element(v, n.value_heads, b, g, j, j) = 1;
  p.tensors["v"] = std::move(v);
  if (p.tensors.count("v0")) p.tensors["v0"] = make_array({1, 1, 1, n.keys});
  if (p.tensors.count("value_gate"))
    p.tensors["value_gate"] = make_array({n.batch, n.value_heads, n.keys, n.keys}, infinity);
  if (p.tensors.count("output_gate")) p.tensors["output_gate"] = make_array({n.batch, n.heads, n.queries, 1}, infinity);
}

/// A result and the result it has to agree with, within the bounds of problem p.
inline comparison check(entry const& e, problem const& p, backend b, result const& got, result const& reference) {
  return compare(got, reference, e.bounds(p, b));
}

}  // namespace attune::test
