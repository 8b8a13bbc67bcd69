// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d<queries, keys, tables> += sum ds[key][query] d contraction(query, key)  for a tile of queries and a block of keys
//
// The backward counterpart of tile/contractions.hpp: products and distances, faster than by their terms.
#pragma once

#include <algorithm>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/gradients/contractions/terms.hpp>
#include <attune/exec/cpu/products/outer.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>

namespace attune::exec_cpu {

namespace detail {

/// Sums over features. The resident memory holds the gradient of the packed queries, [d][query]; those queries as
/// panels; and whether they contain neither NaN nor infinity.
template <class C, class T, class Arch>
struct feature_vjp {
  static constexpr field query = C::x::of;
  static constexpr int queries = tiling<T, Arch>::queries;
  static constexpr index_t block_keys = tiling<T, Arch>::key_block;

  static index_t grown(problem_shape const& p) { return padded<T>(queries * p.width_of(query)); }
  static index_t resident(problem_shape const& p) {
    return grown(p) + padded<T>(panels<T, Arch>::size(p.width_of(query), queries)) + padded<T>(1);
  }
  static T& finite_queries(vjp_tile<T> const& t) { return t.own[feature_vjp::resident(*t.place.p) - padded<T>(1)]; }
  static index_t block(problem_shape const& p) { return padded<T>(block_keys * p.width_of(query)); }
  static T* query_panels(vjp_tile<T> const& t) { return t.own + grown(*t.place.p); }

  template <class In, class Owner>
  static void begin(vjp_tile<T> const& t, In const&, Owner const&) {
    std::fill_n(t.own, grown(*t.place.p), T(0));
    index_t const width = t.place.p->width_of(query);
    panels<T, Arch>::template from_packed<queries>(query_panels(t), t.packed, width, t.count);
    constexpr index_t panel = panels<T, Arch>::width;
    row_block<T> const rows(query_panels(t), panel);
    finite_queries(t) = T(finite_rows<T, Arch>(rows, panel, 0, panels<T, Arch>::count(width) * t.count));
  }
  template <class In>
  static row_block<T> keys(In const& in, vjp_tile<T> const& t, key_block_place const& b, T* scratch) {
    problem_shape const& p = *t.place.p;
    constexpr field key = C::y::of;
    return {member<key>(in), t.place.b, p.group(t.place.h, p.heads_of(key)), b.first, b.n, scratch};
  }
  /// Adds scale[d] grown[d][lane] to the gradient of the query field. Calls also(d, lane, grown) for each.
  template <class Scale, class Also>
  static void flush(vjp_tile<T> const& t, gradient_sinks<T>& to, Scale const& scale, Also const& also) {
    tile_place const& at = t.place;
    for (index_t l = 0; l < t.count; ++l) {
      T* const row = to.takes(query) ? to.to->of(query).row(at.b, at.h, at.first + l) : nullptr;
      for (index_t d = 0; d < at.p->width_of(query); ++d) {
        T const x = t.own[d * queries + l];
        if (row != nullptr) row[d] += scale(d) * x;
        also(d, l, x);
      }
    }
  }
  /// flush() for contractions whose packed queries are left(q, z): `grown` is then the gradient with respect to
  /// left(q, z). Multiplies it by the derivative of left by q, and adds the gradient of table z if there is one.
  template <class In, class Owner>
  static void leave_left(vjp_tile<T> const& t, [[maybe_unused]] In const& in, [[maybe_unused]] Owner const& owner,
                         gradient_sinks<T>& to) {
    if constexpr (C::z::side == operand_side::none) {
      flush(t, to, [](index_t) { return T(1); }, [](index_t, index_t, T const&) {});
    } else {
      tile_place const& at = t.place;
      table const& z = C::z::table_of::of(owner);
      gradient_array<double>& sums = to.sum_of(z);
      flush(
          t, to,
          [&](index_t d) {
            return C::left(dual<T, 1>::variable(T(0), 0), dual<T, 1>(T(z(at.b, at.h, 0, d)))).tangent[0];
          },
          [&](index_t d, index_t l, T const& grown) {
            using D = dual<double, 1>;
            if (grown == T(0)) return;
            double const x = double(member<query>(in)(at.b, at.h, at.first + l, d));
            sums(0, 0, 0, d) += double(grown) * C::left(D(x), D::variable(z(at.b, at.h, 0, d), 0)).tangent[0];
          });
    }
  }
};

}  // namespace detail

/// Products: the gradient of the query side is a product like the forward's value product; the gradient of the key side
/// is an outer product. The packed numbers are left(q, z). The keys need exactly that; the queries also need the
/// derivative of left.
template <KeyProduct C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_vjp<C, T, Arch> {
  using base = detail::feature_vjp<C, T, Arch>;
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    constexpr field key = C::y::of;
    index_t const width = t.place.p->width_of(base::query);
    row_block<T> const keys = base::keys(in, t, b, scratch);
    auto& known = to.checked[std::size_t(key)];
    if (known.first != b.first || known.n != b.n) known = {b.first, b.n, finite_rows<T, Arch>(keys, width, 0, b.n)};
    accumulate_some<T, Arch>(t.own, keys, ds, t.packed, b.n, width, known.finite);
    key_rows<T> const& rows = to.rows(key);
    if (rows.data == nullptr) return;
    outer<T, Arch>(rows.at(b.first), rows.step, ds, base::query_panels(t), t.count, b.n, width,
                   base::finite_queries(t) != T(0));
  }
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const& in, Owner const& owner, gradient_sinks<T>& to) {
    base::leave_left(t, in, owner, to);
  }
};

