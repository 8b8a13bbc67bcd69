// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x'[key][query] = d contraction(query, key) along a direction of tensors and tables
//
// The tangents of contractions.hpp, for directional derivatives. What stands still costs nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/contractions.hpp>
#include <attune/exec/cpu/pulls.hpp>

namespace attune::exec_cpu {

/// Tensors, the directions in which they move (absent: not at all), and the same of tables.
template <class T, class Op>
struct moving_call {
  inputs<Op, tensor<T const>> const &in, &along;
  std::vector<table> const& tables_along;

  /// The direction of a table; null if it stands still.
  table const* along_of(table const& x) const {
    table const& along_x = tables_along[std::size_t(x.number())];
    return along_x.is_set() ? &along_x : nullptr;
  }
};

/// Specialised for every contraction: scratch per tile and per block, `pack` once per tile, `run` per block. `packed` is what
/// the contractor packed.
template <class C, class T, class Arch>
struct pusher;

namespace detail {

/// Sums over features: resident is the tangent of the packed queries.
template <class C, class T, class Arch>
struct feature_pusher {
  using fields = feature_fields<C>;
  using tile = tiling<T, Arch>;
  static constexpr int queries = tile::queries;
  static constexpr index_t pairs = padded<T>(tile::key_block * queries);

  static index_t resident(problem_shape const& p) { return padded<T>(queries * fields::width(p)); }
  static index_t block(problem_shape const& p) { return pairs + 2 * padded<T>(tile::key_block * fields::width(p)); }

  /// The tangent of the queries, 0 if they stand still.
  template <class Call>
  static void pack_moving(T* own, Call const& c, tile_place const& at) {
    auto const& moves = member<fields::query>(c.along);
    if (moves.absent())
      std::fill_n(own, resident(*at.p), T(0));
    else
      pack_queries<queries>(own, moves, at.b, at.h, at.first);
  }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const&, tile_place const& at) {
    pack_moving(own, c, at);
  }
  /// Rows of the keys, or of their direction.
  static row_block<T> rows(tensor<T const> const& k, tile_place const& at, key_block_place const& b, T* scratch) {
    return {k, at.b, at.p->group(at.h, fields::heads(*at.p)), b.first, b.n, scratch};
  }
};

/// <q', k> + <q, k'>
template <class C, class T, class Arch>
struct product_pusher : feature_pusher<C, T, Arch> {
  using base = feature_pusher<C, T, Arch>;
  using fields = typename base::fields;
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const&, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    index_t const width = fields::width(*at.p);
    row_block<T> const keys = base::rows(member<fields::key>(c.in), at, b, scratch + base::pairs);
    contract<T, Arch>(to, keys.data, keys.step, own, width, b.n);
    if (member<fields::key>(c.along).absent()) return;
    row_block<T> const moved = base::rows(member<fields::key>(c.along), at, b, scratch + base::pairs);
    contract<T, Arch>(scratch, moved.data, moved.step, packed, width, b.n);
    for (index_t n = 0; n < b.n * base::queries; ++n) to[n] += scratch[n];
  }
};

/// sum_d f(q_d, k_d): pair(q, k, d) on dual numbers.
template <class C, class T, class Arch>
struct pair_pusher : feature_pusher<C, T, Arch> {
  using base = feature_pusher<C, T, Arch>;
  template <class Call, class Pair>
  static void run_pairs(T* to, T const* own, T const* packed, Call const& c, tile_place const& at, key_block_place const& b,
                        T* scratch, Pair const& pair) {
    using batch = typename base::tile::batch;
    using D = dual<batch, 1>;
    index_t const width = at.p->width;
    row_block<T> const keys = base::rows(c.in.k, at, b, scratch + base::pairs);
    bool const moves = !c.along.k.absent();
    row_block<T> const moved =
        moves ? base::rows(c.along.k, at, b, scratch + base::pairs + padded<T>(base::tile::key_block * width)) : keys;
    for (index_t j = 0; j < b.n; ++j)
      for (int v = 0; v < base::tile::vectors; ++v) {
        batch sum(T(0));
        for (index_t d = 0; d < width; ++d) {
          index_t const lane = d * base::queries + v * base::tile::lanes;
          D q(batch::load_aligned(packed + lane)), k(batch(keys.data[j * keys.step + d]));
          q.tangent[0] = batch::load_aligned(own + lane);
          k.tangent[0] = batch(moves ? moved.data[j * moved.step + d] : T(0));
          sum = sum + pair(q, k, d).tangent[0];
        }
        sum.store_aligned(to + j * base::queries + v * base::tile::lanes);
      }
  }
};

}  // namespace detail

