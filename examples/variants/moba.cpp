// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Mixture of block attention (MoBA)
//   Lu et al., MoBA: Mixture of Block Attention for Long-Context LLMs, 2025, arXiv 2502.13189
//   out_i = softmax over the chosen blocks of c <q_i, k_j>
//
// For each head and query, a router chooses the blocks whose mean key has the largest product with the query, and the
// query's own block. The choice is a mask. It has no gradient, in the paper too.
#include "shared/router.hpp"
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
/// chosen: one byte per (head, query, block of keys).
auto moba(std::vector<unsigned char> const& chosen, index_t block, index_t heads) {
  return attention(kernel::dot_product{}, mask::block_sparse{chosen, 1, block, heads} & mask::causal{});
}
// [/snippet]

int main() {
  variants::router router;
  return variants::run(
      [&](testing::problem_extents const& e) {
        router.choose(e, {.chosen = 2, .last = 1});
        return moba(router.table(), router.block(), e.heads);
      },
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t const block : router.blocks_of(h, i))
          for (index_t j = block * router.block(); j < (block + 1) * router.block() && j <= position; ++j)
            w[std::size_t(j)] = x.scale() * x.dot(b, h, i, j);
        variants::softmax(w);
      });
}
