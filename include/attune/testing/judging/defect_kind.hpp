// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   name_of(defect::mask_ignored)    "mask ignored"
//
// The mistakes that a verdict knows, and their names in reports.
#pragma once

namespace attune::testing {

/// A mistake that a kernel may contain. A verdict compares the kernel with an operator that has the mistake.
enum class defect {
  none,
  ground_ignored,        ///< sink, off-by-one or ground ignored: weights sum to 1
  ground_value_ignored,  ///< v0 taken as 0
  gate_ignored,          ///< the score gate
  output_gate_ignored,
  value_gate_ignored,
  length_scale_ignored,
  count_plus_one,  ///< K + 1 instead of K, in the length scale or a division by K
  count_minus_one,
  count_of_all_keys,  ///< Lk instead of K
  causal_top_left,    ///< masks aligned at query 0 = key 0 instead of with the offset
  position_plus_one,  ///< masks treat every query as one position later
  position_minus_one,
  last_key_beyond,    ///< each interval of visible keys is one key longer at its end
  last_key_missing,   ///< each interval is one key shorter at its end
  first_key_beyond,   ///< each interval starts one key earlier
  first_key_missing,  ///< each interval starts one key later
  key_zero_doubled,   ///< the first visible key counts twice
  last_key_doubled,
  heads_interleaved,   ///< head h reads key head h mod Hk instead of h Hk / H
  values_by_position,  ///< v read as (batch, position, head, feature)
  out_by_position,     ///< out written as (batch, position, head, feature)
  values_one_late,     ///< value j + 1 for key j
  weights_in_bf16,     ///< probabilities rounded although `precision` says that they are not
  weights_in_fp16,
  lse_in_base_two,
  lse_in_base_e,      ///< of a kernel whose lse should have base 2
  lse_without_scale,  ///< log sum e^x of the first contraction
  lse_without_ground,
  ground_not_in_sum,     ///< the ground's value is added, but the normalizer does not include the ground
  first_key_not_in_sum,  ///< the normalizer lacks the first visible key
  last_key_not_in_sum,
  logits_in_bf16,  ///< logits rounded before the normalizer
  logits_in_fp16,
  mask_ignored,        ///< every query sees every key
  key_head_plus_one,   ///< keys and values of the next key head
  batch_plus_one,      ///< keys and values of the next batch element
  window_starts_late,  ///< a window lacks its first key; rows whose window begins at key 0 are right
  window_ends_early,   ///< a window lacks its last key; rows whose window ends at the last key are right
  window_wider,        ///< a window has one key more on both sides
  window_narrower,     ///< a window has one key less on both sides
  cap_after_mask,      ///< hidden keys get the logit of a score of -infinity, which a cap makes finite
  ground_twice,        ///< the sink or ground once for each of two splits of the keys
  ground_four_times,
  ground_eight_times,
  query_one_later,  ///< in the score alone: the mask is right
  query_one_earlier,
  positions_ignored,    ///< the contractions see every key at the query's position
  other_rotary_layout,  ///< pairs (r, r + R) instead of (2 r, 2 r + 1), or the reverse
  sink_added,           ///< one more exponential in the sum, of logit 0: a sink, a key of zeros that is not hidden
  marked_keys_missing,  ///< the keys of `mark`, such as a skipped tile
  marked_keys_doubled,
  marked_keys_elsewhere,  ///< the keys of `mark` are read from another place, such as a stale page
};
/// The defects that need no mark; every verdict tests for them.
inline constexpr int defect_count = int(defect::marked_keys_missing);

/// A readable name, as reports print it: "sink or ground ignored".
constexpr char const* name_of(defect d) {
  switch (d) {
    case defect::none:
      return "none";
    case defect::ground_ignored:
      return "sink or ground ignored";
    case defect::ground_value_ignored:
      return "ground value v0 ignored";
    case defect::gate_ignored:
      return "score gate ignored";
    case defect::output_gate_ignored:
      return "output gate ignored";
    case defect::value_gate_ignored:
      return "value gate ignored";
    case defect::length_scale_ignored:
      return "length scale ignored";
    case defect::count_plus_one:
      return "K one too large";
    case defect::count_minus_one:
      return "K one too small";
    case defect::count_of_all_keys:
      return "Lk taken for K";
    case defect::causal_top_left:
      return "mask aligned top-left";
    case defect::position_plus_one:
      return "mask shifted by +1";
    case defect::position_minus_one:
      return "mask shifted by -1";
    case defect::last_key_beyond:
      return "one key too many at the end";
    case defect::last_key_missing:
      return "last visible key missing";
    case defect::first_key_beyond:
      return "one key too many at the start";
    case defect::first_key_missing:
      return "first visible key missing";
    case defect::key_zero_doubled:
      return "first visible key doubled";
    case defect::last_key_doubled:
      return "last visible key doubled";
    case defect::heads_interleaved:
      return "key heads interleaved (h mod Hk)";
    case defect::values_by_position:
      return "head and position of v transposed";
    case defect::out_by_position:
      return "head and position of out transposed";
    case defect::values_one_late:
      return "values shifted by one key";
    case defect::weights_in_bf16:
      return "probabilities rounded to bf16";
    case defect::weights_in_fp16:
      return "probabilities rounded to fp16";
    case defect::lse_in_base_two:
      return "lse in base 2";
    case defect::lse_in_base_e:
      return "lse in base e";
    case defect::lse_without_scale:
      return "scale missing from lse";
    case defect::lse_without_ground:
      return "sink or ground missing from lse";
    case defect::ground_not_in_sum:
      return "weights not divided by the sink's or ground's mass";
    case defect::first_key_not_in_sum:
      return "first visible key missing from the sum of weights";
    case defect::last_key_not_in_sum:
      return "last visible key missing from the sum of weights";
    case defect::logits_in_bf16:
      return "logits rounded to bf16";
    case defect::logits_in_fp16:
      return "logits rounded to fp16";
    case defect::mask_ignored:
      return "mask ignored";
    case defect::key_head_plus_one:
      return "keys and values of the next key head";
    case defect::batch_plus_one:
      return "keys and values of the next batch element";
    case defect::window_starts_late:
      return "window one key too short at its start";
    case defect::window_ends_early:
      return "window one key too short at its end";
    case defect::window_wider:
      return "window one key too long on both sides";
    case defect::window_narrower:
      return "window one key too short on both sides";
    case defect::cap_after_mask:
      return "cap applied after the mask: hidden keys count";
    case defect::ground_twice:
      return "sink or ground counted 2 times, as once per split";
    case defect::ground_four_times:
      return "sink or ground counted 4 times, as once per split";
    case defect::ground_eight_times:
      return "sink or ground counted 8 times, as once per split";
    case defect::query_one_later:
      return "positions of the score off by +1";
    case defect::query_one_earlier:
      return "positions of the score off by -1";
    case defect::positions_ignored:
      return "positions of the score ignored";
    case defect::other_rotary_layout:
      return "rotary pairs of the other layout";
    case defect::sink_added:
      return "a sink of logit 0 that the operator does not have";
    case defect::marked_keys_missing:
      return "keys missing:";
    case defect::marked_keys_doubled:
      return "keys counted twice:";
    case defect::marked_keys_elsewhere:
      return "keys read from elsewhere:";
  }
  return "";
}

}  // namespace attune::testing
