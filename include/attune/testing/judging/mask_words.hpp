// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   mask_words(op.mask)    "causal window"      "causal and documents"
//
// The mask of an operator in the words of its user.
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/expression.hpp>

namespace attune::testing::detail {

/// "" for masks without a usual name.
template <class M>
std::string mask_words(M const& m) {
  auto const both = [](std::string const& a, std::string const& b, char const* how) {
    return a.empty() || b.empty() ? a + b : a + how + b;
  };
  if constexpr (std::is_same_v<M, mask::causal>)
    return "causal";
  else if constexpr (std::is_same_v<M, mask::causal_window>)
    return "causal window";
  else if constexpr (std::is_same_v<M, mask::window>)
    return "window";
  else if constexpr (std::is_same_v<M, mask::band>)
    return "band";
  else if constexpr (std::is_same_v<M, mask::prefix>)
    return "prefix";
  else if constexpr (std::is_same_v<M, mask::sink_window>)
    return "window with first keys";
  else if constexpr (std::is_same_v<M, mask::padding>)
    return "padding by lengths";
  else if constexpr (std::is_same_v<M, mask::documents>)
    return "documents";
  else if constexpr (std::is_same_v<M, mask::block_sparse>)
    return "blocks";
  else if constexpr (requires { m.first, m.second; })
    return both(mask_words(m.first), mask_words(m.second), " and ");
  else if constexpr (std::is_same_v<M, mask::composed>) {
    std::string all;
    for (index_t n = 0; n < m.count; ++n)
      std::visit(
          [&]<class Node>(Node const& node) {
            if constexpr (!std::is_same_v<Node, mask::expression_node::pair>)
              all = both(all, mask_words(node), " and ");
          },
          m.nodes[n].is);
    return all;
  } else {
    return "";
  }
}

/// The same to be put behind a finding: " (the mask: causal window)".
template <class M>
std::string words_of_mask(M const& m) {
  std::string const words = mask_words(m);
  return words.empty() ? "" : " (the mask: " + words + ")";
}

}  // namespace attune::testing::detail
