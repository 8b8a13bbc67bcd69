// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_FIELDS(ROW)  calls ROW(name, side, rows, heads, features, extents, superfluous, missing) for every
//                       input that an operator can have
//
// The one table of input tensors. Everything else follows from it: the enumeration, the members of `inputs`, the
// messages about a missing or superfluous input, the extents that a call checks, gradients, mixtures and random
// problems. To add an input, add a row here and a line in
// docs/reference/inputs.md.
#pragma once

#include <cstddef>

#include <attune/config.hpp>

namespace attune {

//   name         name of the member of `inputs` and of the field; also used in error texts
//   side         what its positions are: query (B, H, Lq, .), key (B, own heads, Lk, .), pair (1|B, 1|H, 1|Lq, Lk),
//                ground (1|B, 1|H, 1|Lq, .)
//   rows         own: a row for each position; shared: axes may have extent 1
//   heads        number of heads: the member of problem_shape
//   features     number of features: the member of problem_shape, or 1
//   extents      for error texts
//   superfluous  why an operator that does not read the input cannot use it
//   missing      why an operator that reads the input needs it
/// Calls ROW(name, side, rows, heads, features, extents, superfluous, missing) once for every input of an operator.
#define ATTUNE_FIELDS(ROW)                                                                                          \
  ROW(q, query, own, heads, width, "(batch, head, query, D)",                                                       \
      "the kernel of this operator has no dot product and no distance of q and k", "")                              \
  ROW(k, key, own, key_heads, width, "(batch, key head, key, D)",                                                   \
      "the kernel of this operator has no dot product and no distance of q and k", "")                              \
  ROW(v, key, own, value_heads, value_width, "(batch, value head, key, Dv)", "", "")                                \
  ROW(gate_q, query, own, heads, gate_width, "(batch, head, query, Dg)",                                            \
      "this operator has no score gate with its own projections", ": this operator has a score gate")               \
  ROW(gate_k, key, own, gate_key_heads, gate_width, "(batch, key head, key, Dg)",                                   \
      "this operator has no score gate with its own projections", ": this operator has a score gate")               \
  ROW(scores, pair, shared, heads, keys, "(1 or batch, 1 or head, 1 or query, key)",                                \
      "the kernel of this operator computes its scores (kernel::given_scores takes them)",                          \
      ": the kernel of this operator takes given scores")                                                           \
  ROW(gates, pair, shared, heads, keys, "(1 or batch, 1 or head, 1 or query, key)",                                 \
      "this operator has no gate that is given (gate::given_softplus has)", ": the gate of this operator is given") \
  ROW(sort_q, query, own, heads, 1, "(batch, head, query, 1)",                                                      \
      "the kernel of this operator has no scalar difference (kernel::scalar_sort has)",                             \
      ": the kernel of this operator compares scalars")                                                             \
  ROW(sort_k, key, own, sort_key_heads, 1, "(batch, key head, key, 1)",                                             \
      "the kernel of this operator has no scalar difference (kernel::scalar_sort has)",                             \
      ": the kernel of this operator compares scalars")                                                             \
  ROW(position_q, query, own, heads, position_width, "(batch, head, query, Dp)",                                    \
      "the kernel of this operator has no product of position projections (kernel::tupe has)",                      \
      ": the kernel of this operator compares positions")                                                           \
  ROW(position_k, key, own, position_key_heads, position_width, "(batch, key head, key, Dp)",                       \
      "the kernel of this operator has no product of position projections (kernel::tupe has)",                      \
      ": the kernel of this operator compares positions")                                                           \
  ROW(center, query, own, heads, axes, "(batch, head, query, axes)",                                                \
      "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",                               \
      ": the kernel of this operator has a spatial prior")                                                          \
  ROW(spread, query, own, heads, axes, "(batch, head, query, axes)",                                                \
      "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",                               \
      ": the kernel of this operator has a spatial prior")                                                          \
  ROW(place, key, own, place_heads, axes, "(batch, key head, key, axes)",                                           \
      "the kernel of this operator has no spatial prior (kernel::spatial_prior has)",                               \
      ": the kernel of this operator has a spatial prior")                                                          \
  ROW(bias, pair, shared, heads, keys, "(1 or batch, 1 or head, 1 or query, key)",                                  \
      "the kernel of this operator has no bias that is given (kernel::bias has)",                                   \
      ": the kernel of this operator adds a given bias")                                                            \
  ROW(key_bias, key, own, key_bias_heads, 1, "(batch, key head, key, 1)",                                           \
      "the kernel of this operator has no bias per key (kernel::key_bias has)",                                     \
      ": the kernel of this operator adds a bias per key")                                                          \
  ROW(position_scores, query, shared, heads, positions, "(1 or batch, 1 or head, 1 or query, P)",                   \
      "the kernel of this operator reads no row at an index (contraction::interpolated does)",                      \
      ": the kernel of this operator reads a row of numbers at an index")                                           \
  ROW(value_gate, key, own, value_heads, value_width, "(1 or batch, 1 or value head, key, Dv)",                     \
      "this operator has no value gate (gate::sigmoid_value is one)", ": this operator has a value gate")           \
  ROW(output_gate, query, shared, heads, output_gate_width, "(1 or batch, 1 or head, 1 or query, Dv or 1)",         \
      "this operator has no output gate (gate::sigmoid_output is one)", ": this operator has an output gate")       \
  ROW(v0, ground, shared, heads, value_width, "(1 or batch, 1 or head, 1 or query, Dv)",                            \
      "the normalizer of this operator has no ground value",                                                        \
      ": the normalizer of this operator has a ground value; attune::zeros<T>(Dv) stands for none")

/// Every input tensor an operator can have.
enum class field {
#define ATTUNE_ROW(name, ...) name,
  ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
};

/// The number of fields.
inline constexpr std::size_t field_count = 0
#define ATTUNE_ROW(...) +1
    ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
    ;

/// The kind of positions that an input has.
enum class input_side { query, key, pair, ground };

/// Facts about a field that hold for every problem.
struct field_facts {
  char const *name,  ///< the member of `inputs`
      *features,     ///< `features` of the table: a member of problem_shape, or "1"
      *extents;      ///< `extents` of the table, as error messages print them
};
inline constexpr field_facts fields[] = {
#define ATTUNE_ROW(name, side, rows, heads, features, extents, ...) {#name, #features, extents},
    ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
};

/// The name of the input, "gate_q" for example.
constexpr char const* name_of(field f) { return fields[std::size_t(f)].name; }

/// The kind of positions that the input has: queries, keys, pairs, or rows of the ground value.
ATTUNE_HD constexpr input_side side_of(field f) {
  switch (f) {
#define ATTUNE_ROW(name, side, ...) \
  case field::name:                 \
    return input_side::side;
    ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
  }
  return {};
}

/// Whether an input with a row per query may share rows: its axes may have extent 1.
ATTUNE_HD constexpr bool shares_rows(field f) {
  constexpr bool own = false, shared = true;
  switch (f) {
#define ATTUNE_ROW(name, side, rows, ...) \
  case field::name:                       \
    return rows && input_side::side == input_side::query;
    ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
  }
  return own || shared;
}

/// The place of a field among those with a number for each pair.
constexpr int pair_index(field f) {
  int n = 0;
  for (std::size_t at = 0; at < std::size_t(f); ++at) n += side_of(field(at)) == input_side::pair ? 1 : 0;
  return n;
}
/// How many fields have a number for each pair.
inline constexpr int pair_fields = pair_index(field(field_count));

/// The first field of the table with the same number of features. A call takes that number from it.
constexpr field width_source(field f) {
  auto const same = [](char const* a, char const* b) {
    while (*a != '\0' && *a == *b) ++a, ++b;
    return *a == *b;
  };
  std::size_t n = 0;
  while (!same(fields[n].features, fields[std::size_t(f)].features)) ++n;
  return field(n);
}

/// Calls visit.template operator()<F>() for every field, in the order of the table.
template <class Visit>
constexpr void for_each_field(Visit const& visit) {
#define ATTUNE_ROW(name, ...) visit.template operator()<field::name>();
  ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
}

}  // namespace attune
