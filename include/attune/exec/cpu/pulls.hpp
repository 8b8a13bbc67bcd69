// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d<queries, keys, tables> += sum ds[key][query] d contraction(query, key)      for a tile of queries and a block of keys
//
// The backward counterpart of contractions.hpp: what each contraction of the closed list does with the gradient of its values.
// Query sides grow in the tile's own scratch and leave with the tile; key sides grow in rows of the task's own; tables, the few
// numbers that many tasks share, in double. Nobody writes what another task writes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/contractions.hpp>
#include <attune/exec/cpu/outer.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::exec_cpu {

/// Rows of a task's own for the keys of one head, aligned and padded.
template <class T>
struct key_rows {
  T* data = nullptr;
  index_t step = 0;
  T* at(index_t j) const { return data + j * step; }
};

/// What all rows of a task add to: numbers of a policy, tables, and inputs that tasks share.
struct shared_sums {
  struct shared_input {
    field of;
    gradient_array<double> sums;  ///< (1, 1, queries of the task or 1, features); of all tasks: the extents of the input
  };
  std::vector<gradient_array<double>> parameters, tables;
  gradient_array<double> ground_value;
  std::vector<shared_input> inputs;
};

/// Where the gradients of one task, one head of it, go.
template <class T>
struct gradient_sinks {
  dense_gradients<T>* to;  ///< query sides and given pairs: rows that only this task writes
  std::array<key_rows<T>, field_count> keys;
  shared_sums* sums;
  std::vector<double> distances;  ///< one per contraction and value of i + offset - j, for pulls that want them
  index_t first = 0;              ///< the first query of the task
  /// Whether the keys of the block at hand hold neither NaN nor infinity, by field: tiles share a block.
  struct {
    index_t first = -1, n = 0;
    bool finite = false;
  } checked[field_count] = {};

  key_rows<T> const& rows(field f) const { return keys[std::size_t(f)]; }
  /// The sums of an input with a row per query that tasks share; null where each writes rows of its own.
  gradient_array<double>* shared(field f) const {
    for (auto& x : sums->inputs)
      if (x.of == f) return &x.sums;
    return nullptr;
  }
  gradient_array<double>& sum_of(table const& x) const { return sums->tables[std::size_t(x.number())]; }
};

/// The sum of the first n lanes of a row of a tile.
template <class T>
T sum_of_lanes(T const* lanes, index_t n) {
  T sum(0);
  for (index_t l = 0; l < n; ++l) sum += lanes[l];
  return sum;
}

/// A tile of which `count` queries exist, and what its contractor packed.
template <class T>
struct pulled_tile {
  tile_place place;
  index_t count;
  T const* packed;
  T* own;  ///< puller::resident elements that live as long as the tile
};

/// Specialised for every contraction: scratch per tile and per block; `begin` and `end` once per tile, `pull` per block. `ds`
/// is 0 in lanes past the last query and where a query does not see a key.
template <class C, class T, class Arch>
struct puller;

namespace detail {

/// Sums over features: resident are the gradient of the packed queries, [d][query], those queries as panels, and whether they
/// hold neither NaN nor infinity.
template <class C, class T, class Arch>
struct feature_puller {
  using fields = feature_fields<C>;
  static constexpr int queries = tiling<T, Arch>::queries;
  static constexpr index_t block_keys = tiling<T, Arch>::key_block;

  static index_t grown(problem_shape const& p) { return padded<T>(queries * fields::width(p)); }
  static index_t resident(problem_shape const& p) {
    return grown(p) + padded<T>(panels<T, Arch>::size(fields::width(p), queries)) + padded<T>(1);
  }
  static T& finite_queries(pulled_tile<T> const& t) { return t.own[feature_puller::resident(*t.place.p) - padded<T>(1)]; }
  static index_t block(problem_shape const& p) { return padded<T>(block_keys * fields::width(p)); }
  static T* query_panels(pulled_tile<T> const& t) { return t.own + grown(*t.place.p); }

