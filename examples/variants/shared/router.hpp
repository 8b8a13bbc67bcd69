// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   router.choose(extents, {.chosen = 2, .last = 1});
//   mask::block_sparse{router.table(), 1, router.block(), heads}
//
// A stand-in for a router that chooses blocks of keys for each query: it draws them.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/testing/drawn_problem.hpp>

namespace variants {

/// How many blocks a query gets.
struct router_rule {
  attune::index_t chosen = 2,  ///< drawn among the blocks before the query's own
      last = 1,                ///< the query's own block and those before it
      first = 0;               ///< the first blocks
  bool heads_share = false;    ///< all heads get the same blocks
};

/// Draws blocks for each head and query.
class router {
 public:
  void choose(attune::testing::problem_extents const& e, router_rule const& rule) {
    using attune::index_t;
    block_ = std::max(index_t(2), e.keys / 16);
    blocks_ = (e.keys + block_ - 1) / block_;
    queries_ = e.queries;
    table_.assign(std::size_t(e.heads * queries_ * blocks_), 0);
    attune::testing::detail::normal_numbers random(2);
    for (index_t h = 0; h < e.heads; ++h)
      for (index_t i = 0; i < queries_; ++i) {
        if (h > 0 && rule.heads_share) {
          std::copy_n(row(0, i), blocks_, row(h, i));
          continue;
        }
        index_t const own = (i + e.offset.value_or(e.keys - e.queries)) / block_;
        for (index_t n = 0; n < rule.chosen; ++n) row(h, i)[random.below(own + 1)] = 1;
        for (index_t n = 0; n < std::min(rule.first, own + 1); ++n) row(h, i)[n] = 1;
        for (index_t n = 0; n < std::min(rule.last, own + 1); ++n) row(h, i)[own - n] = 1;
      }
  }
  /// (heads, queries, blocks): 1 where the block is chosen. For the last call of choose().
  std::vector<unsigned char> const& table() const { return table_; }
  /// Keys in a block.
  attune::index_t block() const { return block_; }
  /// The blocks of a query.
  std::vector<attune::index_t> blocks_of(attune::index_t h, attune::index_t i) {
    std::vector<attune::index_t> found;
    for (attune::index_t n = 0; n < blocks_; ++n)
      if (row(h, i)[n] != 0) found.push_back(n);
    return found;
  }

 private:
  unsigned char* row(attune::index_t h, attune::index_t i) {
    return &table_[std::size_t((h * queries_ + i) * blocks_)];
  }

  attune::index_t block_ = 0, blocks_ = 0, queries_ = 0;
  std::vector<unsigned char> table_;
};

}  // namespace variants
