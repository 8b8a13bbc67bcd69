// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contiguous: rank r holds block r of R;   zigzag: rank r holds blocks r and 2 R - 1 - r of 2 R
//
// Which rank holds which positions of a sequence. It needs no MPI.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune {

/// The positions 0 .. positions() - 1 of the queries or of the keys, divided among ranks. Each rank holds ascending
/// intervals of positions, possibly none. Its tensors hold these positions one after another: a *local* position counts
/// the positions of one rank. Intervals that touch are one interval, so equal shards compare equal.
class sharding {
 public:
  /// No positions and no ranks.
  sharding() = default;

  /// One interval per rank, in the order of the ranks. The first `positions % ranks` ranks hold one position more than
  /// the others. Throws attune::error unless positions >= 0 and ranks >= 1.
  static sharding contiguous(index_t positions, int ranks) {
    check_counts("sharding::contiguous", positions, ranks);
    std::vector<std::vector<key_interval>> shards;
    for (int r = 0; r < ranks; ++r) shards.push_back({block(positions, ranks, r)});
    return sharding(positions, shards);
  }

  /// Two intervals per rank: one from the front and its mirror image from the back. Under a causal mask every rank then
  /// has the same work. The first `positions % (2 ranks)` of the 2 ranks blocks hold one position more than the others.
  /// Throws attune::error unless positions >= 0 and ranks >= 1.
  static sharding zigzag(index_t positions, int ranks) {
    check_counts("sharding::zigzag", positions, ranks);
    std::vector<std::vector<key_interval>> shards;
    index_t const blocks = 2 * index_t(ranks);
    for (index_t r = 0; r < ranks; ++r)
      shards.push_back({block(positions, blocks, r), block(positions, blocks, blocks - 1 - r)});
    return sharding(positions, shards);
  }

  /// Any shards: shards[r] lists the intervals of rank r, ascending. Empty intervals and ranks without any are legal.
  /// Throws attune::error, which names the rank, unless each position belongs to exactly one rank.
  static sharding of(index_t positions, std::vector<std::vector<key_interval>> const& shards) {
    check_counts("sharding::of", positions, int(shards.size()));
    for (std::size_t r = 0; r < shards.size(); ++r) check_shard(positions, int(r), shards[r]);
    sharding s(positions, shards);
    index_t next = 0;
    int before = -1;
    for (piece const& p : s.pieces_) {
      if (p.at.first > next)
        throw error("sharding::of", "shards", detail::text("no rank for position ", next),
                    detail::text("each of the ", positions, " positions on one rank"));
      if (p.at.first < next)
        throw error(
            "sharding::of",
            detail::text("shards, ranks ", (std::min)(before, p.rank), " and ", (std::max)(before, p.rank), ","),
            detail::text("position ", p.at.first, " twice"), "each position on one rank");
      next = p.at.last;
      before = p.rank;
    }
    if (next < positions)
      throw error("sharding::of", "shards", detail::text("no rank for position ", next),
                  detail::text("each of the ", positions, " positions on one rank"));
    return s;
  }

  /// The number of positions of all ranks together.
  index_t positions() const { return positions_; }
  /// The number of ranks.
  int ranks() const { return int(shards_.size()); }
  /// The positions of a rank: ascending, disjoint, none empty. O(1).
  std::span<key_interval const> intervals(int rank) const { return shard(rank).intervals; }
  /// The number of positions of a rank. O(1).
  index_t size(int rank) const { return shard(rank).starts.back(); }
  /// The local position at which interval n of a rank begins. O(1).
  index_t local_start(int rank, std::size_t n) const { return shard(rank).starts[n]; }
  /// The number of positions of the rank that has most.
  index_t largest() const {
    index_t most = 0;
    for (auto const& s : shards_) most = (std::max)(most, s.starts.back());
    return most;
  }

  /// The position of a local position of a rank. O(log of the rank's intervals). Throws attune::error unless
  /// 0 <= local < size(rank).
  index_t global(int rank, index_t local) const {
    shard_of_rank const& s = shard(rank);
    if (local < 0 || local >= s.starts.back())
      throw error("sharding::global", "local", detail::text("the value ", local),
                  detail::text("a number from 0 to ", s.starts.back() - 1, ": rank ", rank, " holds ", s.starts.back(),
                               " positions"));
    auto const n = std::size_t(std::upper_bound(s.starts.begin(), s.starts.end(), local) - s.starts.begin() - 1);
    return s.intervals[n].first + (local - s.starts[n]);
  }
  /// The rank that holds a position. O(log of all intervals). Throws attune::error unless 0 <= position < positions().
  int rank_of(index_t position) const { return piece_of("sharding::rank_of", position).rank; }
  /// The local position of a position, on the rank that holds it. O(log of all intervals). Throws attune::error unless
  /// 0 <= position < positions().
  index_t local(index_t position) const {
    piece const& p = piece_of("sharding::local", position);
    return p.local + (position - p.at.first);
  }

