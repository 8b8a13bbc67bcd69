// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum_j w_ij v_j  =  the sum over all keys before a block of positions  +  the visible pairs of the block
//
// Processes a staircase once, in the order of positions. The keys before a block are in running sums, which cost a
// query as much as a few rows (by cells of the line, cells.hpp, or by waves, waves.hpp). Pairs inside the block are
// computed in tiles.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <attune/line/blocks/panels.hpp>
#include <attune/line/order/order.hpp>

namespace attune::line::detail {

/// The numbers of one head that determine the weights of pairs: N per query and N per key.
template <std::size_t N>
struct pair_numbers {
  std::array<std::span<double const>, N> q, k;
};

/// Pairs of a few queries with the keys of a block.
/// Weigh: N numbers per position, `template <class B> B operator()(B const (&q)[N], B const (&k)[N]) const`.
template <class Arch, class Weigh>
class pair_tiles {
  using tile = exec_cpu::tiling<double, Arch>;
  using batch = typename tile::batch;
  static constexpr std::size_t numbers = Weigh::numbers;

 public:
  static constexpr index_t queries = tile::queries;  ///< per tile
  static_assert(queries % product_rows<Arch> == 0 || queries == 4, "rows are put by whole tiles of products, or by 4");

  pair_tiles(Weigh const& weigh, pair_numbers<numbers> const& of, index_t most_keys, index_t width)
      : weigh_(weigh), of_(of), values_(most_keys, width), row_step_(values_.count() * values_.columns),
        rows_(queries * row_step_),
        weights_(most_keys * queries +
                 product_rows<Arch>) {  // products read whole tiles of rows, also past the end of a narrow one
    for (auto& x : key_) x.resize(std::size_t(most_keys));
  }
  panels<Arch>& values() { return values_; }
  panels<Arch> const& values() const { return values_; }

  /// Call before the keys of a block are loaded.
  void begin_keys() { values_.begin(); }
  /// Loads key j as number s of the block.
  template <class T>
  void load_key(index_t s, index_t j, T const* value, index_t step) {
    values_.load(s, value, step);
    for (std::size_t n = 0; n < numbers; ++n) key_[n][std::size_t(s)] = of_.k[n][std::size_t(j)];
  }

  /// Prefetches the numbers of a key that is loaded soon.
  void fetch_key(index_t j) const {
    for (auto const& x : of_.k) ATTUNE_PREFETCH(&x[std::size_t(j)]);
  }

  /// Call before a tile of queries: its rows start at 0, in this object or in the caller's memory, which has `queries`
  /// rows.
  void begin_rows() { begin_rows(rows_.data()); }
  void begin_rows(double* to) {
    to_ = to;
    known_ = {};
    std::fill(mass_, mass_ + queries, 0.0);
  }
  /// Rows in this object start as row t = sum over s in [0, n) of weights[s][t] known_s. That sum is computed together
  /// with the pairs.
  void begin_rows(double const* weights, panels<Arch> const& known, index_t n) {
    begin_rows();
    known_ = {weights, &known, n};
  }
  index_t row_step() const { return row_step_; }
  /// Sums of row t of the tile: the numbers, padded to a whole panel, and the mass.
  double* row(index_t t) { return to_ + t * row_step_; }
  double& mass(index_t t) { return mass_[t]; }

  /// Adds the pairs of query ids[t] and the first count[t] keys of the block; counts are ascending.
  void add_pairs(std::span<index_t const> ids, std::span<index_t const> count) {
    if (count.back() > 0) weigh(ids, count);
    for (index_t t = 0; t < index_t(ids.size()); t += product_rows<Arch>) {
      index_t const some = (std::min<index_t>)(product_rows<Arch>, index_t(ids.size()) - t);
      put_rows(t, some, values_.finite() ? count[std::size_t(t + some - 1)] : 0);
    }
    if (values_.finite()) return;
    // 0 times a value that is not finite is not 0, so only visible pairs are added here.
    for (std::size_t t = 0; t < ids.size(); ++t)
      for (index_t s = 0; s < count[t]; ++s)
        for (index_t f = 0; f < values_.width(); ++f)
          row(index_t(t))[f] += weights_.data()[s * queries + index_t(t)] * values_.at(s, f);
  }

