// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// mask::ragged: its rule and its errors.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/policies.hpp>

#include "rules.hpp"

namespace attune::test {
namespace {

using offsets = std::vector<index_t>;

// Sequences with as many queries as keys, fewer, more, none of either, and one of each.
offsets const of_queries{0, 5, 5, 75, 79, 79, 88, 89}, of_keys{0, 5, 12, 52, 182, 182, 182, 183};

index_t sequence_of(offsets const& x, index_t i) { return std::upper_bound(x.begin(), x.end(), i) - x.begin() - 1; }

/// rule(query, key, nq, nk), all within the sequence.
template <class Rule>
auto within_sequences(Rule const& rule) {
  return [=](mask_row const& r, index_t j) {
    index_t const s = sequence_of(of_queries, r.query);
    if (sequence_of(of_keys, j) != s) return false;
    auto const n = std::size_t(s);
    return rule(r.query - of_queries[n], j - of_keys[n], of_queries[n + 1] - of_queries[n],
                of_keys[n + 1] - of_keys[n]);
  };
}

TEST_CASE("ragged: the keys of the own sequence") {
  CHECK(call_differs(mask::ragged(of_queries, of_keys),
                     within_sequences([](index_t, index_t, index_t, index_t) { return true; }), {2, 2, 89, 183}) == "");
}

TEST_CASE("ragged: masks within a sequence, ends aligned, whatever the offset of the call") {
  for (std::optional<index_t> const offset : {std::optional<index_t>{}, {0}, {7}}) {
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::causal{}),
                       within_sequences([](index_t i, index_t j, index_t nq, index_t nk) { return j <= i + nk - nq; }),
                       {1, 1, 89, 183}, offset) == "");
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::window{3}),
                       within_sequences(
                           [](index_t i, index_t j, index_t nq, index_t nk) { return std::abs(i + nk - nq - j) <= 3; }),
                       {1, 1, 89, 183}, offset) == "");
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::sink_window{2, 3}),
                       within_sequences([](index_t i, index_t j, index_t nq, index_t nk) {
                         return j <= i + nk - nq && (j < 2 || i + nk - nq - j < 3);
                       }),
                       {1, 1, 89, 183}, offset) == "");
  }
  auto const odd = [](mask_row const& r, index_t j) { return (r.query + r.queries + r.keys + j) % 3 != 0; };
  CHECK(call_differs(
            mask::ragged(of_queries, of_keys, mask::predicate(odd)),
            within_sequences([](index_t i, index_t j, index_t nq, index_t nk) { return (i + nq + nk + j) % 3 != 0; }),
            {1, 1, 89, 183}) == "");
}

TEST_CASE("ragged: 32-bit offsets, arrays, self-attention, `&`") {
  std::vector<std::int32_t> const x{0, 3, 3, 10};
  auto const same_causal = [&](mask_row const& r, index_t j) {
    auto const s = [&](index_t i) { return i < 3 ? 0 : 1; };
    return s(r.query) == s(j) && j <= r.query;
  };
  CHECK(call_differs(mask::ragged(x, mask::causal{}), same_causal, {1, 1, 10, 10}) == "");
  CHECK(call_differs(mask::ragged(x.data(), x.data(), 3, mask::causal{}), same_causal, {1, 1, 10, 10}) == "");
  CHECK(call_differs(mask::ragged(x) & mask::causal{}, same_causal, {1, 1, 10, 10}) == "");
}

TEST_CASE("ragged: errors") {
  offsets const q{0, 2, 5}, k{0, 4, 4}, three{0, 4, 4, 4}, late{1, 2, 5}, back{0, 6, 5}, none;
  mask_shape const s{1, 1, 5, 4};
  CHECK(rejects(mask::ragged(q, k), s) == "");
  CHECK(rejects(mask::ragged(q, three), s) ==
        "attune::mask::ragged: cu_seqlens_k has 4 entries; expected 3, as cu_seqlens_q has: one more than there are "
        "sequences");
  CHECK(rejects(mask::ragged(none), s) ==
        "attune::mask::ragged: cu_seqlens_q has 0 entries; expected at least 1: one more than there are sequences");
  CHECK(rejects(mask::ragged<>{}, s) ==
        "attune::mask::ragged: cu_seqlens_q has 0 entries; expected at least 1: one more than there are sequences");
  CHECK(rejects(mask::ragged(late, k), s) ==
        "attune::mask::ragged: cu_seqlens_q[0] has the value 1; expected 0: the first sequence begins at position 0");
  CHECK(rejects(mask::ragged(back, k), s) ==
        "attune::mask::ragged: cu_seqlens_q[2] has the value 5; expected at least 6, the value of cu_seqlens_q[1]");
  CHECK(rejects(mask::ragged(q, k), {1, 1, 6, 4}) ==
        "attune::mask::ragged: cu_seqlens_q[2] has the value 5; expected 6, the number of queries");
  CHECK(rejects(mask::ragged(q, k), {1, 1, 5, 9}) ==
        "attune::mask::ragged: cu_seqlens_k[2] has the value 4; expected 9, the number of keys");
  CHECK(rejects(mask::ragged(q, k, mask::window{-1}), s) ==
        "attune::mask::window: radius has the value -1; expected at least 0");
  mask_shape const on_device{1, 1, 5, 4, memory_kind::device};
  CHECK(rejects(mask::ragged(q, k), on_device) ==
        "attune::mask::ragged: the array of offsets has a std::vector, in memory of the host; expected an array that "
        "the device reads: ragged(cu_seqlens_q, cu_seqlens_k, sequences)");
  index_t const* const unreadable = nullptr;  // arrays of a device are not read here
  CHECK(rejects(mask::ragged(unreadable, unreadable, 2), on_device) == "");
}

TEST_CASE("cumulative_lengths: 0, n0, n0 + n1, ...") {
  CHECK(mask::cumulative_lengths(offsets{5, 0, 7}) == offsets{0, 5, 5, 12});
  CHECK(mask::cumulative_lengths(offsets{}) == offsets{0});
  CHECK(error_of([] { mask::cumulative_lengths(offsets{5, -1}); }) ==
        "attune::mask::cumulative_lengths: lengths[1] has the value -1; expected at least 0");
  std::vector<std::int32_t> const too_many{1, std::numeric_limits<std::int32_t>::max()};
  CHECK(error_of([&] { mask::cumulative_lengths(too_many); }) ==
        "attune::mask::cumulative_lengths: lengths[1] has the value 2147483647; expected at most 2147483646: the "
        "offsets have 32 bits");
}

}  // namespace
}  // namespace attune::test
