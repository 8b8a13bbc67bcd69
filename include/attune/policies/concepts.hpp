// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   KernelPolicy  ScoreMap  LengthScalePolicy  GatePolicy  NormalizerPolicy  MaskPolicy
//
// A policy must offer a declared role, the traits of that role, `bind(row<T>)` for every scalar T, and the pointwise
// members of the object that `bind` returns. The traits declare each capability. A capability that is declared but
// missing is an error, and so is one that is present but undeclared. Each requirement has one atomic concept;
// attention() reports a failed one with a readable message.
#pragma once

#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <attune/core/row.hpp>
#include <attune/policies/contraction_concepts.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune {

/// The number that divides the masses of a row to give the weights.
enum class divisor {
  sum,    ///< z = sum of all masses: weights and ground weight sum to 1
  one,    ///< nothing: the mass is the weight (sigmoid attention)
  count,  ///< K, the number of visible keys
};

/// Whether masses are stored relative to e^m, where m is the largest logit so far.
enum class mass_reference {
  running_maximum,  ///< mass(a, m) is e^-m times the mass at logit a: nothing overflows
  none,             ///< m is always 0
};

/// The state that a row keeps while it streams the keys. It decides which hooks a normalizer offers.
enum class row_family {
  masses,          ///< O(1): the mass of a key depends on no other key
  range_weighted,  ///< O(1): softmax mass times the place of the logit between two ends, set by the row's extremes
  sparse_support,  ///< the logits above a threshold that only rises as keys are added: bounded by the support, not O(1)
};

/// Family sparse_support: how the threshold of a row is determined. The gradient follows from it.
enum class threshold_rule {
  undeclared,  ///< every other family
  sum,         ///< the weights sum to a constant at this level: it moves with every key that has weight
  /// The level only selects keys. The weights depend on the logits relative to `reference`, the highest logit, and are
  /// divided by their sum.
  selection,
};

/// The traits that a normalizer declares. The defaults are the traits of plain softmax.
struct normalizer_traits {
  row_family family = row_family::masses;                      ///< how a row is computed; decides which hooks it offers
  attune::divisor divided_by = divisor::sum;                   ///< the number that divides the masses
  mass_reference reference = mass_reference::running_maximum;  ///< the shift m of the masses
  bool ground_mass = false;    ///< offers ground(a, m): the mass that each key gives to the ground
  bool constant_mass = false;  ///< offers constant(m): one mass per row that belongs to no key (a sink)
  bool ground_value = false;   ///< the ground or constant mass weights the value v0 (an input); else it weights nothing
  /// Offers weight_factor() or weight_factor(earned, visible): multiplies the weight of every key of the row.
  bool weight_factor = false;
  bool uniform_share = false;  ///< offers uniform_share(earned, visible): added to the weight of every visible key
  bool detached_ends = false;  ///< family range_weighted: no gradient through the extreme logits
  threshold_rule threshold = threshold_rule::undeclared;  ///< family sparse_support: must be declared
};

/// Family range_weighted: w = (a - low) / (high - low) softmax(a). All weights are 0 where low = high.
template <class T>
struct adjustment {
  T low,     ///< the logit of weight 0
      high;  ///< the logit whose weight is its softmax weight
};

/// Family sparse_support: the result of the threshold search of a row. `reference` is the row's maximum; `level` is the
/// threshold relative to it, in units of the logits. `cut` and `last` select the keys to keep: those with a logit >
/// cut, and those with a logit = cut up to position `last`.
template <class T>
struct candidate_threshold {
  T reference,  ///< the largest logit of the row; 0 if there is none
      level,    ///< threshold minus reference
      cut,      ///< keys with a larger logit are kept; -inf: all
      last;     ///< of the keys with logit cut, the position of the last one that is kept
};

namespace detail {
/// A threshold that is lower by the rounding of the search. Parts of the keys keep what has weight at it: rounding in a
/// part must not drop a key that is barely in the support of the whole row.
template <class T>
ATTUNE_HD candidate_threshold<T> rounded_down(candidate_threshold<T> at) {
  at.level = at.level - T(16) * scalar<T>::epsilon() * (T(1) + math::abs(at.level));
  return at;
}
}  // namespace detail

/// The traits that a length scale declares.
struct length_scale_traits {
  bool row_constant =
      false;  ///< offers row_constant(): c of a = scale(s) + c, kept out of the logits so that a huge c costs no digits
};

// ---- atomic requirements -------------------------------------------------------------------------------------------

template <class P>
concept DeclaresRole = requires {
  { P::role } -> std::convertible_to<policy_role>;
};
template <class P, policy_role R>
concept HasRole = DeclaresRole<P> && (P::role == R);

template <class P>
concept TriviallyCopyable = std::is_trivially_copyable_v<P>;

template <class P>
concept ListsParameters = std::is_empty_v<P> || requires { P::parameters(); };

template <class P>
concept BindsARow = requires(P const& p, row<double> const& r) { p.bind(r); };

