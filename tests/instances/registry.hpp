// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A run-time door to the operators that tests, golden cases and tools use: each operator x executor x type is
// instantiated once, in the sources beside this header, and everything else links them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
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
  /// By field (attune/operators/inputs.hpp): q k v gate_q gate_k sort_q sort_k position_q position_k center spread
  /// place key_bias value_gate output_gate (B, heads, L, width), scores gates bias (B, H, Lq, Lk), v0 (1|B, 1|H, 1|Lq,
  /// Dv).
  std::map<std::string, array> tensors;
  /// Shape (1|B, 1|H, 1|Lq); a missing one keeps its default. Names: those of policies.hpp beside this header.
  std::map<std::string, array> parameters;
  /// metric values bias_u bias_w relative cosine sine frequency: shape (1|B, 1|H, rows, columns); none may be missing.
  std::map<std::string, array> tables;
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
  array threshold;      ///< (B, H, Lq, 1), empty where the operator has none
  array average;        ///< (1, 1|H, 1, 1), the moving average that the call formed; empty where the operator has none
  // Reference executors only:
  array scores, logits, weights;  ///< (B, H, Lq, Lk); 0 where masked
  array row_sum;                  ///< (B, H, Lq, 1), the sum of the weights, in the digits of the executor
};

/// How far each number of a result may be from the exact one; infinite where nothing is promised.
struct bounds {
  array out, lse, ground_weight, threshold, average;
};

/// Gradients of a scalar objective by the outputs: shaped like them, empty ones are zero.
struct cotangent {
  array out, lse, ground_weight;
};
/// Gradients by the tensors, the parameters and the tables that the problem sets, under the same names and in the same
/// shapes. A parameter made of pre-activations gives the gradient by these; one that several policies read, the sum.
using gradients = std::map<std::string, array>;

enum class backend { reference_double, reference_50, cpu_float, cpu_double };
#if defined(ATTUNE_INSTANCES_MPI)  // the CPU in double alone, on ranks: tests/mpi/operators
inline constexpr backend all_backends[] = {backend::reference_double, backend::cpu_double};
inline constexpr backend cpu_backends[] = {backend::cpu_double};
#elif defined(ATTUNE_INSTANCES_FLOAT)  // the CPU in float alone: for second compilers and sanitizers in the quick tier
inline constexpr backend all_backends[] = {backend::reference_double, backend::reference_50, backend::cpu_float};
inline constexpr backend cpu_backends[] = {backend::cpu_float};
#else
inline constexpr backend all_backends[] = {backend::reference_double, backend::reference_50, backend::cpu_float,
                                           backend::cpu_double};
inline constexpr backend cpu_backends[] = {backend::cpu_float, backend::cpu_double};
#endif
/// Whether this program has a backend.
constexpr bool has(backend b) {
  for (backend const x : all_backends)
    if (x == b) return true;
  return false;
}
inline constexpr bool has_double = has(backend::cpu_double);
char const* name(backend) noexcept;

struct options {
  int threads = 1;
  /// Odd memory layouts: pad every axis of every tensor (strides that are no multiples of anything), transpose head and
  /// position, and fill the padding with NaN. CPU executors only.
  bool odd_strides = false;
  /// Split the keys at these cuts (ascending, in [0, Lk]), run each part, merge the states pairwise in the order given
  /// by `tree_seed`, finish. Empty: one call. CPU and reference.
  std::vector<index> cuts;
  std::uint64_t tree_seed = 0;
};

struct entry {
  std::string name;  ///< kernel/length_scale/gate/normalizer[/post], e.g. "dot/margin/softplus/grounded"
  std::vector<std::string> tensors;     ///< required tensors
  std::vector<std::string> parameters;  ///< parameters it reads
  std::vector<std::string> tables;      ///< required tables
  bool has_lse = false, has_ground_weight = false, has_ground_value = false, has_threshold = false;
  std::function<result(problem const&, backend, options const&)> run;
  /// The certified bounds of a run on this backend (tests/instances/bounds.hpp).
  std::function<instances::bounds(problem const&, backend)> bounds;
  std::function<gradients(problem const&, backend, cotangent const&, options const&)> vjp;
  /// Of a candidate set, which has no lse: the VJP of the same operator with softmax, by the reference in double.
  std::function<gradients(problem const&, cotangent const&)> softmax_vjp;
  /// Of a centred normalizer, which has none either: with the weights before their mean is taken out.
  std::function<gradients(problem const&, cotangent const&)> uncentered_vjp;
};

/// All instantiated operators, by name; policies.hpp beside this header spells the parts. `post` is there where a value
/// gate or an output gate is.
std::map<std::string, entry> const& registry();
/// The operator of this name; null where there is none.
entry const* find(std::string const& name);

}  // namespace attune::instances
