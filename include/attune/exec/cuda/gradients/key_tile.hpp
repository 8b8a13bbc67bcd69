// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dv_j = sum_i w_ij do_i,   dk_j = sum_i dx_ij q_i,   S^T = K Q^T,   H^T = V dO^T
//
// The warps of a block own 16 MI keys each and stream the rows that see them: every query of every head that shares the
// keys. The products are transposed, so weights and gradients are where the next product reads them. Four products; no
// two blocks share a sum. One source for devices and for emulated warps.
#pragma once

#include <attune/exec/cuda/gradients/config.hpp>
#include <attune/exec/cuda/gradients/pair_rule.hpp>
#include <attune/exec/cuda/gradients/products.hpp>
#include <attune/exec/cuda/tile/tile_rows.hpp>

namespace attune::exec_cuda {

/// A warp's part of a tile of keys: gradients by the keys of every product and by values, in registers.
template <class W, class Op, class E, class C>
class key_gradient_tile {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using U = of<std::uint32_t>;
  using memory = key_tile_memory<Op, E, C>;
  using resident = stage<W, C>;
  using streamed = stage<W, streamed_config<C>>;
  using absorbed = absorbed_config<Op, C>;
  using engine = gradient_products<W, E, absorbed, typename memory::transposed>;
  using F = typename tile_format<E>::scalar;
  using facts = gradient_facts<Op, F>;
  static constexpr bool interval = Op::mask_policy::form == mask_form::interval;
  static constexpr int R = 2 * C::mi, blocks = absorbed::bn / 8, columns = C::width / 8 / C::parts,
                       count = gradient_call<Op, E>::products;
  static_assert(C::bn * (C::width / 8) % C::threads == 0);

  gradient_call<Op, E> const& call_;
  typename W::shared shared_;
  int warp_;
  block_place block_;
  int first_;  ///< the number of the group's first tile of rows
  static constexpr int numbers = gradient_call<Op, E>::key_numbers;
  typename engine::factors of_key_[count], of_value_;
  A dk_[count][C::mi][columns][4], dv_[C::mi][columns][4], dx_[numbers == 0 ? 1 : numbers][R];

 public:
  static constexpr int shared_bytes = memory::bytes;

  ATTUNE_LANE key_gradient_tile(gradient_call<Op, E> const& c, typename W::shared sm, int warp, block_place at)
      : call_(c), shared_(sm), warp_(warp), block_(at), first_((at.batch * c.forward.groups + at.group) * c.row_tiles) {
  }

