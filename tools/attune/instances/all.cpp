// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every preset: each source beside this one has a few.
#include "problem.hpp"

namespace attune::tool {

void instantiate_affine(std::map<std::string, runner>& to);
void instantiate_affine_gated(std::map<std::string, runner>& to);
void instantiate_biases(std::map<std::string, runner>& to);
void instantiate_candidates(std::map<std::string, runner>& to);
void instantiate_distances(std::map<std::string, runner>& to);
void instantiate_length_scales(std::map<std::string, runner>& to);
void instantiate_metrics(std::map<std::string, runner>& to);
void instantiate_positions(std::map<std::string, runner>& to);
void instantiate_principled(std::map<std::string, runner>& to);
void instantiate_priors(std::map<std::string, runner>& to);
void instantiate_relative(std::map<std::string, runner>& to);
void instantiate_scalars(std::map<std::string, runner>& to);
void instantiate_self_adjusted(std::map<std::string, runner>& to);
void instantiate_sliced_relu(std::map<std::string, runner>& to);
void instantiate_softmax(std::map<std::string, runner>& to);
void instantiate_unnormalised(std::map<std::string, runner>& to);

void instantiate_all(std::map<std::string, runner>& to) {
  instantiate_affine(to);
  instantiate_affine_gated(to);
  instantiate_biases(to);
  instantiate_candidates(to);
  instantiate_distances(to);
  instantiate_length_scales(to);
  instantiate_metrics(to);
  instantiate_positions(to);
  instantiate_principled(to);
  instantiate_priors(to);
  instantiate_relative(to);
  instantiate_scalars(to);
  instantiate_self_adjusted(to);
  instantiate_sliced_relu(to);
  instantiate_softmax(to);
  instantiate_unnormalised(to);
}

}  // namespace attune::tool
