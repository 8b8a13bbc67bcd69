// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x = <R q, R k>      dq = R^T sum ds (R k),  dk = R^T sum ds (R q)      x' = <(R q)', R k> + <R q, (R k)'>
//
// contraction::rotary_dot. Queries are turned when they are packed, the keys of a block once for all tiles of a task.
// Gradients accumulate by turned features, as the gradients of a dot product do. The gradient of a query is
// turned back at the end of its tile, the gradients of keys at the end of a task.
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include <attune/exec/cpu/contraction/features.hpp>
#include <attune/exec/cpu/products/turn.hpp>

namespace attune::exec_cpu {

namespace detail {

/// The turned keys of a block, which the tiles of a task share: a row is turned when the first tile needs it.
template <class T, class Arch>
class turned_keys {
  static constexpr index_t most = tiling<T, Arch>::key_block;
  /// Rows of the keys [first, last) of a batch element and a head of k.
  struct content {
    index_t b, head, first, last;
  };

 public:
  static constexpr bool kept = true;
  turned_keys(arena<T>& from, problem_shape const& p)
      : content_(take_numbers<content>(from, 1)), rows_(from.take(most * p.width)),
        angles_(from.take(row_turner<T, Arch>::room(p.width))) {}
  /// Must be called before the first use of the memory, and when the tensor of keys is another one.
  void forget() const { std::construct_at(content_, content{-1, -1, 0, 0}); }

  /// The keys of a block. Keys that are stored turned are read like the keys of a dot product.
  template <class Owner>
  row_block<T> operator()(tensor<T const> const& x, Owner const& owner, tile_place const& at,
                          key_block_place const& block) const {
    index_t const head = at.p->group(at.h, at.p->key_heads), width = x.extents().feature;
    if (owner.keys == rotary_keys::turned) return {x, at.b, head, block.first, block.n, rows_};
    content& has = *std::launder(content_);
    index_t const end = block.first + block.n;
    if (has.b != at.b || has.head != head || block.first < has.first || block.first > has.last ||
        end > has.first + most)
      has = {at.b, head, block.first, block.first};
    if (end > has.last) {
      T* const to = rows_ + (has.last - has.first) * width;
      row_block<T> const keys(x, at.b, head, has.last, end - has.last, to);
      row_turner<T, Arch>(owner.angles.keys(), owner.layout, width, angles_)
          .template run<turn::forth>({to, width}, {keys.data, keys.step}, end - has.last, at.b, has.last);
      has.last = end;
    }
    return {rows_ + (block.first - has.first) * width, width};
  }

 private:
  content* content_;
  T *rows_, *angles_;
};

/// The turned queries of a tile.
template <class T, class Arch>
struct turned_queries : packed_queries_of<field::q, T, Arch> {
  T *angles, *row;  ///< scratch
  turned_queries(arena<T>& from, problem_shape const& p)
      : packed_queries_of<field::q, T, Arch>(from, p), angles(from.take(row_turner<T, Arch>::room(p.width))),
        row(from.take(p.width)) {}

