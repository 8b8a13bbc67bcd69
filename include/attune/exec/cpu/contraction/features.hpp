// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The common part of contractions that sum over the features of a query and a key: queries are packed, keys are read in
// place, gradients of queries accumulate as [d][query].
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/term.hpp>
#include <attune/exec/cpu/products/outer.hpp>

namespace attune::exec_cpu {

/// A sum over the features of q and k that reads nothing else.
template <class C>
concept FeatureSum = std::is_base_of_v<contraction::feature_sum, C>;
using contraction::DistanceProduct;
using contraction::KeyProduct;

/// Whether keys are read as rows of features, in place. Otherwise they are read number by number.
template <class C>
inline constexpr bool reads_key_rows =
    KeyProduct<C> || FeatureSum<C> || std::is_same_v<C, contraction::metric_distance> || contraction::Rotary<C>;

namespace detail {

/// Queries of a tile, [d][query].
template <field Query, class T, class Arch>
struct packed_queries_of {
  T* q;
  packed_queries_of(arena<T>& from, problem_shape const& p)
      : q(from.take(tiling<T, Arch>::queries * p.width_of(Query))) {}
};
/// Copies of keys whose features are not contiguous.
template <field Query, class T, class Arch>
struct copied_keys {
  T* keys;
  copied_keys(arena<T>& from, problem_shape const& p)
      : keys(from.take(tiling<T, Arch>::key_block * p.width_of(Query))) {}
};

/// Reads the keys in place.
template <class C, class T, class Arch>
struct feature_contractor {
  static constexpr field query = C::x::of, key = C::y::of;
  using copies = copied_keys<query, T, Arch>;

 protected:
  template <class In, class Step>
  static void by_steps(T* to, T const* q, In const& in, tile_place const& at, key_block_place const& block,
                       copies const& memory, Step const& step) {
    row_block<T> const from(member<key>(in), at.b, at.p->group(at.h, at.p->heads_of(key)), block.first, block.n,
                            memory.keys);
    contract<T, Arch>(to, from.data, from.step, q, at.p->width_of(query), block.n, step);
  }
};

template <class T>
void add_numbers(T* to, T const* more, index_t n) {
  for (index_t at = 0; at < n; ++at) to[at] += more[at];
}

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
/// The packed tangent of the left side of a product.
template <class C, class T, class Arch, class Call, class Owner>
void pack_moving_left(T* own, Call const& c, [[maybe_unused]] Owner const& owner, tile_place const& at) {
  constexpr int queries = tiling<T, Arch>::queries;
  index_t const width = at.p->width_of(C::x::of);
  auto const& along_q = c.template tensor_of<C::x::of>();
  std::fill_n(own, queries * width, T(0));
  if (!along_q.absent()) pack_queries<queries>(own, along_q, at.b, at.h, at.first, at.p->first_query);
  if constexpr (C::z::side != operand_side::none) {
    table const &z = C::z::table_of::of(owner), *const along = c.table_of(z);
    for (index_t d = 0; d < width; ++d) {
      dual<T, 1> moving_z(T(z(at.b, at.h, 0, d)));
      if (along != nullptr) moving_z.tangent[0] = T((*along)(at.b, at.h, 0, d));
      for (index_t l = 0; l < queries; ++l) {
        dual<T, 1> q(member<C::x::of>(c.in)(at.b, at.h, (std::min)(at.first + l, at.p->queries - 1), d));
        q.tangent[0] = own[d * queries + l];
        own[d * queries + l] = C::left(q, moving_z).tangent[0];
      }
    }
  }
}
/// Tangents of products: `moved` is the tangent of the left side.
template <class C, class T, class Arch>
struct product_jvp {
  using moved = packed_queries_of<C::x::of, T, Arch>;
  template <class Call, class Owner>
  static void pack(moved const& to, Call const& c, Owner const& owner, tile_place const& at) {
    pack_moving_left<C, T, Arch>(to.q, c, owner, at);
  }
};

/// Gradients of sums over features.
template <class C, class T, class Arch>
struct feature_vjp {
  static constexpr field query = C::x::of, key = C::y::of;
  static constexpr int queries = tiling<T, Arch>::queries;

