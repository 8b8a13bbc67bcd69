// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A run-time door to the operators that tests, golden cases and tools use: each operator x executor x type is
// instantiated once, in the sources beside this header, and everything else links them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attune::instances {

using index = std::ptrdiff_t;

/// A dense row-major array of doubles. A tensor always has 4 axes (batch, head, position, feature).
struct array {
  std::vector<index> shape;
  std::vector<double> data;
  bool empty() const { return data.empty(); }
};

/// One attention problem in run-time form. Which tensors and parameters are needed follows from the operator
/// (`entry::tensors`, `entry::parameters`); a superfluous or missing one throws std::invalid_argument.
struct problem {
  /// q k v gate_q gate_k (B, heads, L, width), scores gates (B, H, Lq, Lk), v0 (1|B, 1|H, 1|Lq, Dv).
  std::map<std::string, array> tensors;
  /// scale alpha beta gamma sink slope cap ss_scale ss_bias length0: shape (1|B, 1|H, 1|Lq); a missing one keeps its default.
  std::map<std::string, array> parameters;
  /// Number of queries, for shapes that no tensor tells; else 0.
  index queries = 0;
  /// Position of query 0 relative to key 0; default Lk - Lq.
  std::optional<index> offset;
  /// Visibility, (1|B, 1|H, Lq, Lk) of 0/1; empty: every key visible.
  std::vector<std::uint8_t> visible;
  std::vector<index> visible_shape;
};

struct result {
  array out;            ///< (B, H, Lq, Dv)
  array lse;            ///< (B, H, Lq, 1), empty where the operator has none
  array ground_weight;  ///< (B, H, Lq, 1), empty where the operator has none
  // Reference executors only:
  array scores, logits, weights;  ///< (B, H, Lq, Lk); 0 where masked
};

enum class backend { reference_double, reference_50, cpu_float, cpu_double };
inline constexpr backend all_backends[] = {backend::reference_double, backend::reference_50, backend::cpu_float,
                                           backend::cpu_double};
char const* name(backend) noexcept;

struct options {
  int threads = 1;
  /// Odd memory layouts: pad every axis of every tensor (strides that are no multiples of anything), transpose head and
  /// position, and fill the padding with NaN. CPU executors only.
  bool odd_strides = false;
  /// Split the keys at these cuts (ascending, in [0, Lk]), run each part, merge the states pairwise in the order given by
  /// `tree_seed`, finish. Empty: one call. CPU and reference.
  std::vector<index> cuts;
  std::uint64_t tree_seed = 0;
};

struct entry {
  std::string name;                     ///< kernel/length_scale/gate/normalizer, e.g. "dot/margin/softplus/grounded"
  std::vector<std::string> tensors;     ///< required tensors
  std::vector<std::string> parameters;  ///< parameters it reads
  bool has_lse = false, has_ground_weight = false, has_ground_value = false;
  std::function<result(problem const&, backend, options const&)> run;
};

/// All instantiated operators, by name. Kernel: dot given dot+alibi dot|softcap dot+alibi|softcap given|softcap;
/// length scale: none margin ssmax logn; gate: none softplus (gate_q, gate_k) given_softplus (gates);
/// normalizer: softmax off_by_one sink sink_value off_by_one_value grounded.
std::map<std::string, entry> const& registry();

}  // namespace attune::instances