  template <class In, class Owner>
  static void begin(pulled_tile<T> const& t, In const&, Owner const&) {
    std::fill_n(t.own, grown(*t.place.p), T(0));
    index_t const width = fields::width(*t.place.p);
    panels<T, Arch>::template from_packed<queries>(query_panels(t), t.packed, width, t.count);
    constexpr index_t panel = panels<T, Arch>::width;
    row_block<T> const rows(query_panels(t), panel);
    finite_queries(t) = T(finite_rows<T, Arch>(rows, panel, 0, panels<T, Arch>::count(width) * t.count));
  }
  template <class In>
  static row_block<T> keys(In const& in, pulled_tile<T> const& t, key_block_place const& b, T* scratch) {
    problem_shape const& p = *t.place.p;
    return {member<fields::key>(in), t.place.b, p.group(t.place.h, fields::heads(p)), b.first, b.n, scratch};
  }
  /// Adds scale[d] grown[d][lane] to the gradient of the query field; `also(d, lane, grown)` sees each.
  template <class Scale, class Also>
  static void leave(pulled_tile<T> const& t, gradient_sinks<T>& to, Scale const& scale, Also const& also) {
    tile_place const& at = t.place;
    for (index_t l = 0; l < t.count; ++l) {
      T* const row = &to.to->of(fields::query)(at.b, at.h, at.first + l, 0);
      for (index_t d = 0; d < fields::width(*at.p); ++d) {
        T const x = t.own[d * queries + l];
        row[d] += scale(d) * x;
        also(d, l, x);
      }
    }
  }
};

struct no_second_use {
  template <class T>
  void operator()(index_t, index_t, T const&) const {}
};

/// Products: the query side is the forward's value product, the key side an outer product.
template <class C, class T, class Arch>
struct product_puller : feature_puller<C, T, Arch> {
  using base = feature_puller<C, T, Arch>;
  using fields = typename base::fields;
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    index_t const width = fields::width(*t.place.p);
    row_block<T> const keys = base::keys(in, t, b, scratch);
    auto& known = to.checked[std::size_t(fields::key)];
    if (known.first != b.first || known.n != b.n) known = {b.first, b.n, finite_rows<T, Arch>(keys, width, 0, b.n)};
    accumulate_some<T, Arch>(t.own, keys, ds, t.packed, b.n, width, known.finite);
    key_rows<T> const& rows = to.rows(fields::key);
    outer<T, Arch>(rows.at(b.first), rows.step, ds, base::query_panels(t), t.count, b.n, width,
                   base::finite_queries(t) != T(0));
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    base::leave(
        t, to, [](index_t) { return T(1); }, no_second_use{});
  }
};

}  // namespace detail

template <class T, class Arch>
struct puller<contraction::dot, T, Arch> : detail::product_puller<contraction::dot, T, Arch> {};
template <class T, class Arch>
struct puller<contraction::gate_dot, T, Arch> : detail::product_puller<contraction::gate_dot, T, Arch> {};
template <class T, class Arch>
struct puller<contraction::position_dot, T, Arch> : detail::product_puller<contraction::position_dot, T, Arch> {};

/// What is packed is m q: right for the keys; the queries still want their m.
template <class T, class Arch>
struct puller<contraction::metric_dot, T, Arch> : detail::product_puller<contraction::metric_dot, T, Arch> {
  using base = detail::feature_puller<contraction::metric_dot, T, Arch>;
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const& in, Owner const& owner, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    gradient_array<double>& metric = to.sum_of(owner.metric);
    base::leave(
        t, to, [&](index_t d) { return T(owner.metric(at.b, at.h, 0, d)); },
        [&](index_t d, index_t l, T const& grown) {
          if (grown != T(0)) metric(0, 0, 0, d) += double(grown) * double(in.q(at.b, at.h, at.first + l, d));
        });
  }
};

template <class T, class Arch>
struct puller<contraction::biased_dot, T, Arch> : detail::product_puller<contraction::biased_dot, T, Arch> {
  using base = detail::feature_puller<contraction::biased_dot, T, Arch>;
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    gradient_array<double>& bias = to.sum_of(owner.bias);
    base::leave(
        t, to, [](index_t) { return T(1); }, [&](index_t d, index_t, T const& grown) { bias(0, 0, 0, d) += double(grown); });
  }
};

namespace detail {

/// Other sums over features, f(q_d, k_d): from f's derivatives, never from a difference of sums.
template <class C, class T, class Arch>
struct pair_puller : feature_puller<C, T, Arch> {
  using base = feature_puller<C, T, Arch>;
  using tile_panels = panels<T, Arch>;
  static index_t block(problem_shape const& p) {
    return base::block(p) + padded<T>(tile_panels::size(p.width, base::block_keys));
  }
  template <class In, class ByQuery, class ByKey>
  static void pull_pairs(T const* ds, pulled_tile<T> const& t, In const& in, key_block_place const& b, T* scratch,
                         gradient_sinks<T>& to, T const* scale, ByQuery const& by_query, ByKey const& by_key) {
    index_t const width = t.place.p->width;
    row_block<T> const keys = base::keys(in, t, b, scratch);
    accumulate_pairs<T, Arch>(t.own, keys, ds, t.packed, b.n, width, by_query);
    T* const key_panels = scratch + base::block(*t.place.p);
    tile_panels::from_rows(key_panels, keys, width, b.n);
    key_rows<T> const& rows = to.rows(field::k);
    outer_pairs<T, Arch>(rows.at(b.first), rows.step, ds, base::query_panels(t), t.count, key_panels, b.n, width, scale,
                         by_key);
  }
};

}  // namespace detail

