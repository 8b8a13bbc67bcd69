// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = contraction(query, key)      for a tile of queries and a block of keys
//
// How this executor computes contractions: by their terms, with faster code for products and distances. Each contractor
// says what it packs once per tile of queries ("resident") and what it copies per block of keys ("rows"). Nothing here
// knows how scores are computed from the values.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/turn.hpp>
#include <attune/exec/cpu/tile/operands.hpp>

namespace attune::exec_cpu {

/// The part of a distance that one feature adds.
struct distance_step {
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t) const {
    B const difference = q - x;
    return simd::multiply_add(difference, difference, acc);
  }
};
template <class T>
struct metric_distance_step {
  T const* metric;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    B const difference = q - x;
    return simd::multiply_add(B(B(metric[d]) * difference), difference, acc);
  }
};
/// The part that one feature adds to any sum over the features of q and k.
template <class C>
struct feature_step {
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t) const {
    return acc + C::term(q, x, x, x);
  }
};
template <>
struct feature_step<contraction::squared_distance> : distance_step {};

/// A sum over the features of q and k that reads nothing else.
template <class C>
concept FeatureSum = std::is_base_of_v<contraction::feature_sum, C>;
using contraction::DistanceProduct;
using contraction::KeyProduct;

/// Whether keys are read as rows of features, in place. Otherwise they are read number by number.
template <class C>
inline constexpr bool reads_key_rows =
    KeyProduct<C> || FeatureSum<C> || std::is_same_v<C, contraction::metric_distance> || contraction::Rotary<C>;

/// Any contraction that reads tensors, computed by its term. `resident` and `rows`: elements of scratch. `pack` runs
/// once per tile, `run` once per block.
template <class C, class T, class Arch>
struct term_contractor {
  using tile = tiling<T, Arch>;
  using operands = tile_operands<C, T, Arch>;
  static index_t resident(problem_shape const& p) { return operands::resident(p); }
  static index_t rows(problem_shape const& p) { return operands::rows(p); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    operands::pack(to, given<In>{in}, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, T const* packed, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, T* rows) {
    using batch = typename tile::batch;
    operands const of(packed, rows, given<In>{in}, owner, at, block);
    for (index_t j = 0; j < block.n; ++j)
      for (int v = 0; v < tile::vectors; ++v) {
        batch const n = of.distance(j, v);
        batch sum(T(0));
        for (index_t d = 0; d < of.width; ++d) sum = sum + C::term(of.x(j, v, d), of.y(j, v, d), of.z(j, v, d), n);
        sum.store_aligned(to + j * tile::queries + v * tile::lanes);
      }
  }
};

/// Specialized where faster code exists.
template <class C, class T, class Arch>
struct contractor : term_contractor<C, T, Arch> {};

/// Contractions of a distance alone: one value for each distance.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contractor<C, T, Arch> {
  using tile = tiling<T, Arch>;
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) { return padded<T>(tile::queries + tile::key_block); }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, tile_place const& at, key_block_place const& block,
                  T* rows) {
    index_t const first = detail::first_distance(at, block), farthest = detail::farthest_distance(at);
    for (index_t n = 0; n < tile::queries + block.n - 1; ++n)
      rows[n] = T(attune::detail::of_distance<C>(*at.p, owner, at.b, at.h, (std::min)(first + n, farthest)));
    detail::spread_distances<T, Arch>(to, rows, block.n);
  }
};

/// A number for each pair, looked up in a table.
template <contraction::PairLookup C, class T, class Arch>
struct contractor<C, T, Arch> {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, tile_place const& at, key_block_place const& block,
                  T*) {
    detail::look_up_pairs<typename C::x, T, Arch>(to, &C::x::table_of::of(owner), owner, at, block);
  }
};

namespace detail {

/// For sums over features: packs the query side and reads the keys in place.
template <class C, class T, class Arch>
struct feature_contractor {
  static constexpr int queries = tiling<T, Arch>::queries;
  static constexpr field query = C::x::of, key = C::y::of;
  static index_t resident(problem_shape const& p) { return tile_operands<C, T, Arch>::resident(p); }
  static index_t rows(problem_shape const& p) { return padded<T>(tiling<T, Arch>::key_block * p.width_of(query)); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    tile_operands<C, T, Arch>::pack(to, given<In>{in}, owner, at);
  }

