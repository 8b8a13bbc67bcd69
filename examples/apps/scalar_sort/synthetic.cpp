// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "synthetic.hpp"

namespace scalar_sort {

heads_in_context drawn(law const& by, std::uint64_t seed) {
  heads_in_context to{.heads = 1,
                      .queries = by.queries,
                      .keys = by.keys,
                      .width = by.width,
                      .value_width = 8,
                      .sort_q = {},
                      .sort_k = {},
                      .q = {},
                      .k = {},
                      .v = {},
                      .tau = {by.tau}};
  apps::rng draw(seed);
  auto const normals = [&](numbers& x, index_t n) {
    for (index_t i = 0; i < n; ++i) x.push_back(float(draw.normal()));
  };
  for (index_t i = 0; i < by.queries; ++i) to.sort_q.push_back(float(by.query(draw)));
  for (index_t j = 0; j < by.keys; ++j) to.sort_k.push_back(float(by.key(draw, j)));
  normals(to.q, by.queries * by.width);
  normals(to.k, by.keys * by.width);
  normals(to.v, by.keys * to.value_width);
  return to;
}

}  // namespace scalar_sort
