// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   detail::complete<P>()    true, or a compile error that names the role and the expected signature
//
// The messages behind the concepts. A failed constraint alone gives no message on nvcc and a page of text elsewhere.
// Users read these texts, so all of them are in this file, basic ones first; the texts of a role with separate rules
// (role_rules) are in the header of the role. Nothing is instantiated after a failure.
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::detail {

/// Reports what the contractions of a kernel or a gate lack.
template <class P>
constexpr void require_contractions() {
  constexpr bool gate = P::role != policy_role::kernel, one = NamesOneContraction<P>,
                 several = NamesSeveralContractions<P>;
  static_assert(!(one && several),
                "attune: a policy names either contraction or contractions, not both: using contractions = "
                "attune::contraction::list<...>; alone. See docs/reference/policies.md#several-contractions");
  static_assert(several || gate || NamesContraction<P>,
                "attune: KernelPolicy: name what it needs: using contraction = attune::contraction::dot; (or none, "
                "given_scores). See docs/reference/policies.md#kernels");
  static_assert(several || !gate || NamesContraction<P>,
                "attune: GatePolicy: name what it needs: using contraction = attune::contraction::gate_dot; (or "
                "given_gates). See docs/reference/policies.md#gates");
  if constexpr (several && !one) {
    constexpr bool list = contraction::is_list<contraction::named_by<P>>;
    static_assert(list,
                  "attune: contractions of a policy is no list: using contractions = "
                  "attune::contraction::list<attune::contraction::dot, attune::contraction::scalar_difference>; See "
                  "docs/reference/policies.md#several-contractions");
    static_assert(!list || NamesContraction<P>,
                  "attune: the list of contractions of a policy has an entry that is no contraction: each is a struct "
                  "with operands and a term; contraction::none has no place in a list. See "
                  "docs/reference/policies.md#several-contractions");
  }
  if constexpr (NamesContraction<P>) {
    using named = named_in_list<P>;
    static_assert(named::offer_pairs,
                  "attune: contraction::elementwise<F>: write in F: template <class T> static T pair(T const& q, T "
                  "const& k), free of if and ?: on its arguments. See docs/reference/policies.md#kernels");
    static_assert(named::offer_terms,
                  "attune: the contraction of this policy has no term: template <class S> static S term(S const& x, S "
                  "const& y, S const& z, S const& distance). See docs/reference/policies.md#kernels");
    static_assert(named::find_tables || !named::find_rows || !named::find_pair_rows,
                  "attune: the contraction of this policy reads tables: give the policy attune::table members with the "
                  "names that docs/reference/policies.md#kernels lists");
    static_assert(named::find_rows,
                  "attune: contraction::gathered: the policy needs attune::table values; and attune::index_t "
                  "index(attune::index_t distance) const, the row of values for a key distance = i + offset - j "
                  "positions before the query. See docs/reference/policies.md#kernels");
    static_assert(named::find_pair_rows,
                  "attune: contraction::gathered_by_pair: the policy needs attune::table values; and attune::index_t "
                  "index(attune::index_t i, attune::index_t j) const, the row of values for a query at position i and "
                  "key j. See docs/reference/policies.md#kernels");
    static_assert(named::find_angles,
                  "attune: contraction::rotary_dot: the policy needs attune::rotary_rows angles; attune::rotary_layout "
                  "layout; and attune::rotary_keys keys; See docs/reference/policies.md#rotary-embeddings");
    static_assert(named::offer_maps,
                  "attune: contraction::later_sum<C, F>, earlier_sum<C, F>: write in F: template <class T> static T "
                  "map(T const& x), or template <class Bound, class T> static T map(Bound const& bound, T const& x). "
                  "See docs/reference/policies.md#ordered-sums");
    static_assert(P::role == policy_role::kernel || !named::any_ordered,
                  "attune: a gate: an ordered sum belongs to the kernel: add a kernel that scores it. See "
                  "docs/reference/policies.md#ordered-sums");
    if constexpr (one)
      static_assert(
          P::role == policy_role::weight_gate || !std::is_same_v<typename P::contraction, contraction::uniform>,
          "attune: contraction::uniform is for weight gates alone: a score has no random number. See "
          "docs/reference/policies.md#gates");
  }
}

/// Reports what a policy lacks with a readable message. True if the policy is complete. Basic messages come first.
template <class P>
constexpr bool complete() {
  static_assert(
      DeclaresRole<P>,
      "attune: a policy has no role. Write in it: static constexpr auto role = attune::policy_role::normalizer; (or "
      "kernel, gate, length_scale, mask). See docs/reference/policies.md");
  if constexpr (DeclaresRole<P>) {
    static_assert(TriviallyCopyable<P>,
                  "attune: a policy must be trivially copyable: hold numbers and pointers, not containers. See "
                  "docs/reference/policies.md");
    if constexpr (requires { role_rules<P::role>::template complete<P>(); }) {
      return role_rules<P::role>::template complete<P>();
    } else if constexpr (P::role == policy_role::mask) {
      static_assert(
          DeclaresMaskForm<P>,
          "attune: MaskPolicy: declare its form: static constexpr auto form = attune::mask_form::interval; (or "
          "intervals, predicate). See docs/reference/policies.md#masks");
      if constexpr (DeclaresMaskForm<P>) {
        static_assert(
            P::form != mask_form::interval || OffersKeys<P>,
            "attune: MaskPolicy of form interval: write key_interval keys(attune::mask_row const& row) const. See "
            "docs/reference/policies.md#masks");
        static_assert(P::form != mask_form::intervals || OffersNext<P>,
                      "attune: MaskPolicy of form intervals: write key_interval next(attune::mask_row const& row, "
                      "attune::index_t from) const. See docs/reference/policies.md#masks");
        static_assert(
            P::form != mask_form::predicate || OffersVisible<P>,
            "attune: MaskPolicy of form predicate: write bool visible(attune::mask_row const& row, attune::index_t "
            "key) const. See docs/reference/policies.md#masks");
        static_assert(
            !OffersCheck<P> || ChecksShape<P>,
            "attune: MaskPolicy: check() is there but not declared: static constexpr bool checks_shape = true; See "
            "docs/reference/policies.md#masks");
        static_assert(
            !ChecksShape<P> || OffersCheck<P>,
            "attune: MaskPolicy: checks_shape is declared but there is no void check(attune::mask_shape const& "
            "shape) const. See docs/reference/policies.md#masks");
        static_assert(
            !OffersMaySee<P> || BoundsKeys<P>,
            "attune: MaskPolicy: may_see() is there but not declared: static constexpr bool bounds_keys = true; See "
            "docs/reference/policies.md#masks");
        static_assert(!BoundsKeys<P> || OffersMaySee<P>,
                      "attune: MaskPolicy: bounds_keys is declared but there is no key_interval "
                      "may_see(attune::mask_row const& row, attune::index_t from) const. See "
                      "docs/reference/policies.md#masks");
        static_assert(!BoundsKeys<P> || P::form == mask_form::predicate,
                      "attune: MaskPolicy: bounds_keys is for masks of form predicate: the other forms give their "
                      "intervals already. See docs/reference/policies.md#masks");
        return MaskPolicy<P>;
      }
      return false;
    } else {
      static_assert(
          ListsParameters<P>,
          "attune: a policy with members must list its parameters: static constexpr auto parameters() { return "
          "std::array{attune::listed(\"alpha\", &my_policy::alpha)}; } (std::tuple<>{} if it has none). See "
          "docs/reference/policies.md");
      if constexpr (ListsParameters<P> && (P::role != policy_role::kernel || !kernel::is_composite<P>)) {
        static_assert(
            std::is_empty_v<P> || sizeof(P) < std::tuple_size_v<decltype(parameters_of<P>())> * sizeof(parameter) +
                                                  (std::tuple_size_v<decltype(tables_of<P>())> + 1) * sizeof(table) +
                                                  constants_of<P>,
            "attune: a policy has room for a parameter that parameters() does not list: list every parameter member, "
            "or "
            "nothing checks its shape and values (large constants belong behind a pointer). See "
            "docs/reference/policies.md");
        static_assert(attune::detail::differ(parameters_of<P>()) && attune::detail::differ(tables_of<P>()),
                      "attune: parameters() or tables() lists a member or a name twice: each member has one name. See "
                      "docs/reference/policies.md");
      }
      static_assert(
          BindsARow<P>,
          "attune: a policy must bind to a row: template <class T> bound<T> bind(attune::row<T> const& row) const. "
          "See docs/reference/policies.md");
      if constexpr (ListsParameters<P> && BindsARow<P>) {
        static_assert(!ReadsEntries<P> || (P::role != policy_role::normalizer && P::role != policy_role::value_gate &&
                                           P::role != policy_role::output_gate && P::role != policy_role::weight_gate),
                      "attune: this policy lists a table with table_use::bind: only kernels, score maps, length scales "
                      "and score gates may read tables in bind. See "
                      "docs/reference/policies.md#tables-in-pointwise-code");
        if constexpr (P::role == policy_role::kernel) {
          if constexpr (!kernel::is_composite<P>) {
            require_contractions<P>();
            if constexpr (NamesContraction<P>) {
              static_assert(
                  named_in_list<P>::score || contraction::named_by<P>::size > 1,
                  "attune: KernelPolicy: bind(row) must return an object with T score(T const& contraction, "
                  "attune::key<T> const& key) const (for contraction::none: T score(attune::key<T> const& key) "
                  "const). See docs/reference/policies.md#kernels");
              static_assert(named_in_list<P>::score || !NamesOneContraction<P> || contraction::named_by<P>::size != 2,
                            "attune: KernelPolicy of an ordered sum: bind(row) must return an object with T score(T "
                            "const& x, T const& sum, attune::key<T> const& key) const: x is the contraction that the "
                            "sum adds. See docs/reference/policies.md#ordered-sums");
              static_assert(named_in_list<P>::score || !NamesOneContraction<P> || contraction::named_by<P>::size < 3,
                            "attune: KernelPolicy of contraction::interpolated: bind(row) must return an object with T "
                            "score(T const& x, T const& index, T const& number, attune::key<T> const& key) const: x is "
                            "the contraction that the sum adds, index the sum. See "
                            "docs/reference/policies.md#a-row-read-at-an-index");
              static_assert(named_in_list<P>::score || NamesOneContraction<P> || contraction::named_by<P>::size < 2,
                            "attune: KernelPolicy with a list of contractions: bind(row) must return an object with T "
                            "score(T const& x, T const& y, attune::key<T> const& key) const: one argument for each "
                            "contraction of the list, in its order, then the key. See "
                            "docs/reference/policies.md#several-contractions");
            }
          }
          return KernelPolicy<P>;
        } else if constexpr (P::role == policy_role::length_scale) {
          static_assert(DeclaresLengthScaleTraits<P>,
                        "attune: LengthScalePolicy: declare static constexpr attune::length_scale_traits traits{}; See "
                        "docs/reference/policies.md#length-scales");
          static_assert(
              Scales<P>,
              "attune: LengthScalePolicy: bind(row) must return an object with T scale(T const& score) const. See "
              "docs/reference/policies.md#length-scales");
          if constexpr (DeclaresLengthScaleTraits<P>) {
            static_assert(!P::traits.row_constant || !ReadsEntries<P>,
                          "attune: LengthScalePolicy: a length scale with a row_constant reads no table in bind. See "
                          "docs/reference/policies.md#tables-in-pointwise-code");
            static_assert(
                !P::traits.row_constant || OffersRowConstant<P>,
                "attune: LengthScalePolicy: traits declare row_constant but the bound object has no T row_constant() "
                "const. See docs/reference/policies.md#length-scales");
            static_assert(
                P::traits.row_constant || !OffersRowConstant<P>,
                "attune: LengthScalePolicy: the bound object has row_constant() but traits do not declare it: "
                "traits{.row_constant = true}. See docs/reference/policies.md#length-scales");
          }
          return LengthScalePolicy<P>;
        } else if constexpr (P::role == policy_role::gate) {
          require_contractions<P>();
          if constexpr (NamesContraction<P>) {
            constexpr int arguments = contraction::named_by<P>::size;
            static_assert(arguments != 1 || Gates<P>,
                          "attune: GatePolicy: bind(row) must return an object with T gate(T const& scaled_score, T "
                          "const& contraction) const. See docs/reference/policies.md#gates");
            static_assert(arguments < 2 || Gates<P>,
                          "attune: GatePolicy with a list of contractions: bind(row) must return an object with T "
                          "gate(T const& scaled_score, T const& x, T const& y) const: the score, then one argument for "
                          "each contraction of the list, in its order. See "
                          "docs/reference/policies.md#several-contractions");
            static_assert(
                arguments != 0 || Gates<P>,
                "attune: GatePolicy: a gate of contraction::none changes nothing: its functions are never called. "
                "Name a contraction. Positions of keys belong to a kernel or a weight gate, functions of the "
                "score to a score map or a length scale. See docs/reference/policies.md#gates");
          }
          return GatePolicy<P>;
        } else if constexpr (P::role == policy_role::normalizer) {
          static_assert(DeclaresNormalizerTraits<P>,
                        "attune: NormalizerPolicy: declare static constexpr attune::normalizer_traits traits{}; See "
                        "docs/reference/policies.md#normalizers");
          if constexpr (DeclaresNormalizerTraits<P>) {
            static_assert(
                P::traits.family != row_family::masses || consistent_masses<P>,
                "attune: NormalizerPolicy: masses that are divided by nothing or by the count are held as they are, "
                "and a "
                "constant mass would have no share: declare .reference = attune::mass_reference::none and no constant "
                "mass. See docs/reference/policies.md#normalizers");
            static_assert(consistent_family<P>,
                          "attune: NormalizerPolicy of family range_weighted or sparse_support: its traits declare the "
                          "family and nothing "
                          "about masses. See docs/reference/policies.md#normalizers");
            if constexpr (P::traits.family == row_family::masses) {
              static_assert(
                  Earns<P>,
                  "attune: NormalizerPolicy: bind(row) must return an object with T earned(T const& logit, T const& "
                  "reference) const. See docs/reference/policies.md#normalizers");
              if constexpr (DeclaresNormalizerTraits<P>) {
                static_assert(!P::traits.ground_mass || OffersGround<P>,
                              "attune: NormalizerPolicy: traits declare ground_mass but the bound object has no T "
                              "ground(T const& "
                              "logit, T const& reference) const. See docs/reference/policies.md#normalizers");
                static_assert(P::traits.ground_mass || !OffersGround<P>,
                              "attune: NormalizerPolicy: the bound object has ground() but traits do not declare it: "
                              "traits{.ground_mass = true}. See docs/reference/policies.md#normalizers");
                static_assert(
                    !P::traits.constant_mass || OffersConstant<P>,
                    "attune: NormalizerPolicy: traits declare constant_mass but the bound object has no T constant(T "
                    "const& reference) const. See docs/reference/policies.md#normalizers");
                static_assert(P::traits.constant_mass || !OffersConstant<P>,
                              "attune: NormalizerPolicy: the bound object has constant() but traits do not declare it: "
                              "traits{.constant_mass = true}. See docs/reference/policies.md#normalizers");
                static_assert(
                    !needs_lowest_reference<P> || OffersLowestReference<P>,
                    "attune: NormalizerPolicy: with a ground or constant mass, bind(row) must return an object with T "
                    "lowest_reference() const: the logit of the largest such mass. See "
                    "docs/reference/policies.md#normalizers");
                static_assert(
                    needs_lowest_reference<P> || !OffersLowestReference<P>,
                    "attune: NormalizerPolicy: lowest_reference() is there but no ground or constant mass is declared "
                    "that would use it. See docs/reference/policies.md#normalizers");
                static_assert(!P::traits.ground_value || P::traits.ground_mass || P::traits.constant_mass,
                              "attune: NormalizerPolicy: traits declare ground_value but no ground or constant mass "
                              "that could buy "
                              "it. See docs/reference/policies.md#normalizers");
              }
              if constexpr (DeclaresNormalizerTraits<P>) {
                constexpr int factors = int(OffersWeightFactor<P>) + int(OffersWeightFactorOfSums<P>);
                static_assert(
                    P::traits.weight_factor == (factors != 0),
                    "attune: NormalizerPolicy: traits{.weight_factor = true} and T weight_factor() const of the bound "
                    "object belong together: one is there without the other. The other form of the function is T "
                    "weight_factor(T const& earned, T const& visible) const. See "
                    "docs/reference/policies.md#normalizers");
                static_assert(
                    factors != 2,
                    "attune: NormalizerPolicy: the bound object has weight_factor() and weight_factor(earned, "
                    "visible): write one of them. See docs/reference/policies.md#normalizers");
                static_assert(!OffersWeightFactorOfSums<P> || P::traits.reference == mass_reference::none,
                              "attune: NormalizerPolicy: weight_factor(earned, visible) needs the sum of the masses as "
                              "they are, and these are relative to a running maximum: declare .reference = "
                              "attune::mass_reference::none, or write weight_factor() without arguments. See "
                              "docs/reference/policies.md#normalizers");
                static_assert(
                    P::traits.uniform_share == OffersUniformShare<P>,
                    "attune: NormalizerPolicy: traits{.uniform_share = true} and T uniform_share(T const& earned, T "
                    "const& visible) const of the bound object belong together: one is there without the other. See "
                    "docs/reference/policies.md#normalizers");
              }
            } else if constexpr (P::traits.family == row_family::range_weighted) {
              static_assert(Adjusts<P>,
                            "attune: NormalizerPolicy of family range_weighted: bind(row) must return an object with "
                            "attune::adjustment<T> ends(T const& lowest, T const& highest) const. See "
                            "docs/reference/policies.md#normalizers");
            } else {
              static_assert(
                  P::traits.threshold != threshold_rule::undeclared,
                  "attune: NormalizerPolicy of family sparse_support: say how the threshold comes about, for the "
                  "gradient "
                  "follows "
                  "from it. "
                  "Add to traits .threshold = attune::threshold_rule::sum if the level is where the weights sum to a "
                  "constant, "
                  "attune::threshold_rule::selection if it only chooses keys. See "
                  "docs/reference/policies.md#normalizers");
              static_assert(
                  WeighsCandidates<P>,
                  "attune: NormalizerPolicy of family sparse_support: bind(row) must return an object with "
                  "attune::candidate_threshold<T> solve(Column& logits) const, T weight(attune::candidate_threshold<T> "
                  "const& threshold, T const& logit, attune::key<T> const& key) const and T "
                  "reported(attune::candidate_threshold<T> const& threshold) const. See "
                  "docs/reference/policies.md#normalizers");
            }
          }
          return NormalizerPolicy<P>;
        } else if constexpr (P::role == policy_role::value_gate || P::role == policy_role::output_gate) {
          static_assert(
              MapsGate<P>,
              "attune: a value gate or output gate: bind(row) must return an object with T factor(T const& x) const. "
              "See docs/reference/policies.md#gates");
          return FactorPolicy<P>;
        } else if constexpr (P::role == policy_role::weight_gate) {
          static_assert(
              NamesContraction<P> && NamesOneContraction<P>,
              "attune: a weight gate: name what it needs: using contraction = attune::contraction::gate_dot; (or none, "
              "uniform, any other; one alone). See docs/reference/policies.md#gates");
          if constexpr (NamesContraction<P> && NamesOneContraction<P>) {
            require_contractions<P>();
            static_assert(OffersSeed<P>,
                          "attune: a weight gate with contraction::uniform: give it the member std::uint64_t seed. See "
                          "docs/reference/policies.md#gates");
            static_assert(
                FactorsWeight<P>,
                "attune: a weight gate: bind(row) must return an object with T factor(T const& contraction, "
                "attune::key<T> const& key) const (for contraction::none: T factor(attune::key<T> const& key) const). "
                "See docs/reference/policies.md#gates");
          }
          return WeightGatePolicy<P>;
        } else {
          static_assert(ScoreMap<P>,
                        "attune: a score map: bind(row) must return an object with T map(T const& score) const. See "
                        "docs/reference/policies.md#kernels");
          return ScoreMap<P>;
        }
      }
      return false;
    }
  }
  return false;
}

}  // namespace attune::detail
