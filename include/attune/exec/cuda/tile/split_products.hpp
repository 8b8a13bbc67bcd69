// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The products of a tile of floats: each factor is a sum of two fp16 (exec/cuda/split.hpp), each product three of them.
// Tensor cores add towards zero, so a sum over many tiles would drift: the products of one tile are added to zeros, and
// then, in float, to the sum.
//
// Source: Ootomo, Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, arXiv:2203.03341.
#pragma once

#include <attune/exec/cuda/tile/products.hpp>
#include <attune/exec/cuda/tile/stage.hpp>

namespace attune::exec_cuda {

/// The factors of a lane's rows of queries, each in two: a number times both, in this order, overflows only if it must.
template <class A>
struct split_query_factors {
  A first[2], second[2];  ///< first: negative where the row has a number that is not finite
};

/// Blocks of scores as in `products`, one row of blocks for a warp.
template <class W, class C, class Memory>
struct split_products {
  static_assert(C::mi == 1);
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using U = of<std::uint32_t>;
  using shared = typename W::shared;
  using E = float16;
  using plain = products<W, E, C>;
  using staged = stage<W, C>;
  static constexpr int blocks = C::bn / 8, steps = C::width / 16, row = 2 * C::width;

  using query_factors = split_query_factors<A>;
  /// Of row r of the lane.
  ATTUNE_LANE static void set(query_factors& to, int r, int l, float factor) {
    float const size = ::fabsf(factor), first = size < 0x1p-63f ? 0x1p-63f : size < 1.f ? size : 1.f;
    W::at(to.first[r], l) = factor < 0.f ? -first : first;
    W::at(to.second[r], l) = size / first;
  }

  /// s = q k. q, k: where rows and keys are; from: their factors.
  template <bool Skips>
  ATTUNE_LANE static void scores(A (&s)[1][blocks][4], shared sm, int warp, int q, int k, query_factors const& of_rows,
                                 int of_keys, [[maybe_unused]] int wide) {
    U const from_q = plain::query_address(warp, q), from_k = plain::key_address(k);
    ATTUNE_UNROLL
    for (int a = 0; a < steps; ++a) {
      if constexpr (Skips)
        if (2 * a >= wide) break;
      U x[2][4];
      ATTUNE_UNROLL
      for (int part = 0; part < 2; ++part)
        W::ldmatrix4(x[part], sm, plain::moved(from_q, a, part * Memory::query_plane), false);
      ATTUNE_UNROLL
      for (int n = 0; n < blocks / 2; ++n) {
        U y[2][4];
        ATTUNE_UNROLL
        for (int part = 0; part < 2; ++part)
          W::ldmatrix4(y[part], sm, plain::moved(from_k, a, n * 16 * row + part * Memory::key_plane), false);
        ATTUNE_UNROLL
        for (int half = 0; half < 2; ++half) multiply(s[0][2 * n + half], x[0], x[1], y[0], y[1], 2 * half, a == 0);
      }
    }
    of<bool> odd =
        W::each_lane([&](int l) { return W::at(of_rows.first[0], l) < 0 || W::at(of_rows.first[1], l) < 0; });
    each_factor(sm, of_keys, [&](int block, int e, int l, float by) {
      float& x = W::at(s[0][block][e], l);
      x = x * ::fabsf(W::at(of_rows.first[e / 2], l)) * ::fabsf(by) * W::at(of_rows.second[e / 2], l);
      W::at(odd, l) = W::at(odd, l) || by < 0.f;
    });
    if (W::any(odd)) multiply_again(s[0], sm, warp, q, k, of_rows, of_keys);
  }

