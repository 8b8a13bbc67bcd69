// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   C[row][n] += sum_k A[row][k] . B[k][n]      C of fp32; A, B of pairs of bf16; tiles of at most 16 rows of 64 bytes
//
// The instructions of AMX for bf16 and nothing else: no other file names them. TDPBF16PS sums the lower and the upper
// products of up to 16 pairs, each from 0, adds the two sums, and adds that to C. Each step rounds to nearest. Numbers
// below 2^-126 count as 0 in inputs and sums, whatever rounding mode and flags the thread has set.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS and LDTILECFG; Linux,
// Documentation/arch/x86/xstate.rst: a process requests tiles before it uses them.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <attune/core/error.hpp>
#include <attune/exec/cpu/products/pairs.hpp>

/// Defined where this code is compiled for a processor with tiles of bf16, and for a system that lends them.
#if (defined(__AMX_BF16__) || defined(__AMXBF16__)) && defined(__AVX512BF16__) && defined(__AVX512BW__) && \
    defined(__linux__)
#define ATTUNE_HAS_AMX
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace attune::exec_cpu {

inline constexpr index_t tile_pairs = 16;  ///< pairs of a row of a tile, and rows of a tile

/// out[row][32] (+)= sum over pairs of a[row][pair] . b[pair][32] for n rows; rows of out are `out_step`, rows of a
/// `step` apart.
template <bool Onto>
void multiply_by_tiles(float* out, index_t out_step, number_pair const* a, index_t step, number_pair const* b,
                       index_t pairs, index_t n);

#ifdef ATTUNE_HAS_AMX

inline constexpr bool has_amx = true;

/// Requests tiles from the system, once for the process. The number of the error if it does not lend them, or 0.
inline int amx_refusal() {
  static int const refusal = [] {
    constexpr long ask = 0x1023, tiles = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, ask, tiles) == 0 ? 0 : errno;
  }();
  return refusal;
}
/// The same. Throws if the system does not lend them.
inline void enter_amx(char const* function) {
  if (int const refusal = amx_refusal())
    throw error(function, "the unit amx_tiles",
                std::string("a system that refuses AMX tiles (") + std::strerror(refusal) + ")",
                "Linux 5.16 or later on a processor with AMX; elsewhere use bf16_instructions or cpu<bfloat16>");
}

/// The shapes of the tiles. 0 and 1: sums of 32 columns; 2: A; 3, 4: B; 5 to 7: A and B of the last `rest` pairs.
inline void load_shapes(index_t rows, index_t rest) {
  struct alignas(64) {
    std::uint8_t palette = 1, start = 0, reserved[14]{};
    std::uint16_t bytes[16]{};  // of a row
    std::uint8_t rows[16]{};
  } s;
  for (int t = 0; t < (rest == 0 ? 5 : 8); ++t) {
    bool const last = t > 4, of_rows = t < 3 || t == 5;
    s.bytes[t] = std::uint16_t(t == 5 ? 4 * rest : 4 * tile_pairs);
    s.rows[t] = std::uint8_t(of_rows ? rows : last ? rest : tile_pairs);
  }
  asm volatile("" : : "r"(&s) : "memory");  // g++ 12 says that the instruction reads 8 bytes
  _tile_loadconfig(&s);
}

/// While it lives, this thread loads the shapes of whole tiles once: to load them takes as long as ten products. It
/// loads them before the first product. pairs: of a product whose last pairs fill no tile. Sessions may be nested.
class amx_session {
 public:
  explicit amx_session(index_t pairs) : rest_(pairs % tile_pairs), before_(current) { current = this; }
  ~amx_session() {
    current = before_;
    if (loaded_) leave();
  }
  amx_session(amx_session const&) = delete;
  amx_session& operator=(amx_session const&) = delete;

  /// Calls run() with tiles of these shapes.
  template <class Run>
  static void with_shapes(index_t rows, index_t rest, Run const& run) {
    if (current != nullptr && rows == tile_pairs && (rest == 0 || rest == current->rest_)) {
      if (!current->loaded_) current->load();
      return run();
    }
    load_shapes(rows, rest);
    run();
    leave();
  }

 private:
  void load() {
    load_shapes(tile_pairs, rest_);
    loaded_ = true;
  }
  /// Goes back to the shapes of the session around, if it has loaded any.
  static void leave() {
    if (current != nullptr && current->loaded_)
      current->load();
    else
      _tile_release();
  }
  inline static thread_local amx_session* current = nullptr;
  index_t rest_;
  bool loaded_ = false;
  amx_session* before_;
};

namespace detail {

/// out[row][n] (+)= the products of `chunks` times 16 pairs, then of the rest, for the rows of a tile. b: [pair][32].
template <bool Onto>
ATTUNE_NOINLINE void multiply_tile(float* out, index_t out_step, number_pair const* a, index_t step,
                                   number_pair const* b, index_t chunks, index_t rest) {
  constexpr index_t columns = 2 * tile_pairs, row = columns * 4;
  long const apart = long(step) * 4, out_apart = long(out_step) * 4;
  asm volatile("" : : : "memory");  // the intrinsics of g++ 12 do not say that they read and write memory
  if constexpr (Onto) {
    _tile_loadd(0, out, out_apart);
    _tile_loadd(1, out + tile_pairs, out_apart);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (; chunks > 0; --chunks, a += tile_pairs, b += tile_pairs * columns) {
    _tile_loadd(2, a, apart);
    _tile_loadd(3, b, row);
    _tile_loadd(4, b + tile_pairs, row);
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 4);
  }
  if (rest != 0) {
    _tile_loadd(5, a, apart);
    _tile_loadd(6, b, row);
    _tile_loadd(7, b + tile_pairs, row);
    _tile_dpbf16ps(0, 5, 6);
    _tile_dpbf16ps(1, 5, 7);
  }
  _tile_stored(0, out, out_apart);
  _tile_stored(1, out + tile_pairs, out_apart);
  asm volatile("" : : : "memory");
}

}  // namespace detail

template <bool Onto>
void multiply_by_tiles(float* out, index_t out_step, number_pair const* a, index_t step, number_pair const* b,
                       index_t pairs, index_t n) {
  index_t const whole = n / tile_pairs * tile_pairs, chunks = pairs / tile_pairs, rest = pairs % tile_pairs;
  auto const rows = [&](index_t j) {
    detail::multiply_tile<Onto>(out + j * out_step, out_step, a + j * step, step, b, chunks, rest);
  };
  if (whole > 0)
    amx_session::with_shapes(tile_pairs, rest, [&] {
      for (index_t j = 0; j < whole; j += tile_pairs) rows(j);
    });
  if (whole < n) amx_session::with_shapes(n - whole, rest, [&] { rows(whole); });
}

#else

inline constexpr bool has_amx = false;
inline int amx_refusal() { return 0; }
inline void enter_amx(char const*) {}
class amx_session;

#endif

}  // namespace attune::exec_cpu
