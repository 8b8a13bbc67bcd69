// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over sorted keys against the dense reference of the same kernels.
#pragma once

#include <utility>

#include <doctest/doctest.h>

#include "line_problem.hpp"
#include "named_operator.hpp"
#include "sights.hpp"

namespace attune::test {
using instances::array;

inline array as_array(std::vector<double> const& x, shape const& s) {
  return {{s.batch, s.head, s.position, s.feature}, x};
}

/// The dense reference of registry entry `name`; fails to find it only where a configuration leaves operators out.
inline bool dense_results(char const* name, sight const& s, line_problem const& p, bool with_lse, bool with_tau,
                          line_results& r) {
  instances::entry const* const found = named_operator(name);
  if (found == nullptr) return false;
  instances::problem dense;
  dense.tensors = {{"sort_q", as_array(p.q, p.query_side())},
                   {"sort_k", as_array(p.k, p.key_side())},
                   {"v", as_array(p.v, p.value_side())}};
  if (with_tau) dense.parameters["tau"] = {{1, p.heads, 1}, p.tau};
  dense.visible_shape = {1, 1, p.queries, p.keys};
  for (index_t i = 0; i < p.queries; ++i)
    for (index_t j = 0; j < p.keys; ++j) dense.visible.push_back(s.sees(i, j) ? 1 : 0);
  auto const exact = instances::backend::reference_double;
  auto const rows = found->run(dense, exact, {});
  instances::cotangent by{as_array(p.by, p.query_side(p.width)), {}, {}};
  if (with_lse) by.lse = as_array(p.by_lse, p.query_side());
  auto const d = found->vjp(dense, exact, by, {});
  r.out = rows.out.data;
  if (with_lse) r.lse = rows.lse.data;
  r.q = d.at("sort_q").data;
  r.k = d.at("sort_k").data;
  r.v = d.at("v").data;
  if (with_tau) r.tau = d.at("tau").data;
  return true;
}

inline constexpr lie all_lies[] = {lie::normal, lie::clustered, lie::equal, lie::tied, lie::heavy, lie::far};

/// Calls f with problems of every kind: every visibility, more keys than queries and fewer, sizes at the edges of
/// blocks.
template <class F>
void for_each_line(F const& f) {
  static std::pair<index_t, index_t> const lengths[] = {{65, 65}, {20, 131}, {70, 33}, {1, 64}};
  unsigned seed = 0;
  for (lie const keys : all_lies)
    for (auto const& length : lengths)
      for (sight const& s : all_sights(length.first, length.second)) {
        lie const queries = ++seed % 3 == 0 ? keys : lie::normal;
        INFO("keys ", int(keys), " queries ", int(queries), " ", s.name, " ", length.first, " x ", length.second);
        f(random_line(queries, keys, length.first, length.second, seed), s);
      }
}

}  // namespace attune::test
