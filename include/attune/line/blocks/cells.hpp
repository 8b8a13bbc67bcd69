// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum over the keys left of a cell + sum over the keys right of it + the pairs of the cell
//
// The line is cut into cells with equal numbers of keys. Where a kernel is a product on each side of a query, the sum
// over all cells on one side is one row per cell. A running sum over cells provides it for the keys of all earlier
// blocks. Keys in the query's own cell are computed pair by pair. With blocks and cells of n^(1/3) keys the total is
// O(n^(4/3)) rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <attune/exec/cpu/products.hpp>
#include <attune/line/blocks/blocks.hpp>

namespace attune::line::detail {

/// The number of a key, query or cell within one staircase, in 32 bits to halve the memory. worth_cells ensures that
/// keys fit.
using number = std::int32_t;

/// The cells of a staircase's keys, and the cell of each query.
class line_cells {
 public:
  line_cells(staircase const& stairs, scalars<double> const& on, index_t size) : size_(size) {
    index_t const keys = stairs.seen.back();
    std::vector<ranked> order, scratch;
    order.reserve(std::size_t(keys));
    for (index_t n = 0; n < keys; ++n) order.push_back({ranked::digits_of(on.k[std::size_t(stairs.key(n))]), n});
    radix_sort(order, scratch);
    of_key_.resize(order.size());
    in_blocks_.resize(order.size());
    std::vector<index_t> next;
    for (index_t first = 0; first < keys; first += size) next.push_back(first);
    for (index_t rank = 0; rank < keys; ++rank) {
      index_t const n = order[std::size_t(rank)].index;
      of_key_[std::size_t(n)] = number(rank / size);
      in_blocks_[std::size_t(next[std::size_t(n / size)]++)] = number(n);
      if (rank % size == 0) edge_.push_back(on.k[std::size_t(stairs.key(n))]);
    }
    locate(stairs, on);
  }
  index_t count() const { return index_t(edge_.size()); }
  index_t size() const { return size_; }
  /// The least key of a cell.
  double edge(index_t c) const { return edge_[std::size_t(c)]; }
  index_t of_key(index_t n) const { return of_key_[std::size_t(n)]; }
  index_t of_query(index_t r) const { return of_query_[std::size_t(r)]; }
  /// The keys [first, last) of a block, in their order on the line.
  std::span<number const> in_order(index_t first, index_t last) const {
    return std::span<number const>(in_blocks_).subspan(std::size_t(first), std::size_t(last - first));
  }

  /// The members of each cell in the order of the staircase.
  struct members {
    std::vector<index_t> begin;
    std::vector<number> all;
    std::span<number const> operator[](index_t c) const {
      return std::span<number const>(all).subspan(std::size_t(begin[std::size_t(c)]),
                                                  std::size_t(begin[std::size_t(c + 1)] - begin[std::size_t(c)]));
    }
  };
  members keys() const { return members_of(of_key_); }
  members queries() const { return members_of(of_query_); }

 private:
  members members_of(std::vector<number> const& cell) const {
    members m{std::vector<index_t>(std::size_t(count() + 1), 0), std::vector<number>(cell.size())};
    for (number const c : cell) ++m.begin[std::size_t(c + 1)];
    for (index_t c = 0; c < count(); ++c) m.begin[std::size_t(c + 1)] += m.begin[std::size_t(c)];
    std::vector<index_t> next(m.begin.begin(), m.begin.end() - 1);
    for (index_t n = 0; n < index_t(cell.size()); ++n)
      m.all[std::size_t(next[std::size_t(cell[std::size_t(n)])]++)] = number(n);
    return m;
  }

  /// A query belongs to the last cell that begins at or before it. Earlier cells have no key beyond the query; later
  /// cells have none before it.
  void locate(staircase const& stairs, scalars<double> const& on) {
    constexpr index_t many = 16;  // interleaved binary searches: none waits for the loads of another
    index_t const rows = index_t(stairs.seen.size()), cells = count();
    of_query_.resize(std::size_t(rows));
    for (index_t first = 0; first < rows; first += many) {
      index_t const n = (std::min)(many, rows - first);
      index_t at[many] = {};
      double x[many] = {};
      for (index_t t = 0; t < n; ++t) x[t] = on.q[std::size_t(stairs.query(first + t))];
      for (index_t left = cells; left > 1; left -= left / 2)
        for (index_t t = 0; t < many; ++t) at[t] += edge_[std::size_t(at[t] + left / 2)] <= x[t] ? left / 2 : 0;
      for (index_t t = 0; t < n; ++t) of_query_[std::size_t(first + t)] = number(at[t]);
    }
  }