  /// o += w v. v: where values are; of_keys: their factors, times value_unit unless they are Plain.
  /// For a part of the features, v is where the first of them is, a multiple of 64.
  template <bool Plain = false, int Columns>
  ATTUNE_LANE static void add(A (&o)[1][Columns][4], A const (&w)[1][blocks][4], shared sm, int v, int of_keys) {
    constexpr float unit = Plain ? value_unit : 1.f;
    A x[blocks][4], top[2], up[2], back[2];
    each_row<W, 2>([&](int r, int l) { W::at(top[r], l) = 0x1p-98f; });
    each_factor(sm, of_keys, [&](int block, int e, int l, float by) {
      float const y = W::at(w[0][block][e], l) * (::fabsf(by) * unit);
      W::at(x[block][e], l) = y;
      W::at(top[e / 2], l) = ::fmaxf(W::at(top[e / 2], l), ::fabsf(y));
    });
    plain::template raise_rows<2>(top, up, back, 14);  // a factor of 2^14 is in the factors of values too
    U first[blocks / 2][4], second[blocks / 2][4];
    ATTUNE_UNROLL
    for (int n = 0; n < blocks; ++n) {
      ATTUNE_UNROLL
      for (int r = 0; r < 2; ++r) {
        A low = times(x[n][2 * r], up[r]), high = times(x[n][2 * r + 1], up[r]), low_head, high_head;
        U& to = first[n / 2][2 * (n % 2) + r];
        to = W::template pack<E>(low, high);
        W::template unpack<E>(to, low_head, high_head);
        W::for_lanes([&](int l) {
          W::at(low, l) -= W::at(low_head, l);
          W::at(high, l) -= W::at(high_head, l);
        });
        second[n / 2][2 * (n % 2) + r] = W::template pack<E>(low, high);
      }
    }
    U const from = plain::rows_address(0, v);
    ATTUNE_UNROLL
    for (int d = 0; d < Columns / 2; ++d) {
      A fresh[2][4];
      ATTUNE_UNROLL
      for (int n = 0; n < blocks / 2; ++n) {
        U y[2][4];
        ATTUNE_UNROLL
        for (int part = 0; part < 2; ++part)
          W::ldmatrix4(y[part], sm, plain::moved(from, d, n * 16 * row + part * Memory::key_plane), true);
        ATTUNE_UNROLL
        for (int half = 0; half < 2; ++half) multiply(fresh[half], first[n], second[n], y[0], y[1], 2 * half, n == 0);
      }
      each_number<W, 1, 2>([&](int, int half, int e, int l) {
        float& to = W::at(o[0][2 * d + half][e], l);
        to = approximate::fma(W::at(fresh[half][e], l), W::at(back[e / 2], l), to);
      });
    }
  }

  /// The same for values that may not be finite, in float: adds the values of the keys that a row sees, and no others.
  /// A weight of 0 adds 0 even to an infinity. `seen` as in products::add_seen. Rare, so the loops are not unrolled.
  template <int Columns>
  ATTUNE_LANE static void add_seen(A (&o)[1][Columns][4], A const (&w)[1][blocks][4], U const (&seen)[2], shared sm,
                                   int v, int of_keys) {
    A weights[blocks][4], sums[Columns][4];  // copies are indexed: registers stay where they are
    U visible[2] = {seen[0], seen[1]};
    plain::copy(weights, w[0]);
    plain::copy(sums, o[0]);
    ATTUNE_ROLLED
    for (int key = 0; key < C::bn; ++key) {
      U const factor =
          W::read4(sm, W::each_lane([&](int) { return std::uint32_t(of_keys + 4 * int(split_operand::place(key))); }));
      int const own = 2 * (key / 8) + key % 2;
      of<int> const source = W::each_lane([&](int l) { return (l & ~3) + key % 8 / 2; });
      ATTUNE_ROLLED
      for (int r = 0; r < 2; ++r) {
        A const weight = W::shfl(weights[own / 2][2 * r + own % 2], source);
        U const bits = W::shfl(visible[r], source);
        ATTUNE_ROLLED
        for (int d = 0; d < Columns; ++d) {
          A value[2], rest[2];
          U const at = W::each_lane([&](int l) { return swizzled<C::width>(key, d) + std::uint32_t(v + 4 * (l & 3)); });
          W::template unpack<E>(W::read4(sm, at), value[0], value[1]);
          W::template unpack<E>(W::read4(sm, W::each_lane([&](int l) { return W::at(at, l) + Memory::key_plane; })),
                                rest[0], rest[1]);
          W::for_lanes([&](int l) {
            if ((W::at(bits, l) >> own & 1u) == 0 || W::at(weight, l) == 0.f) return;
            float const size = ::fabsf(number(W::at(factor, l)));
            ATTUNE_UNROLL
            for (int e = 0; e < 2; ++e)
              W::at(sums[d][2 * r + e], l) += W::at(weight, l) * ((W::at(value[e], l) + W::at(rest[e], l)) * size);
          });
        }
      }
    }
    plain::copy(o[0], sums);
  }