namespace kernel {
/// Kernels composed of kernels (kernel/compose.hpp). They have the contractions and the scores of their parts.
template <class K>
inline constexpr bool is_composite = false;
}  // namespace kernel

/// The bound kernel has score(x, y, ..., key), with one argument for each contraction that the kernel names.
template <class P>
concept Scores = detail::named_in_list<P>::score;

template <class P>
concept Maps = requires(bound_t<P> const& b, double s) {
  { b.map(s) } -> std::convertible_to<double>;
};

template <class P>
concept DeclaresLengthScaleTraits = requires {
  { P::traits } -> std::convertible_to<length_scale_traits>;
};
template <class P>
concept Scales = requires(bound_t<P> const& b, double s) {
  { b.scale(s) } -> std::convertible_to<double>;
};
template <class P>
concept OffersRowConstant = requires(bound_t<P> const& b) {
  { b.row_constant() } -> std::convertible_to<double>;
};

namespace gate {
struct none;
}

/// The bound gate has gate(s, x, y, ...), with one argument for each contraction that the gate names. gate::none alone
/// has no contraction: another gate without one would never be called.
template <class P>
concept Gates = (contraction::named_by<P>::size != 0 && detail::named_in_list<P>::gate) ||
                (contraction::named_by<P>::size == 0 && std::is_same_v<P, gate::none>);

template <class P>
concept DeclaresNormalizerTraits = requires {
  { P::traits } -> std::convertible_to<normalizer_traits>;
};
template <class P>
concept Earns = requires(bound_t<P> const& b, double a, double m) {
  { b.earned(a, m) } -> std::convertible_to<double>;
};
template <class P>
concept OffersGround = requires(bound_t<P> const& b, double a, double m) {
  { b.ground(a, m) } -> std::convertible_to<double>;
};
template <class P>
concept OffersConstant = requires(bound_t<P> const& b, double m) {
  { b.constant(m) } -> std::convertible_to<double>;
};
template <class P>
concept OffersLowestReference = requires(bound_t<P> const& b) {
  { b.lowest_reference() } -> std::convertible_to<double>;
};

template <class P>
concept OffersWeightFactor = requires(bound_t<P> const& b) {
  { b.weight_factor() } -> std::convertible_to<double>;
};
/// The factor depends on the sum of the earned masses and on K.
template <class P>
concept OffersWeightFactorOfSums = requires(bound_t<P> const& b, double earned, double visible) {
  { b.weight_factor(earned, visible) } -> std::convertible_to<double>;
};
template <class P>
concept OffersUniformShare = requires(bound_t<P> const& b, double earned, double visible) {
  { b.uniform_share(earned, visible) } -> std::convertible_to<double>;
};
template <class P>
concept Adjusts = requires(bound_t<P> const& b, double low, double high) {
  { b.ends(low, high) } -> std::convertible_to<adjustment<double>>;
};
/// The hooks of family sparse_support except solve(column), which needs a column: see policies/candidates.hpp.
template <class P>
concept WeighsCandidates = requires(bound_t<P> const& b, candidate_threshold<double> t, double a, key<double> k) {
  { b.weight(t, a, k) } -> std::convertible_to<double>;
  { b.reported(t) } -> std::convertible_to<double>;
};
template <class P>
concept MapsGate = requires(bound_t<P> const& b, double x) {
  { b.factor(x) } -> std::convertible_to<double>;
};

template <class P>
concept FactorsWithContraction = requires(bound_t<P> const& b, double u, key<double> k) {
  { b.factor(u, k) } -> std::convertible_to<double>;
};
template <class P>
concept FactorsByPosition = requires(bound_t<P> const& b, key<double> k) {
  { b.factor(k) } -> std::convertible_to<double>;
};
template <class P>
concept FactorsWeight =
    (std::is_same_v<typename P::contraction, contraction::none> ? FactorsByPosition<P> : FactorsWithContraction<P>);
/// contraction::uniform needs a seed from the policy that names it. True for every other contraction.
template <class P>
concept OffersSeed = !std::is_same_v<typename P::contraction, contraction::uniform> || requires(P const& p) {
  { p.seed } -> std::convertible_to<std::uint64_t>;
};

/// Whether the row needs a lowest reference, which the running maximum never goes below. True as soon as some mass does
/// not come from the logit of a key.
template <class P>
inline constexpr bool needs_lowest_reference =
    P::traits.reference == mass_reference::running_maximum && (P::traits.ground_mass || P::traits.constant_mass);

/// Bytes of a policy that hold no parameter and no table: views, enumerations. A policy with many declares them. So a
/// forgotten parameter still shows.
template <class P>
inline constexpr std::size_t constants_of = 0;
template <class P>
  requires requires { P::constants; }
inline constexpr std::size_t constants_of<P> = P::constants;

// ---- the policies --------------------------------------------------------------------------------------------------

/// Computes a score from the contractions that it names and from positions. Composite kernels (sums, caps) satisfy this
/// too.
template <class P>
concept KernelPolicy = HasRole<P, policy_role::kernel> && TriviallyCopyable<P> && ListsParameters<P> && BindsARow<P> &&
                       (kernel::is_composite<P> || (NamesContraction<P> && Scores<P>));

