// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "check.hpp"

namespace demo {
namespace {

template <class Mask>
void add_presets(std::vector<experiment>& to, std::string const& mask_name, Mask mask) {
  to.push_back(make_experiment("softmax", mask_name, softmax_system{}, mask));
  to.push_back(make_experiment("off-by-one", mask_name, off_by_one_system{}, mask));
  to.push_back(make_experiment("sink", mask_name, sink_system{}, mask));
  to.push_back(make_experiment("ssmax", mask_name, ssmax_system{}, mask));
}

}  // namespace

std::vector<experiment> preset_experiments() {
  std::vector<experiment> all;
  add_presets(all, "none", attune::mask::none{});
  all.push_back(principled_experiment({}));
  add_presets(all, "causal", attune::mask::causal{});
  all.push_back(causal_principled_experiment({}));
  return all;
}

}  // namespace demo
