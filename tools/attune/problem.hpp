// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A call of an operator in run-time form: what the command line says, before and after it meets a compile-time operator.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/policies/mask/runtime.hpp>

namespace attune::tool {

/// Numbers under four extents, in doubles and, where something computes in float, in floats.
struct numbers {
  shape extents{0, 0, 0, 0};
  std::vector<double> doubles;
  std::vector<float> floats;
  bool absent() const { return extents == shape{0, 0, 0, 0}; }
};

/// A mask::runtime and its memory.
struct mask_memory {
  std::vector<key_interval> hulls;
  std::vector<unsigned char> visible;
  mask::runtime view;
};

enum class executor { cpu, reference };
enum class arithmetic { float32, float64 };

struct problem {
  std::map<std::string, numbers> tensors;     ///< by the names of operators/inputs.hpp: q, k, v, gate_q, ...
  std::map<std::string, numbers> parameters;  ///< by path: length_scale.gamma; (1|B, 1|H, 1|Lq, 1)
  std::map<std::string, numbers> tables;      ///< by path: kernel.metric; (1|B, 1|H, rows, columns)
  std::map<std::string, long> constants;      ///< by name: k, max_distance
  std::map<std::string, numbers> cotangents;  ///< out, lse, ground_weight
  mask_memory mask;
  std::optional<index_t> offset;
  executor on = executor::cpu;
  arithmetic in = arithmetic::float32;
  int threads = 0;
};

/// Results or gradients by name.
using results = std::map<std::string, numbers>;

/// An operator's two entries; `runners()` has one for every preset of the catalogue.
struct runner {
  results (*run)(problem const&);
  results (*gradient)(problem const&);
};
std::map<std::string, runner> const& runners();

}  // namespace attune::tool