namespace detail {

/// Other sums over features, f(q_d, k_d): computed from the derivatives of f, never from a difference of sums.
template <class C, class T, class Arch>
struct feature_sum_vjp : feature_vjp<C, T, Arch> {
  using base = feature_vjp<C, T, Arch>;
  using tile_panels = panels<T, Arch>;
  static index_t block(problem_shape const& p) {
    return base::block(p) + padded<T>(tile_panels::size(p.width, base::block_keys));
  }
  template <class In, class ByQuery, class ByKey>
  static void pull_pairs(T const* ds, vjp_tile<T> const& t, In const& in, key_block_place const& b, T* scratch,
                         gradient_sinks<T>& to, T const* scale, ByQuery const& by_query, ByKey const& by_key) {
    index_t const width = t.place.p->width;
    row_block<T> const keys = base::keys(in, t, b, scratch);
    accumulate_pairs<T, Arch>(t.own, keys, ds, t.packed, b.n, width, by_query);
    key_rows<T> const& rows = to.rows(field::k);
    if (rows.data == nullptr) return;
    T* const key_panels = scratch + base::block(*t.place.p);
    tile_panels::from_rows(key_panels, keys, width, b.n);
    outer_pairs<T, Arch>(rows.at(b.first), rows.step, ds, base::query_panels(t), t.count, key_panels, b.n, width, scale,
                         by_key);
  }
};

}  // namespace detail

template <FeatureSum C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_sum_vjp<C, T, Arch> {
  using base = detail::feature_sum_vjp<C, T, Arch>;
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, scratch, to, nullptr,
        []<class B>(B const& q, B const& k) { return term(dual<B, 1>::variable(q, 0), dual<B, 1>(k)).tangent[0]; },
        []<class B>(B const& q, B const& k) { return term(dual<B, 1>(q), dual<B, 1>::variable(k, 0)).tangent[0]; });
  }
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const&, Owner const&, gradient_sinks<T>& to) {
    base::flush(t, to, [](index_t) { return T(1); }, [](index_t, index_t, T const&) {});
  }

 private:
  template <class D>
  static D term(D const& q, D const& k) {
    return C::term(q, k, D(), D());
  }
};

