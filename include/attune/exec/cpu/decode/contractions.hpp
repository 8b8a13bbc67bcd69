// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[row][key] = contraction(query of the row, key)      for few rows that share their keys, and a block of keys
//
// How the decode path computes contractions: the counterpart of tile/contractions.hpp. Nothing here knows how scores
// are computed from the values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <attune/exec/cpu/decode/products.hpp>
#include <attune/exec/cpu/products/lane_bits.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>

namespace attune::exec_cpu {

/// The rows of one task: row r is query (first + r) mod Lq of head `head` + (first + r) / Lq. All these heads read the
/// same head of every tensor that has a row of features per key.
struct decode_place {
  problem_shape const* p;
  index_t b, head, first, rows;
  prefetch_range values = {};  ///< the values of the block, read after its keys
  index_t head_of(index_t r) const { return head + (first + r) / p->queries; }
  index_t query_of(index_t r) const { return (first + r) % p->queries; }
};

/// The rows of a field in the form that kernels read: with 16 bits if a block of keys stores them so (key_sources.hpp).
template <field F, class In>
auto const& feature_rows(In const& in) {
  if constexpr (requires { in.stored; })
    return member<F>(*in.stored);
  else
    return member<F>(in);
}

namespace detail {

/// The common part of all contractors, and the defaults of those without rows of features.
struct decode_contractor_base {
  static index_t packed(problem_shape const&) { return 0; }
  static index_t copied(problem_shape const&) { return 0; }
  static index_t heads(problem_shape const&) { return 1; }
  template <class T, class In, class Owner>
  static void pack(T*, In const&, Owner const&, decode_place const&) {}
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

template <class T, class Arch, class E, class Step = product_step>
void contract_with_keys(T* to, T const* packed, tensor<E const> const& keys, index_t key_heads, decode_place const& at,
                        key_block_place const& block, T* copy, Step const& step = {}) {
  index_t const head = at.p->group(at.head, key_heads), whole = decode_tiling<T, Arch>::whole(keys.extents().feature);
  with_whole_rows<T, Arch>(keys, at.b, head, block.first, block.n, copy, [&](auto const* from, index_t key_step) {
    contract_features<T, Arch>(to, packed, at.rows, whole, from, key_step, block.n, at.values, step);
  });
}

/// Values of pairs that are not products: of_row(r)(j) for key j of the block. Padded with 0 to whole batches.
template <class T, class Arch, class OfRow>
void fill_pairs(T* to, decode_place const& at, index_t n, OfRow const& of_row) {
  using tile = decode_tiling<T, Arch>;
  for (index_t r = 0; r < at.rows; ++r, to += tile::block) {
    auto const value = of_row(r);
    for (index_t j = 0; j < n; ++j) to[j] = value(j);
    std::fill(to + n, to + tile::whole(n), T(0));
  }
}

/// For all sums over features: packs the query side and reads the keys in place.
template <class C, class T, class Arch>
struct decode_features : decode_contractor_base {
  static constexpr field query = C::x::of, key = C::y::of;
  static index_t packed(problem_shape const& p) { return decode_tiling<T, Arch>::whole(p.width_of(query)); }
  static index_t copied(problem_shape const& p) { return packed(p); }
  static index_t heads(problem_shape const& p) { return p.heads_of(key); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, decode_place const& at) {
    pack_features<T, Arch>(to, member<query>(in), at);
  }

 protected:
  template <class In, class Step>
  static void by_steps(T* to, T const* q, In const& in, decode_place const& at, key_block_place const& block, T* copy,
                       Step const& step) {
    contract_with_keys<T, Arch>(to, q, feature_rows<key>(in), at.p->heads_of(key), at, block, copy, step);
  }
};

/// A feature_step for keys with contiguous features. Their padding adds nothing.
template <class C, class T, class Arch>
struct decode_feature_step {
  index_t width;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    constexpr index_t lanes = index_t(B::size);
    B const pair = C::term(q, x, x, x);
    if (d + lanes <= width) return acc + pair;
    return acc + simd::select(lanes_of<T, Arch>((std::uint64_t(1) << (width - d)) - 1), pair, B(T(0)));
  }
};
/// Adds 0 for the padding.
template <class T, class Arch>
struct decode_feature_step<contraction::squared_distance, T, Arch> : distance_step {
  decode_feature_step(index_t) {}
};

/// The metric is stored feature by feature, as the keys are.
template <class T>
struct decode_metric_step {
  T const* metric;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    B const difference = q - x;
    return simd::multiply_add(B(B::load_aligned(metric + d) * difference), difference, acc);
  }
};

}  // namespace detail

/// Any contraction, computed by its term, one pair at a time.
template <class C, class T, class Arch>
struct decode_contractor : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const& owner, decode_place const& at,
                  key_block_place const& block, T*) {
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      return [&, h = at.head_of(r), i = at.query_of(r)](index_t j) {
        attune::detail::pair_place const pair{at.b, h, i, block.first + j};
        using number = std::conditional_t<contraction::of_distance_alone<C>, double, T>;
        return T(attune::detail::contracted<C, number>(in, *at.p, owner, pair));
      };
    });
  }
};