/// A pointwise map of the score, for example a cap.
template <class P>
concept ScoreMap =
    HasRole<P, policy_role::score_map> && TriviallyCopyable<P> && ListsParameters<P> && BindsARow<P> && Maps<P>;

/// Scales scores with the number of visible keys: an affine map of the scores, bound to the row.
template <class P>
concept LengthScalePolicy =
    HasRole<P, policy_role::length_scale> && TriviallyCopyable<P> && ListsParameters<P> && BindsARow<P> &&
    DeclaresLengthScaleTraits<P> && Scales<P> && (P::traits.row_constant == OffersRowConstant<P>);

/// Turns a scaled score into the logit, with the contractions that it names.
template <class P>
concept GatePolicy = HasRole<P, policy_role::gate> && TriviallyCopyable<P> && ListsParameters<P> && BindsARow<P> &&
                     NamesContraction<P> && Gates<P>;

/// Multiplies the values before the value sum, or the output after it: a pointwise map of an input.
template <class P>
concept FactorPolicy = (HasRole<P, policy_role::value_gate> || HasRole<P, policy_role::output_gate>) &&
                       TriviallyCopyable<P> && ListsParameters<P> && BindsARow<P> && MapsGate<P>;

/// Multiplies what a key adds to the value sum: after the masses were summed, by a contraction or a random number.
template <class P>
concept WeightGatePolicy = HasRole<P, policy_role::weight_gate> && TriviallyCopyable<P> && ListsParameters<P> &&
                           BindsARow<P> && NamesContraction<P> && FactorsWeight<P> && OffersSeed<P>;

/// Masses that are not divided by their sum must not be shifted, and there can be no constant mass with them.
template <class P>
inline constexpr bool consistent_masses =
    P::traits.divided_by == divisor::sum || (P::traits.reference == mass_reference::none && !P::traits.constant_mass);
/// weight_factor has one of its two forms, and only if it is declared. The sum of masses that are relative to a running
/// maximum says nothing: the form with arguments needs masses as they are.
template <class P>
inline constexpr bool consistent_weight_factor =
    int(P::traits.weight_factor) == int(OffersWeightFactor<P>) + int(OffersWeightFactorOfSums<P>) &&
    (!OffersWeightFactorOfSums<P> || P::traits.reference == mass_reference::none);
/// The other families declare no mass traits.
template <class P>
inline constexpr bool consistent_family =
    P::traits.family == row_family::masses ||
    (P::traits.divided_by == divisor::sum && P::traits.reference == mass_reference::running_maximum &&
     !P::traits.ground_mass && !P::traits.constant_mass && !P::traits.ground_value && !P::traits.weight_factor &&
     !P::traits.uniform_share);

/// The normalizer has exactly the hooks that its traits declare.
template <class P>
concept CompleteMasses =
    Earns<P> && consistent_masses<P> && (P::traits.ground_mass == OffersGround<P>) &&
    (P::traits.constant_mass == OffersConstant<P>) && consistent_weight_factor<P> &&
    (P::traits.uniform_share == OffersUniformShare<P>) && (needs_lowest_reference<P> == OffersLowestReference<P>);

/// Turns the logits of a row into weights.
template <class P>
concept NormalizerPolicy = HasRole<P, policy_role::normalizer> && TriviallyCopyable<P> && ListsParameters<P> &&
                           BindsARow<P> && DeclaresNormalizerTraits<P> &&
                           ((P::traits.family == row_family::masses && CompleteMasses<P>) ||
                            (P::traits.family == row_family::range_weighted && Adjusts<P>) ||
                            (P::traits.family == row_family::sparse_support &&
                             P::traits.threshold != threshold_rule::undeclared && WeighsCandidates<P>));

// ---- parameters of a policy ----------------------------------------------------------------------------------------

/// The list of a policy's parameters; an empty policy has none.
template <class P>
constexpr auto parameters_of() {
  if constexpr (std::is_empty_v<P>)
    return std::tuple<>{};
  else
    return P::parameters();
}

/// The list of a policy's tables; most have none.
template <class P>
constexpr auto tables_of() {
  if constexpr (requires { P::tables(); })
    return P::tables();
  else
    return std::tuple<>{};
}

namespace detail {
constexpr bool same_text(char const* a, char const* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}
/// No entry of a list of parameters or tables has the name or the member of another one.
template <class List>
constexpr bool differ(List const& list) {
  if constexpr (requires { list[0].member; })
    for (std::size_t a = 0; a < list.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (list[a].member == list[b].member || same_text(list[a].name, list[b].name)) return false;
  return true;
}
}  // namespace detail

/// The policy reads a table in `bind`.
template <class P>
inline constexpr bool ReadsEntries =
    std::apply([](auto const&... x) { return (false || ... || (x.use == table_use::bind)); }, tables_of<P>());

}  // namespace attune