  index_t size_;
  std::vector<double> edge_;
  std::vector<number> of_key_, of_query_, in_blocks_;
};

/// Number of blocks per part. Queries of a part are processed cell by cell, with about as many queries per cell as a
/// tile has.
inline constexpr index_t blocks_of_part = 64;

/// Whether a staircase is long enough for blocks and cells, and has enough queries to make them worthwhile. Also
/// whether it is short enough for n^(4/3) to be less than the cost of levels of rectangles.
inline bool worth_cells(staircase const& stairs) {
  index_t const keys = stairs.seen.back();
  return keys >= 512 && keys <= (index_t{1} << 22) && index_t(stairs.seen.size()) >= keys / 8;
}

/// One row of running sums per cell, and a mass for each: [panel][cell][columns].
template <class Arch>
class cell_rows {
  using tile = exec_cpu::tiling<double, Arch>;

 public:
  using batch = typename tile::batch;
  static constexpr index_t columns = panels<Arch>::columns;
  cell_rows(index_t cells, index_t width) : sums_(cells, width), mass_(std::size_t(cells), 0.0) {}
  double* panel(index_t p) { return sums_.panel(p); }
  double& mass(index_t c) { return mass_[std::size_t(c)]; }
  double mass(index_t c) const { return mass_[std::size_t(c)]; }

  /// row += earlier + a * (sums of cell c in x) + b * (sums of cell c in y)
  static void add_to(double* row, double const* earlier, index_t c, cell_rows const& x, double a, cell_rows const& y,
                     double b) {
    for (index_t p = 0; p < x.sums_.count(); ++p)
      for (int v = 0; v < tile::vectors; ++v) {
        index_t const at = p * columns + v * tile::lanes, of_cell = c * columns + v * tile::lanes;
        batch const sum = batch::load_aligned(row + at) + batch::load_aligned(earlier + at);
        simd::multiply_add(batch(a), batch::load_aligned(x.sums_.panel(p) + of_cell),
                           simd::multiply_add(batch(b), batch::load_aligned(y.sums_.panel(p) + of_cell), sum))
            .store_aligned(row + at);
      }
  }

 private:
  panels<Arch> sums_;
  std::vector<double> mass_;
};

/// The sums over a block's keys while they are passed along the cells: a panel of registers, or the mass.
template <class Arch>
struct panel_sum {
  using tile = exec_cpu::tiling<double, Arch>;
  typename tile::batch at[tile::vectors];
  panel_sum() {
    for (auto& x : at) x = typename tile::batch(0.0);
  }
  /// Adds factor * row.
  ATTUNE_INLINE void add(double factor, double const* row) {
    for (int v = 0; v < tile::vectors; ++v)
      at[v] = simd::multiply_add(typename tile::batch(factor), tile::batch::load_aligned(row + v * tile::lanes), at[v]);
  }
  ATTUNE_INLINE void add(double factor, panel_sum const& other) {
    for (int v = 0; v < tile::vectors; ++v)
      at[v] = simd::multiply_add(typename tile::batch(factor), other.at[v], at[v]);
  }
  ATTUNE_INLINE void give(double* to) const {
    for (int v = 0; v < tile::vectors; ++v)
      (tile::batch::load_aligned(to + v * tile::lanes) + at[v]).store_aligned(to + v * tile::lanes);
  }
};

/// The keys of a block by cell, with two passes along the line: take(n) for key n, then give(c) for every cell between
/// it and the next key; from the right, for the cells before it.
struct block_keys {
  std::span<index_t const> number, cell;  ///< `number`: of the key in the block; `cell`: on the line

