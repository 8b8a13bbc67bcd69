// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   --mask causal --mask padding=lengths.npy        several masks: a key is visible if all of them show it
//
// Masks in words become one mask::runtime: an interval per row where each of them has one, and a table of Lq x Lk bytes
// only for those that have not.
#pragma once

#include <string>
#include <vector>

#include "problem.hpp"

namespace attune::tool {

/// Where the queries of a call stand among the keys.
struct query_places {
  index_t offset = 0;                      ///< position of query 0
  std::vector<index_t> offsets = {};       ///< instead of it, for each batch element
  std::vector<index_t> lengths = {};       ///< keys of each batch element; empty: all
  std::vector<index_t> cu_seqlens_q = {},  ///< packed sequences: each is a call by itself, ends aligned
      cu_seqlens_k = {};

  query_places() = default;
  query_places(index_t of_query_0) : offset(of_query_0) {}

  index_t offset_of(index_t batch) const { return offsets.empty() ? offset : offsets[std::size_t(batch)]; }
};

/// Where a wrong kernel takes the queries to be: `by` keys later, or query 0 at key 0.
struct misplaced {
  index_t by = 0;
  bool top_left = false;
};

/// Throws usage_error for words that are no mask, and attune::error where a mask does not fit the problem.
mask_memory make_mask(std::vector<std::string> const& words, attune::mask_shape const& of, query_places const& at,
                      misplaced const& wrong = {});

/// The masks there are, for --help.
char const* mask_help();

/// The keys that a valid word of --mask shows: "prefix: the first 64 keys, and keys up to the query".
std::string mask_in_words(std::string const& word);

}  // namespace attune::tool
