// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[row][key] = contraction(query of the row, key)      for few rows that share their keys, and a block of keys
//
// How the decode path computes the contractions of the closed list: the decode counterpart of contractions.hpp. One without a
// specialisation here is left to the tiles. Nothing here knows how a score is made of the values.
#pragma once

#include <algorithm>
#include <cstdint>

#include <attune/exec/cpu/contractions.hpp>
#include <attune/exec/cpu/decode_kernels.hpp>
#include <attune/exec/cpu/visibility.hpp>

namespace attune::exec_cpu {

/// Rows of one task: row r is query (first + r) mod Lq of head `head` + (first + r) / Lq. All heads read the same head of every
/// tensor that has a row of features per key.
struct decode_place {
  problem_shape const* p;
  index_t b, head, first, rows;
  rows_ahead values = {};  ///< those of the block, read after its keys
  index_t head_of(index_t r) const { return head + (first + r) / p->queries; }
  index_t query_of(index_t r) const { return (first + r) % p->queries; }
};

/// The rows of a field that kernels read as they are stored: of 16 bits where a block of keys has them so (key_sources.hpp).
template <field F, class In>
auto const& feature_rows(In const& in) {
  if constexpr (requires { in.stored; })
    return member<F>(*in.stored);
  else
    return member<F>(in);
}

/// Specialised for the contractions that the decode path serves:
///   packed(p)  elements of scratch per row, whole batches     copied(p)  elements per key, where rows of features are copied
///   heads(p)   of its keys: heads of one task share one       pack       once per task       run  per block
template <class C, class T, class Arch>
struct decode_contractor {
  static constexpr bool served = false;
};

namespace detail {

/// What the specialisations have in common, and the defaults of those without rows of features.
struct decode_contractor_base {
  static constexpr bool served = true;
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

/// Values of pairs that are not products: of_row(r)(j) for key j of the block, padded with 0 to whole batches.
template <class T, class Arch, class OfRow>
void fill_pairs(T* to, decode_place const& at, index_t n, OfRow const& of_row) {
  using tile = decode_tiling<T, Arch>;
  for (index_t r = 0; r < at.rows; ++r, to += tile::block) {
    auto const value = of_row(r);
    for (index_t j = 0; j < n; ++j) to[j] = value(j);
    std::fill(to + n, to + tile::whole(n), T(0));
  }
}

/// All sums over features pack the query side and read the keys in place; a product, unless `run` is another.
template <class C, class T, class Arch>
struct decode_features : decode_contractor_base {
  using fields = feature_fields<C>;
  static index_t packed(problem_shape const& p) { return decode_tiling<T, Arch>::whole(fields::width(p)); }
  static index_t copied(problem_shape const& p) { return packed(p); }
  static index_t heads(problem_shape const& p) { return fields::heads(p); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, decode_place const& at) {
    pack_features<T, Arch>(to, member<fields::query>(in), at);
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    contract_with_keys<T, Arch>(to, q, feature_rows<fields::key>(in), fields::heads(*at.p), at, block, copy);
  }
};

template <class F, class T, class Arch>
struct decode_elementwise_step {
  index_t width;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    constexpr index_t lanes = index_t(B::size);
    B const pair = elementwise_step<F>{}(x, q, B(T(0)), d);
    if (d + lanes <= width) return acc + pair;
    return acc + xsimd::select(lanes_of<T, Arch>((std::uint64_t(1) << (width - d)) - 1), pair, B(T(0)));  // not the padding
  }
};

/// The metric lies feature by feature, as keys do.
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

template <class T, class Arch>
struct decode_contractor<contraction::dot, T, Arch> : detail::decode_features<contraction::dot, T, Arch> {};
template <class T, class Arch>
struct decode_contractor<contraction::gate_dot, T, Arch> : detail::decode_features<contraction::gate_dot, T, Arch> {};
template <class T, class Arch>
struct decode_contractor<contraction::position_dot, T, Arch> : detail::decode_features<contraction::position_dot, T, Arch> {};

template <class T, class Arch>
struct decode_contractor<contraction::metric_dot, T, Arch> : decode_contractor<contraction::dot, T, Arch> {
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, decode_place const& at) {
    detail::pack_features<T, Arch>(to, in.q, at);
    index_t const whole = decode_tiling<T, Arch>::whole(at.p->width);
    for (index_t r = 0; r < at.rows; ++r)
      for (index_t d = 0; d < at.p->width; ++d) to[r * whole + d] *= T(owner.metric(at.b, at.head_of(r), 0, d));
  }
};

template <class T, class Arch>
struct decode_contractor<contraction::biased_dot, T, Arch> : decode_contractor<contraction::dot, T, Arch> {
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, decode_place const& at) {
    detail::pack_features<T, Arch>(to, in.q, at);
    index_t const whole = decode_tiling<T, Arch>::whole(at.p->width);
    for (index_t r = 0; r < at.rows; ++r)
      for (index_t d = 0; d < at.p->width; ++d) to[r * whole + d] += T(owner.bias(at.b, at.head_of(r), 0, d));
  }
};

template <class T, class Arch>
struct decode_contractor<contraction::squared_distance, T, Arch>
    : detail::decode_features<contraction::squared_distance, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    detail::contract_with_keys<T, Arch>(to, q, feature_rows<field::k>(in), at.p->key_heads, at, block, copy, distance_step{});
  }
};