  template <class Take, class Give>
  ATTUNE_INLINE void from_left(index_t cells, Take const& take, Give const& give) const {
    for (std::size_t n = 0; n < cell.size(); ++n) {
      take(n);
      for (index_t c = cell[n] + 1, end = n + 1 < cell.size() ? cell[n + 1] + 1 : cells; c < end; ++c) give(c);
    }
  }
  template <class Take, class Give>
  ATTUNE_INLINE void from_right(Take const& take, Give const& give) const {
    for (std::size_t n = cell.size(); n-- > 0;) {
      take(n);
      for (index_t c = cell[n], end = n > 0 ? cell[n - 1] : 0; c-- > end;) give(c);
    }
  }
};

/// Processes a staircase by blocks and cells. Weigh: computes the weight of a pair from the numbers `of` of its
/// positions.
/// Far: the sums over earlier blocks.
///   accumulate(keys, first, values): adds the keys of a block, whose first key is number `first` of the staircase.
///   add_to(row, mass, earlier, i, c): adds to query i of cell c the sums over the keys of other cells, and a row of
///   earlier sums.
///
/// Works on one part of the positions at a time. First, cell by cell, the keys of earlier blocks in a query's own cell;
/// then, block by block, the other keys. The results of the first step stay in cache for the second.
template <template <class> class Far, class Weigh, class Arch, class T>
class cell_walk {
 public:
  cell_walk(staircase const& stairs, scalars<double> const& on, pair_numbers<Weigh::numbers> const& of,
            tensor<T const> const& v, index_t b, index_t h)
      : stairs_(stairs), v_(v), b_(b), h_(h), width_(v.extents().feature), keys_(stairs.seen.back()),
        rows_(index_t(stairs.seen.size())), cells_(stairs, on, block_size(keys_)), keys_of_(cells_.keys()),
        queries_of_(cells_.queries()), next_(queries_of_.begin.begin(), queries_of_.begin.end() - 1),
        tiles_({}, of, cells_.size(), width_), far_(stairs, cells_, of, width_) {}

  cell_walk(cell_walk const&) = delete;  // far_ refers to cells_

  /// Calls finish(i, row, mass) once for every query i, with its sums.
  template <class Finish>
  void operator()(Finish const& finish) {
    index_t const part = blocks_of_part * cells_.size();
    for (index_t from = 0; from < keys_; from += part, begin_ = end_) {
      index_t const to = (std::min)(from + part, keys_);
      enter(from, to);
      for (index_t c = 0; c < cells_.count(); ++c) {
        if (c + 1 < cells_.count()) fetch(keys_of_[c + 1], to);
        meet_cell(c);
      }
      meet_blocks(from, to, finish);
    }
  }

 private:
  /// Finds the queries of a part, and the block of each.
  void enter(index_t from, index_t to) {
    block_of_.clear();
    for (index_t block_first = from; end_ < rows_ && stairs_.seen[std::size_t(end_)] <= to; ++end_) {
      while (stairs_.seen[std::size_t(end_)] > block_first + cells_.size()) block_first += cells_.size();
      block_of_.push_back(number(block_first));
    }
    index_t const count = end_ - begin_;
    if (count > room_)  // plus a tile: the last tile of a cell is written whole
      sums_ = exec_cpu::aligned_buffer<double>(((room_ = count) + tiles_.queries) * tiles_.row_step());
    masses_.assign(std::size_t(count), 0.0);
    place_.assign(std::size_t(count), 0);
    placed_ = 0;
  }
  /// Prefetches keys of a cell that is processed soon: they are spread over the sequence.
  void fetch(std::span<number const> members, index_t end) const {
    for (number const n : members) {
      if (n >= end) break;
      fetch_key(n);
    }
  }
  void fetch_key(index_t n) const {
    index_t const j = stairs_.key(n);
    exec_cpu::prefetch_range(v_, b_, h_, j, j + 1).fetch_alone(0);
    tiles_.fetch_key(j);
  }
  /// The row that sums the keys of earlier blocks in the own cell of a query.
  double* sums(index_t place) { return sums_.data() + place * tiles_.row_step(); }
  void fetch_sums(index_t r) {
    char const* const row = reinterpret_cast<char const*>(sums(place_[std::size_t(r - begin_)]));
    for (index_t at = 0; at < tiles_.row_step() * index_t(sizeof(double)); at += 64) ATTUNE_PREFETCH(row + at);
  }
  void load(index_t s, index_t n) {
    index_t const j = stairs_.key(n);
    tiles_.load_key(s, j, v_.row(b_, h_, j), v_.steps().feature);
  }

