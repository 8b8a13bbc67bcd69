// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The smallest program of somebody who added attune as a subdirectory.
#include <cstdio>
#include <vector>

#include <attune/attune.hpp>

int main() {
  std::vector<float> q{1, 0, 0, 1}, k = q, v{1, 2, 3, 4}, out(4);
  attune::shape const s{1, 1, 2, 2};
  auto const op = attune::attention(attune::kernel::dot_product{}, attune::mask::causal{});
  attune::forward(attune::cpu{}, op, {.q = attune::tensor(q, s), .k = attune::tensor(k, s), .v = attune::tensor(v, s)},
                  {.out = attune::tensor(out, s)});
  std::printf("attune %d.%d.%d\n", ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH);
  return out[0] == 1 && out[1] == 2 && out[2] > 1 && out[2] < 3 ? 0 : 1;  // the first row sees one key
}