  /// Whether a value of the tile is not finite. All warps of the block agree.
  ATTUNE_LANE static bool any_infinite(shared sm, int of_keys) {
    of<bool> found = W::each_lane([](int) { return false; });
    ATTUNE_UNROLL
    for (int n = 0; n < blocks / 2; ++n) {
      U factor[4];
      read_factors(factor, sm, of_keys, n);
      ATTUNE_UNROLL
      for (int k = 0; k < 4; ++k)
        W::for_lanes([&](int l) { W::at(found, l) = W::at(found, l) || number(W::at(factor[k], l)) < 0.f; });
    }
    return W::any(found);
  }
  /// o += w v for the values that are not finite and that a row sees: read from the copy in global memory, where `from`
  /// is the tile's first row. `seen` as in products::add_seen. Rare, so the loops are not unrolled.
  ATTUNE_LANE static void add_infinite(A (&o)[1][C::width / 8][4], A const (&w)[1][blocks][4], U const (&seen)[2],
                                       shared sm, int of_keys, operand const& rows, unsigned char const* from) {
    A weights[blocks][4], sums[C::width / 8][4];  // copies are indexed: registers stay where they are
    U visible[2] = {seen[0], seen[1]};
    plain::copy(weights, w[0]);
    plain::copy(sums, o[0]);
    ATTUNE_ROLLED
    for (int key = 0; key < C::bn; ++key) {
      U const factor =
          W::read4(sm, W::each_lane([&](int) { return std::uint32_t(of_keys + 4 * int(split_operand::place(key))); }));
      if (!W::any(W::each_lane([&](int l) { return number(W::at(factor, l)) < 0.f; }))) continue;
      int const own = 2 * (key / 8) + key % 2;
      of<int> const source = W::each_lane([&](int l) { return (l & ~3) + key % 8 / 2; });
      ATTUNE_ROLLED
      for (int r = 0; r < 2; ++r) {
        A const weight = W::shfl(weights[own / 2][2 * r + own % 2], source);
        U const bits = W::shfl(visible[r], source);
        ATTUNE_ROLLED
        for (int d = 0; d < C::width / 8 && d < rows.chunks; ++d)
          W::for_lanes([&](int l) {
            if ((W::at(bits, l) >> own & 1u) == 0) return;
            E const* const pair = reinterpret_cast<E const*>(from + key * rows.position + 16 * d + 4 * (l & 3));
            ATTUNE_UNROLL
            for (int e = 0; e < 2; ++e)
              if (!staged::template is_finite<E>(pair[e].bits))
                W::at(sums[d][2 * r + e], l) += W::at(weight, l) * float(pair[e]);
          });
      }
    }
    plain::copy(o[0], sums);
  }