  /// q[d][query] = feature d of R x_query: pack_queries() with turned rows.
  template <class Owner>
  ATTUNE_NOINLINE void pack(tensor<T const> const& x, Owner const& owner, tile_place const& at) const {
    constexpr index_t queries = tiling<T, Arch>::queries;
    index_t const width = x.extents().feature, step = x.steps().feature;
    row_turner<T, Arch> const turner(owner.angles.queries(), owner.layout, width, angles);
    for (index_t l = 0; l < queries; ++l) {
      index_t const i = std::clamp(at.first + l, at.p->first_query, at.p->queries - 1);
      T const* const from = x.row(at.b, at.h, i);
      if (step != 1)
        for (index_t d = 0; d < width; ++d) row[d] = from[d * step];
      turner.template run<turn::forth>(row, step == 1 ? from : row, at.b,
                                       owner.angles.row_of_query(i, at.p->offset_of(at.b)));
      for (index_t d = 0; d < width; ++d) this->q[d * queries + l] = row[d];
    }
  }
};

}  // namespace detail

template <class T, class Arch>
struct contractor<contraction::rotary_dot, T, Arch> {
  using packed = detail::turned_queries<T, Arch>;
  using copies = detail::turned_keys<T, Arch>;
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, tile_place const& at) {
    to.pack(in.q, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, copies const& turned) {
    row_block<T> const keys = turned(in.k, owner, at, block);
    contract<T, Arch>(to, keys.data, keys.step, own.q, at.p->width, block.n);
  }
};

template <class T, class Arch>
struct contraction_vjp<contraction::rotary_dot, T, Arch> : detail::feature_vjp<contraction::rotary_dot, T, Arch> {
  using base = detail::feature_vjp<contraction::rotary_dot, T, Arch>;
  using turner = detail::row_turner<T, Arch>;
  static index_t step(problem_shape const& p) { return panels<T, Arch>::padded_width(p.width); }
  /// The gradients by all turned keys of a task.
  struct scratch {
    static constexpr bool kept = true;
    T *rows, *angles;
    scratch(arena<T>& from, problem_shape const& p)
        : rows(from.take(p.keys * step(p))), angles(from.take(turner::room(p.width))) {}
    void forget(problem_shape const& p) const { std::fill_n(rows, p.keys * step(p), T(0)); }
  };

  /// `turned`: the keys that the contractor keeps.
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const& in, Owner const& owner, key_block_place const& b,
                   detail::turned_keys<T, Arch> const& turned, scratch const& memory, gradient_sinks<T>& to) {
    index_t const width = t.place.p->width;
    row_block<T> const keys = turned(in.k, owner, t.place, b);
    accumulate_some<T, Arch>(t.grown.by_query, keys, ds, t.packed.q, b.n, width,
                             finite_rows<T, Arch>(keys, width, 0, b.n));
    key_rows<T> const rows =
        owner.keys == rotary_keys::turned ? to.rows(field::k) : key_rows<T>{memory.rows, step(*t.place.p)};
    if (to.rows(field::k).data == nullptr) return;
    outer<T, Arch>(rows.at(b.first), rows.step, ds, t.grown.panels, t.count, b.n, width, *t.grown.finite != T(0));
  }
  /// Turns the gradients of the tile's queries back, row by row, in the memory of the turned queries.
  template <class Tile, class In, class Owner>
  static void end(Tile const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    tile_place const& at = t.place;
    if (!to.takes(field::q)) return;
    index_t const width = at.p->width;
    T* const row = t.packed.row;
    turner const turns(owner.angles.queries(), owner.layout, width, t.packed.angles);
    for (index_t l = 0; l < t.count; ++l) {
      for (index_t d = 0; d < width; ++d) row[d] = t.grown.by_query[d * base::queries + l];
      turns.template run<turn::back>(row, row, at.b, owner.angles.row_of_query(at.first + l, at.p->offset_of(at.b)));
      T* const sum = to.to->of(field::q).row(at.b, at.h, at.first + l);
      for (index_t d = 0; d < width; ++d) sum[d] += row[d];
    }
  }
  /// At the end of a task: turns the gradients of the keys back and adds them to the gradients of the task, for the
  /// keys that it streamed.
  template <class Owner>
  static void finish(scratch const& memory, problem_shape const& p, Owner const& owner, index_t b,
                     gradient_sinks<T>& to, key_interval streamed) {
    if (owner.keys == rotary_keys::turned || to.rows(field::k).data == nullptr) return;
    turner const turns(owner.angles.keys(), owner.layout, p.width, memory.angles);
    turns.template run<turn::back>({memory.rows, step(p)}, {memory.rows, step(p)}, p.keys, b, 0);
    for (index_t j = streamed.first; j < streamed.last; ++j) {
      T const* const row = memory.rows + j * step(p);
      T* const sum = to.rows(field::k).at(j);
      for (index_t d = 0; d < p.width; ++d) sum[d] += row[d];
    }
  }
};