  ATTUNE_LANE void run() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k) fetch_keys(memory::key(k), call_.forward.key[k]);
    fetch_keys(memory::value, call_.forward.value);
    row_range const range =
        call_.ranges[(index_t(block_.batch) * call_.forward.groups + block_.group) * call_.key_tiles + block_.tile];
    if (range.from < range.until) fetch(range.from, 0);
    W::commit();
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k) read_factors(of_key_[k], call_.forward.key[k]);
    read_factors(of_value_, call_.forward.value);
    ATTUNE_UNROLL
    for (int k = 0; k < count; ++k)
      each_number<W, C::mi, columns>([&](int i, int d, int e, int l) { W::at(dk_[k][i][d][e], l) = 0.f; });
    each_number<W, C::mi, columns>([&](int i, int d, int e, int l) { W::at(dv_[i][d][e], l) = 0.f; });
    ATTUNE_UNROLL
    for (int k = 0; k < numbers; ++k) each_row<W, R>([&](int r, int l) { W::at(dx_[k][r], l) = 0.f; });
    int slot = 0;
    ATTUNE_ROLLED
    for (int t = range.from; t < range.until; slot ^= 1) {
      int next = t + 1;
      ATTUNE_ROLLED
      while (next < range.until && call_.class_of(first_ + next, next, block_.tile) == 0) ++next;
      bool const partial = call_.class_of(first_ + t, t, block_.tile) == 1 || call_.has_infinite_row(block_.batch, t);
      W::template wait<0>();
      bool infinite = false;
      if (partial && !engine::split)
        infinite = W::sync_or(any_infinite(slot));
      else
        W::sync();  // this tile is there, and no warp reads the other slot any more
      if (next < range.until) fetch(next, slot ^ 1);
      W::commit();
      ATTUNE_ROLLED
      for (int from = 0; from < C::bn; from += absorbed::bn)
        if (partial)
          absorb<true>(t, slot, from, infinite);
        else
          absorb<false>(t, slot, from, false);
      t = next;
    }
    finish();
  }

 private:
  /// Which keys of the tile the warp has; C::parts warps have them together.
  ATTUNE_LANE int own() const { return warp_ / C::parts; }
  /// Of the part of the features that the warp has the sums of.
  ATTUNE_LANE int first_feature() const { return warp_ % C::parts * (8 * columns); }
  ATTUNE_LANE int head_of(operand const& x) const {
    return int(index_t(block_.group * call_.forward.pack) * x.heads / call_.forward.p.heads);
  }
  /// Copies the keys or values of this tile.
  ATTUNE_LANE void fetch_keys(int to, operand_of<E> rows) {
    rows.hop = rows.position * resident::each;
    auto const copy = [&](int at) {
      resident::template keys<C::rows, false>(shared_, at, warp_,
                                              resident::lane_of(rows.rows(block_.batch, head_of(rows)), rows.chunks),
                                              rows, block_.tile * C::rows, int(call_.forward.p.keys));
    };
    copy(to);
    if constexpr (engine::split) {
      rows.data += rows.plane;
      copy(to + memory::transposed::query_plane);
    }
  }
  /// The factors of the keys or values of this tile.
  ATTUNE_LANE void read_factors(typename engine::factors& to, operand_of<E> const& rows) const {
    if constexpr (engine::split)
      engine::set(to, [&](int r, int l) {
        int const j = key_of(r, l), last = int(call_.forward.p.keys) - 1;
        return rows.factors_of(block_.batch, head_of(rows))[split_operand::place(j < last ? j : last)];
      });
  }
  /// Copies tile t of rows.
  ATTUNE_LANE void fetch(int t, int slot) {
    int const again = W::once_more(warp_);
    auto const rows = [&](int to, operand_of<E> from) {
      streamed::queries(shared_, to, again, from, block_.batch, block_.group, call_.forward.pack, t * C::bn,
                        call_.forward.rows);
      if constexpr (engine::split) {
        from.data += from.plane;
        streamed::queries(shared_, to + memory::transposed::key_plane, again, from, block_.batch, block_.group,
                          call_.forward.pack, t * C::bn, call_.forward.rows);
      }
    };
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k) rows(memory::query(k, slot), call_.forward.query[k]);
    rows(memory::d_out(slot), call_.d_rows);
    index_t const number = index_t(first_ + t) * C::bn;
    if constexpr (engine::split)
      streamed::template factors<memory::factor_chunks>(shared_, memory::query_factors(0, slot), again, [&](int n) {
        return call_.row_factors + number * (facts::is::products + 1) + 4 * n;
      });
    pair_record<Op> const* const first = call_.pairs + number;
    W::all_warps(again, C::warps, [&](int w) {
      constexpr int pieces = C::bn * memory::chunks;
      ATTUNE_ROLLED
      for (int x = 32 * w; x < pieces; x += C::threads) {
        U at;
        of<unsigned char const*> from;
        of<bool> inside;
        W::for_lanes([&](int l) {  // the last copies may go past the pieces: record_bytes has room
          bool const in = x + l < pieces;
          int const n = in ? (x + l) % C::bn : 0, plane = in ? (x + l) / C::bn : 0;
          W::at(at, l) = std::uint32_t(memory::record(slot) + 16 * (x + l));
          W::at(inside, l) = in;
          W::at(from, l) = reinterpret_cast<unsigned char const*>(first + n) + 16 * plane;
        });
        W::copy16(shared_, at, from, inside);
      }
    });
  }
  ATTUNE_LANE of<bool> any_infinite(int slot) const {
    of<bool> found = streamed::template any_infinite<E, C::bn>(shared_, memory::d_out(slot), warp_);
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k) {
      of<bool> const more = streamed::template any_infinite<E, C::bn>(shared_, memory::query(k, slot), warp_);
      W::for_lanes([&](int l) { W::at(found, l) = W::at(found, l) || W::at(more, l); });
    }
    return found;
  }

  /// Piece `plane` of the record of column from + 8 n + 2 (l % 4) + e.
  ATTUNE_LANE void read(U (&to)[4], int slot, int from, int plane, int n, int e) const {
    W::read16(to, shared_, W::each_lane([&](int l) {
                return std::uint32_t(memory::record(slot) + plane * memory::record_plane +
                                     16 * (from + 8 * n + 2 * (l & 3) + e));
              }));
  }
  ATTUNE_LANE static float number(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
  /// The numbers that the pairs of a column read.
  ATTUNE_LANE of<pair_numbers<Op, F>> column(int slot, int from, int n, int e) const {
    of<pair_numbers<Op, F>> to;
    U x[4];
    read(x, slot, from, 0, n, e);
    W::for_lanes([&](int l) {
      pair_numbers<Op, F>& c = W::at(to, l);
      c.scale = number(W::at(x[0], l)), c.gap = number(W::at(x[1], l));
      c.factor = number(W::at(x[2], l)), c.by_earned = number(W::at(x[3], l));
    });
    if constexpr (!facts::affine || pair_record<Op>::needs_share) {
      U y[4], z[4];
      read(y, slot, from, 1, n, e);
      read(z, slot, from, 2, n, e);
      W::for_lanes([&](int l) {
        pair_numbers<Op, F>& c = W::at(to, l);
        c.reference = number(W::at(y[2], l)), c.unit = number(W::at(y[3], l));
        c.share = number(W::at(z[0], l)), c.by_ground = number(W::at(z[1], l));
      });
    }
    if constexpr (!facts::affine) {
      constexpr int pieces = pair_record<Op>::chunks - 3;
      U words[pieces][4];
      ATTUNE_UNROLL
      for (int k = 0; k < pieces; ++k) read(words[k], slot, from, 3 + k, n, e);
      W::for_lanes([&](int l) {
        std::uint32_t plain[4 * pieces];
        ATTUNE_UNROLL
        for (int k = 0; k < 4 * pieces; ++k) plain[k] = W::at(words[k / 4][k % 4], l);
        __builtin_memcpy(static_cast<void*>(&W::at(to, l).f), plain, sizeof(typename facts::bound));
      });
    }
    return to;
  }
  ATTUNE_LANE int key_of(int r, int l) const {
    return block_.tile * C::rows + own() * (16 * C::mi) + (r / 2) * 16 + (r % 2) * 8 + l / 4;
  }
  /// Whether the rows of a column see the keys of this lane: bit 2 n + e of key r.
  ATTUNE_LANE void see(U (&seen)[R], int t, int slot, int from, int n, int e) const {
    U x[4];
    read(x, slot, from, 1, n, e);
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        int const j = key_of(r, l);
        bool sees = j >= int(W::at(x[0], l)) && j < int(W::at(x[1], l));
        if constexpr (!interval) {
          group_row const at(t * C::bn + from + 8 * n + 2 * (l & 3) + e, block_.group, call_.forward.pack);
          if (sees) sees = mask::sees(call_.forward.op.mask, call_.forward.p.row(block_.batch, at.head, at.query), j);
        }
        W::at(seen[r], l) |= std::uint32_t(sees) << (2 * n + e);
      });
  }

  /// Absorbs the rows from `from` on, absorbed::bn of them, of tile t of rows.
  template <bool Partial>
  ATTUNE_LANE void absorb(int t, int slot, int from, bool infinite) {
    int const first = from * (2 * C::width);            // in bytes
    A s[count][C::mi][blocks][4], w[C::mi][blocks][4];  // w: <do, v>, then weights
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k)
      engine::template scores<(facts::is::products > 1)>(
          s[k], shared_, own(), memory::key(k), of_key_[k], memory::query(k, slot) + first,
          memory::query_factors(k, slot) + 4 * from, call_.forward.key[k].chunks);
    engine::template scores<false>(w, shared_, own(), memory::value, of_value_, memory::d_out(slot) + first,
                                   memory::d_out_factors(slot) + 4 * from, call_.forward.value.chunks);
    U seen[R];
    if constexpr (Partial) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) seen[r] = W::each_lane([](int) { return std::uint32_t(0); });
    }
    ATTUNE_UNROLL
    for (int n = 0; n < blocks; ++n) {
      ATTUNE_UNROLL
      for (int e = 0; e < 2; ++e) {
        if constexpr (Partial) see(seen, t, slot, from, n, e);
        auto const of_column = column(slot, from, n, e);
        each_row<W, R>([&](int r, int l) {
          int const i = r / 2, at = 2 * (r % 2) + e, j = key_of(r, l);
          bool const visible = !Partial || (W::at(seen[r], l) >> (2 * n + e) & 1u) != 0;
          group_row const here = row_of(t * C::bn + from + 8 * n + 2 * (l & 3) + e);
          F x[facts::contractions + 1], u = 0;
          tile_rows<W, Op, E, C>::contract(
              call_.forward, block_.batch, x, [&](int k) { return W::at(s[k][i][n][at], l); }, here, j);
          if constexpr (attune::detail::draws_numbers<Op>)
            u = attune::detail::drawn_number(call_.forward.op, call_.forward.p, block_.batch, here.head, here.query, j);
          pair_numbers<Op, F> const& row = W::at(of_column, l);
          auto const pulled = pull_pair<Op>(row, x, j, W::at(w[i][n][at], l), u);
          W::at(w[i][n][at], l) = visible ? pulled.weight : 0.f;
          for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto index, auto place) {
            constexpr int c = decltype(index)::value, k = decltype(place)::value;
            float by = pulled.by[c];
            if constexpr (facts::affine) by *= row.scale;
            if (!visible) by = 0.f;
            if constexpr (k >= 0) W::at(s[k][i][n][at], l) = by;
            using chosen = decltype(contraction);
            if constexpr (is_number_of<operand_side::key, chosen>)
              W::at(dx_[numbers_before<operand_side::key, c>(typename Op::contractions{})][r], l) +=
                  by * number_slope<operand_side::key, chosen>;
          });
        });
      }
    }
    int const at = first + 2 * first_feature(), factors = 4 * from;
    engine::template add<Partial>(dv_, w, seen, shared_, memory::d_out(slot) + at,
                                  memory::d_out_factors(slot) + factors, infinite);
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k)
      engine::template add<Partial>(dk_[k], s[k], seen, shared_, memory::query(k, slot) + at,
                                    memory::query_factors(k, slot) + factors, infinite);
  }
  ATTUNE_LANE group_row row_of(int n) const {
    int const rows = call_.forward.rows;
    return {n < rows ? n : rows - 1, block_.group, call_.forward.pack};
  }

  ATTUNE_LANE void finish() {
    ATTUNE_UNROLL
    for (int k = 0; k < numbers; ++k) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) dx_[k][r] = over_four<W>(dx_[k][r], [](float a, float b) { return a + b; });
    }
    // The slope of an affine operator is in dx as scale = slope log2 e.
    constexpr float by = facts::affine ? approximate::ln2 : 1.f;
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        int const j = key_of(r, l);
        if (j >= call_.forward.p.keys) return;
        auto const put = [&](row_target<E> const& to, A const(&sum)[C::mi][columns][4], float factor) {
          if (!to.wanted()) return;
          to.template put_pairs<columns>(
              block_.batch, block_.group, j, first_feature() + 2 * (l & 3),
              [&](int d, int e) { return W::at(sum[r / 2][d][2 * (r % 2) + e], l) * factor; });
        };
        put(call_.by_value, dv_, 1.f);
        if ((l & 3) == 0 && first_feature() == 0) {
          ATTUNE_UNROLL
          for (int k = 0; k < numbers; ++k)
            if (call_.by_key_number[k].wanted())
              call_.by_key_number[k].put(block_.batch, block_.group, j, 0, W::at(dx_[k][r], l), 0.f);
        }
        ATTUNE_UNROLL
        for (int k = 0; k < facts::is::products; ++k) put(call_.by_key[k], dk_[k], by);
      });
  }
};

}  // namespace attune::exec_cuda
