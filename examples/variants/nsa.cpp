// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Native sparse attention (NSA), the selected branch
//   Yuan et al., Native Sparse Attention, 2025, arXiv 2502.11089
//   out_i = softmax over the selected blocks of c <q_i, k_j>
//
// A router chooses blocks of keys for each query, the same for all heads that share keys. They are a mask. The paper
// has two more branches: keys that are compressed, and a window. They are operators too: softmax attention with your
// compressed k and v, and mask::causal_window. Your code adds the three outputs, each times its gate.
#include "shared/router.hpp"
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
/// selected: one byte per (head, query, block of keys).
auto nsa_selected(std::vector<unsigned char> const& selected, index_t block, index_t heads) {
  return attention(kernel::dot_product{}, mask::block_sparse{selected, 1, block, heads} & mask::causal{});
}
// [/snippet]

int main() {
  variants::router router;
  return variants::run(
      [&](testing::problem_extents const& e) {  // the first block, the last two and two more
        router.choose(e, {.chosen = 2, .last = 2, .first = 1, .heads_share = true});
        return nsa_selected(router.table(), router.block(), e.heads);
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
