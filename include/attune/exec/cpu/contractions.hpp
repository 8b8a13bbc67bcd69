// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = contraction(query, key)      for a tile of queries and a block of keys
//
// How this executor computes each contraction of the closed list: what it packs once per tile of queries ("resident"), what
// it copies per block of keys ("rows"), and the loop itself. Nothing here knows how a score is made of the values.
#pragma once

#include <algorithm>
#include <cmath>

#include <attune/exec/cpu/aligned_buffer.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/microkernel.hpp>
#include <attune/exec/cpu/pack.hpp>
#include <attune/exec/problem.hpp>

namespace attune::exec_cpu {

/// A tile of queries: lane l is query min(first + l, Lq - 1) of (b, h).
struct tile_place {
  problem_shape const* p;
  index_t b, h, first;
};
/// A block of keys [first, first + n).
struct key_block_place {
  index_t first, n;
};

/// What a feature adds to a distance.
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
template <class F>
struct elementwise_step {
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t) const {
    return acc + F::pair(q, x);
  }
};

namespace detail {

/// The tensors of a sum over features.
template <field Query, field Key>
struct query_and_key {
  static constexpr field query = Query, key = Key;
  static index_t width(problem_shape const& p) { return p.width_of(Query); }
  static index_t heads(problem_shape const& p) { return p.heads_of(Key); }
};
template <class C>
struct feature_fields : query_and_key<field::q, field::k> {};
template <>
struct feature_fields<contraction::gate_dot> : query_and_key<field::gate_q, field::gate_k> {};
template <>
struct feature_fields<contraction::position_dot> : query_and_key<field::position_q, field::position_k> {};

}  // namespace detail

/// Specialised for every contraction: `resident` and `rows` elements of scratch, `pack` once per tile, `run` per block.
template <class C, class T, class Arch>
struct contractor;

namespace detail {

/// All sums over features pack the query side and read the keys in place; a product, unless `run` is another.
template <class C, class T, class Arch>
struct feature_contractor {
  using fields = feature_fields<C>;
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const& p) { return padded<T>(queries * fields::width(p)); }
  static index_t rows(problem_shape const& p) { return padded<T>(tiling<T, Arch>::key_block * fields::width(p)); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, tile_place const& at) {
    pack_queries<queries>(to, member<fields::query>(in), at.b, at.h, at.first);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T* rows) {
    by_steps(to, q, in, at, block, rows, product_step{});
  }

 protected:
  template <class In, class Step>
  static void by_steps(T* to, T const* q, In const& in, tile_place const& at, key_block_place const& block, T* rows,
                       Step const& step) {
    row_block<T> const from(member<fields::key>(in), at.b, at.p->group(at.h, fields::heads(*at.p)), block.first, block.n, rows);
    contract<T, Arch>(to, from.data, from.step, q, fields::width(*at.p), block.n, step);
  }
};

/// A value for every distance i + offset - j that a block meets -> pairs. values[n] belongs to the distance of the tile's first
/// query and the block's last key, plus n.
template <class T, class Arch>
void spread_distances(T* to, T const* values, index_t n) {
  using tile = tiling<T, Arch>;
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v)
      tile::batch::load_unaligned(values + (n - 1 - j) + v * tile::lanes)
          .store_aligned(to + j * tile::queries + v * tile::lanes);
}
/// The first of those distances, and how many there are.
inline index_t first_distance(tile_place const& at, key_block_place const& block) {
  return at.first + at.p->offset - (block.first + block.n - 1);
}

}  // namespace detail

template <class T, class Arch>
struct contractor<contraction::dot, T, Arch> : detail::feature_contractor<contraction::dot, T, Arch> {};
template <class T, class Arch>
struct contractor<contraction::gate_dot, T, Arch> : detail::feature_contractor<contraction::gate_dot, T, Arch> {};
template <class T, class Arch>
struct contractor<contraction::position_dot, T, Arch> : detail::feature_contractor<contraction::position_dot, T, Arch> {};

template <class T, class Arch>
struct contractor<contraction::squared_distance, T, Arch> : detail::feature_contractor<contraction::squared_distance, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T* rows) {
    contractor::by_steps(to, q, in, at, block, rows, distance_step{});
  }
};

template <class F, class T, class Arch>
struct contractor<contraction::elementwise<F>, T, Arch> : detail::feature_contractor<contraction::elementwise<F>, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T* rows) {
    contractor::by_steps(to, q, in, at, block, rows, elementwise_step<F>{});
  }
};