template <class T, class Arch>
struct puller<contraction::squared_distance, T, Arch> : detail::pair_puller<contraction::squared_distance, T, Arch> {
  using base = detail::pair_puller<contraction::squared_distance, T, Arch>;
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, scratch, to, nullptr, [](auto const& q, auto const& k) { return (q - k) + (q - k); },
        [](auto const& q, auto const& k) { return (k - q) + (k - q); });
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    base::leave(
        t, to, [](index_t) { return T(1); }, detail::no_second_use{});
  }
};

template <class F, class T, class Arch>
struct puller<contraction::elementwise<F>, T, Arch> : detail::pair_puller<contraction::elementwise<F>, T, Arch> {
  using base = detail::pair_puller<contraction::elementwise<F>, T, Arch>;
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, scratch, to, nullptr,
        []<class B>(B const& q, B const& k) { return F::pair(dual<B, 1>::variable(q, 0), dual<B, 1>(k)).tangent[0]; },
        []<class B>(B const& q, B const& k) { return F::pair(dual<B, 1>(q), dual<B, 1>::variable(k, 0)).tangent[0]; });
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    base::leave(
        t, to, [](index_t) { return T(1); }, detail::no_second_use{});
  }
};

/// Resident beside the rest: the gradient of the metric lane by lane, and twice the metric, padded.
template <class T, class Arch>
struct puller<contraction::metric_distance, T, Arch> : detail::pair_puller<contraction::metric_distance, T, Arch> {
  using base = detail::pair_puller<contraction::metric_distance, T, Arch>;
  using tile_panels = panels<T, Arch>;
  static index_t resident(problem_shape const& p) {
    return base::resident(p) + base::grown(p) + padded<T>(tile_panels::padded_width(p.width));
  }
  static T* by_metric(pulled_tile<T> const& t) { return t.own + base::resident(*t.place.p); }
  static T* twice_metric(pulled_tile<T> const& t) { return by_metric(t) + base::grown(*t.place.p); }
  template <class In, class Owner>
  static void begin(pulled_tile<T> const& t, In const& in, Owner const& owner) {
    base::begin(t, in, owner);
    std::fill_n(by_metric(t), base::grown(*t.place.p), T(0));
    std::fill_n(twice_metric(t), tile_panels::padded_width(t.place.p->width), T(0));
    for (index_t d = 0; d < t.place.p->width; ++d) twice_metric(t)[d] = T(2) * T(owner.metric(t.place.b, t.place.h, 0, d));
  }
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, scratch, to, twice_metric(t), [](auto const& q, auto const& k) { return q - k; },
        [](auto const& q, auto const& k) { return k - q; });
    accumulate_pairs<T, Arch>(by_metric(t), base::keys(in, t, b, scratch), ds, t.packed, b.n, t.place.p->width,
                              [](auto const& q, auto const& k) { return (q - k) * (q - k); });
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    gradient_array<double>& metric = to.sum_of(owner.metric);
    base::leave(
        t, to, [&](index_t d) { return twice_metric(t)[d]; },
        [&](index_t d, index_t l, T const&) { metric(0, 0, 0, d) += double(by_metric(t)[d * base::queries + l]); });
  }
};

