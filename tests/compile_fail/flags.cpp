// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune with flags and macros of the compiler.
#include <attune/attune.hpp>

// expect-error flag_fast_math: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffast-math

// expect-error flag_finite_math_only: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffinite-math-only

// expect-error flag_ofast: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -Ofast

// expect-error flag_no_exceptions: attune: reports wrong arguments by exceptions
// flags: -fno-exceptions

// expect-error flag_no_vectors: attune: the target has no vector instructions
// flags: -mno-sse2
// unless: xsimd/arch/xsimd_emulated.hpp

// expect-no-error old_names
// A program of version 0.1, without the messages about old names.
// flags: -DATTUNE_ALLOW_OLD_NAMES -Werror
#include <attune/analysis/selection.hpp>
#include <attune/analysis/vanishing.hpp>
#include <attune/attune.hpp>
#include <attune/cache/decode.hpp>
#include <attune/cache/eviction/geometric.hpp>
#include <attune/exec/cpu/float8_cache.hpp>
#include <attune/exec/pool_functions.hpp>
#include <attune/exec/thread_placement.hpp>
#include <attune/exec/thread_pool.hpp>
#include <attune/exec/threading.hpp>
#include <attune/sorted/hybrid.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/testing/error_bound.hpp>
#include <attune/testing/gradient_bound.hpp>
using operator_type = decltype(attune::attention(attune::kernel::dot_product{}));
attune::testing::bounded_number largest(operator_type const& of,
                                        attune::inputs<operator_type, attune::any_tensor> const& in,
                                        attune::cotangents<operator_type, attune::any_tensor> const& by) {
  attune::testing::gradient_bounds const bounds =
      attune::testing::gradient_error_bound(of, in, by, attune::certify::precision{});
  return bounds.of(attune::field::q).at(0);
}
void on_a_line(attune::sorted::arrays<float> const& in, attune::sorted::results<float> const& to,
               attune::cache::sorted<float> const& kv) {
  using namespace attune;
  sorted::forward(sorted::laplacian{0.5, sorted::visibility::causal}, in, to, sorted::workers{1});
  sorted::forward(sorted::hybrid{.tau = 0.5}, sorted::hybrid_arrays<float>{in.sort_q, in.sort_k, in.v},
                  sorted::hybrid_results<float>{to.out});
  cache::decode(cpu{}, kv, cache::queries<float>{.sort_q = in.sort_q}, cache::certified{1e-5},
                cache::decoded<float>{.out = to.out});
}
