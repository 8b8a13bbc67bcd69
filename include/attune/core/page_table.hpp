// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keys [n size, (n + 1) size) of sequence b  lie in page  table(b, n)
//
// Which pages of a cache hold the keys of a sequence, in order. Sequences of one batch can then grow and end
// independently.
#pragma once

#include <cstdint>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune {

/// A view of page numbers, (batch, pages per sequence), row-major. An entry that is not a page (-1, for example) means
/// keys that no query sees. The caller keeps the numbers alive.
class page_table {
 public:
  /// From batch * per_sequence page numbers. Throws attune::error if an extent is negative or the pointer is null.
  page_table(std::int32_t const* entries, index_t batch, index_t per_sequence)
      : entries_(entries), batch_(batch), per_sequence_(per_sequence) {
    if (batch < 0 || per_sequence < 0 || (entries == nullptr && batch * per_sequence > 0))
      throw error(
          "page_table", "entries",
          detail::text(entries == nullptr ? "a null pointer" : "memory", " for ", batch, " x ", per_sequence, " pages"),
          "memory for as many numbers, both >= 0");
  }
  /// The same number of pages for each of `batch` sequences. Throws attune::error if `batch` does not divide the number
  /// of entries.
  page_table(std::vector<std::int32_t> const& entries, index_t batch)
      : page_table(entries.data(), batch, batch > 0 ? index_t(entries.size()) / batch : 0) {
    if (batch_ * per_sequence_ != index_t(entries.size()))
      throw error("page_table", "entries", detail::text(entries.size(), " numbers"),
                  detail::text("a multiple of ", batch, ", the number of sequences"));
  }
  page_table(std::vector<std::int32_t>&&, index_t) = delete;  // it would dangle

  /// Number of sequences.
  index_t batch() const { return batch_; }
  /// Number of entries per sequence.
  index_t per_sequence() const { return per_sequence_; }
  /// Page number n of sequence b. The indices are not checked.
  index_t operator()(index_t b, index_t n) const { return index_t(entries_[b * per_sequence_ + n]); }

 private:
  std::int32_t const* entries_;
  index_t batch_, per_sequence_;
};

}  // namespace attune
