// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sources beside this file that add operators, those of the test scope (tests/CMakeLists.txt).
#include "registry.hpp"

namespace attune::instances {

void add_softmax(std::map<std::string, entry>&);
void add_sink(std::map<std::string, entry>&);
void add_principled(std::map<std::string, entry>&);
void add_softcap(std::map<std::string, entry>&);
void add_off_by_one(std::map<std::string, entry>&);
void add_principled_given(std::map<std::string, entry>&);
void add_grounded(std::map<std::string, entry>&);
void add_length_scale(std::map<std::string, entry>&);
void add_archetypes(std::map<std::string, entry>&);
void add_archetype_sets(std::map<std::string, entry>&);
void add_archetype_kernels(std::map<std::string, entry>&);
void add_more_archetypes(std::map<std::string, entry>&);
void add_sigmoid(std::map<std::string, entry>&);
void add_affine(std::map<std::string, entry>&);
void add_affine_top_k(std::map<std::string, entry>&);
void add_sparse(std::map<std::string, entry>&);
void add_adjusted(std::map<std::string, entry>&);
void add_adjusted_given(std::map<std::string, entry>&);
void add_distance(std::map<std::string, entry>&);
void add_scalar(std::map<std::string, entry>&);
void add_bias(std::map<std::string, entry>&);
void add_relative(std::map<std::string, entry>&);
void add_hybrid(std::map<std::string, entry>&);
void add_composed(std::map<std::string, entry>&);
void add_gated(std::map<std::string, entry>&);

void add_all(std::map<std::string, entry>& to) {
#if defined(ATTUNE_INSTANCES_ARCHETYPES)  // ATTUNE_TEST_SCOPE, see tests/CMakeLists.txt
  add_archetypes(to);
  add_archetype_sets(to);
#if !defined(ATTUNE_INSTANCES_FEW)
  add_more_archetypes(to);
#endif
#if defined(ATTUNE_INSTANCES_MORE)
  add_archetype_kernels(to);
#endif
#else
  add_softmax(to);
  add_sink(to);
  add_principled(to);
  add_softcap(to);
  add_off_by_one(to);
  add_principled_given(to);
  add_grounded(to);
  add_length_scale(to);
  add_sigmoid(to);
  add_affine(to);
  add_affine_top_k(to);
  add_sparse(to);
  add_adjusted(to);
  add_adjusted_given(to);
  add_distance(to);
  add_scalar(to);
  add_bias(to);
  add_relative(to);
  add_hybrid(to);
  add_composed(to);
  add_gated(to);
#endif
}

}  // namespace attune::instances