 private:
  ATTUNE_LANE static float number(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
  ATTUNE_LANE static A times(A const& x, A const& y) {
    return W::each_lane([&](int l) { return W::at(x, l) * W::at(y, l); });
  }
  /// The factors of keys 16 n + 2 (l % 4), the next, and both 8 later.
  ATTUNE_LANE static void read_factors(U (&to)[4], shared sm, int at, int n) {
    W::read16(to, sm, W::each_lane([&](int l) { return std::uint32_t(at + 64 * n + 16 * (l & 3)); }));
  }
  /// visit(block, element of the block, lane, the factor of its key), for every score of a tile.
  template <class Visit>
  ATTUNE_LANE static void each_factor(shared sm, int of_keys, Visit const& visit) {
    ATTUNE_UNROLL
    for (int n = 0; n < blocks / 2; ++n) {
      U factor[4];
      read_factors(factor, sm, of_keys, n);
      each_number<W, 1, 2>(
          [&](int, int half, int e, int l) { visit(2 * n + half, e, l, number(W::at(factor[2 * half + e % 2], l))); });
    }
  }
  /// d += (a + b) (x + y), without b y: the small products first. First: d is 0 before.
  ATTUNE_LANE static void multiply(A (&d)[4], U const (&a)[4], U const (&b)[4], U const (&x)[4], U const (&y)[4],
                                   int at, bool first) {
    if (first)
      W::template mma_first<E>(d, b, x[at], x[at + 1]);
    else
      W::template mma<E>(d, b, x[at], x[at + 1]);
    W::template mma<E>(d, a, y[at], y[at + 1]);
    W::template mma<E>(d, a, x[at], x[at + 1]);
  }
  /// Scores of rows or keys with a number that is not finite, as IEEE arithmetic has them: infinite or NaN. Their
  /// factors do not matter. Numbers below 2^-39 of the largest of their row are 0 here, so infinities times them are
  /// NaN. Rare, so the loops are not unrolled.
  ATTUNE_LANE static void multiply_again(A (&s)[blocks][4], shared sm, int warp, int q, int k,
                                         query_factors const& of_rows, int of_keys) {
    A to[blocks][4], first[2] = {of_rows.first[0], of_rows.first[1]};
    plain::copy(to, s);
    ATTUNE_ROLLED
    for (int n = 0; n < 4 * blocks; ++n) {
      int const e = n % 4;
      of<int> const key = W::each_lane([&](int l) { return 8 * (n / 4) + 2 * (l & 3) + e % 2; });
      U const factor = W::read4(sm, W::each_lane([&](int l) {
                                  return std::uint32_t(of_keys + 4 * int(split_operand::place(W::at(key, l))));
                                }));
      of<bool> const odd =
          W::each_lane([&](int l) { return number(W::at(factor, l)) < 0.f || W::at(first[e / 2], l) < 0.f; });
      if (!W::any(odd)) continue;
      A sum = W::each_lane([](int) { return 0.f; });
      ATTUNE_ROLLED
      for (int d = 0; d < C::width; d += 2) {
        A x[2][2], y[2][2];  // part, feature
        ATTUNE_UNROLL
        for (int part = 0; part < 2; ++part) {
          W::template unpack<E>(W::read4(sm, W::each_lane([&](int l) {
                                           return swizzled<C::width>(16 * warp + l / 4 + 8 * (e / 2), d / 8) +
                                                  std::uint32_t(q + part * Memory::query_plane + 2 * (d % 8));
                                         })),
                                x[part][0], x[part][1]);
          W::template unpack<E>(W::read4(sm, W::each_lane([&](int l) {
                                           return swizzled<C::width>(W::at(key, l), d / 8) +
                                                  std::uint32_t(k + part * Memory::key_plane + 2 * (d % 8));
                                         })),
                                y[part][0], y[part][1]);
        }
        ATTUNE_UNROLL
        for (int f = 0; f < 2; ++f)
          W::for_lanes([&](int l) {
            W::at(sum, l) += (W::at(x[0][f], l) + W::at(x[1][f], l)) * (W::at(y[0][f], l) + W::at(y[1][f], l));
          });
      }
      W::for_lanes([&](int l) {
        if (W::at(odd, l)) W::at(to[n / 4][e], l) = W::at(sum, l);
      });
    }
    plain::copy(s, to);
  }
};

}  // namespace attune::exec_cuda