template <class T, class Arch>
struct contractor<contraction::metric_dot, T, Arch> : contractor<contraction::dot, T, Arch> {
  using base = contractor<contraction::dot, T, Arch>;
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    base::pack(to, in, owner, at);
    for (index_t d = 0; d < at.p->width; ++d) {
      T const m = T(owner.metric(at.b, at.h, 0, d));
      for (int l = 0; l < base::queries; ++l) to[d * base::queries + l] *= m;
    }
  }
};

template <class T, class Arch>
struct contractor<contraction::metric_distance, T, Arch> : detail::feature_contractor<contraction::metric_distance, T, Arch> {
  using base = detail::feature_contractor<contraction::metric_distance, T, Arch>;
  static index_t resident(problem_shape const& p) { return base::resident(p) + padded<T>(p.width); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    base::pack(to, in, owner, at);
    T* const metric = to + base::resident(*at.p);
    for (index_t d = 0; d < at.p->width; ++d) metric[d] = T(owner.metric(at.b, at.h, 0, d));
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T* rows) {
    base::by_steps(to, q, in, at, block, rows, metric_distance_step<T>{q + base::resident(*at.p)});
  }
};

template <class T, class Arch>
struct contractor<contraction::biased_dot, T, Arch> : contractor<contraction::dot, T, Arch> {
  using base = contractor<contraction::dot, T, Arch>;
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    base::pack(to, in, owner, at);
    for (index_t d = 0; d < at.p->width; ++d) {
      T const u = T(owner.bias(at.b, at.h, 0, d));
      for (int l = 0; l < base::queries; ++l) to[d * base::queries + l] += u;
    }
  }
};

/// One product per query and distance that the block meets; a pair then picks its own.
template <class T, class Arch>
struct contractor<contraction::relative_dot, T, Arch> {
  using base = contractor<contraction::biased_dot, T, Arch>;
  static constexpr index_t queries = tiling<T, Arch>::queries, distances = queries + tiling<T, Arch>::key_block;
  static index_t resident(problem_shape const& p) { return base::resident(p); }
  static index_t rows(problem_shape const& p) { return padded<T>(distances * p.width) + padded<T>(distances * queries); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    base::pack(to, in, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const&, Owner const& owner, tile_place const& at, key_block_place const& block,
                  T* rows) {
    index_t const width = at.p->width, table_rows = owner.relative.rows(), count = queries + block.n - 1;
    index_t const first = detail::first_distance(at, block) + table_rows / 2;
    for (index_t n = 0; n < count; ++n)  // lanes past the last query may lie outside the table: they are never written
      for (index_t d = 0; d < width; ++d)
        rows[n * width + d] = T(owner.relative(at.b, at.h, std::clamp<index_t>(first + n, 0, table_rows - 1), d));
    T* const products = rows + padded<T>(distances * width);
    contract<T, Arch>(products, rows, width, q, width, count);
    for (index_t j = 0; j < block.n; ++j)
      for (index_t l = 0; l < queries; ++l) to[j * queries + l] = products[(block.n - 1 - j + l) * queries + l];
  }
};

template <class T, class Arch>
struct contractor<contraction::scalar_difference, T, Arch> {
  using tile = tiling<T, Arch>;
  static index_t resident(problem_shape const&) { return padded<T>(tile::queries); }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, tile_place const& at) {
    pack_queries<tile::queries>(to, in.sort_q, at.b, at.h, at.first);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T*) {
    index_t const step = in.sort_k.steps().position;
    T const* const keys = in.sort_k.row(at.b, at.p->group(at.h, at.p->sort_key_heads), block.first);
    for (index_t j = 0; j < block.n; ++j)
      for (int v = 0; v < tile::vectors; ++v)
        (tile::batch::load_aligned(q + v * tile::lanes) - typename tile::batch(keys[j * step]))
            .store_aligned(to + j * tile::queries + v * tile::lanes);
  }
};