  /// An interval of a rank.
  struct piece {
    key_interval at;  ///< its positions
    int rank;         ///< that holds them
    index_t local;    ///< local position of at.first
  };
  /// The intervals of all ranks, ascending.
  std::span<piece const> pieces() const { return pieces_; }

  /// True if the positions of each rank are one interval, in the order of the ranks.
  bool is_contiguous() const {
    for (std::size_t n = 0; n < pieces_.size(); ++n)
      if (shards_[std::size_t(pieces_[n].rank)].intervals.size() > 1 ||
          (n > 0 && pieces_[n - 1].rank > pieces_[n].rank))
        return false;
    return true;
  }

  friend bool operator==(sharding const& a, sharding const& b) {
    if (a.positions_ != b.positions_ || a.shards_.size() != b.shards_.size()) return false;
    for (std::size_t r = 0; r < a.shards_.size(); ++r)
      if (a.shards_[r].intervals != b.shards_[r].intervals) return false;
    return true;
  }

 private:
  struct shard_of_rank {
    std::vector<key_interval> intervals;
    std::vector<index_t> starts;  // local positions; one more than intervals, the last is the size
  };

  // The intervals of a rank ascend and do not overlap.
  sharding(index_t positions, std::vector<std::vector<key_interval>> const& shards) : positions_(positions) {
    for (std::size_t r = 0; r < shards.size(); ++r) {
      shard_of_rank s{{}, {0}};
      for (key_interval const& k : shards[r]) {
        if (k.empty()) continue;
        if (!s.intervals.empty() && s.intervals.back().last == k.first) {
          s.intervals.back().last = k.last;
          s.starts.back() += k.size();
          continue;
        }
        s.intervals.push_back(k);
        s.starts.push_back(s.starts.back() + k.size());
      }
      for (std::size_t n = 0; n < s.intervals.size(); ++n) pieces_.push_back({s.intervals[n], int(r), s.starts[n]});
      shards_.push_back(std::move(s));
    }
    std::sort(pieces_.begin(), pieces_.end(), [](piece const& a, piece const& b) { return a.at.first < b.at.first; });
  }

  static void check_counts(char const* function, index_t positions, int ranks) {
    if (positions < 0)
      throw error(function, "positions", detail::text("the value ", positions), "a number of positions >= 0");
    if (ranks < 1) throw error(function, "ranks", detail::text("the value ", ranks), "at least 1 rank");
  }
  static void check_shard(index_t positions, int rank, std::vector<key_interval> const& intervals) {
    std::string const name = detail::text("shards, rank ", rank, ",");
    index_t before = 0;
    for (key_interval const& k : intervals) {
      if (k.first < 0 || k.last > positions || k.first > k.last)
        throw error("sharding::of", name, detail::text("the interval [", k.first, ", ", k.last, ")"),
                    detail::text("0 <= first <= last <= ", positions, ", the number of positions"));
      if (k.empty()) continue;
      if (k.first < before)
        throw error("sharding::of", name,
                    detail::text("the interval [", k.first, ", ", k.last, ") after position ", before - 1),
                    "ascending intervals that do not overlap");
      before = k.last;
    }
  }
  // Block n of `blocks` blocks of nearly the same size.
  static key_interval block(index_t positions, index_t blocks, index_t n) {
    index_t const each = positions / blocks, more = positions % blocks;
    index_t const first = n * each + (std::min)(n, more);
    return {first, first + each + (n < more ? 1 : 0)};
  }
  shard_of_rank const& shard(int rank) const {
    if (rank < 0 || rank >= ranks())
      throw error("sharding", "rank", detail::text("the value ", rank),
                  detail::text("a number from 0 to ", ranks() - 1));
    return shards_[std::size_t(rank)];
  }
  piece const& piece_of(char const* function, index_t position) const {
    if (position < 0 || position >= positions_)
      throw error(function, "position", detail::text("the value ", position),
                  detail::text("a number from 0 to ", positions_ - 1));
    return *(std::upper_bound(pieces_.begin(), pieces_.end(), position,
                              [](index_t x, piece const& p) { return x < p.at.first; }) -
             1);
  }

  index_t positions_ = 0;
  std::vector<shard_of_rank> shards_;
  std::vector<piece> pieces_;  // of all ranks, ascending
};

/// "[0, 5) [15, 20)": the intervals of a rank, as error messages print them; "none" if there are none.
inline std::string to_string(sharding const& s, int rank) {
  std::string all;
  for (key_interval const& k : s.intervals(rank))
    all += detail::text(all.empty() ? "[" : " [", k.first, ", ", k.last, ")");
  return all.empty() ? "none" : all;
}

}  // namespace attune
