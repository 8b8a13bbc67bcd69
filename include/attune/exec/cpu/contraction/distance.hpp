// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = f(i + offset - j)      or      <left(q, z), row of the distance>
//
// Contractions of a distance: of the distance alone, in double; of a query and a row of a table
// (contraction::DistanceProduct); and contraction::fourier. A tile and a block meet few distances, so each is computed
// once, and the pairs pick theirs.
#pragma once

#include <algorithm>
#include <cmath>

#include <attune/exec/cpu/contraction/features.hpp>

namespace attune::exec_cpu {

namespace detail {

/// A value for each distance of a block.
template <class T, class Arch>
struct distance_values {
  T* values;
  distance_values(arena<T>& from, problem_shape const&) : values(from.take(distances_of_block<T, Arch>)) {}
};

}  // namespace detail

/// Contractions of a distance alone.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contractor<C, T, Arch> : unpacked_contractor<T> {
  using copies = detail::distance_values<T, Arch>;
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const&, Owner const& owner, tile_place const& at,
                  key_block_place const& block, copies const& memory) {
    index_t const first = detail::first_distance(at, block), farthest = detail::farthest_distance(at);
    for (index_t n = 0; n < tiling<T, Arch>::queries + block.n - 1; ++n)
      memory.values[n] = T(attune::detail::of_distance<C>(*at.p, owner, at.b, at.h, (std::min)(first + n, farthest)));
    detail::spread_distances<T, Arch>(to, memory.values, block.n);
  }
};

/// Sums by distance, over all tiles of a task. `finish` passes the sums to the tables.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  static constexpr index_t queries = tiling<T, Arch>::queries;
  static index_t lowest(problem_shape const& p, index_t b) { return p.offset_of(b) - (p.keys - 1); }
  template <class Tile>
  static void pull_distances(T const* ds, Tile const& t, key_block_place const& b, double* distances) {
    double* const first = distances + detail::first_distance(t.place, b) - lowest(*t.place.p, t.place.b);
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < t.count; ++l) first[b.n - 1 - j + l] += double(ds[j * queries + l]);
  }
  template <class Owner>
  static void finish(double const* distances, problem_shape const& p, Owner const& owner, index_t b, index_t h,
                     gradient_sinks<T>& to) {
    index_t const width = attune::detail::term_count<C>(p, owner);
    for (index_t n = 0; n < p.queries + p.keys - 1; ++n) {
      if (distances[n] == 0) continue;
      index_t const distance = lowest(p, b) + n;
      for_each_operand<C>([&]<int N, class Operand>() {
        gradient_array<double>& table = to.sum_of(Operand::table_of::of(owner));
        auto const slope = attune::detail::slopes<C, N, double>(attune::detail::no_inputs{}, p, owner,
                                                                {b, h, distance - p.offset_of(b), 0});
        for (index_t d = 0; d < width; ++d)
          table(0, 0, attune::detail::table_row<Operand>(owner, distance, d),
                attune::detail::table_column<Operand>(d)) += distances[n] * slope(d);
      });
    }
  }
};

/// One tangent for each distance.
template <class C, class T, class Arch>
  requires contraction::of_distance_alone<C>
struct contraction_jvp<C, T, Arch> : unpacked_jvp<T> {
  using scratch = detail::distance_values<T, Arch>;
  template <class Packed, class Call, class Owner>
  static void run(T* to, no_memory const&, Packed const&, Call const& c, Owner const& owner, tile_place const& at,
                  key_block_place const& b, scratch const& memory) {
    index_t const first = detail::first_distance(at, b), farthest = detail::farthest_distance(at);
    index_t const width = attune::detail::term_count<C>(*at.p, owner);
    for (index_t n = 0; n < tiling<T, Arch>::queries + b.n - 1; ++n) {
      index_t const distance = (std::min)(first + n, farthest);
      double sum = 0;
      for_each_operand<C>([&]<int N, class Operand>() {
        table const* const along = c.table_of(Operand::table_of::of(owner));
        if (along == nullptr) return;
        auto const slope = attune::detail::slopes<C, N, double>(attune::detail::no_inputs{}, *at.p, owner,
                                                                {at.b, at.h, distance - at.p->offset_of(at.b), 0});
        for (index_t d = 0; d < width; ++d)
          sum += slope(d) * (*along)(at.b, at.h, attune::detail::table_row<Operand>(owner, distance, d),
                                     attune::detail::table_column<Operand>(d));
      });
      memory.values[n] = T(sum);
    }
    detail::spread_distances<T, Arch>(to, memory.values, b.n);
  }
};

/// Computes cos and sin of every frequency at every eighth distance; those in between follow from the sums of angles.
template <class T, class Arch>
struct contractor<contraction::fourier, T, Arch> : unpacked_contractor<T> {
  static constexpr index_t distances = detail::distances_of_block<T, Arch>;
  struct copies : detail::distance_values<T, Arch> {
    double* sums;
    copies(arena<T>& from, problem_shape const& p)
        : detail::distance_values<T, Arch>(from, p), sums(take_numbers<double>(from, distances)) {}
  };
  template <class In, class Owner>
  static void run(T* to, no_memory const&, In const&, Owner const& owner, tile_place const& at,
                  key_block_place const& block, copies const& memory) {
    index_t const first = detail::first_distance(at, block), count = tiling<T, Arch>::queries + block.n - 1;
    std::fill_n(memory.sums, count, 0.0);
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
          memory.sums[n + s] += even * step_cos[s] + odd * step_sin[s];
      }
    }
    for (index_t n = 0; n < count; ++n) memory.values[n] = T(memory.sums[n]);
    detail::spread_distances<T, Arch>(to, memory.values, block.n);
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
/// to[key][query] = by_distance[distance of the pair][query]
template <class T, class Arch>
void pick_distances(T* to, T const* by_distance, index_t n) {
  constexpr index_t queries = tiling<T, Arch>::queries;
  for (index_t j = 0; j < n; ++j)
    for (index_t l = 0; l < queries; ++l) to[j * queries + l] = by_distance[(n - 1 - j + l) * queries + l];
}

