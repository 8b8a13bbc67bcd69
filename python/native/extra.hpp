// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators of the Python package that are no presets: rows as those of tools/catalogue/presets.hpp.
#pragma once

// clang-format off: a row is a table's
#define ATTUNE_EXTRA(PRESET) \
  PRESET(softmax_dropout, "", "kernel::dot_product normalizer::softmax gate::dropout", "", "", \
    attention(kernel::dot_product{}, normalizer::softmax{}, gate::dropout{c("rate", 0.1), std::uint64_t(std::int64_t(c("seed", 0)))}, m), ) \
  PRESET(biased_dropout, "", "kernel::dot_product kernel::bias normalizer::softmax gate::dropout", "", "", \
    attention(kernel::dot_product{} + kernel::bias{}, normalizer::softmax{}, gate::dropout{c("rate", 0.1), std::uint64_t(std::int64_t(c("seed", 0)))}, m), )
// clang-format on