/// Pairs are sorted by their distance; what is left is a product with the rows of the table.
template <class T, class Arch>
struct puller<contraction::relative_dot, T, Arch> : detail::feature_puller<contraction::relative_dot, T, Arch> {
  using base = detail::feature_puller<contraction::relative_dot, T, Arch>;
  static constexpr index_t queries = base::queries, distances = queries + base::block_keys;
  static index_t block(problem_shape const& p) {
    return padded<T>(distances * queries) + padded<T>(distances * p.width) +
           padded<T>(distances * panels<T, Arch>::padded_width(p.width));
  }
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const&, Owner const& owner, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    index_t const width = at.p->width, table_rows = owner.relative.rows(), count = queries + b.n - 1;
    index_t const first = detail::first_distance(at, b) + table_rows / 2, step = panels<T, Arch>::padded_width(width);
    T* const sorted = scratch;
    T* const rows = sorted + padded<T>(distances * queries);
    T* const grown = rows + padded<T>(distances * width);
    std::fill_n(sorted, count * queries, T(0));
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) sorted[(b.n - 1 - j + l) * queries + l] = ds[j * queries + l];
    for (index_t n = 0; n < count; ++n)
      for (index_t d = 0; d < width; ++d)
        rows[n * width + d] = T(owner.relative(at.b, at.h, std::clamp<index_t>(first + n, 0, table_rows - 1), d));
    accumulate<T, Arch>(t.own, rows, width, sorted, count, width);
    std::fill_n(grown, count * step, T(0));
    outer<T, Arch>(grown, step, sorted, base::query_panels(t), t.count, count, width, base::finite_queries(t) != T(0));
    gradient_array<double>& table = to.sum_of(owner.relative);
    for (index_t n = 0; n < count; ++n)
      if (first + n >= 0 && first + n < table_rows)
        for (index_t d = 0; d < width; ++d) table(0, 0, first + n, d) += double(grown[n * step + d]);
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    gradient_array<double>& bias = to.sum_of(owner.bias);
    base::leave(
        t, to, [](index_t) { return T(1); }, [&](index_t d, index_t, T const& grown) { bias(0, 0, 0, d) += double(grown); });
  }
};

/// Contractions without features: no block scratch.
template <class T>
struct plain_puller {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t block(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void begin(pulled_tile<T> const&, In const&, Owner const&) {}
  template <class In, class Owner>
  static void end(pulled_tile<T> const&, In const&, Owner const&, gradient_sinks<T>&) {}
};

template <class T, class Arch>
struct puller<contraction::scalar_difference, T, Arch> : plain_puller<T> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const&) { return padded<T>(queries); }
  template <class In, class Owner>
  static void begin(pulled_tile<T> const& t, In const&, Owner const&) {
    std::fill_n(t.own, queries, T(0));
  }
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const&, Owner const&, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
    for (index_t j = 0; j < b.n; ++j) {
      T const* const row = ds + j * queries;
      for (index_t l = 0; l < queries; ++l) t.own[l] += row[l];
      *to.rows(field::sort_k).at(b.first + j) -= sum_of_lanes(row, t.count);
    }
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    for (index_t l = 0; l < t.count; ++l) to.to->of(field::sort_q)(t.place.b, t.place.h, t.place.first + l, 0) += t.own[l];
  }
};

template <class T, class Arch>
struct puller<contraction::spatial_distance, T, Arch> : plain_puller<T> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t grown(problem_shape const& p) { return padded<T>(queries * p.axes); }
  static index_t resident(problem_shape const& p) { return 2 * grown(p); }
  template <class In, class Owner>
  static void begin(pulled_tile<T> const& t, In const&, Owner const&) {
    std::fill_n(t.own, 2 * grown(*t.place.p), T(0));
  }
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
    problem_shape const& p = *t.place.p;
    T const* const spread = t.packed + padded<T>(queries * p.axes);
    T* const by_spread = t.own + grown(p);
    index_t const head = p.group(t.place.h, p.place_heads);
    for (index_t j = 0; j < b.n; ++j)
      for (index_t x = 0; x < p.axes; ++x) {
        T const place = in.place(t.place.b, head, b.first + j, x);
        T by_place(0);
        for (index_t l = 0; l < t.count; ++l) {
          T const d = ds[j * queries + l];
          if (d == T(0)) continue;
          index_t const lane = x * queries + l;
          T const z = (place - t.packed[lane]) / spread[lane], move = d * (T(2) * z / spread[lane]);
          by_place += move;
          t.own[lane] -= move;
          by_spread[lane] -= move * z;
        }
        to.rows(field::place).at(b.first + j)[x] += by_place;
      }
  }
  template <class In, class Owner>
  static void end(pulled_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    for (index_t l = 0; l < t.count; ++l)
      for (index_t x = 0; x < at.p->axes; ++x) {
        to.to->of(field::center)(at.b, at.h, at.first + l, x) += t.own[x * queries + l];
        to.to->of(field::spread)(at.b, at.h, at.first + l, x) += t.own[grown(*at.p) + x * queries + l];
      }
  }
};

