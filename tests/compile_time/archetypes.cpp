// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The minimal policy of each role is accepted; each copy of it with one member broken is rejected.
#include <tuple>
#include <type_traits>
#include <vector>

#include <attune/operators/attention.hpp>
#include <attune/policies/mask/combine.hpp>

using namespace attune;

namespace {

template <policy_role R>
struct with_role {
  static constexpr auto role = R;
};
template <class Bound>
struct binds_to {
  template <class T>
  Bound bind(row<T> const&) const {
    return {};
  }
};

// ---- kernels -------------------------------------------------------------------------------------------------------
namespace kernels {

struct bound {
  double score(double, key<double> const&) const { return 0; }
};
struct position_bound {
  double score(key<double> const&) const { return 0; }
};
struct mute {};

template <class Bound, class C>
struct archetype : with_role<policy_role::kernel>, binds_to<Bound> {
  using contraction = C;
};
using minimal = archetype<bound, contraction::dot>;
static_assert(KernelPolicy<minimal>);
static_assert(KernelPolicy<archetype<position_bound, contraction::none>>);

static_assert(!KernelPolicy<archetype<mute, contraction::dot>>);
static_assert(!KernelPolicy<archetype<position_bound, contraction::dot>>);
static_assert(!KernelPolicy<archetype<bound, contraction::none>>);
static_assert(!KernelPolicy<archetype<bound, int>>);

struct no_role : binds_to<bound> {
  using contraction = contraction::dot;
};
struct other_role : with_role<policy_role::gate>, binds_to<bound> {
  using contraction = contraction::dot;
};
struct no_contraction : with_role<policy_role::kernel>, binds_to<bound> {};
struct no_bind : with_role<policy_role::kernel> {
  using contraction = contraction::dot;
};
struct owner : minimal {
  std::vector<double> memory;
  static constexpr auto parameters() { return std::tuple<>{}; }
};
struct unlisted : minimal {
  parameter scale;
};
struct listed_one : minimal {
  parameter scale;
  static constexpr auto parameters() { return std::array{listed("scale", &listed_one::scale)}; }
};
static_assert(!KernelPolicy<no_role> && !KernelPolicy<other_role> && !KernelPolicy<no_contraction> &&
              !KernelPolicy<no_bind>);
static_assert(!KernelPolicy<owner> && !KernelPolicy<unlisted> && KernelPolicy<listed_one>);

}  // namespace kernels

// ---- score maps ----------------------------------------------------------------------------------------------------
namespace score_maps {

struct bound {
  double map(double) const { return 0; }
};
struct minimal : with_role<policy_role::score_map>, binds_to<bound> {};
struct no_map : with_role<policy_role::score_map>, binds_to<kernels::mute> {};
struct other_role : with_role<policy_role::kernel>, binds_to<bound> {};
static_assert(ScoreMap<minimal> && !ScoreMap<no_map> && !ScoreMap<other_role>);

template <class K, class M>
concept Maps = requires(K k, M m) { k | m; };
static_assert(Maps<kernels::minimal, minimal> && !Maps<minimal, kernels::minimal> &&
              !Maps<kernels::minimal, other_role>);
// What has the role and lacks the rest is refused in words: compile_fail/compositions.cpp.

}  // namespace score_maps

// ---- length scales -------------------------------------------------------------------------------------------------
namespace length_scales {

struct bound {
  double scale(double) const { return 0; }
};
struct bound_constant : bound {
  double row_constant() const { return 0; }
};
template <class Bound, bool Declared>
struct archetype : with_role<policy_role::length_scale>, binds_to<Bound> {
  static constexpr length_scale_traits traits{.row_constant = Declared};
};
static_assert(LengthScalePolicy<archetype<bound, false>> && LengthScalePolicy<archetype<bound_constant, true>>);
static_assert(!LengthScalePolicy<archetype<bound, true>>);            // declared, but missing
static_assert(!LengthScalePolicy<archetype<bound_constant, false>>);  // present, but undeclared
static_assert(!LengthScalePolicy<archetype<kernels::mute, false>>);

struct no_traits : with_role<policy_role::length_scale>, binds_to<bound> {};
struct no_bind : with_role<policy_role::length_scale> {
  [[maybe_unused]] static constexpr length_scale_traits traits{};
};
static_assert(!LengthScalePolicy<no_traits> && !LengthScalePolicy<no_bind>);

}  // namespace length_scales

// ---- gates ---------------------------------------------------------------------------------------------------------
namespace gates {

struct bound {
  double gate(double, double) const { return 0; }
};
template <class Bound, class C>
struct archetype : with_role<policy_role::gate>, binds_to<Bound> {
  using contraction = C;
};
static_assert(GatePolicy<archetype<bound, contraction::gate_dot>>);
static_assert(!GatePolicy<archetype<kernels::mute, contraction::none>>);
static_assert(GatePolicy<gate::none>);
static_assert(!GatePolicy<archetype<kernels::mute, contraction::gate_dot>>);
static_assert(!GatePolicy<archetype<bound, double>>);

struct no_contraction : with_role<policy_role::gate>, binds_to<bound> {};
static_assert(!GatePolicy<no_contraction>);

}  // namespace gates

// ---- normalizers ---------------------------------------------------------------------------------------------------
namespace normalizers {

struct earns {
  double earned(double, double) const { return 0; }
};
struct with_ground : earns {
  double ground(double, double) const { return 0; }
};
struct with_constant : earns {
  double constant(double) const { return 0; }
};
template <class Bound>
struct and_lowest : Bound {
  double lowest_reference() const { return 0; }
};
struct wants_more : earns {
  double earned(double, double, double) const { return 0; }  // hides the right one
};
template <class Bound, normalizer_traits (*Traits)()>
struct archetype : with_role<policy_role::normalizer>, binds_to<Bound> {
  static constexpr normalizer_traits traits = Traits();
};
constexpr normalizer_traits plain() { return {}; }
constexpr normalizer_traits ground() { return {.ground_mass = true}; }
constexpr normalizer_traits constant() { return {.constant_mass = true}; }
constexpr normalizer_traits undivided() { return {.divided_by = divisor::one, .reference = mass_reference::none}; }
constexpr normalizer_traits undivided_ground() {
  return {.divided_by = divisor::one, .reference = mass_reference::none, .ground_mass = true};
}
template <class Bound, normalizer_traits (*Traits)()>
inline constexpr bool accepted = NormalizerPolicy<archetype<Bound, Traits>>;

static_assert(accepted<earns, plain> && accepted<earns, undivided>);
static_assert(accepted<and_lowest<with_ground>, ground> && accepted<and_lowest<with_constant>, constant>);
static_assert(accepted<with_ground, undivided_ground>);  // without a reference there is no lowest one

static_assert(!accepted<kernels::mute, plain> && !accepted<wants_more, plain>);
static_assert(!accepted<and_lowest<earns>, ground> && !accepted<and_lowest<earns>, constant>);  // declared, but missing
static_assert(!accepted<with_ground, plain> && !accepted<with_constant, plain>);  // present, but undeclared
static_assert(!accepted<and_lowest<with_ground>, plain> && !accepted<and_lowest<with_constant>, ground>);
static_assert(!accepted<with_ground, ground> && !accepted<with_constant, constant>);  // lowest_reference missing
static_assert(!accepted<and_lowest<earns>, plain>);                                   // lowest_reference superfluous
static_assert(!accepted<and_lowest<with_ground>, undivided_ground>);

struct no_traits : with_role<policy_role::normalizer>, binds_to<earns> {};
struct no_bind : with_role<policy_role::normalizer> {
  [[maybe_unused]] static constexpr normalizer_traits traits{};
};
struct no_role : binds_to<earns> {
  [[maybe_unused]] static constexpr normalizer_traits traits{};
};
static_assert(!NormalizerPolicy<no_traits> && !NormalizerPolicy<no_bind> && !NormalizerPolicy<no_role>);

}  // namespace normalizers

// ---- masks ---------------------------------------------------------------------------------------------------------
namespace masks {

struct offers_keys {
  key_interval keys(mask_row const&) const { return {}; }
};
struct offers_next {
  key_interval next(mask_row const&, index_t) const { return {}; }
};
struct offers_visible {
  bool visible(mask_row const&, index_t) const { return true; }
};
template <class Hook, mask_form Form>
struct archetype : with_role<policy_role::mask>, Hook {
  static constexpr auto form = Form;
};
template <class Hook, mask_form Form>
inline constexpr bool accepted = MaskPolicy<archetype<Hook, Form>>;
static_assert(accepted<offers_keys, mask_form::interval> && accepted<offers_next, mask_form::intervals> &&
              accepted<offers_visible, mask_form::predicate>);
static_assert(!accepted<offers_next, mask_form::interval> && !accepted<offers_visible, mask_form::interval>);
static_assert(!accepted<offers_keys, mask_form::intervals> && !accepted<offers_keys, mask_form::predicate>);

struct no_form : with_role<policy_role::mask>, offers_keys {};
struct no_role : offers_keys {
  [[maybe_unused]] static constexpr auto form = mask_form::interval;
};
struct owner : archetype<offers_keys, mask_form::interval> {
  std::vector<index_t> memory;
};
static_assert(!MaskPolicy<no_form> && !MaskPolicy<no_role> && !MaskPolicy<owner>);

template <class A, class B>
concept Intersect = requires(A a, B b) { a & b; };
static_assert(Intersect<archetype<offers_keys, mask_form::interval>, archetype<offers_next, mask_form::intervals>>);
static_assert(!Intersect<archetype<offers_keys, mask_form::interval>, no_form>);

}  // namespace masks

}  // namespace