  struct grown {
    T *by_query,  ///< the gradient of the packed queries, [d][query]
        *panels,  ///< those queries as panels
        *finite;  ///< whether they contain neither NaN nor infinity
    grown(arena<T>& from, problem_shape const& p)
        : by_query(from.take(queries * p.width_of(query))),
          panels(from.take(exec_cpu::panels<T, Arch>::size(p.width_of(query), queries))), finite(from.take(1)) {}
  };

  template <class Tile, class In, class Owner>
  static void begin(Tile const& t, In const&, Owner const&) {
    using tile_panels = panels<T, Arch>;
    index_t const width = t.place.p->width_of(query);
    std::fill_n(t.grown.by_query, queries * width, T(0));
    tile_panels::template from_packed<queries>(t.grown.panels, t.packed.q, width, t.count);
    row_block<T> const rows(t.grown.panels, tile_panels::width);
    *t.grown.finite = T(finite_rows<T, Arch>(rows, tile_panels::width, 0, tile_panels::count(width) * t.count));
  }
  template <class Tile, class In>
  static row_block<T> keys(In const& in, Tile const& t, key_block_place const& b, T* copies) {
    problem_shape const& p = *t.place.p;
    return {member<key>(in), t.place.b, p.group(t.place.h, p.heads_of(key)), b.first, b.n, copies};
  }
  /// Adds scale[d] by_query[d][lane] to the gradient of the query field. Calls also(d, lane, by_query) for each.
  template <class Tile, class Scale, class Also>
  static void flush(Tile const& t, gradient_sinks<T>& to, Scale const& scale, Also const& also) {
    tile_place const& at = t.place;
    for (index_t l = 0; l < t.count; ++l) {
      T* const row = to.takes(query) ? to.to->of(query).row(at.b, at.h, at.first + l) : nullptr;
      for (index_t d = 0; d < at.p->width_of(query); ++d) {
        T const x = t.grown.by_query[d * queries + l];
        if (row != nullptr) row[d] += scale(d) * x;
        also(d, l, x);
      }
    }
  }
  /// flush() for contractions whose packed queries are left(q, z): `by_query` is then the gradient with respect to
  /// left(q, z). Multiplies it by the derivative of left by q, and adds the gradient of table z if there is one.
  template <class Tile, class In, class Owner>
  static void end(Tile const& t, [[maybe_unused]] In const& in, [[maybe_unused]] Owner const& owner,
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

/// to[r][d] = x(row r, d), padded with 0.
template <class T, class Arch>
void pack_features(T* to, tensor<T const> const& x, decode_place const& at) {
  index_t const width = x.extents().feature, step = x.steps().feature, whole = decode_tiling<T, Arch>::whole(width);
  for (index_t r = 0; r < at.rows; ++r, to += whole) {
    T const* const from = x.row(at.b, at.head_of(r), at.query_of(r));
    for (index_t d = 0; d < width; ++d) to[d] = from[d * step];
    std::fill(to + width, to + whole, T(0));
  }
}

/// In decode: packs the queries and reads the keys in place.
template <class C, class T, class Arch>
struct decode_features {
  static constexpr field query = C::x::of, key = C::y::of;
  static index_t heads(problem_shape const& p) { return p.heads_of(key); }
  static index_t whole(problem_shape const& p) { return decode_tiling<T, Arch>::whole(p.width_of(query)); }
  struct packed {
    T* q;  ///< [row][d]
    packed(arena<T>& from, problem_shape const& p, index_t rows) : q(from.take(rows * whole(p))) {}
  };
  /// Keys that are not whole batches of contiguous features.
  struct copies {
    T* keys;
    copies(arena<T>& from, problem_shape const& p) : keys(from.take(decode_tiling<T, Arch>::block * whole(p))) {}
  };
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const&, decode_place const& at) {
    pack_features<T, Arch>(to.q, member<query>(in), at);
  }

 protected:
  template <class In, class Step>
  static void by_steps(T* to, T const* q, In const& in, decode_place const& at, key_block_place const& block,
                       copies const& memory, Step const& step) {
    auto const& keys = feature_rows<key>(in);
    index_t const head = at.p->group(at.head, at.p->heads_of(key));
    with_whole_rows<T, Arch>(
        keys, at.b, head, block.first, block.n, memory.keys, [&](auto const* from, index_t key_step) {
          contract_features<T, Arch>(to, q, at.rows, whole(*at.p), from, key_step, block.n, at.values, step);
        });
  }
};

}  // namespace detail
}  // namespace attune::exec_cpu
