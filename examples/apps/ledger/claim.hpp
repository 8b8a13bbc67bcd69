// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A claim of a paper, and the function that recomputes what is known about it.
#pragma once

#include <string>
#include <vector>

#include "evidence.hpp"

namespace ledger {

enum class status {
  holds,         ///< as stated
  conditional,   ///< under conditions that the paper does not state; false outside them
  incorrect,     ///< there is a counterexample
  inconsistent,  ///< the papers' own statements do not fit together
  undecidable    ///< needs trained models; not decided here
};

char const* name_of(status s);

struct claim {
  std::string id, source, statement;
  status verdict;
  std::string correction;  ///< what holds instead, or the condition; empty if nothing needs correcting
  void (*check)(evidence&);
  bool quantified = false;  ///< the correction speaks of all instances: it has to pass on random ones
};

// One function per paper.
std::vector<claim> principled_claims();
std::vector<claim> scalar_sort_claims();
std::vector<claim> scalar_sort_cache_claims();
std::vector<claim> limits_claims();
std::vector<claim> limits_gradient_claims();
std::vector<claim> affine_claims();
std::vector<claim> softmax_claims();
std::vector<claim> prior_art_claims();

/// What became of a claim: why the ledger may not stand as it is written. Empty if it may.
std::string objection(claim const& c, evidence const& e);

}  // namespace ledger
