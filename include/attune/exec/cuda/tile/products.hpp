// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The products of a tile on tensor cores (mma.sync), and the slow sum of values that may not be finite.
#pragma once

#include <attune/exec/cuda/tile/config.hpp>

namespace attune::exec_cuda {

/// Scores are 16 rows x 8 keys per block: lane l has rows l / 4 and l / 4 + 8 and keys 2 (l % 4) and the next.
template <class W, class E, class C>
struct products {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using U = of<std::uint32_t>;
  using shared = typename W::shared;
  static constexpr int blocks = C::bn / 8, steps = C::width / 16, row = 2 * C::width;

  ATTUNE_LANE static U query_address(int warp, int q) { return rows_address(warp * (16 * C::mi), q); }
  ATTUNE_LANE static U key_address(int k) {
    return W::each_lane(
        [&](int l) { return swizzled<C::width>((l & 7) + ((l >> 4) << 3), (l >> 3) & 1) + std::uint32_t(k); });
  }
  /// Where the lane reads 16 rows x 16 features, for the rows from `first` on.
  ATTUNE_LANE static U rows_address(int first, int at) {
    return W::each_lane([&](int l) { return swizzled<C::width>((l & 15) + first, l >> 4) + std::uint32_t(at); });
  }
  ATTUNE_LANE static U moved(U const& at, int step, int bytes) {
    return W::each_lane([&](int l) {
      return (W::at(at, l) ^ std::uint32_t(32 * (step & 3))) + std::uint32_t(128 * (step / 4) + bytes);
    });
  }
  /// s = q k. `held`: the fragments of q, if they are kept in registers. `wide`: features beyond are 0.
  template <bool Held, bool Skips, class Fragments>
  ATTUNE_LANE static void scores(A (&s)[C::mi][blocks][4], shared sm, int warp, int q, int k, Fragments const& held,
                                 [[maybe_unused]] int wide) {
    U const from_q = query_address(warp, q), from_k = key_address(k);
    ATTUNE_UNROLL
    for (int a = 0; a < steps; ++a) {
      if (Skips && a > 0 && 2 * a >= wide) continue;  // with a `break`, nvcc 13.0 keeps s in local memory
      U x[C::mi][4];
      ATTUNE_UNROLL
      for (int i = 0; i < C::mi; ++i) {
        if constexpr (Held) {
          ATTUNE_UNROLL
          for (int e = 0; e < 4; ++e) x[i][e] = held[a][e];
        } else {
          W::ldmatrix4(x[i], sm, moved(from_q, a, i * 16 * row), false);
        }
      }
      ATTUNE_UNROLL
      for (int n = 0; n < blocks / 2; ++n) {
        U y[4];
        W::ldmatrix4(y, sm, moved(from_k, a, n * 16 * row), false);
        ATTUNE_UNROLL
        for (int i = 0; i < C::mi; ++i) {
          if (a == 0) {
            W::template mma_first<E>(s[i][2 * n], x[i], y[0], y[1]);
            W::template mma_first<E>(s[i][2 * n + 1], x[i], y[2], y[3]);
          } else {
            W::template mma<E>(s[i][2 * n], x[i], y[0], y[1]);
            W::template mma<E>(s[i][2 * n + 1], x[i], y[2], y[3]);
          }
        }
      }
    }
  }
  /// o += w v, w rounded to E. For a part of the features, v is where the first of them is, a multiple of 64.
  template <int Columns>
  ATTUNE_LANE static void add(A (&o)[C::mi][Columns][4], A const (&w)[C::mi][blocks][4], shared sm, int v) {
    U const from = rows_address(0, v);
    ATTUNE_UNROLL
    for (int n = 0; n < blocks / 2; ++n) {
      U x[C::mi][4];
      ATTUNE_UNROLL
      for (int i = 0; i < C::mi; ++i) {
        x[i][0] = W::template pack<E>(w[i][2 * n][0], w[i][2 * n][1]);
        x[i][1] = W::template pack<E>(w[i][2 * n][2], w[i][2 * n][3]);
        x[i][2] = W::template pack<E>(w[i][2 * n + 1][0], w[i][2 * n + 1][1]);
        x[i][3] = W::template pack<E>(w[i][2 * n + 1][2], w[i][2 * n + 1][3]);
      }
      ATTUNE_UNROLL
      for (int d = 0; d < Columns / 2; ++d) {
        U y[4];
        W::ldmatrix4(y, sm, moved(from, d, n * 16 * row), true);
        ATTUNE_UNROLL
        for (int i = 0; i < C::mi; ++i) {
          W::template mma<E>(o[i][2 * d], x[i], y[0], y[1]);
          W::template mma<E>(o[i][2 * d + 1], x[i], y[2], y[3]);
        }
      }
    }
  }
  /// Powers of two for rows of fp16. up: brings the largest number of a row to [2^14, 2^15). back: 2^-spare / up.
  /// top: the largest number of a lane, at least 2^(spare - 112).
  template <int R>
  ATTUNE_LANE static void raise_rows(A (&top)[R], A (&up)[R], A (&back)[R], std::uint32_t spare) {
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      top[r] = over_four<W>(top[r], [](float a, float b) { return ::fmaxf(a, b); });
      W::for_lanes([&](int l) {
        float const largest = W::at(top[r], l);  // nvcc 13.0 fails to take the bits of a call
        std::uint32_t const exponent = __builtin_bit_cast(std::uint32_t, largest) & 0x7f800000u;
        W::at(up[r], l) = __builtin_bit_cast(float, (268u << 23) - exponent);
        W::at(back[r], l) = __builtin_bit_cast(float, exponent - ((14u + spare) << 23));
      });
    }
  }
  /// The same for weights of any size: the weights of a row are multiplied by a power of two, so that the largest is in
  /// [2^14, 2^15), and the sum by its inverse. For fp16, whose numbers end at 6e-8 and at 65504. Weights below 2^-38 of
  /// the largest of their row and tile vanish.
  template <int Columns>
  ATTUNE_LANE static void add_scaled(A (&o)[C::mi][Columns][4], A const (&w)[C::mi][blocks][4], shared sm, int v) {
    A top[2 * C::mi], up[2 * C::mi], back[2 * C::mi];
    each_row<W, 2 * C::mi>([&](int r, int l) { W::at(top[r], l) = 0x1p-112f; });
    each_number<W, C::mi, blocks>([&](int i, int n, int e, int l) {
      float& most = W::at(top[2 * i + e / 2], l);
      most = ::fmaxf(most, ::fabsf(W::at(w[i][n][e], l)));
    });
    raise_rows<2 * C::mi>(top, up, back, 0);
    U x[blocks / 2][C::mi][4];
    ATTUNE_UNROLL
    for (int n = 0; n < blocks; ++n) {
      ATTUNE_UNROLL
      for (int i = 0; i < C::mi; ++i) {
        ATTUNE_UNROLL
        for (int r = 0; r < 2; ++r) {
          A const& by = up[2 * i + r];
          auto const scaled = [&](int e) {
            return W::each_lane([&](int l) { return W::at(w[i][n][2 * r + e], l) * W::at(by, l); });
          };
          x[n / 2][i][2 * (n % 2) + r] = W::template pack<E>(scaled(0), scaled(1));
        }
      }
    }
    U const from = rows_address(0, v);
    ATTUNE_UNROLL
    for (int d = 0; d < Columns / 2; ++d) {
      A fresh[C::mi][2][4];
      ATTUNE_UNROLL
      for (int n = 0; n < blocks / 2; ++n) {
        U y[4];
        W::ldmatrix4(y, sm, moved(from, d, n * 16 * row), true);
        ATTUNE_UNROLL
        for (int i = 0; i < C::mi; ++i) {
          ATTUNE_UNROLL
          for (int half = 0; half < 2; ++half) {
            if (n == 0)
              W::template mma_first<E>(fresh[i][half], x[n][i], y[2 * half], y[2 * half + 1]);
            else
              W::template mma<E>(fresh[i][half], x[n][i], y[2 * half], y[2 * half + 1]);
          }
        }
      }
      each_number<W, C::mi, 2>([&](int i, int half, int e, int l) {
        float& to = W::at(o[i][2 * d + half][e], l);
        to = approximate::fma(W::at(fresh[i][half][e], l), W::at(back[2 * i + e / 2], l), to);
      });
    }
  }
  /// The same for gradients, which may have any size: in fp16 they are scaled.
  template <int Columns>
  ATTUNE_LANE static void add_any_size(A (&o)[C::mi][Columns][4], A const (&w)[C::mi][blocks][4], shared sm, int v) {
    if constexpr (std::is_same_v<E, float16>)
      add_scaled(o, w, sm, v);
    else
      add(o, w, sm, v);
  }
  /// The same for values that may not be finite: adds the values of the keys that a row sees, and no others.
  /// `seen`: of the lane's keys, bit 2 n + e of row r. Rare, so the loops are not unrolled: copies of w and o are
  /// indexed. ZeroWins: a weight of 0 adds 0 even to an infinity.
  template <bool ZeroWins = false, int Columns>
  ATTUNE_LANE static void add_seen(A (&o)[C::mi][Columns][4], A const (&w)[C::mi][blocks][4],
                                   of<std::uint32_t> const (&seen)[2 * C::mi], shared sm, int v) {
    A weights[C::mi][blocks][4], sums[C::mi][Columns][4];  // laid out as w and o: registers stay where they are
    of<std::uint32_t> visible[2 * C::mi];
    ATTUNE_UNROLL
    for (int r = 0; r < 2 * C::mi; ++r) visible[r] = seen[r];
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) copy(weights[i], w[i]), copy(sums[i], o[i]);
    ATTUNE_ROLLED
    for (int key = 0; key < C::bn; ++key) {
      int const own = 2 * (key / 8) + key % 2, lane = key % 8 / 2;
      ATTUNE_ROLLED
      for (int r = 0; r < 2 * C::mi; ++r) {
        of<int> const source = W::each_lane([&](int l) { return (l & ~3) + lane; });
        A const weight = W::shfl(weights[r / 2][own / 2][2 * (r % 2) + own % 2], source);
        of<std::uint32_t> const bits = W::shfl(visible[r], source);
        ATTUNE_ROLLED
        for (int d = 0; d < Columns; ++d) {
          U const pair = W::read4(
              sm, W::each_lane([&](int l) { return swizzled<C::width>(key, d) + std::uint32_t(v + 4 * (l & 3)); }));
          W::for_lanes([&](int l) {
            if ((W::at(bits, l) >> own & 1u) == 0) return;
            if (ZeroWins && W::at(weight, l) == 0.f) return;
            E low, high;
            low.bits = std::uint16_t(W::at(pair, l));
            high.bits = std::uint16_t(W::at(pair, l) >> 16);
            W::at(sums[r / 2][d][2 * (r % 2)], l) += W::at(weight, l) * float(low);
            W::at(sums[r / 2][d][2 * (r % 2) + 1], l) += W::at(weight, l) * float(high);
          });
        }
      }
    }
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) copy(o[i], sums[i]);
  }
  template <class To, class From>
  ATTUNE_LANE static void copy(To& to, From const& from) {
    ATTUNE_UNROLL
    for (int n = 0; n < int(sizeof(to) / sizeof(to[0])); ++n) {
      ATTUNE_UNROLL
      for (int e = 0; e < 4; ++e) to[n][e] = from[n][e];
    }
  }
};

}  // namespace attune::exec_cuda
