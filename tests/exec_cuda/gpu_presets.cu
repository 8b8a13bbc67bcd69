// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One group of operators on a device: a program for each ATTUNE_GROUP from 0 to 14.
#include "gpu_main.hpp"
#include "presets.hpp"

namespace attune::cuda_check {

void run() {
  presets<ATTUNE_GROUP>([](char const* name, sizes const& n, auto const& make, double loose = 1) {
    on_device<64>(name, n, make, loose);
    on_device<64, float>(name, n, make, loose);
  });
}

}  // namespace attune::cuda_check