template <class T, class Arch>
struct contractor<contraction::spatial_distance, T, Arch> {
  using tile = tiling<T, Arch>;
  static index_t resident(problem_shape const& p) { return 2 * padded<T>(tile::queries * p.axes); }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, tile_place const& at) {
    pack_queries<tile::queries>(to, in.center, at.b, at.h, at.first);
    pack_queries<tile::queries>(to + padded<T>(tile::queries * at.p->axes), in.spread, at.b, at.h, at.first);
  }
  template <class In, class Owner>
  static void run(T* to, T const* center, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T*) {
    using batch = typename tile::batch;
    T const* const spread = center + padded<T>(tile::queries * at.p->axes);
    index_t const head = at.p->group(at.h, at.p->place_heads);
    for (index_t j = 0; j < block.n; ++j)
      for (int v = 0; v < tile::vectors; ++v) {
        batch sum(T(0));
        for (index_t x = 0; x < at.p->axes; ++x) {
          index_t const lane = x * tile::queries + v * tile::lanes;
          batch const z = (batch(in.place(at.b, head, block.first + j, x)) - batch::load_aligned(center + lane)) /
                          batch::load_aligned(spread + lane);
          sum = simd::multiply_add(z, z, sum);
        }
        sum.store_aligned(to + j * tile::queries + v * tile::lanes);
      }
  }
};

template <class T, class Arch>
struct contractor<contraction::gathered, T, Arch> {
  using tile = tiling<T, Arch>;
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) { return padded<T>(tile::queries + tile::key_block); }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, tile_place const& at, key_block_place const& block, T* rows) {
    index_t const first = detail::first_distance(at, block), farthest = at.p->queries - 1 + at.p->offset;
    for (index_t n = 0; n < tile::queries + block.n - 1; ++n)
      rows[n] = T(owner.values(at.b, at.h, owner.index((std::min)(first + n, farthest)), 0));
    detail::spread_distances<T, Arch>(to, rows, block.n);
  }
};

/// cos and sin of every frequency are taken at every eighth distance; those in between follow from the sums of angles.
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
  static void run(T* to, T const*, In const&, Owner const& owner, tile_place const& at, key_block_place const& block, T* rows) {
    index_t const first = detail::first_distance(at, block), count = tile::queries + block.n - 1;
    double* const sums = reinterpret_cast<double*>(rows + padded<T>(distances));
    std::fill_n(sums, count, 0.0);
    for (index_t r = 0; r < owner.frequency.rows(); ++r) {
      double const w = owner.frequency(at.b, at.h, r, 0), a = owner.cosine(at.b, at.h, r, 0), c = owner.sine(at.b, at.h, r, 0);
      constexpr index_t stride = 8;
      double step_cos[stride], step_sin[stride];
      for (index_t s = 0; s < stride; ++s) step_cos[s] = std::cos(w * double(s)), step_sin[s] = std::sin(w * double(s));
      for (index_t n = 0; n < count; n += stride) {
        double const angle = w * double(first + n), base_cos = std::cos(angle), base_sin = std::sin(angle);
        double const even = a * base_cos + c * base_sin, odd = c * base_cos - a * base_sin;
        for (index_t s = 0; s < (std::min)(stride, count - n); ++s) sums[n + s] += even * step_cos[s] + odd * step_sin[s];
      }
    }
    for (index_t n = 0; n < count; ++n) rows[n] = T(sums[n]);
    detail::spread_distances<T, Arch>(to, rows, block.n);
  }
};

namespace detail {

/// Nothing to prepare.
template <class T>
struct unprepared_contractor {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
};

/// Pairs that the caller computed.
template <class T, class Arch, field Pairs>
struct given_pairs_contractor : unprepared_contractor<T> {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T*) {
    tensor<T const> const pairs = attune::detail::spread_over(member<Pairs>(in), at.p->rows(at.p->keys));
    pack_pairs<tiling<T, Arch>::queries>(to, pairs, at.b, at.h, at.first, block.first, block.n);
  }
};

}  // namespace detail

template <class T, class Arch>
struct contractor<contraction::given_scores, T, Arch> : detail::given_pairs_contractor<T, Arch, field::scores> {};
template <class T, class Arch>
struct contractor<contraction::given_gates, T, Arch> : detail::given_pairs_contractor<T, Arch, field::gates> {};
template <class T, class Arch>
struct contractor<contraction::given_bias, T, Arch> : detail::given_pairs_contractor<T, Arch, field::bias> {};

template <class T, class Arch>
struct contractor<contraction::given_key_bias, T, Arch> : detail::unprepared_contractor<T> {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, tile_place const& at, key_block_place const& block, T*) {
    constexpr int queries = tiling<T, Arch>::queries;
    index_t const head = at.p->group(at.h, at.p->key_bias_heads);
    for (index_t j = 0; j < block.n; ++j) std::fill_n(to + j * queries, queries, in.key_bias(at.b, head, block.first + j, 0));
  }
};

}  // namespace attune::exec_cpu
