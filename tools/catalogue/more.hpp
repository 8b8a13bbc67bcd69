// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators of the command line that are no presets: rows as those of presets.hpp. Their functions are
// attention(...). c.angles("angles") is an array that each call gives.
#pragma once

#include <attune/policies/kernel/rotary.hpp>

// clang-format off: a row is a table's
#define ATTUNE_MORE(PRESET) \
  PRESET(rotary, "attention(kernel::rotary{angles}, normalizer::softmax{})", "kernel::rotary normalizer::softmax", "", "", \
    attention(kernel::rotary{c.angles("angles"), c("interleaved", 0) != 0 ? rotary_layout::interleaved : rotary_layout::half, c("turned_keys", 0) != 0 ? rotary_keys::turned : rotary_keys::plain}, normalizer::softmax{}, m), )
// clang-format on
