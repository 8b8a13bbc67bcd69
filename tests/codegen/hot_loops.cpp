// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The hot functions of the CPU executor, for check_hot_loops.py to read in the object code. Nothing here ever runs.
// HOT_LOOPS_PRODUCTS alone compiles the products, HOT_LOOPS_STREAMS those of decode(), HOT_LOOPS_POINTWISE the
// pointwise loops, HOT_LOOPS_PREFETCHES a call that asks for rows, HOT_LOOPS_TILES the products of AMX.
#ifdef HOT_LOOPS_POINTWISE
#include <attune/exec/cpu/gradients/masses.hpp>
#include <attune/exec/cpu/tile/masses.hpp>
#include <attune/operators/attention.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/normalizer/softmax.hpp>
#endif
#ifdef HOT_LOOPS_STREAMS
#include <attune/exec/cpu/decode/bf16_products.hpp>
#endif
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define HOT_LOOPS_OF_PAIRS
#endif
#if defined(HOT_LOOPS_PRODUCTS) && defined(HOT_LOOPS_OF_PAIRS)
#include <attune/exec/cpu/bf16/outer.hpp>
#endif
#ifdef HOT_LOOPS_TILES
#include <attune/exec/cpu/bf16/amx.hpp>
#endif
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/outer.hpp>
#include <attune/exec/cpu/products/prefetch.hpp>

namespace attune::exec_cpu {

using arch = xsimd::default_arch;

#ifdef HOT_LOOPS_PRODUCTS
/// A symbol that tells the shape of a tile: rows and batches.
template <class T, int Rows, int Vectors>
void tile_shape() {}
template void tile_shape<float, tiling<float, arch>::rows, tiling<float, arch>::vectors>();
template void tile_shape<double, tiling<double, arch>::rows, tiling<double, arch>::vectors>();

template void contract<float, arch>(float*, float const*, index_t, float const*, index_t, index_t, product_step const&);
template void contract<double, arch>(double*, double const*, index_t, double const*, index_t, index_t,
                                     product_step const&);
template void accumulate<float, arch>(float*, float const*, index_t, float const*, index_t, index_t,
                                      product_step const&);
template void accumulate<double, arch>(double*, double const*, index_t, double const*, index_t, index_t,
                                       product_step const&);
template void outer<float, arch>(float*, index_t, float const*, float const*, index_t, index_t, index_t, bool);
template void outer<double, arch>(double*, index_t, double const*, double const*, index_t, index_t, index_t, bool);
#ifdef HOT_LOOPS_OF_PAIRS
using pairs = pair_multiplier<bf16_instructions>::unit_step;
template void contract<float, arch>(float*, number_pair const*, index_t, number_pair const*, index_t, index_t,
                                    pairs const&);
template void accumulate<float, arch>(float*, number_pair const*, index_t, number_pair const*, index_t, index_t,
                                      pairs const&);
template void outer_of_pairs<bf16_instructions, arch>(float*, index_t, number_pair const*, number_pair const*, index_t,
                                                      index_t, index_t, bool);
#endif
#endif

#ifdef HOT_LOOPS_STREAMS
template void contract_features<float, arch>(float*, float const*, index_t, index_t, float const*, index_t, index_t,
                                             prefetch_range const&, product_step const&);
template void contract_features<double, arch>(double*, double const*, index_t, index_t, double const*, index_t, index_t,
                                              prefetch_range const&, product_step const&);
template void contract_features<float, arch>(float*, float const*, index_t, index_t, bfloat16 const*, index_t, index_t,
                                             prefetch_range const&, product_step const&);
template void accumulate_features<float, arch>(float*, index_t, index_t, float const*, float const*, index_t, index_t,
                                               prefetch_range const&);
template void accumulate_features<double, arch>(double*, index_t, index_t, double const*, double const*, index_t,
                                                index_t, prefetch_range const&);
#ifdef __AVX512BF16__
template void detail::contract_rows_of_pairs<arch, decode_tiling<float, arch>::rows>(float*, float const*, index_t,
                                                                                     bfloat16 const*, index_t, index_t,
                                                                                     prefetch_range const&);
template void bf16_products::accumulate<float, arch>(float*, index_t, index_t, float const*, bfloat16 const*, index_t,
                                                     index_t, prefetch_range const&);
#endif
#endif

#ifdef HOT_LOOPS_TILES
template void multiply_by_tiles<false>(float*, index_t, number_pair const*, index_t, number_pair const*, index_t,
                                       index_t);
template void multiply_by_tiles<true>(float*, index_t, number_pair const*, index_t, number_pair const*, index_t,
                                      index_t);
#endif

#ifdef HOT_LOOPS_PREFETCHES
void prefetch(tensor<float const> const& x, index_t first, index_t last) { prefetch_rows(x, 0, 0, first, last); }
#endif

#ifdef HOT_LOOPS_POINTWISE
using softmax = decltype(attention(kernel::dot_product{}, normalizer::softmax{}));
using bits = std::uint64_t const*;

template void logits<false>(tile_rows<float, arch, softmax> const&, float*, index_t, index_t, index_t, bits,
                            logit_extremes<float, arch>&);
template void logits<false>(tile_rows<double, arch, softmax> const&, double*, index_t, index_t, index_t, bits,
                            logit_extremes<double, arch>&);
// An explicit instantiation may name what is private.
template void mass_tile<float, arch, softmax>::masses<false>(float*, index_t, index_t, bits);
template void mass_tile<double, arch, softmax>::masses<false>(double*, index_t, index_t, bits);
template index_t mass_gradients<float, arch, softmax>::pull_pairs<false>(
    mass_gradients<float, arch, softmax>::pair_rows const&, int, index_t, index_t);
template index_t mass_gradients<double, arch, softmax>::pull_pairs<false>(
    mass_gradients<double, arch, softmax>::pair_rows const&, int, index_t, index_t);
#endif

}  // namespace attune::exec_cpu