 protected:
  template <class In, class Step>
  static void by_steps(T* to, T const* q, In const& in, tile_place const& at, key_block_place const& block, T* rows,
                       Step const& step) {
    row_block<T> const from(member<key>(in), at.b, at.p->group(at.h, at.p->heads_of(key)), block.first, block.n, rows);
    contract<T, Arch>(to, from.data, from.step, q, at.p->width_of(query), block.n, step);
  }
};

/// The packed left side of a product: [d][query].
template <class C, class T, class Arch, class In, class Owner>
void pack_left(T* to, In const& in, [[maybe_unused]] Owner const& owner, tile_place const& at) {
  constexpr int queries = tiling<T, Arch>::queries;
  pack_queries<queries>(to, member<C::x::of>(in), at.b, at.h, at.first, at.p->first_query);
  if constexpr (C::z::side != operand_side::none)
    for (index_t d = 0; d < at.p->width_of(C::x::of); ++d) {
      T const z = T(C::z::table_of::of(owner)(at.b, at.h, 0, d));
      for (int l = 0; l < queries; ++l) to[d * queries + l] = C::left(to[d * queries + l], z);
    }
}

}  // namespace detail

template <KeyProduct C, class T, class Arch>
struct contractor<C, T, Arch> : detail::feature_contractor<C, T, Arch> {
  using base = detail::feature_contractor<C, T, Arch>;
  static index_t resident(problem_shape const& p) { return padded<T>(base::queries * p.width_of(base::query)); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_left<C, T, Arch>(to, in, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block,
                  T* rows) {
    base::by_steps(to, q, in, at, block, rows, product_step{});
  }
};

template <FeatureSum C, class T, class Arch>
struct contractor<C, T, Arch> : detail::feature_contractor<C, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block,
                  T* rows) {
    contractor::by_steps(to, q, in, at, block, rows, feature_step<C>{});
  }
};

/// The metric is packed after the queries.
template <class T, class Arch>
struct contractor<contraction::metric_distance, T, Arch>
    : detail::feature_contractor<contraction::metric_distance, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block,
                  T* rows) {
    T const* const metric = q + padded<T>(contractor::queries * at.p->width);
    contractor::by_steps(to, q, in, at, block, rows, metric_distance_step<T>{metric});
  }
};

namespace detail {

/// rows[n][d]: the rows of a table (1|B, 1|H, R, width) that belong to the distances of a block.
template <class C, class T, class Owner>
void copy_distances(T* rows, table const& x, Owner const& owner, tile_place const& at, key_block_place const& block,
                    index_t count, index_t width) {
  index_t const first = first_distance(at, block), farthest = farthest_distance(at);
  for (index_t n = 0; n < count; ++n) {  // lanes past the last query repeat a row: they are never written
    index_t const row = C::y::table_of::row(owner, (std::min)(first + n, farthest));
    for (index_t d = 0; d < width; ++d) rows[n * width + d] = T(x(at.b, at.h, row, d));
  }
}

}  // namespace detail

/// One product per query and distance that the block meets. Each pair then picks its own.
template <DistanceProduct C, class T, class Arch>
struct contractor<C, T, Arch> {
  static constexpr index_t queries = tiling<T, Arch>::queries, distances = queries + tiling<T, Arch>::key_block;
  static index_t resident(problem_shape const& p) { return padded<T>(queries * p.width_of(C::x::of)); }
  static index_t rows(problem_shape const& p) {
    return padded<T>(distances * p.width_of(C::x::of)) + padded<T>(distances * queries);
  }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_left<C, T, Arch>(to, in, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const&, Owner const& owner, tile_place const& at, key_block_place const& block,
                  T* rows) {
    index_t const width = at.p->width_of(C::x::of), count = queries + block.n - 1;
    detail::copy_distances<C>(rows, C::y::table_of::of(owner), owner, at, block, count, width);
    T* const products = rows + padded<T>(distances * width);
    contract<T, Arch>(products, rows, width, q, width, count);
    for (index_t j = 0; j < block.n; ++j)
      for (index_t l = 0; l < queries; ++l) to[j * queries + l] = products[(block.n - 1 - j + l) * queries + l];
  }
};

/// Computes cos and sin of every frequency at every eighth distance; those in between follow from the sums of angles.
template <class T, class Arch>
struct contractor<contraction::fourier, T, Arch> {
  using tile = tiling<T, Arch>;
  static constexpr index_t distances = tile::queries + tile::key_block;
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) {
    return padded<T>(distances) + padded<T>(distances * index_t(sizeof(double) / sizeof(T)));
  }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, tile_place const& at, key_block_place const& block,
                  T* rows) {
    index_t const first = detail::first_distance(at, block), count = tile::queries + block.n - 1;
    double* const sums = reinterpret_cast<double*>(rows + padded<T>(distances));
    std::fill_n(sums, count, 0.0);
    for (index_t r = 0; r < owner.frequency.rows(); ++r) {
      double const w = owner.frequency(at.b, at.h, r, 0), a = owner.cosine(at.b, at.h, r, 0),
                   c = owner.sine(at.b, at.h, r, 0);
      constexpr index_t stride = 8;
      double step_cos[stride], step_sin[stride];
      for (index_t s = 0; s < stride; ++s) step_cos[s] = std::cos(w * double(s)), step_sin[s] = std::sin(w * double(s));
      for (index_t n = 0; n < count; n += stride) {
        double const angle = w * double(first + n), base_cos = std::cos(angle), base_sin = std::sin(angle);
        double const even = a * base_cos + c * base_sin, odd = c * base_cos - a * base_sin;
        for (index_t s = 0; s < (std::min)(stride, count - n); ++s)
          sums[n + s] += even * step_cos[s] + odd * step_sin[s];
      }
    }
    for (index_t n = 0; n < count; ++n) rows[n] = T(sums[n]);
    detail::spread_distances<T, Arch>(to, rows, block.n);
  }
};