template <class T, class Arch>
struct pusher<contraction::dot, T, Arch> : detail::product_pusher<contraction::dot, T, Arch> {};
template <class T, class Arch>
struct pusher<contraction::gate_dot, T, Arch> : detail::product_pusher<contraction::gate_dot, T, Arch> {};
template <class T, class Arch>
struct pusher<contraction::position_dot, T, Arch> : detail::product_pusher<contraction::position_dot, T, Arch> {};

/// m q' + m' q is what moves.
template <class T, class Arch>
struct pusher<contraction::metric_dot, T, Arch> : detail::product_pusher<contraction::metric_dot, T, Arch> {
  using base = detail::feature_pusher<contraction::metric_dot, T, Arch>;
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const& owner, tile_place const& at) {
    base::pack_moving(own, c, at);
    table const* const along = c.along_of(owner.metric);
    for (index_t d = 0; d < at.p->width; ++d) {
      T const m = T(owner.metric(at.b, at.h, 0, d)), moved = along != nullptr ? T((*along)(at.b, at.h, 0, d)) : T(0);
      for (index_t l = 0; l < base::queries; ++l) {
        T& x = own[d * base::queries + l];
        x *= m;
        if (along != nullptr) x += moved * c.in.q(at.b, at.h, (std::min)(at.first + l, at.p->queries - 1), d);
      }
    }
  }
};

/// q' + b' is what moves.
template <class T, class Arch>
struct pusher<contraction::biased_dot, T, Arch> : detail::product_pusher<contraction::biased_dot, T, Arch> {
  using base = detail::feature_pusher<contraction::biased_dot, T, Arch>;
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const& owner, tile_place const& at) {
    base::pack_moving(own, c, at);
    if (table const* const along = c.along_of(owner.bias))
      for (index_t d = 0; d < at.p->width; ++d)
        for (index_t l = 0; l < base::queries; ++l) own[d * base::queries + l] += T((*along)(at.b, at.h, 0, d));
  }
};

template <class T, class Arch>
struct pusher<contraction::squared_distance, T, Arch> : detail::pair_pusher<contraction::squared_distance, T, Arch> {
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const&, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    detail::pair_pusher<contraction::squared_distance, T, Arch>::run_pairs(
        to, own, packed, c, at, b, scratch, [](auto const& q, auto const& k, index_t) { return (q - k) * (q - k); });
  }
};
template <class F, class T, class Arch>
struct pusher<contraction::elementwise<F>, T, Arch> : detail::pair_pusher<contraction::elementwise<F>, T, Arch> {
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const&, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    detail::pair_pusher<contraction::elementwise<F>, T, Arch>::run_pairs(
        to, own, packed, c, at, b, scratch, [](auto const& q, auto const& k, index_t) { return F::pair(q, k); });
  }
};
template <class T, class Arch>
struct pusher<contraction::metric_distance, T, Arch> : detail::pair_pusher<contraction::metric_distance, T, Arch> {
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    table const* const along = c.along_of(owner.metric);
    detail::pair_pusher<contraction::metric_distance, T, Arch>::run_pairs(
        to, own, packed, c, at, b, scratch, [&]<class D>(D const& q, D const& k, index_t d) {
          using batch = typename D::value_type;
          D m(batch(T(owner.metric(at.b, at.h, 0, d))));
          if (along != nullptr) m.tangent[0] = batch(T((*along)(at.b, at.h, 0, d)));
          return m * (q - k) * (q - k);
        });
  }
};

