// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The recurrence of operators/row_state.hpp on tiles: the warps of a block stream the keys of 16 MI rows each. One
// source for devices and for emulated warps.
#pragma once

#include <attune/exec/cuda/plan.hpp>
#include <attune/exec/cuda/tile/products.hpp>
#include <attune/exec/cuda/tile/stage.hpp>
#include <attune/exec/states.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cuda {

/// Which tile of rows a block computes.
struct block_place {
  int batch, group, tile;
};

template <class W, class Op, class E, class C>
class forward_tile {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using F = fast_float;
  using facts = tile_facts<Op>;
  using normalizer = typename Op::normalizer_policy;
  using memory = tile_memory<Op, C>;
  using staged = stage<W, C>;
  using engine = products<W, E, C>;
  using bound = bound_operator<Op, F>;
  using bound_exactly = bound_operator<Op, float>;
  static constexpr normalizer_traits is = facts::is;
  static constexpr int R = 2 * C::mi, blocks = C::bn / 8, columns = C::width / 8;
  static constexpr bool holds_queries = C::mi == 1 && C::width <= 128 && facts::products > 0;
  static constexpr bool interval = Op::mask_policy::form == mask_form::interval;

  forward_call<Op, E> const& c_;
  typename W::shared sm_;
  int warp_;
  block_place at_;
  A o_[C::mi][columns][4], second_[facts::second ? C::mi : 1][facts::second ? columns : 1][4];
  A reference_[R], earned_[R], ground_[R], lowest_[R], slope_[R], level_[R];
  of<bound> f_[R];
  of<std::uint32_t> held_[holds_queries ? C::width / 16 : 1][4];
  bool negative_ = false;
  unsigned char const *keys_[facts::products == 0 ? 1 : facts::products], *values_;

 public:
  static constexpr int shared_bytes = memory::bytes;

  ATTUNE_LANE forward_tile(forward_call<Op, E> const& c, typename W::shared sm, int warp, block_place at)
      : c_(c), sm_(sm), warp_(warp), at_(at) {}