/// More resident memory: the gradient of the metric lane by lane, and twice the metric, padded.
template <class T, class Arch>
struct contraction_vjp<contraction::metric_distance, T, Arch>
    : detail::feature_sum_vjp<contraction::metric_distance, T, Arch> {
  using base = detail::feature_sum_vjp<contraction::metric_distance, T, Arch>;
  using tile_panels = panels<T, Arch>;
  static index_t resident(problem_shape const& p) {
    return base::resident(p) + base::grown(p) + padded<T>(tile_panels::padded_width(p.width));
  }
  static T* by_metric(vjp_tile<T> const& t) { return t.own + base::resident(*t.place.p); }
  static T* twice_metric(vjp_tile<T> const& t) { return by_metric(t) + base::grown(*t.place.p); }
  template <class In, class Owner>
  static void begin(vjp_tile<T> const& t, In const& in, Owner const& owner) {
    base::begin(t, in, owner);
    std::fill_n(by_metric(t), base::grown(*t.place.p), T(0));
    std::fill_n(twice_metric(t), tile_panels::padded_width(t.place.p->width), T(0));
    for (index_t d = 0; d < t.place.p->width; ++d)
      twice_metric(t)[d] = T(2) * T(owner.metric(t.place.b, t.place.h, 0, d));
  }
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const& in, Owner const&, key_block_place const& b, T* scratch,
                   gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, scratch, to, twice_metric(t), [](auto const& q, auto const& k) { return q - k; },
        [](auto const& q, auto const& k) { return k - q; });
    accumulate_pairs<T, Arch>(by_metric(t), base::keys(in, t, b, scratch), ds, t.packed, b.n, t.place.p->width,
                              [](auto const& q, auto const& k) { return (q - k) * (q - k); });
  }
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    gradient_array<double>& metric = to.sum_of(owner.metric);
    base::flush(
        t, to, [&](index_t d) { return twice_metric(t)[d]; },
        [&](index_t d, index_t l, T const&) { metric(0, 0, 0, d) += double(by_metric(t)[d * base::queries + l]); });
  }
};

/// Sorts the pairs by their distance. The rest is a product with the rows of the table.
template <DistanceProduct C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_vjp<C, T, Arch> {
  using base = detail::feature_vjp<C, T, Arch>;
  static constexpr index_t queries = base::queries, distances = queries + base::block_keys;
  static index_t block(problem_shape const& p) {
    return padded<T>(distances * queries) + padded<T>(distances * p.width_of(base::query)) +
           padded<T>(distances * panels<T, Arch>::padded_width(p.width_of(base::query)));
  }
  template <class In, class Owner>
  static void pull(T const* ds, vjp_tile<T> const& t, In const&, Owner const& owner, key_block_place const& b,
                   T* scratch, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    table const& distance_rows = C::y::table_of::of(owner);
    index_t const width = at.p->width_of(base::query), count = queries + b.n - 1,
                  step = panels<T, Arch>::padded_width(width);
    T* const sorted = scratch;
    T* const rows = sorted + padded<T>(distances * queries);
    T* const grown = rows + padded<T>(distances * width);
    std::fill_n(sorted, count * queries, T(0));
    for (index_t j = 0; j < b.n; ++j)
      for (index_t l = 0; l < queries; ++l) sorted[(b.n - 1 - j + l) * queries + l] = ds[j * queries + l];
    detail::copy_distances<C>(rows, distance_rows, owner, at, b, count, width);
    accumulate<T, Arch>(t.own, rows, width, sorted, count, width);
    std::fill_n(grown, count * step, T(0));
    outer<T, Arch>(grown, step, sorted, base::query_panels(t), t.count, count, width, base::finite_queries(t) != T(0));
    gradient_array<double>& sums = to.sum_of(distance_rows);
    index_t const first = detail::first_distance(at, b), some = detail::farthest_distance(at) - first + 1;
    for (index_t n = 0; n < (std::min)(count, some); ++n) {
      index_t const row = C::y::table_of::row(owner, first + n);
      for (index_t d = 0; d < width; ++d) sums(0, 0, row, d) += double(grown[n * step + d]);
    }
  }
  template <class In, class Owner>
  static void end(vjp_tile<T> const& t, In const& in, Owner const& owner, gradient_sinks<T>& to) {
    base::leave_left(t, in, owner, to);
  }
};

}  // namespace attune::exec_cpu
