// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Inputs and outputs as an executor takes them, without an executor.
#pragma once

#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

inline std::vector<float> memory(8);
inline tensor<float> const x(memory, {1, 1, 1, 8}), y(memory, {1, 1, 1, 8});
template <class Op>
using in = inputs<Op, tensor<float const>>;
template <class Op>
using to = outputs<Op, float>;