/// The rows of the distances of a block, and numbers for each query and distance.
template <field Query, class T, class Arch>
struct distance_products {
  T *rows, *products;
  distance_products(arena<T>& from, problem_shape const& p)
      : rows(from.take(distances_of_block<T, Arch> * p.width_of(Query))),
        products(from.take(distances_of_block<T, Arch> * tiling<T, Arch>::queries)) {}
};

}  // namespace detail

/// One product per query and distance that the block meets.
template <DistanceProduct C, class T, class Arch>
struct contractor<C, T, Arch> {
  using packed = detail::packed_queries_of<C::x::of, T, Arch>;
  using copies = detail::distance_products<C::x::of, T, Arch>;
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_left<C, T, Arch>(to.q, in, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const&, Owner const& owner, tile_place const& at,
                  key_block_place const& block, copies const& memory) {
    index_t const width = at.p->width_of(C::x::of), count = tiling<T, Arch>::queries + block.n - 1;
    detail::copy_distances<C>(memory.rows, C::y::table_of::of(owner), owner, at, block, count, width);
    contract<T, Arch>(memory.products, memory.rows, width, own.q, width, count);
    detail::pick_distances<T, Arch>(to, memory.products, block.n);
  }
};

/// Sorts the pairs by their distance. The rest is a product with the rows of the table.
template <DistanceProduct C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_vjp<C, T, Arch> {
  using base = detail::feature_vjp<C, T, Arch>;
  static constexpr index_t queries = base::queries;
  struct scratch : detail::distance_products<C::x::of, T, Arch> {
    T* by_rows;  ///< gradients
    scratch(arena<T>& from, problem_shape const& p)
        : detail::distance_products<C::x::of, T, Arch>(from, p),
          by_rows(from.take(detail::distances_of_block<T, Arch> * step_of(p))) {}
  };
  static index_t step_of(problem_shape const& p) { return panels<T, Arch>::padded_width(p.width_of(base::query)); }
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const&, Owner const& owner, key_block_place const& b,
                   scratch const& memory, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    table const& distance_rows = C::y::table_of::of(owner);
    index_t const width = at.p->width_of(base::query), count = queries + b.n - 1, step = step_of(*at.p);
    T* const sorted = memory.products;
    std::fill_n(sorted, count * queries, T(0));
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) sorted[(b.n - 1 - j + l) * queries + l] = ds[j * queries + l];
    detail::copy_distances<C>(memory.rows, distance_rows, owner, at, b, count, width);
    accumulate<T, Arch>(t.grown.by_query, memory.rows, width, sorted, count, width);
    std::fill_n(memory.by_rows, count * step, T(0));
    outer<T, Arch>(memory.by_rows, step, sorted, t.grown.panels, t.count, count, width, *t.grown.finite != T(0));
    gradient_array<double>& sums = to.sum_of(distance_rows);
    index_t const first = detail::first_distance(at, b), some = detail::farthest_distance(at) - first + 1;
    for (index_t n = 0; n < (std::min)(count, some); ++n) {
      index_t const row = C::y::table_of::row(owner, first + n);
      for (index_t d = 0; d < width; ++d) sums(0, 0, row, d) += double(memory.by_rows[n * step + d]);
    }
  }
};

template <DistanceProduct C, class T, class Arch>
struct contraction_jvp<C, T, Arch> : detail::product_jvp<C, T, Arch> {
  static constexpr index_t queries = tiling<T, Arch>::queries;
  struct scratch : detail::distance_products<C::x::of, T, Arch> {
    T* more;  ///< the second product
    scratch(arena<T>& from, problem_shape const& p)
        : detail::distance_products<C::x::of, T, Arch>(from, p),
          more(from.take(detail::distances_of_block<T, Arch> * queries)) {}
  };
  template <class Packed, class Call, class Owner>
  static void run(T* to, typename contraction_jvp::moved const& own, Packed const& packed, Call const& c,
                  Owner const& owner, tile_place const& at, key_block_place const& b, scratch const& memory) {
    index_t const width = at.p->width_of(C::x::of), count = queries + b.n - 1;
    auto const multiply_by = [&](T* result, T const* left, table const& x) {
      detail::copy_distances<C>(memory.rows, x, owner, at, b, count, width);
      contract<T, Arch>(result, memory.rows, width, left, width, count);
    };
    table const& rows = C::y::table_of::of(owner);
    multiply_by(memory.products, own.q, rows);
    if (table const* const along = c.table_of(rows)) {
      multiply_by(memory.more, packed.q, *along);
      detail::add_numbers(memory.products, memory.more, count * queries);
    }
    detail::pick_distances<T, Arch>(to, memory.products, b.n);
  }
};

}  // namespace attune::exec_cpu