template <class T, class Arch>
struct pusher<contraction::relative_dot, T, Arch> : pusher<contraction::biased_dot, T, Arch> {
  using base = detail::feature_pusher<contraction::relative_dot, T, Arch>;
  static constexpr index_t queries = base::queries, distances = queries + base::tile::key_block;
  static index_t block(problem_shape const& p) { return padded<T>(distances * p.width) + 2 * padded<T>(distances * queries); }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, T* scratch) {
    index_t const width = at.p->width, table_rows = owner.relative.rows(), count = queries + b.n - 1;
    index_t const first = detail::first_distance(at, b) + table_rows / 2;
    T* const products = scratch + padded<T>(distances * width);
    T* const more = products + padded<T>(distances * queries);
    auto const contract_rows_of = [&](table const& x, T const* left, T* result) {
      for (index_t n = 0; n < count; ++n)
        for (index_t d = 0; d < width; ++d)
          scratch[n * width + d] = T(x(at.b, at.h, std::clamp<index_t>(first + n, 0, table_rows - 1), d));
      contract<T, Arch>(result, scratch, width, left, width, count);
    };
    contract_rows_of(owner.relative, own, products);
    if (table const* const along = c.along_of(owner.relative)) {
      contract_rows_of(*along, packed, more);
      for (index_t n = 0; n < count * queries; ++n) products[n] += more[n];
    }
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) to[j * queries + l] = products[(b.n - 1 - j + l) * queries + l];
  }
};

/// Contractions whose tangent needs no tile of its own.
template <class T>
struct plain_pusher {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t block(problem_shape const&) { return 0; }
  template <class Call, class Owner>
  static void pack(T*, T const*, Call const&, Owner const&, tile_place const&) {}
};

template <class T, class Arch>
struct pusher<contraction::scalar_difference, T, Arch> : plain_pusher<T> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const&) { return padded<T>(queries); }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const&, tile_place const& at) {
    std::fill_n(own, queries, T(0));
    if (!c.along.sort_q.absent()) pack_queries<queries>(own, c.along.sort_q, at.b, at.h, at.first);
  }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const*, Call const& c, Owner const&, tile_place const& at, key_block_place const& b,
                  T*) {
    index_t const head = at.p->group(at.h, at.p->sort_key_heads);
    for (index_t j = 0; j < b.n; ++j) {
      T const moved = c.along.sort_k.absent() ? T(0) : c.along.sort_k(at.b, head, b.first + j, 0);
      for (index_t l = 0; l < queries; ++l) to[j * queries + l] = own[l] - moved;
    }
  }
};

template <class T, class Arch>
struct pusher<contraction::spatial_distance, T, Arch> : plain_pusher<T> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t axis_rows(problem_shape const& p) { return padded<T>(queries * p.axes); }
  static index_t resident(problem_shape const& p) { return 2 * axis_rows(p); }
  template <class Call, class Owner>
  static void pack(T* own, T const*, Call const& c, Owner const&, tile_place const& at) {
    std::fill_n(own, resident(*at.p), T(0));
    if (!c.along.center.absent()) pack_queries<queries>(own, c.along.center, at.b, at.h, at.first);
    if (!c.along.spread.absent()) pack_queries<queries>(own + axis_rows(*at.p), c.along.spread, at.b, at.h, at.first);
  }
  template <class Call, class Owner>
  static void run(T* to, T const* own, T const* packed, Call const& c, Owner const&, tile_place const& at,
                  key_block_place const& b, T*) {
    using D = dual<T, 1>;
    problem_shape const& p = *at.p;
    index_t const head = p.group(at.h, p.place_heads), rows = axis_rows(p);
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) {
        T sum(0);
        for (index_t x = 0; x < p.axes; ++x) {
          index_t const lane = x * queries + l;
          D place(c.in.place(at.b, head, b.first + j, x)), center(packed[lane]), spread(packed[rows + lane]);
          if (!c.along.place.absent()) place.tangent[0] = c.along.place(at.b, head, b.first + j, x);
          center.tangent[0] = own[lane];
          spread.tangent[0] = own[rows + lane];
          D const z = (place - center) / spread;
          sum += (z * z).tangent[0];
        }
        to[j * queries + l] = sum;
      }
  }
};