template <class F, class T, class Arch>
struct decode_contractor<contraction::elementwise<F>, T, Arch> : detail::decode_features<contraction::elementwise<F>, T, Arch> {
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const&, decode_place const& at, key_block_place const& block,
                  T* copy) {
    detail::contract_with_keys<T, Arch>(to, q, feature_rows<field::k>(in), at.p->key_heads, at, block, copy,
                                        detail::decode_elementwise_step<F, T, Arch>{at.p->width});
  }
};

/// A metric per head: rows of different heads are different products.
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
    with_whole_rows<T, Arch>(feature_rows<field::k>(in), at.b, head, block.first, block.n, copy,
                             [&](auto const* from, index_t step) {
                               for (index_t r = 0; r < at.rows; ++r)
                                 contract_features<T, Arch>(to + r * decode_tiling<T, Arch>::block, q + r * whole, 1, whole,
                                                            from, step, block.n, r == 0 ? at.values : rows_ahead{},
                                                            detail::decode_metric_step<T>{q + (at.rows + r) * whole});
                             });
  }
};

template <class T, class Arch>
struct decode_contractor<contraction::scalar_difference, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, decode_place const& at, key_block_place const& block, T*) {
    index_t const step = in.sort_k.steps().position;
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      index_t const h = at.head_of(r);
      T const query = in.sort_q(at.b, h, at.query_of(r), 0);
      T const* const keys = in.sort_k.row(at.b, at.p->group(h, at.p->sort_key_heads), block.first);
      return [=](index_t j) { return query - keys[j * step]; };
    });
  }
};

template <class T, class Arch>
struct decode_contractor<contraction::spatial_distance, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, decode_place const& at, key_block_place const& block, T*) {
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      index_t const h = at.head_of(r), i = at.query_of(r), place_head = at.p->group(h, at.p->place_heads);
      return [&in, &at, &block, h, i, place_head](index_t j) {
        T sum(0);
        for (index_t x = 0; x < at.p->axes; ++x) {
          T const z = (in.place(at.b, place_head, block.first + j, x) - in.center(at.b, h, i, x)) / in.spread(at.b, h, i, x);
          sum += z * z;
        }
        return sum;
      };
    });
  }
};

template <class T, class Arch>
struct decode_contractor<contraction::given_key_bias, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, decode_place const& at, key_block_place const& block, T*) {
    index_t const step = in.key_bias.steps().position;
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      T const* const keys = in.key_bias.row(at.b, at.p->group(at.head_of(r), at.p->key_bias_heads), block.first);
      return [=](index_t j) { return keys[j * step]; };
    });
  }
};

/// The rows of a table belong to distances: those of one query serve all its heads.
template <class T, class Arch>
struct decode_contractor<contraction::gathered, T, Arch> : detail::decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const&, Owner const& owner, decode_place const& at, key_block_place const& block, T*) {
    index_t entry[decode_tiling<T, Arch>::block], query = -1;
    detail::fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      if (index_t const i = at.query_of(r); i != query) {
        query = i;
        for (index_t j = 0; j < block.n; ++j) entry[j] = owner.index(query + at.p->offset - (block.first + j));
      }
      return [&, h = at.head_of(r)](index_t j) { return T(owner.values(at.b, h, entry[j], 0)); };
    });
  }
};

namespace detail {

/// Pairs that the caller computed.
template <class T, class Arch, field F>
struct decode_given_pairs : decode_contractor_base {
  template <class In, class Owner>
  static void run(T* to, T const*, In const& in, Owner const&, decode_place const& at, key_block_place const& block, T*) {
    auto const pairs = attune::detail::spread_over(member<F>(in), at.p->rows(at.p->keys));
    index_t const step = pairs.steps().feature;
    fill_pairs<T, Arch>(to, at, block.n, [&](index_t r) {
      T const* const row = pairs.row(at.b, at.head_of(r), at.query_of(r)) + block.first * step;
      return [=](index_t j) { return row[j * step]; };
    });
  }
};

}  // namespace detail

template <class T, class Arch>
struct decode_contractor<contraction::given_scores, T, Arch> : detail::decode_given_pairs<T, Arch, field::scores> {};
template <class T, class Arch>
struct decode_contractor<contraction::given_gates, T, Arch> : detail::decode_given_pairs<T, Arch, field::gates> {};
template <class T, class Arch>
struct decode_contractor<contraction::given_bias, T, Arch> : detail::decode_given_pairs<T, Arch, field::bias> {};

/// How the decode path multiplies features, and weights with values: in T. The other way: bf16_kernels.hpp.
struct float_products {
  template <class C, class T, class Arch>
  using contractor = decode_contractor<C, T, Arch>;

  /// Calls use(data, step) with rows [first, first + n) of one head as the functions below read them; `scratch`: room for whole rows.
  template <class T, class Arch, class E, class Use>
  static void with_rows(tensor<E const> const& x, index_t b, index_t h, index_t first, index_t n, T* scratch, Use const& use) {
    with_whole_rows<T, Arch>(x, b, h, first, n, scratch, use);
  }
  template <class T, class Arch, class E>
  static void accumulate(T* sum, index_t rows, index_t width, T const* weights, E const* values, index_t value_step, index_t n,
                         rows_ahead const& ahead) {
    accumulate_features<T, Arch>(sum, rows, decode_tiling<T, Arch>::whole(width), weights, values, value_step, n, ahead);
  }
  template <class T, class Arch, class E>
  static void accumulate_seen(T* sum, index_t width, T const* weights, E const* values, index_t value_step, index_t,
                              std::uint64_t seen) {
    accumulate_seen_features<T, Arch>(sum, decode_tiling<T, Arch>::whole(width), weights, values, value_step, seen);
  }
};

}  // namespace attune::exec_cpu