  ATTUNE_LANE void run() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k)
      staged::queries(sm_, memory::query(k), warp_, c_.query[k], at_.batch, at_.group, c_.pack, at_.tile * C::rows, c_.rows);
    locate();
    tile_plan const plan = make_plan();
    int const total = plan.partial + plan.full;
    if (total > 0) fetch(key_tile(plan, 0), 0);
    W::commit();
    start();
    if constexpr (holds_queries) {
      W::template wait<0>();
      W::sync();
      auto const from = engine::query_address(warp_, memory::query(0));
      ATTUNE_UNROLL
      for (int a = 0; a < C::width / 16; ++a) W::ldmatrix4(held_[a], sm_, engine::moved(from, a, 0), false);
    }
    int n = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (; n < plan.partial; ++n) step<true>(plan, n, total);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (; n < total; ++n) step<false>(plan, n, total);
    finish();
  }

 private:
  ATTUNE_LANE index_t plan_number() const {
    return (index_t(at_.batch) * c_.groups + at_.group) * c_.row_tiles + at_.tile;
  }
  /// Tile number n of the keys that this tile of rows needs.
  ATTUNE_LANE int key_tile(tile_plan const& plan, int n) const {
    if constexpr (interval) {
      if (n >= plan.partial) return plan.until + n - plan.partial;
      int const before = plan.until - plan.from;
      return n < before ? plan.from + n : plan.after + n - before;
    } else {
      return c_.lists[plan_number() * c_.key_tiles + n];
    }
  }
  ATTUNE_LANE void locate() {
    int const head = at_.group * c_.pack;
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) keys_[k] = c_.key[k].rows(at_.batch, head_of(c_.key[k], head));
    values_ = c_.value.rows(at_.batch, head_of(c_.value, head));
  }
  ATTUNE_LANE void fetch(int t, int slot) {
    int const first = t * C::bn, keys = int(c_.p.keys);
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k)
      staged::template keys<C::bn>(sm_, memory::key(k, slot), warp_, keys_[k], c_.key[k].position, first, keys,
                                   c_.key[k].chunks);
    staged::template keys<C::bn>(sm_, memory::value(slot), warp_, values_, c_.value.position, first, keys, c_.value.chunks);
  }
  /// The tiles of keys of this tile of rows. Of an interval mask, every warp finds them for itself.
  ATTUNE_LANE tile_plan make_plan() const {
    if constexpr (interval) {
      of<int> from, to, full_from, full_to;
      W::for_lanes([&](int l) {
        W::at(from, l) = W::at(full_to, l) = int(c_.p.keys);
        W::at(to, l) = W::at(full_from, l) = 0;
      });
      ATTUNE_UNROLL
      for (int x = 0; x < C::rows; x += 32)
        W::for_lanes([&](int l) {
          int const n = at_.tile * C::rows + x + l;
          if (n >= c_.rows) return;
          group_row const at(n, at_.group, c_.pack);
          row_record<Op> const& row = c_.records[c_.row_number(at_.batch, at.head, at.query)];
          bool const some = row.first < row.last;
          W::at(from, l) = some ? smallest(W::at(from, l), row.first) : W::at(from, l);
          W::at(to, l) = some ? largest(W::at(to, l), row.last) : W::at(to, l);
          W::at(full_from, l) = largest(W::at(full_from, l), row.first);
          W::at(full_to, l) = some ? smallest(W::at(full_to, l), row.last) : 0;
        });
      return plan_of_interval(over_lanes(from, smallest), over_lanes(to, largest), over_lanes(full_from, largest),
                              over_lanes(full_to, smallest), C::bn);
    } else {
      return c_.plans[plan_number()];
    }
  }
  ATTUNE_LANE static int smallest(int a, int b) { return b < a ? b : a; }
  ATTUNE_LANE static int largest(int a, int b) { return a < b ? b : a; }
  ATTUNE_LANE static int over_lanes(of<int> x, int (*combine)(int, int)) {
    for (int mask = 16; mask > 0; mask /= 2) {
      of<int> const y = W::shfl_xor(x, mask);
      W::for_lanes([&](int l) { W::at(x, l) = combine(W::at(x, l), W::at(y, l)); });
    }
    int result = 0;
    W::for_lanes([&](int l) { result = W::at(x, l); });
    return result;
  }
  ATTUNE_LANE int head_of(operand const& x, int head) const { return int(index_t(head) * x.heads / c_.p.heads); }

  /// The number of row r of this lane in its group; may be past the last.
  ATTUNE_LANE int row_in_group(int r, int l) const {
    return at_.tile * C::rows + warp_ * (16 * C::mi) + (r / 2) * 16 + (r % 2) * 8 + l / 4;
  }
  ATTUNE_LANE group_row row_of(int r, int l) const {
    int const n = row_in_group(r, l);
    return {n < c_.rows ? n : c_.rows - 1, at_.group, c_.pack};
  }
  ATTUNE_LANE row_record<Op> const& record(int r, int l) const {
    group_row const at = row_of(r, l);
    return c_.records[c_.row_number(at_.batch, at.head, at.query)];
  }

  ATTUNE_LANE void start() {
    of<bool> negative;
    W::for_lanes([&](int l) { W::at(negative, l) = false; });
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        row_record<Op> const& x = record(r, l);
        __builtin_memcpy(&W::at(f_[r], l), &x.bound, sizeof(bound));
        W::at(reference_[r], l) = x.reference;
        W::at(slope_[r], l) = x.slope;
        W::at(level_[r], l) = x.level;
        W::at(earned_[r], l) = W::at(ground_[r], l) = 0.f;
        W::at(lowest_[r], l) = attune::detail::limits<float>::infinity;
        W::at(negative, l) = W::at(negative, l) || x.slope < 0;
      });
    if constexpr (facts::affine) negative_ = W::any(negative);
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int d = 0; d < columns; ++d) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e) {
          W::for_lanes([&](int l) { W::at(o_[i][d][e], l) = 0.f; });
          if constexpr (facts::second) W::for_lanes([&](int l) { W::at(second_[i][d][e], l) = 0.f; });
        }
      }
    }
  }

  template <bool Partial>
  ATTUNE_LANE void step(tile_plan const& plan, int n, int total) {
    int const slot = n & 1, t = key_tile(plan, n);
    W::template wait<0>();
    bool infinite = false;
    if constexpr (Partial)
      infinite = W::sync_or(staged::template any_infinite<E, C::bn>(sm_, memory::value(slot), warp_));
    else
      W::sync();  // this tile is there, and no warp reads the other slot any more
    if (n + 1 < total) fetch(key_tile(plan, n + 1), slot ^ 1);
    W::commit();
    absorb<Partial>(t, slot, infinite);
  }

  /// Which of the lane's keys of a tile row r sees: bit 2 n + e for key 8 n + 2 (l % 4) + e.
  ATTUNE_LANE std::uint32_t seen_keys(int t, int r, int l) const {
    row_record<Op> const& x = record(r, l);
    int const key0 = t * C::bn + 2 * (l & 3), first = x.first, last = x.last;
    std::uint32_t bits = 0;
    if constexpr (interval) {
      ATTUNE_UNROLL
      for (int n = 0; n < 2 * blocks; ++n) {
        int const j = key0 + 8 * (n / 2) + n % 2;
        bits |= std::uint32_t(j >= first && j < last) << n;
      }
    } else {
      group_row const at = row_of(r, l);
      mask_row const row = c_.p.row(at_.batch, at.head, at.query);
      key_interval k{0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
      for (int n = 0; n < 2 * blocks; ++n) {
        int const j = key0 + 8 * (n / 2) + n % 2;
        if (j < first || j >= last) continue;
        if constexpr (Op::mask_policy::form == mask_form::predicate) {
          bits |= std::uint32_t(mask::sees(c_.op.mask, row, j)) << n;
        } else {
          if (j >= k.last) {
            k = mask::next(c_.op.mask, row, j);
            if (k.empty()) break;
          }
          bits |= std::uint32_t(j >= k.first) << n;
        }
      }
    }
    return bits;
  }

  ATTUNE_LANE static A quad(A x, auto const& combine) {
    A y = W::shfl_xor(x, 1);
    W::for_lanes([&](int l) { W::at(x, l) = combine(W::at(x, l), W::at(y, l)); });
    y = W::shfl_xor(x, 2);
    W::for_lanes([&](int l) { W::at(x, l) = combine(W::at(x, l), W::at(y, l)); });
    return x;
  }
  ATTUNE_LANE static float larger(float a, float b) { return a < b ? b : a; }

  template <bool Partial>
  ATTUNE_LANE void absorb(int t, int slot, bool infinite) {
    constexpr int count = facts::products == 0 ? 1 : facts::products;
    A s[count][C::mi][blocks][4];
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) {
      if (holds_queries && k == 0)
        engine::template scores<holds_queries, false>(s[k], sm_, warp_, memory::query(k), memory::key(k, slot), held_,
                                                      c_.key[k].chunks);
      else
        engine::template scores<false, (facts::products > 1)>(s[k], sm_, warp_, memory::query(k), memory::key(k, slot),
                                                              held_, c_.key[k].chunks);
    }
    if constexpr (facts::affine)
      if (negative_) flip(s[0]);
    of<std::uint32_t> seen[R];
    if constexpr (Partial) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) seen[r] = W::each_lane([&](int l) { return seen_keys(t, r, l); });
    }
    auto const sees = [&](int r, int n, int e, int l) {
      return !Partial || (W::at(seen[r], l) >> (2 * n + e % 2) & 1u) != 0;
    };
    constexpr float none = -attune::detail::limits<float>::infinity;

    // Weight gates read their contraction before its place is needed.
    constexpr bool gated = Op::has_weight_gate;
    A gate[gated ? C::mi : 1][gated ? blocks : 1][4];
    A high[R];
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) W::for_lanes([&](int l) { W::at(high[r], l) = none; });
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int n = 0; n < blocks; ++n) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            bool const visible = sees(r, n, e, l);
            float& a = W::at(s[0][i][n][e], l);
            if constexpr (!facts::affine) {
              F x[Op::contractions::size + 1];
              int const j = t * C::bn + 8 * n + 2 * (l & 3) + e % 2;
              contract(x, [&](int k) { return W::at(s[k][i][n][e], l); }, r, j, l);
              a = W::at(f_[r], l).logit(x, key<F>{F(float(j))}).x;
              if constexpr (gated) {
                group_row const at = row_of(r, l);
                W::at(gate[i][n][e], l) =
                    attune::detail::factor_of_pair(c_.op, W::at(f_[r], l), x, c_.p, at_.batch, at.head, at.query, j).x;
              }
            }
            if (!visible) a = none;
            if constexpr (facts::online) W::at(high[r], l) = ::fmaxf(W::at(high[r], l), a);  // drops a NaN
            if constexpr (facts::range)
              if (a != none && a < W::at(lowest_[r], l)) W::at(lowest_[r], l) = a;
          });
      }
    }
    if constexpr (facts::online) raise(high);

    // masses
    A sum[R], below[R], slope2[R], level2[R];
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        W::at(sum[r], l) = W::at(below[r], l) = 0.f;
        float const m = W::at(reference_[r], l);
        if constexpr (facts::affine) {
          W::at(slope2[r], l) = ::fabsf(W::at(slope_[r], l)) * approximate::log2e;
          W::at(level2[r], l) = (W::at(level_[r], l) - m) * approximate::log2e;
        } else {
          W::at(slope2[r], l) = approximate::log2e;
          W::at(level2[r], l) = -m * approximate::log2e;
        }
      });
    A moment[facts::range ? C::mi : 1][facts::range ? blocks : 1][4];
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int n = 0; n < blocks; ++n) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            bool const visible = sees(r, n, e, l);
            float& a = W::at(s[0][i][n][e], l);
            float const m = W::at(reference_[r], l), raw = a;
            [[maybe_unused]] F logit = raw;
            if constexpr (facts::affine && (!facts::fused || is.ground_mass))
              logit = approximate::fma(::fabsf(W::at(slope_[r], l)), raw, W::at(level_[r], l));
            float w;
            if constexpr (facts::range)
              w = approximate::ex2((raw - m) * approximate::log2e);
            else if constexpr (facts::fused)
              w = approximate::ex2(approximate::fma(raw, W::at(slope2[r], l), W::at(level2[r], l)));
            else
              w = W::at(f_[r], l).normalizer.earned(logit, F(m)).x;
            if (!visible) w = 0.f;
            if constexpr (is.ground_mass) {
              float g = W::at(f_[r], l).normalizer.ground(logit, F(m)).x;
              if (!visible) g = 0.f;
              W::at(below[r], l) += g;
            }
            W::at(sum[r], l) += w;
            if constexpr (facts::range) W::at(moment[i][n][e], l) = raw == none ? 0.f : w * (raw - m);
            if constexpr (gated) {
              w *= visible ? W::at(gate[i][n][e], l) : 0.f;
              if constexpr (facts::range) W::at(moment[i][n][e], l) *= visible ? W::at(gate[i][n][e], l) : 0.f;
            }
            a = w;
          });
      }
    }
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        W::at(earned_[r], l) += W::at(sum[r], l);
        W::at(ground_[r], l) += W::at(below[r], l);
      });
    add<Partial>(o_, s[0], seen, slot, infinite);
    if constexpr (facts::range) {
      add<Partial>(second_, moment, seen, slot, infinite);
    } else if constexpr (facts::second) {  // the plain sum of visible values
      ATTUNE_UNROLL
      for (int i = 0; i < C::mi; ++i) {
        ATTUNE_UNROLL
        for (int n = 0; n < blocks; ++n) {
          ATTUNE_UNROLL
          for (int e = 0; e < 4; ++e)
            W::for_lanes([&](int l) {
              float x = sees(2 * i + e / 2, n, e, l) ? 1.f : 0.f;
              if constexpr (gated)
                if (x != 0.f) x = W::at(gate[i][n][e], l);
              W::at(s[0][i][n][e], l) = x;
            });
        }
      }
      add<Partial>(second_, s[0], seen, slot, infinite);
    }
  }
  template <bool Partial, class Sums, class Weights>
  ATTUNE_LANE void add(Sums& to, Weights const& w, of<std::uint32_t> const (&seen)[R], int slot, bool infinite) {
    if constexpr (Partial) {
      if (infinite) return engine::add_seen(to, w, seen, sm_, memory::value(slot));
    }
    engine::add(to, w, sm_, memory::value(slot));
  }

  /// The values of all contractions of a pair.
  template <class Product>
  ATTUNE_LANE void contract(F* x, Product const& product, int r, int j, int l) const {
    for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto number, auto place) {
      using chosen = decltype(contraction);
      constexpr int index = decltype(number)::value, k = decltype(place)::value;
      if constexpr (is_distance<chosen>) {
        group_row const at = row_of(r, l);
        index_t const keys = c_.p.keys, key = j < keys ? j : keys - 1;
        float const d = c_.query_norm[c_.row_number(at_.batch, at.head, at.query)] +
                        c_.key_norm[(at_.batch * c_.p.heads + at.head) * keys + key] - 2.f * product(k);
        x[index] = d < 0.f ? 0.f : d;
      } else if constexpr (k >= 0) {
        x[index] = product(k);
      } else {
        group_row const at = row_of(r, l);
        index_t const keys = c_.p.keys, key = j < keys ? j : keys - 1;
        x[index] = attune::detail::contracted<chosen, float>(c_.in, c_.p, c_.op.template owner<index>(),
                                                             {at_.batch, at.head, at.query, key});
      }
    });
  }
  /// Rows with a negative slope: their maximum is found on -s.
  ATTUNE_LANE void flip(A (&s)[C::mi][blocks][4]) const {
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int n = 0; n < blocks; ++n) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            if (W::at(slope_[2 * i + e / 2], l) < 0) W::at(s[i][n][e], l) = -W::at(s[i][n][e], l);
          });
      }
    }
  }
  /// Makes the masses relative to the new maxima.
  ATTUNE_LANE void raise(A (&high)[R]) {
    A factor[R], rise[R];
    of<bool> moved;
    W::for_lanes([&](int l) { W::at(moved, l) = false; });
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      A top = quad(high[r], [](float a, float b) { return ::fmaxf(a, b); });
      W::for_lanes([&](int l) {
        float x = W::at(top, l), &m = W::at(reference_[r], l);
        if constexpr (facts::affine) x = approximate::fma(::fabsf(W::at(slope_[r], l)), x, W::at(level_[r], l));
        float const higher = larger(m, x), by = approximate::ex2((m - higher) * approximate::log2e);
        bool const same = m == higher;  // also where both are infinite
        W::at(rise[r], l) = same ? 0.f : higher - m;
        W::at(factor[r], l) = same ? 1.f : by;
        m = higher;
        W::at(earned_[r], l) *= W::at(factor[r], l);
        W::at(ground_[r], l) *= W::at(factor[r], l);
        W::at(moved, l) = W::at(moved, l) || !same;
      });
    }
    if (!W::any(moved)) return;
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int d = 0; d < columns; ++d) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            float& x = W::at(o_[i][d][e], l);
            if constexpr (facts::range) {
              float& y = W::at(second_[i][d][e], l);
              if (W::at(rise[r], l) > 0) y = (x == 0.f && y == 0.f) ? 0.f : (y - W::at(rise[r], l) * x) * W::at(factor[r], l);
            }
            x *= W::at(factor[r], l);
          });
      }
    }
  }

  ATTUNE_LANE void finish() {
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      auto const plus = [](float a, float b) { return a + b; };
      A const earned = quad(earned_[r], plus), ground = quad(ground_[r], plus);
      A const lowest = quad(lowest_[r], [](float a, float b) { return b < a ? b : a; });
      W::for_lanes([&](int l) {
        if (row_in_group(r, l) >= c_.rows) return;
        group_row const at = row_of(r, l);
        row_record<Op> const& record = c_.records[c_.row_number(at_.batch, at.head, at.query)];
        bound_exactly const& f = record.bound;
        float factor, of_second = 0, above = 0, weight = 0, lse;
        if constexpr (facts::range) {
          float const m = W::at(reference_[r], l);
          auto const done = finish_adjusted(f.normalizer, m, W::at(earned, l), W::at(lowest, l), m);
          factor = done.value_factor;
          above = m - done.low;
          lse = done.lse;
        } else {
          auto const done = finish_masses<normalizer>(f.normalizer, W::at(reference_[r], l), W::at(earned, l),
                                                      W::at(ground, l), record.visible);
          factor = done.value_factor;
          of_second = done.share;
          weight = done.ground_weight;
          lse = done.lse;
        }
        ATTUNE_UNROLL
        for (int d = 0; d < columns; ++d) {
          int const column = 8 * d + 2 * (l & 3);
          if (column >= c_.p.value_width) break;
          float pair[2];
          ATTUNE_UNROLL
          for (int e = 0; e < 2; ++e) {
            float x = W::at(o_[r / 2][d][2 * (r % 2) + e], l);
            if constexpr (facts::range)
              x = (W::at(second_[r / 2][d][2 * (r % 2) + e], l) + above * x) * factor;
            else if constexpr (facts::second)
              x = x * factor + W::at(second_[r / 2][d][2 * (r % 2) + e], l) * of_second;
            else
              x = x * factor;
            pair[e] = x;
            if (Op::uses(field::v0) || Op::has_output_gate)
              if (column + e < c_.p.value_width)
                pair[e] = attune::detail::finished_element<float>(c_.in, c_.p, f, x, weight, at_.batch, at.head, at.query,
                                                                  column + e);
          }
          E* const to = c_.to.out.row(at_.batch, at.head, at.query) + column * c_.to.out.steps().feature;
          if (c_.stores_pairs) {
            E const both[2] = {E(pair[0]), E(pair[1])};
            std::uint32_t const bits = both[0].bits | std::uint32_t(both[1].bits) << 16;
#if defined(__CUDA_ARCH__)
            *reinterpret_cast<std::uint32_t*>(to) = bits;
#else
            std::memcpy(to, &bits, 4);
#endif
          } else {
            to[0] = E(pair[0]);
            if (column + 1 < c_.p.value_width) to[c_.to.out.steps().feature] = E(pair[1]);
          }
        }
        if ((l & 3) == 0) write_numbers(f, weight, lse, at);
      });
    }
  }
  ATTUNE_LANE void write_numbers(bound_exactly const& f, [[maybe_unused]] float weight, [[maybe_unused]] float lse,
                                 group_row const& at) const {
    if constexpr (Op::has_lse)
      if (!c_.to.lse.values.absent()) c_.to.lse.values(at_.batch, at.head, at.query, 0) = lse + f.logit_shift;
    if constexpr (Op::has_ground_weight)
      if (!c_.to.ground_weight.absent()) c_.to.ground_weight(at_.batch, at.head, at.query, 0) = weight;
  }
};

}  // namespace attune::exec_cuda