template <KeyProduct C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::decode_features<C, T, Arch> {
  using base = detail::decode_features<C, T, Arch>;
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, decode_place const& at) {
    base::pack(to, in, owner, at);
    if constexpr (C::z::side != operand_side::none) {
      index_t const whole = base::packed(*at.p);
      for (index_t r = 0; r < at.rows; ++r)
        for (index_t d = 0; d < at.p->width_of(base::query); ++d)
          to[r * whole + d] = C::left(to[r * whole + d], T(C::z::table_of::of(owner)(at.b, at.head_of(r), 0, d)));
    }
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    base::by_steps(to, q, in, at, block, copy, product_step{});
  }
};

template <FeatureSum C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::decode_features<C, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    decode_contractor::by_steps(to, q, in, at, block, copy, detail::decode_feature_step<C, T, Arch>{at.p->width});
  }
};

/// Each head has its own metric, so rows of different heads are different products.
template <class T, class Arch>
struct decode_contractor<contraction::metric_distance, T, Arch>
    : detail::decode_features<contraction::metric_distance, T, Arch> {
  using base = detail::decode_features<contraction::metric_distance, T, Arch>;
  static index_t packed(problem_shape const& p) { return 2 * base::packed(p); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, decode_place const& at) {
    detail::pack_features<T, Arch>(to, in.q, at);
    index_t const whole = base::packed(*at.p);
    T* const metric = to + at.rows * whole;
    for (index_t r = 0; r < at.rows; ++r)
      for (index_t d = 0; d < whole; ++d)
        metric[r * whole + d] = d < at.p->width ? T(owner.metric(at.b, at.head_of(r), 0, d)) : T(0);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    index_t const whole = base::packed(*at.p);
    index_t const head = at.p->group(at.head, at.p->key_heads);
    with_whole_rows<T, Arch>(
        feature_rows<field::k>(in), at.b, head, block.first, block.n, copy, [&](auto const* from, index_t step) {
          for (index_t r = 0; r < at.rows; ++r)
            contract_features<T, Arch>(to + r * decode_tiling<T, Arch>::block, q + r * whole, 1, whole, from, step,
                                       block.n, r == 0 ? at.values : prefetch_range{},
                                       detail::decode_metric_step<T>{q + (at.rows + r) * whole});
        });
  }
};

/// Looks up a row of the table once for all heads of a query.
template <class T, class Arch>
struct decode_contractor<contraction::gathered, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, decode_place const& at, key_block_place const& block,
                  T*) {
    index_t entry[decode_tiling<T, Arch>::block], query = -1;
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      if (index_t const i = at.query_of(r); i != query) {
        query = i;
        for (index_t j = 0; j < block.n; ++j) entry[j] = owner.index(query + at.p->offset_of(at.b) - (block.first + j));
      }
      return [&, h = at.head_of(r)](index_t j) { return T(owner.values(at.b, h, entry[j], 0)); };
    });
  }
};

/// The same for tables with a row for each pair.
template <contraction::PairLookup C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, decode_place const& at, key_block_place const& block,
                  T*) {
    using operand = typename C::x;
    index_t entry[decode_tiling<T, Arch>::block], query = -1;
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      if (index_t const i = at.query_of(r); i != query) {
        query = i;
        for (index_t j = 0; j < block.n; ++j)
          entry[j] = attune::detail::pair_row<operand>(owner, query + at.p->offset_of(at.b), block.first + j);
      }
      return [&, h = at.head_of(r)](index_t j) {
        return entry[j] < 0 ? T(0) : T(operand::table_of::of(owner)(at.b, h, entry[j], 0));
      };
    });
  }
};

/// How the decode path multiplies features, and weights with values: in T. The alternative: bf16_products.hpp.
struct float_products {
  template <class C, class T, class Arch>
  using contractor = decode_contractor<C, T, Arch>;

  /// Calls use(data, step) with rows [first, first + n) of one head in the form that the functions below read.
  /// `scratch`: room for whole rows.
  template <class T, class Arch, class E, class Use>
  static void with_rows(tensor<E const> const& x, index_t b, index_t h, index_t first, index_t n, T* scratch,
                        Use const& use) {
    with_whole_rows<T, Arch>(x, b, h, first, n, scratch, use);
  }
  template <class T, class Arch, class E>
  static void accumulate(T* sum, index_t rows, index_t width, T const* weights, E const* values, index_t value_step,
                         index_t n, prefetch_range const& ahead) {
    accumulate_features<T, Arch>(sum, rows, decode_tiling<T, Arch>::whole(width), weights, values, value_step, n,
                                 ahead);
  }
  template <class T, class Arch, class E>
  static void accumulate_seen(T* sum, index_t width, T const* weights, E const* values, index_t value_step, index_t,
                              std::uint64_t seen) {
    accumulate_seen_features<T, Arch>(sum, decode_tiling<T, Arch>::whole(width), weights, values, value_step, seen);
  }
};

}  // namespace attune::exec_cpu
