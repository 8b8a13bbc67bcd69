// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every shipped policy satisfies the concept of its role and no other, and is a trivially copyable value.
#include <type_traits>

#include <attune/attune.hpp>

using namespace attune;

namespace {

template <class P>
inline constexpr int roles = int(KernelPolicy<P>) + int(ScoreMap<P>) + int(LengthScalePolicy<P>) + int(GatePolicy<P>) +
                             int(NormalizerPolicy<P>) + int(MaskPolicy<P>);
template <class P>
inline constexpr bool value = std::is_trivially_copyable_v<P> && std::is_trivially_destructible_v<P>;

template <class... P>
inline constexpr bool kernels = ((KernelPolicy<P> && roles<P> == 1 && value<P>) && ...);
template <class... P>
inline constexpr bool length_scales = ((LengthScalePolicy<P> && roles<P> == 1 && value<P>) && ...);
template <class... P>
inline constexpr bool gates = ((GatePolicy<P> && roles<P> == 1 && value<P>) && ...);
template <class... P>
inline constexpr bool normalizers = ((NormalizerPolicy<P> && roles<P> == 1 && value<P>) && ...);
template <class... P>
inline constexpr bool masks = ((MaskPolicy<P> && roles<P> == 1 && value<P>) && ...);

using dot = kernel::dot_product;
using sum = decltype(dot{} + kernel::alibi{1});
using capped = decltype((dot{} + kernel::alibi{1}) | kernel::softcap{30});

static_assert(kernels<dot, kernel::given_scores, kernel::alibi, sum, capped>);
static_assert(ScoreMap<kernel::softcap> && roles<kernel::softcap> == 1 && value<kernel::softcap>);
static_assert(length_scales<length_scale::none, length_scale::margin, length_scale::ssmax, length_scale::log_n>);
static_assert(gates<gate::none, gate::softplus, gate::given_softplus>);
static_assert(normalizers<normalizer::softmax, normalizer::off_by_one, normalizer::valued_off_by_one, normalizer::sink,
                          normalizer::valued_sink, normalizer::grounded>);
static_assert(masks<mask::none, mask::causal, mask::causal_window, mask::window, mask::prefix, mask::sink_window,
                    mask::padding, mask::documents, mask::ragged<>, mask::block_sparse, mask::runtime>);

constexpr auto rule = [](mask_row const&, index_t j) { return j > 2; };
static_assert(masks<decltype(mask::predicate(rule)), decltype(mask::causal{} & mask::window{3}),
                    decltype(mask::causal{} | (mask::padding{} & mask::predicate(rule)))>);

// What is no policy at all.
static_assert(roles<int> == 0 && roles<parameter> == 0 && roles<key_interval> == 0);

// Traits: who has a ground, a constant mass, a value for it.
constexpr bool has(normalizer_traits t, bool ground_mass, bool constant_mass, bool ground_value) {
  return t.divided_by == divisor::sum && t.reference == mass_reference::running_maximum &&
         t.ground_mass == ground_mass && t.constant_mass == constant_mass && t.ground_value == ground_value;
}
static_assert(has(normalizer::softmax::traits, false, false, false));
static_assert(has(normalizer::off_by_one::traits, false, true, false));
static_assert(has(normalizer::valued_off_by_one::traits, false, true, true));
static_assert(has(normalizer::sink::traits, false, true, false));
static_assert(has(normalizer::valued_sink::traits, false, true, true));
static_assert(has(normalizer::grounded::traits, true, false, true));
static_assert(length_scale::margin::traits.row_constant && !length_scale::ssmax::traits.row_constant);

// Contractions, in the order of the kernels.
template <class K, class... C>
inline constexpr bool contracts = std::is_same_v<typename kernel::evaluation<K>::contractions, contraction::list<C...>>;
static_assert(contracts<dot, contraction::dot>);
static_assert(contracts<kernel::alibi>);
static_assert(contracts<capped, contraction::dot>);
static_assert(contracts<decltype(kernel::given_scores{} + dot{}), contraction::given_scores, contraction::dot>);
static_assert(contraction::list<contraction::dot, contraction::given_gates>::uses(field::k));
static_assert(contraction::list<contraction::dot, contraction::given_gates>::uses(field::gates));
static_assert(!contraction::list<contraction::dot, contraction::given_gates>::uses(field::gate_k));
static_assert(!contraction::list<>::uses(field::q) && !contraction::none::uses(field::q));
static_assert(!contraction::is_known<int>);

// Masks are computed at compile time.
static_assert(mask::count(mask::causal{} & mask::window{1}, {0, 0, 2, 4, 3, 5}) == 2);
static_assert(mask::next(mask::sink_window{1, 2}, {0, 0, 2, 4, 3, 5}, 1) == key_interval{3, 5});

}  // namespace
