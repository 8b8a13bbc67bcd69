// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One group of operators on a device: compiled once for each ATTUNE_GROUP from 0 to 14, side by side.
#include "device.hpp"
#include "presets.hpp"

namespace attune::cuda_check {

template <int Group>
void preset_group();
template <>
void preset_group<ATTUNE_GROUP>() {
  presets<ATTUNE_GROUP>([](char const* name, sizes const& n, auto const& make, double loose = 1) {
    on_device<64>(name, n, make, loose);
    if constexpr (ATTUNE_GROUP == 0 || ATTUNE_GROUP == 4 || ATTUNE_GROUP == 9)
      on_device<64, float>(name, n, make, loose);
  });
}

}  // namespace attune::cuda_check