  /// Pairs of the queries of a cell with the keys of earlier blocks in that cell.
  void meet_cell(index_t c) {
    auto const members = keys_of_[c];
    index_t& at = next_[std::size_t(c)];
    index_t const last = queries_of_.begin[std::size_t(c + 1)];
    index_t loaded = 0, met = 0;
    auto const more = [&] { return at < last && queries_of_.all[std::size_t(at)] < end_; };
    while (more()) {
      ids_.clear();
      count_.clear();
      for (; more() && index_t(ids_.size()) < tiles_.queries; ++at) {
        index_t const r = queries_of_.all[std::size_t(at)];
        while (met < index_t(members.size()) && members[std::size_t(met)] < block_of_[std::size_t(r - begin_)]) ++met;
        place_[std::size_t(r - begin_)] = number(placed_ + index_t(ids_.size()));
        ids_.push_back(stairs_.query(r));
        count_.push_back(met);
      }
      if (loaded == 0) tiles_.begin_keys();
      for (; loaded < met; ++loaded) load(loaded, members[std::size_t(loaded)]);
      tiles_.begin_rows(sums(placed_));
      tiles_.add_pairs(ids_, count_);
      for (std::size_t t = 0; t < ids_.size(); ++t) masses_[std::size_t(placed_) + t] = tiles_.mass(index_t(t));
      placed_ += index_t(ids_.size());
    }
  }

  /// Adds to the queries of a part the keys of other cells, and the keys of the blocks of those queries.
  template <class Finish>
  void meet_blocks(index_t from, index_t to, Finish const& finish) {
    walk_blocks(
        stairs_, from, to, cells_.size(), begin_, tiles_,
        [&](index_t first, index_t last) {
          for (index_t n = first; n < last; ++n) {
            load(n - first, n);
            if (n + cells_.size() < keys_) fetch_key(n + cells_.size());
          }
        },
        [&](std::span<index_t const> queries, index_t r, index_t) {
          tiles_.begin_rows();
          for (index_t t = 0; t < index_t(queries.size()); ++t) fetch_sums(r + t);
        },
        [&](std::span<index_t const> count, index_t r, index_t first) {
          for (index_t t = 0; t < index_t(count.size()); ++t) {
            index_t const i = stairs_.query(r + t), place = place_[std::size_t(r + t - begin_)];
            if (first > 0) {
              tiles_.mass(t) += masses_[std::size_t(place)];
              far_.add_to(tiles_.row(t), tiles_.mass(t), sums(place), i, cells_.of_query(r + t));
            }
            finish(i, tiles_.row(t), tiles_.mass(t));
          }
        },
        [&](index_t first, index_t last) {
          in_block_.clear();
          cell_.clear();
          for (number const n : cells_.in_order(first, last)) {
            in_block_.push_back(n - first);
            cell_.push_back(cells_.of_key(n));
          }
          far_.accumulate(block_keys{in_block_, cell_}, first, tiles_.values());
        });
  }

  staircase const& stairs_;
  tensor<T const> v_;
  index_t b_, h_, width_, keys_, rows_;
  line_cells cells_;
  line_cells::members keys_of_, queries_of_;
  std::vector<index_t> next_;  ///< next query of each cell
  pair_tiles<Arch, Weigh> tiles_;
  Far<Arch> far_;
  // State of a part.
  index_t begin_ = 0, end_ = 0;           ///< range of its queries
  std::vector<number> block_of_, place_;  ///< per query: the first key of its block; the index of its sums
  exec_cpu::aligned_buffer<double> sums_{0};
  std::vector<double> masses_;
  index_t room_ = 0, placed_ = 0;
  // State of a tile, and of a block.
  std::vector<index_t> ids_, count_, in_block_, cell_;
};

}  // namespace attune::line::detail