template <class T, class Arch>
struct contraction_jvp<contraction::rotary_dot, T, Arch> {
  using tile = tiling<T, Arch>;
  using forward = contractor<contraction::rotary_dot, T, Arch>;
  using moved = detail::turned_queries<T, Arch>;
  struct scratch {
    detail::turned_keys<T, Arch> keys;
    T* more;  ///< the second product
    scratch(arena<T>& from, problem_shape const& p) : keys(from, p), more(from.take(tile::key_block * tile::queries)) {}
  };
  template <class Call, class Owner>
  static void pack(moved const& to, Call const& c, Owner const& owner, tile_place const& at) {
    if (c.along.q.absent())
      std::fill_n(to.q, tile::queries * at.p->width, T(0));
    else
      to.pack(c.along.q, owner, at);
  }
  template <class Packed, class Call, class Owner>
  static void run(T* to, moved const& own, Packed const& packed, Call const& c, Owner const& owner,
                  tile_place const& at, key_block_place const& b, scratch const& memory) {
    auto const multiply_by = [&](T* result, moved const& left, auto const& in) {
      memory.keys.forget();
      forward::run(result, left, in, owner, at, b, memory.keys);
    };
    multiply_by(to, own, c.in);
    if (c.along.k.absent()) return;
    multiply_by(memory.more, packed, c.along);
    detail::add_numbers(to, memory.more, b.n * tile::queries);
  }
};

/// Keys that are stored turned are read in place, as they are stored. Others are turned into the copy of the block.
template <class T, class Arch>
struct decode_contractor<contraction::rotary_dot, T, Arch> : detail::decode_features<contraction::rotary_dot, T, Arch> {
  using base = detail::decode_features<contraction::rotary_dot, T, Arch>;
  using turner = detail::row_turner<T, Arch>;
  struct packed : base::packed {
    T* angles;  ///< scratch
    packed(arena<T>& from, problem_shape const& p, index_t rows)
        : base::packed(from, p, rows), angles(from.take(turner::room(p.width))) {}
  };
  struct copies : base::copies {
    T* angles;  ///< scratch
    copies(arena<T>& from, problem_shape const& p) : base::copies(from, p), angles(from.take(turner::room(p.width))) {}
  };
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, decode_place const& at) {
    base::pack(to, in, owner, at);
    index_t const whole = base::whole(*at.p);
    turner const turns(owner.angles.queries(), owner.layout, at.p->width, to.angles);
    for (index_t r = 0; r < at.rows; ++r)
      turns.template run<turn::forth>(to.q + r * whole, to.q + r * whole, at.b,
                                      owner.angles.row_of_query(at.query_of(r), at.p->offset_of(at.b)));
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const& in, Owner const& owner, decode_place const& at,
                  key_block_place const& block, copies const& memory) {
    if (owner.keys == rotary_keys::turned) return base::by_steps(to, own.q, in, at, block, memory, product_step{});
    auto const& keys = feature_rows<field::k>(in);
    index_t const width = at.p->width, whole = base::whole(*at.p), step = keys.steps().feature,
                  head = at.p->group(at.head, at.p->key_heads);
    T* const copy = memory.keys;
    turner const turns(owner.angles.keys(), owner.layout, width, memory.angles);
    for (index_t j = 0; j < block.n; ++j) {
      auto const* const from = keys.row(at.b, head, block.first + j);
      T* const row = copy + j * whole;
      for (index_t d = 0; d < width; ++d) row[d] = T(from[d * step]);
      std::fill(row + width, row + whole, T(0));
    }
    turns.template run<turn::forth>({copy, whole}, {copy, whole}, block.n, at.b, block.first);
    contract_features<T, Arch>(to, own.q, at.rows, whole, copy, whole, block.n, at.values);
  }
};

}  // namespace attune::exec_cpu