namespace detail {

/// packed[d][query] = feature d of R x_query: pack_queries() with turned rows. `scratch`: row_turner::room and a row.
template <class T, class Arch, class Owner>
ATTUNE_NOINLINE void pack_turned(T* packed, tensor<T const> const& x, Owner const& owner, tile_place const& at,
                                 T* scratch) {
  constexpr index_t queries = tiling<T, Arch>::queries;
  index_t const width = x.extents().feature, step = x.steps().feature;
  row_turner<T, Arch> const turner(owner.angles.queries(), owner.layout, width, scratch);
  T* const row = scratch + row_turner<T, Arch>::room(width);
  for (index_t l = 0; l < queries; ++l) {
    index_t const i = std::clamp(at.first + l, at.p->first_query, at.p->queries - 1);
    T const* const from = x.row(at.b, at.h, i);
    if (step != 1)
      for (index_t d = 0; d < width; ++d) row[d] = from[d * step];
    turner.template run<turn::forth>(row, step == 1 ? from : row, at.b,
                                     owner.angles.row_of_query(i, at.p->offset_of(at.b)));
    for (index_t d = 0; d < width; ++d) packed[d * queries + l] = row[d];
  }
}

/// The turned keys of a block, which the tiles of a task share: a row is turned when the first tile needs it.
template <class T, class Arch>
class turned_keys {
  static constexpr index_t most = tiling<T, Arch>::key_block, header = padded<T>(1);
  /// Rows of the keys [first, last) of a batch element and a head of k.
  struct content {
    index_t b, head, first, last;
  };
  static_assert(sizeof(content) <= std::size_t(header) * sizeof(T));

 public:
  /// Elements of memory.
  static index_t room(index_t width) { return header + padded<T>(most * width) + row_turner<T, Arch>::room(width); }
  explicit turned_keys(T* memory) : memory_(memory) {}
  /// Must be called before the first use of the memory, and when the tensor of keys is another one.
  void forget() const { std::construct_at(reinterpret_cast<content*>(memory_), content{-1, -1, 0, 0}); }

  /// The keys of a block. Keys that are stored turned are read like the keys of a dot product.
  template <class Owner>
  row_block<T> operator()(tensor<T const> const& x, Owner const& owner, tile_place const& at,
                          key_block_place const& block) const {
    index_t const head = at.p->group(at.h, at.p->key_heads), width = x.extents().feature;
    T* const rows = memory_ + header;
    if (owner.keys == rotary_keys::turned) return {x, at.b, head, block.first, block.n, rows};
    content& has = *std::launder(reinterpret_cast<content*>(memory_));
    index_t const end = block.first + block.n;
    if (has.b != at.b || has.head != head || block.first < has.first || block.first > has.last ||
        end > has.first + most)
      has = {at.b, head, block.first, block.first};
    if (end > has.last) {
      T* const to = rows + (has.last - has.first) * width;
      row_block<T> const keys(x, at.b, head, has.last, end - has.last, to);
      row_turner<T, Arch>(owner.angles.keys(), owner.layout, width, rows + padded<T>(most * width))
          .template run<turn::forth>({to, width}, {keys.data, keys.step}, end - has.last, at.b, has.last);
      has.last = end;
    }
    return {rows + (block.first - has.first) * width, width};
  }

 private:
  T* memory_;
};

}  // namespace detail

/// Queries are turned when they are packed. The keys of a block are turned once for all tiles of a task. `kept`:
/// elements of the block's memory for these keys (tile/contract.hpp).
template <class T, class Arch>
struct contractor<contraction::rotary_dot, T, Arch> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const& p) {
    return padded<T>(queries * p.width) + detail::row_turner<T, Arch>::room(p.width) + padded<T>(p.width);
  }
  static index_t rows(problem_shape const&) { return 0; }
  static index_t kept(problem_shape const& p) { return detail::turned_keys<T, Arch>::room(p.width); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_turned<T, Arch>(to, in.q, owner, at, to + padded<T>(queries * at.p->width));
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, T* kept) {
    row_block<T> const keys = detail::turned_keys<T, Arch>(kept)(in.k, owner, at, block);
    contract<T, Arch>(to, keys.data, keys.step, q, at.p->width, block.n);
  }
};

}  // namespace attune::exec_cpu
