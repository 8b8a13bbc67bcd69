// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row_change{.position = +1}       row_change{.weights_stored = storage::bf16}       row_change{.head = heads::next}
//
// The steps in which a defective kernel differs when it computes a row, as plain numbers. The default changes nothing.
// altered_row.hpp computes an output row with it, backward_rows.hpp the row's gradients.
#pragma once

#include <optional>

#include <attune/core/tensor.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// Which key head (or value head) a query head reads.
enum class heads {
  own,
  interleaved,  ///< h mod Hk instead of h Hk / H
  next,         ///< the key head after its own
  previous,
  last_first,  ///< in reverse order
  first        ///< head 0
};
/// The batch element that a kernel reads.
enum class batches { own, next, first };
/// Which keys are marked, and what happens to them.
enum class marked { no, missing, doubled, elsewhere };
/// The mass of a sink or ground in the sum of weights.
enum class ground_mass { right, ignored, not_in_sum, not_in_lse };
/// A sum that keeps its old factor when the maximum of a row grows.
enum class stale { none, sum, out, both };
/// A visible key that is counted otherwise than the rest.
enum class end_key { none, first, last };
/// How a matrix of rows and features is read.
enum class matrix {
  right,
  one_row_late,
  by_position,  ///< (batch, position, head, feature) for (batch, head, position, feature)
  rows_turned,  ///< the last row first
  squares       ///< blocks of 16 x 16 transposed
};

struct row_change {
  // ---- the visible keys
  bool all_keys = false;                             ///< no mask
  bool from_first_key = false, to_last_key = false;  ///< one end of the mask is ignored
  index_t whole_tiles = 0;                           ///< above 0: each interval ends at a multiple of it
  bool top_left = false;                             ///< query 0 has position 0 in the mask, without the offset
  index_t position = 0;                              ///< the mask treats a query as so many positions later
  index_t first = 0;                                 ///< each interval of visible keys starts so many keys later
  index_t last = 0;                                  ///< each interval ends so many keys later
  bool inner = false;  ///< `first` and `last` move only ends that are not the ends of all keys
  end_key twice = end_key::none;
  marked keys = marked::no;

  // ---- K, the number of visible keys
  index_t count = 0;       ///< added to K
  bool count_all = false;  ///< Lk for K

  // ---- the score
  index_t query = 0;            ///< the score takes a query as so many positions later
  bool query_top_left = false;  ///< the score takes query 0 as position 0
  bool without_positions = false;
  bool other_rotary = false;    ///< pairs (r, r + R) instead of (2 r, 2 r + 1), or the reverse
  bool cap_after_mask = false;  ///< hidden keys have the logit of a score of -infinity, which a cap makes finite

  // ---- where keys and values are read
  heads key_head = heads::own, value_head = heads::own;
  batches key_batch = batches::own, value_batch = batches::own;
  matrix key_rows = matrix::right, value_rows = matrix::right;

  // ---- the logit
  bool without_gate = false, without_length_scale = false;
  std::optional<storage> logits_stored = std::nullopt;  ///< rounded to this format
  int logit_bits = 0;                                   ///< above 0: rounded to so many significant bits

  double cap = 0;  ///< above 0: a cap that the operator does not have

  // ---- the weights
  index_t tile = 0;                  ///< keys of a tile, for `not_rescaled`
  stale not_rescaled = stale::none;  ///< a kernel that visits tiles of keys in their order
  index_t splits = 0;                ///< parts of equal size, merged by the sums of their weights to a power
  double merge_power = 1;
  std::optional<storage> weights_stored = std::nullopt;
  int weight_bits = 0;  ///< above 0: rounded to so many significant bits
  ground_mass ground = ground_mass::right;
  int ground_times = 1;                ///< the sink or ground counts so often
  end_key not_in_sum = end_key::none;  ///< the normalizer lacks this key
  bool sink_added = false;             ///< one more exponential in the sum, of logit 0

  // ---- the output
  bool without_value_gate = false, without_output_gate = false, without_v0 = false;
  bool out_by_position = false;  ///< written as (batch, position, head, feature)

  // ---- the lse alone
  double lse_factor = 1;
  bool lse_without_scale = false;  ///< log sum e^x of the first contraction

  // ---- a backward pass alone: w = e^(a - lse), h = <do, v>, da = w (h - R)
  std::optional<storage> products_stored = std::nullopt,  ///< h
      slopes_stored = std::nullopt,                       ///< da
      row_terms_stored = std::nullopt;                    ///< R
  int slope_bits = 0;                                     ///< above 0: da rounded to so many significant bits
  double row_term_factor = 1;
  bool slopes_by_products = false;               ///< da = w h - R
  int cap_slopes = 1;                            ///< how often the derivative of the cap multiplies da
  bool next_row_term = false, next_lse = false;  ///< of the next query
  bool through_maximum = false;                  ///< da of the largest logit lacks R once more
  bool unnormalized = false;                     ///< in dv: e^(a - maximum)
  int one_head_of_group = 0;  ///< dk and dv lack the rows of all heads of a group but the first (1), or the last (2)

  friend constexpr bool operator==(row_change const&, row_change const&) = default;
};

/// Whether a change needs keys, values or scores that the right row does not have.
constexpr bool reads_elsewhere(row_change const& c) {
  return c.query != 0 || c.query_top_left || c.without_positions || c.other_rotary || c.cap_after_mask ||
         c.keys == marked::elsewhere || c.key_head != heads::own || c.value_head != heads::own ||
         c.key_batch != batches::own || c.value_batch != batches::own || c.key_rows != matrix::right;
}
/// Whether it changes what the mask shows.
constexpr bool changes_mask(row_change const& c) {
  return c.all_keys || c.from_first_key || c.to_last_key || c.whole_tiles > 0 || c.top_left || c.position != 0 ||
         c.first != 0 || c.last != 0;
}
/// Whether it changes the lse and nothing else.
constexpr bool only_lse(row_change const& c) {
  return c.lse_factor != 1 || c.lse_without_scale || c.ground == ground_mass::not_in_lse;
}

}  // namespace attune::testing::detail
