// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A call of an operator in run-time form: what the command line says, before and after it meets a compile-time
// operator.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/tensor.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/verdict_options.hpp>
#include <attune/testing/verdict_report.hpp>

#include "aligned_mask.hpp"

namespace attune::tool {

/// Numbers under four extents, in doubles and, where something computes in float, in floats.
struct numbers {
  shape extents{0, 0, 0, 0};
  std::vector<double> doubles;  ///< empty behind narrow()
  std::vector<float> floats;
  /// For arithmetic in float32: keeps floats alone.
  void narrow() {
    floats.assign(doubles.begin(), doubles.end());
    std::vector<double>().swap(doubles);
  }
  bool absent() const { return extents == shape{0, 0, 0, 0}; }
};

/// A mask::runtime and its memory.
struct mask_memory {
  std::vector<key_interval> hulls;
  std::vector<unsigned char> visible;
  mask::runtime view;
};

/// A mask where all queries stand `by` keys later than they should, or query 0 at key 0.
struct misaligned_mask {
  index_t by = 0;
  bool top_left = false;
  mask_memory memory;
};

enum class executor { cpu, reference };
enum class arithmetic { float32, float64 };

struct problem {
  std::map<std::string, numbers> tensors;     ///< by the names of operators/inputs.hpp: q, k, v, gate_q, ...
  std::map<std::string, numbers> parameters;  ///< by path: length_scale.gamma; (1|B, 1|H, 1|Lq, 1)
  std::map<std::string, numbers> tables;      ///< by path: kernel.metric; (1|B, 1|H, rows, columns)
  std::map<std::string, long> constants;      ///< by name: k, max_distance
  std::map<std::string, numbers> arrays;      ///< by name: angles
  std::map<std::string, numbers> cotangents;  ///< out, lse, ground_weight
  mask_memory mask;
  std::vector<misaligned_mask> misaligned;  ///< for verdicts: masks that a wrong kernel may have used
  std::optional<index_t> offset;
  std::vector<index_t> offsets;  ///< instead of it, for each batch element; empty: none
  executor on = executor::cpu;
  arithmetic in = arithmetic::float32;
  int threads = 0;
};

/// Results or gradients by name.
using results = std::map<std::string, numbers>;

/// What somebody's kernel handed back, and how it is to be judged.
struct handed_back {
  results outputs;    ///< out, lse, ground_weight
  results gradients;  ///< by the names of inputs, parameters and tables; the problem has the cotangents
  certify::storage stored = certify::storage::fp32;
  bool base_two = false;                                ///< whether lse has logarithms of base 2
  std::map<std::string, certify::storage> other_types;  ///< of lse, ground_weight, and gradients by parameters
  testing::verdict_options how;
};

/// One set of inputs for somebody's kernel.
struct probe_inputs {
  std::string name, reveals;
  results tensors;
  numbers dout;
};
/// The mask of a probe with these extents, and the position of query 0; throws attune::error where there is none.
using mask_maker = std::function<mask_memory(mask_shape const&, index_t offset)>;

/// What the program does with an operator. Each is compiled by itself.
enum class entry { run, gradient, verdict, gradient_verdict, probes };
inline constexpr char const* entry_names[] = {"run", "gradient", "verdict", "gradient_verdict", "probes"};

/// An operator's entries.
struct runner {
  results (*run)(problem const&) = nullptr;
  results (*gradient)(problem const&) = nullptr;
  testing::verdict_report (*verdict)(problem const&,
                                     handed_back&&) = nullptr;  ///< of the outputs, whose memory it takes
  testing::verdict_report (*gradient_verdict)(problem const&, handed_back const&) = nullptr;
  std::vector<probe_inputs> (*probes)(problem const&, testing::problem_extents const&, mask_maker const&,
                                      std::uint64_t seed) = nullptr;
};
/// The runner of a preset of the catalogue, which has this entry. runners.cpp: from the program itself.
/// operator_libraries.cpp: from a library that is built when it is asked for. Throws usage_error.
runner const& runner_of(std::string const& preset, entry wanted);

}  // namespace attune::tool