 private:
  /// Computes the weights of all pairs of a tile, 0 where a query does not see a key, and their sums.
  void weigh(std::span<index_t const> ids, std::span<index_t const> count) {
    batch q[tile::vectors][numbers], end[tile::vectors], mass[tile::vectors];
    alignas(64) double lanes[queries];
    auto const gather = [&](auto const& number_of, auto const& put) {
      for (index_t t = 0; t < queries; ++t) lanes[t] = t < index_t(ids.size()) ? number_of(t) : 0;
      for (int v = 0; v < tile::vectors; ++v) put(v, batch::load_aligned(lanes + v * tile::lanes));
    };
    for (std::size_t m = 0; m < numbers; ++m)
      gather([&](index_t t) { return of_.q[m][std::size_t(ids[std::size_t(t)])]; },
             [&](int v, batch const& x) { q[v][m] = x; });
    gather([&](index_t t) { return double(count[std::size_t(t)]); }, [&](int v, batch const& x) { end[v] = x; });
    index_t const whole = index_t(ids.size()) < queries ? 0 : count.front();  // keys that all queries of the tile see
    for (int v = 0; v < tile::vectors; ++v) mass[v] = batch(0.0);
    double* const weights = weights_.data();
    for (index_t s = 0; s < count.back(); ++s) {
      batch k[numbers];
      for (std::size_t m = 0; m < numbers; ++m) k[m] = batch(key_[m][std::size_t(s)]);
      for (int v = 0; v < tile::vectors; ++v) {
        batch w = weigh_(q[v], k);
        if (s >= whole) w = simd::select(batch(double(s)) < end[v], w, batch(0.0));
        mass[v] += w;
        w.store_aligned(weights + s * queries + v * tile::lanes);
      }
    }
    for (int v = 0; v < tile::vectors; ++v)
      (batch::load_aligned(mass_ + v * tile::lanes) + mass[v]).store_aligned(mass_ + v * tile::lanes);
  }
  /// Writes rows [first, first + some) of the tile, of one tile of products: the known sums and the first n keys of the
  /// block.
  void put_rows(index_t first, index_t some, index_t n) {
    for (index_t p = 0; p < values_.count(); ++p) {
      panel_product known{};
      if (known_.n > 0) known = {known_.weights + first, 1, queries, known_.rows->panel(p), known_.n};
      put_products<Arch>(known, {weights_.data() + first, 1, queries, values_.panel(p), n}, some,
                         row(first) + p * values_.columns, row_step_);
    }
  }

  Weigh weigh_;
  pair_numbers<numbers> const& of_;
  struct {
    double const* weights = nullptr;
    panels<Arch> const* rows = nullptr;
    index_t n = 0;
  } known_;
  panels<Arch> values_;
  index_t row_step_;
  exec_cpu::aligned_buffer<double> rows_, weights_;
  double* to_ = nullptr;
  alignas(64) double mass_[queries];
  std::array<std::vector<double>, numbers> key_;
};

/// Positions per block. Costs per query: `size` pairs in the block. Costs in total: one row of running sums per block,
/// so keys / size rows.
inline index_t block_size(index_t keys) {
  index_t size = 32;
  while (size < 512 && size * size * size < 16 * keys) size += 16;
  return size;
}

/// Processes the keys [from, to) of a staircase in blocks, and the queries that see none beyond `to`, starting with
/// query number r. Returns the number of the next query.
/// Stairs: has `seen` and query(r), like a staircase. load(first, last) loads the keys [first, last) into the tiles.
/// before(ids, r, first) starts the rows of a tile, queries r, r + 1, ... of the staircase, with the sums over the keys
/// before `first`. done(count, r, first) finishes the tile, whose queries see count[t] keys from `first` on.
/// accumulate(first, last) adds the keys of the block to the running sums. Queries that see no key are processed in the
/// first block. If there is no key, they are processed together in one empty block.
template <class Stairs, class Tiles, class Load, class Before, class Done, class Accumulate>
index_t walk_blocks(Stairs const& stairs, index_t from, index_t to, index_t size, index_t r, Tiles& tiles,
                    Load const& load, Before const& before, Done const& done, Accumulate const& accumulate) {
  index_t const rows = index_t(stairs.seen.size());
  std::vector<index_t> ids, count;
  for (index_t first = from; first < to || first == 0; first += size) {
    index_t const last = (std::min)(first + size, to);
    tiles.begin_keys();
    load(first, last);
    while (r < rows && stairs.seen[std::size_t(r)] <= last) {
      ids.clear();
      count.clear();
      index_t const begin = r;
      for (; r < rows && r < begin + Tiles::queries && stairs.seen[std::size_t(r)] <= last; ++r) {
        ids.push_back(stairs.query(r));
        count.push_back(stairs.seen[std::size_t(r)] - first);
      }
      before(std::span<index_t const>(ids), begin, first);
      tiles.add_pairs(ids, count);
      done(std::span<index_t const>(count), begin, first);
    }
    if (last < stairs.seen.back()) accumulate(first, last);
  }
  return r;
}

}  // namespace attune::line::detail