/// Sums by distance, over all tiles of a task; `finish` gives them to the table.
template <class T, class Arch>
struct distance_puller : plain_puller<T> {
  static constexpr index_t queries = tiling<T, Arch>::queries;
  static index_t count(problem_shape const& p) { return p.queries + p.keys; }
  static index_t lowest(problem_shape const& p) { return p.offset - (p.keys - 1); }
  static void pull_distances(T const* ds, pulled_tile<T> const& t, key_block_place const& b, double* distances) {
    problem_shape const& p = *t.place.p;
    double* const first = distances + detail::first_distance(t.place, b) - lowest(p);
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < t.count; ++l) first[b.n - 1 - j + l] += double(ds[j * queries + l]);
  }
};
template <class C>
inline constexpr bool sums_distances = std::is_same_v<C, contraction::gathered> || std::is_same_v<C, contraction::fourier>;

template <class T, class Arch>
struct puller<contraction::gathered, T, Arch> : distance_puller<T, Arch> {
  using base = distance_puller<T, Arch>;
  template <class Owner>
  static void finish(double const* distances, problem_shape const& p, Owner const& owner, index_t, index_t,
                     gradient_sinks<T>& to) {
    gradient_array<double>& table = to.sum_of(owner.values);
    for (index_t n = 0; n < base::count(p) - 1; ++n) table(0, 0, owner.index(base::lowest(p) + n), 0) += distances[n];
  }
};

template <class T, class Arch>
struct puller<contraction::fourier, T, Arch> : distance_puller<T, Arch> {
  using base = distance_puller<T, Arch>;
  template <class Owner>
  static void finish(double const* distances, problem_shape const& p, Owner const& owner, index_t b, index_t h,
                     gradient_sinks<T>& to) {
    auto &cosine = to.sum_of(owner.cosine), &sine = to.sum_of(owner.sine), &frequency = to.sum_of(owner.frequency);
    for (index_t r = 0; r < owner.frequency.rows(); ++r) {
      double const w = owner.frequency(b, h, r, 0), even = owner.cosine(b, h, r, 0), odd = owner.sine(b, h, r, 0);
      for (index_t n = 0; n < base::count(p) - 1; ++n) {
        if (distances[n] == 0) continue;
        double const distance = double(base::lowest(p) + n), c = std::cos(w * distance), s = std::sin(w * distance);
        cosine(0, 0, r, 0) += distances[n] * c;
        sine(0, 0, r, 0) += distances[n] * s;
        frequency(0, 0, r, 0) += distances[n] * distance * (odd * c - even * s);
      }
    }
  }
};

/// Pairs that the caller computed: their gradient is one number per pair, in the caller's order; summed where the caller shares them.
template <class T, class Arch, field F>
struct given_pairs_puller : plain_puller<T> {
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const&, Owner const&, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
    if (gradient_array<double>* const sums = to.shared(F))
      return add(ds, t, b, [&](index_t l) { return &(*sums)(0, 0, t.place.first - to.first + l, b.first); });
    add(ds, t, b, [&](index_t l) { return &to.to->of(F)(t.place.b, t.place.h, t.place.first + l, b.first); });
  }

 private:
  template <class Row>
  static void add(T const* ds, pulled_tile<T> const& t, key_block_place const& b, Row const& row_of) {
    for (index_t l = 0; l < t.count; ++l) {
      auto* const row = row_of(l);
      for (index_t j = 0; j < b.n; ++j) row[j] += ds[j * tiling<T, Arch>::queries + l];
    }
  }
};
template <class T, class Arch>
struct puller<contraction::given_scores, T, Arch> : given_pairs_puller<T, Arch, field::scores> {};
template <class T, class Arch>
struct puller<contraction::given_gates, T, Arch> : given_pairs_puller<T, Arch, field::gates> {};
template <class T, class Arch>
struct puller<contraction::given_bias, T, Arch> : given_pairs_puller<T, Arch, field::bias> {};

template <class T, class Arch>
struct puller<contraction::given_key_bias, T, Arch> : plain_puller<T> {
  template <class In, class Owner>
  static void pull(T const* ds, pulled_tile<T> const& t, In const&, Owner const&, key_block_place const& b, T*,
                   gradient_sinks<T>& to) {
    for (index_t j = 0; j < b.n; ++j)
      *to.rows(field::key_bias).at(b.first + j) += sum_of_lanes(ds + j * tiling<T, Arch>::queries, t.count);
  }
};

}  // namespace attune::exec_cpu
