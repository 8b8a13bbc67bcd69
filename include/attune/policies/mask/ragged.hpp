// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cu_seqlens_k[s] <= j < cu_seqlens_k[s + 1],   s the sequence of query i: cu_seqlens_q[s] <= i < cu_seqlens_q[s + 1]
//
// Sequences of different lengths, one after the other along one axis of positions. `cu_seqlens` are cumulative sequence
// lengths as in the varlen interface of FlashAttention (Dao et al. 2022): 0, n0, n0 + n1, ..., total.
#pragma once

#include <concepts>
#include <limits>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>
#include <attune/policies/mask/none.hpp>

namespace attune::mask {

/// 0, n0, n0 + n1, ..., total: the offsets of sequences with these lengths. Throws attune::error if a length is
/// negative or the total is more than the type holds.
template <std::signed_integral Offset>
std::vector<Offset> cumulative_lengths(std::vector<Offset> const& lengths) {
  std::vector<Offset> offsets{0};
  for (Offset const n : lengths) {
    std::size_t const s = offsets.size() - 1;
    if (n < 0)
      throw error("mask::cumulative_lengths", attune::detail::text("lengths[", s, "]"),
                  attune::detail::text("the value ", n), "at least 0");
    if (n > (std::numeric_limits<Offset>::max)() - offsets.back())
      throw error("mask::cumulative_lengths", attune::detail::text("lengths[", s, "]"),
                  attune::detail::text("the value ", n),
                  attune::detail::text("at most ", (std::numeric_limits<Offset>::max)() - offsets.back(),
                                       ": the offsets have ", 8 * sizeof(Offset), " bits"));
    offsets.push_back(Offset(offsets.back() + n));
  }
  return offsets;
}

/// A query sees the keys of its sequence that `within` shows. `within` sees each sequence as a separate call with nq
/// queries and nk keys, ends aligned: query i of the sequence is at position i + nk - nq.
/// mask::causal{} therefore shows the keys j <= i + nk - nq, as FlashAttention's varlen functions do.
/// K = what `within` shows of the sequence. The offset of the call is not read.
/// `within` may be any mask that has no arrays. Offsets have one entry more than there are sequences, are the same for
/// all batch elements and heads, and must outlive the mask. Sequences may be empty.
/// One interval per row if `within` has one. O(log sequences) to find the sequence of a row; allocates nothing.
template <MaskPolicy Within = none, std::signed_integral Offset = index_t>
struct ragged {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = Within::form == mask_form::interval ? mask_form::interval : mask_form::intervals;
  static constexpr bool checks_shape = true;

  ragged() = default;
  /// From vectors in host memory.
  ragged(std::vector<Offset> const& cu_seqlens_q, std::vector<Offset> const& cu_seqlens_k, Within within = {})
      : q_(cu_seqlens_q.data()), k_(cu_seqlens_k.data()), q_entries_(index_t(cu_seqlens_q.size())),
        k_entries_(index_t(cu_seqlens_k.size())), within_(within), in_vectors_(true) {}
  /// Self-attention: queries and keys have the same offsets.
  explicit ragged(std::vector<Offset> const& cu_seqlens, Within within = {}) : ragged(cu_seqlens, cu_seqlens, within) {}
  /// From arrays of sequences + 1 offsets each, on the host or where a device reads them.
  ragged(Offset const* cu_seqlens_q, Offset const* cu_seqlens_k, index_t sequences, Within within = {})
      : q_(cu_seqlens_q), k_(cu_seqlens_k), q_entries_(sequences + 1), k_entries_(sequences + 1), within_(within) {}
  ragged(std::vector<Offset> const&&, std::vector<Offset> const&, Within = {}) = delete;  // they would dangle
  ragged(std::vector<Offset> const&, std::vector<Offset> const&&, Within = {}) = delete;
  ragged(std::vector<Offset> const&&, std::vector<Offset> const&&, Within = {}) = delete;
  explicit ragged(std::vector<Offset> const&&, Within = {}) = delete;

  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const
    requires(Within::form == mask_form::interval)
  {
    return shown(r, 0);
  }
  ATTUNE_HD constexpr key_interval next(mask_row const& r, index_t from) const
    requires(Within::form != mask_form::interval)
  {
    return shown(r, from);
  }
  constexpr bool same_for_heads() const { return mask::same_for_heads(within_); }
  void(check)(mask_shape const& s) const {
    attune::detail::require_readable("mask::ragged", "the array of offsets", in_vectors_, s,
                                     "an array that the device reads: ragged(cu_seqlens_q, cu_seqlens_k, sequences)");
    if (k_entries_ != q_entries_)
      throw error("mask::ragged", "cu_seqlens_k", attune::detail::text(k_entries_, " entries"),
                  attune::detail::text(q_entries_, ", as cu_seqlens_q has: one more than there are sequences"));
    if (q_entries_ < 1)
      throw error("mask::ragged", "cu_seqlens_q", attune::detail::text(q_entries_, " entries"),
                  "at least 1: one more than there are sequences");
    if (s.memory == memory_kind::device) return (mask::check)(within_, {s.batch, s.heads, s.queries, s.keys, s.memory});
    check_offsets("cu_seqlens_q", q_, s.queries, "queries");
    check_offsets("cu_seqlens_k", k_, s.keys, "keys");
    for (index_t n = 0; n + 1 < q_entries_; ++n)
      (mask::check)(within_, {s.batch, s.heads, index_t(q_[n + 1]) - index_t(q_[n]),
                              index_t(k_[n + 1]) - index_t(k_[n]), s.memory});
  }

 private:
  /// The first interval of the row's keys that ends after `from`.
  ATTUNE_HD constexpr key_interval shown(mask_row const& r, index_t from) const {
    index_t s = 0, after = q_entries_ - 1;  // the last s with q_[s] <= i: an empty sequence has no query
    while (after - s > 1) {
      index_t const middle = s + (after - s) / 2;
      if (index_t(q_[middle]) <= r.query)
        s = middle;
      else
        after = middle;
    }
    index_t const first_query = q_[s], first_key = k_[s], keys = index_t(k_[s + 1]) - first_key;
    index_t const queries = index_t(q_[s + 1]) - first_query, query = r.query - first_query;
    key_interval const k =
        mask::next(within_, {r.batch, r.head, query, query + keys - queries, queries, keys}, from - first_key);
    return k.empty() ? key_interval{} : key_interval{first_key + k.first, first_key + k.last};
  }
  void check_offsets(char const* name, Offset const* x, index_t total, char const* positions) const {
    index_t const last = q_entries_ - 1;
    auto const refuse = [&](index_t n, std::string const& expected) {
      throw error("mask::ragged", attune::detail::text(name, "[", n, "]"), attune::detail::text("the value ", x[n]),
                  expected);
    };
    if (x[0] != 0) refuse(0, "0: the first sequence begins at position 0");
    for (index_t n = 1; n <= last; ++n)
      if (x[n] < x[n - 1])
        refuse(n, attune::detail::text("at least ", x[n - 1], ", the value of ", name, "[", n - 1, "]"));
    if (x[last] != total) refuse(last, attune::detail::text(total, ", the number of ", positions));
  }

  Offset const* q_ = nullptr;
  Offset const* k_ = nullptr;
  index_t q_entries_ = 0, k_entries_ = 0;
  Within within_{};
  bool in_vectors_ = false;
};

}  // namespace attune::mask