/// One number per distance, made by of_distance(distance).
template <class T, class Arch, class OfDistance>
void push_distances(T* to, tile_place const& at, key_block_place const& b, T* scratch, OfDistance const& of_distance) {
  index_t const first = detail::first_distance(at, b), farthest = at.p->queries - 1 + at.p->offset;
  for (index_t n = 0; n < tiling<T, Arch>::queries + b.n - 1; ++n) scratch[n] = T(of_distance((std::min)(first + n, farthest)));
  detail::spread_distances<T, Arch>(to, scratch, b.n);
}

template <class T, class Arch>
struct pusher<contraction::gathered, T, Arch> : plain_pusher<T> {
  static index_t block(problem_shape const&) { return padded<T>(tiling<T, Arch>::queries + tiling<T, Arch>::key_block); }
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const& owner, tile_place const& at, key_block_place const& b,
                  T* scratch) {
    table const* const along = c.along_of(owner.values);
    push_distances<T, Arch>(to, at, b, scratch,
                            [&](index_t n) { return along != nullptr ? (*along)(at.b, at.h, owner.index(n), 0) : 0.0; });
  }
};

template <class T, class Arch>
struct pusher<contraction::fourier, T, Arch> : plain_pusher<T> {
  static index_t block(problem_shape const&) { return padded<T>(tiling<T, Arch>::queries + tiling<T, Arch>::key_block); }
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const& owner, tile_place const& at, key_block_place const& b,
                  T* scratch) {
    using D = dual<double, 1>;
    auto const entry = [&](table const& x, index_t r) {
      D e(x(at.b, at.h, r, 0));
      if (table const* const along = c.along_of(x)) e.tangent[0] = (*along)(at.b, at.h, r, 0);
      return e;
    };
    bool const moves = c.along_of(owner.cosine) || c.along_of(owner.sine) || c.along_of(owner.frequency);
    push_distances<T, Arch>(to, at, b, scratch, [&](index_t n) {
      double sum = 0;
      for (index_t r = 0; moves && r < owner.frequency.rows(); ++r) {
        D const angle = entry(owner.frequency, r) * D(double(n));
        sum += (entry(owner.cosine, r) * math::cos(angle) + entry(owner.sine, r) * math::sin(angle)).tangent[0];
      }
      return sum;
    });
  }
};

/// Pairs that the caller computed: so are their tangents.
template <class T, class Arch, field F>
struct given_pairs_pusher : plain_pusher<T> {
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const&, tile_place const& at, key_block_place const& b, T*) {
    constexpr int queries = tiling<T, Arch>::queries;
    if (member<F>(c.along).absent())
      std::fill_n(to, b.n * queries, T(0));
    else
      pack_pairs<queries>(to, attune::detail::spread_over(member<F>(c.along), at.p->rows(at.p->keys)), at.b, at.h, at.first,
                          b.first, b.n);
  }
};
template <class T, class Arch>
struct pusher<contraction::given_scores, T, Arch> : given_pairs_pusher<T, Arch, field::scores> {};
template <class T, class Arch>
struct pusher<contraction::given_gates, T, Arch> : given_pairs_pusher<T, Arch, field::gates> {};
template <class T, class Arch>
struct pusher<contraction::given_bias, T, Arch> : given_pairs_pusher<T, Arch, field::bias> {};
template <class T, class Arch>
struct pusher<contraction::given_key_bias, T, Arch> : plain_pusher<T> {
  template <class Call, class Owner>
  static void run(T* to, T const*, T const*, Call const& c, Owner const&, tile_place const& at, key_block_place const& b, T*) {
    constexpr int queries = tiling<T, Arch>::queries;
    index_t const head = at.p->group(at.h, at.p->key_bias_heads);
    for (index_t j = 0; j < b.n; ++j)
      std::fill_n(to + j * queries, queries, c.along.key_bias.absent() ? T(0) : c.along.key_bias(at.b, head, b.first + j, 0));
  }
};

}  // namespace attune::exec_cpu
