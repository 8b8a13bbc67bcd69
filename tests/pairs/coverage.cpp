// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "coverage.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "calls.hpp"
#include "choices.hpp"
#include "features.hpp"

namespace attune::pairs {

namespace {

template <policy_role R, class Default, class P, class Q>
using picked = std::conditional_t<P::role == R, P, std::conditional_t<Q::role == R, Q, Default>>;

/// The kernel of an operator of two policies: alibi, which reads nothing, if they have none.
template <class P, class Q>
struct kernel_of_two {
  using plain = picked<policy_role::kernel, kernel::alibi, P, Q>;
  using map = picked<policy_role::score_map, void, P, Q>;
  using type = std::conditional_t<std::is_void_v<map>, plain, kernel::mapped<plain, map>>;
};
template <class P, class Q>
  requires(P::role == policy_role::kernel && Q::role == policy_role::kernel && !std::is_same_v<P, Q>)
struct kernel_of_two<P, Q> {
  using type = kernel::sum<P, Q>;
};
template <class P, class Q>
using operator_of_two = attention_operator<
    typename kernel_of_two<P, Q>::type, picked<policy_role::length_scale, length_scale::none, P, Q>,
    picked<policy_role::gate, gate::none, P, Q>, picked<policy_role::normalizer, normalizer::softmax, P, Q>,
    picked<policy_role::value_gate, gate::no_value_factor, P, Q>,
    picked<policy_role::output_gate, gate::no_output_factor, P, Q>, picked<policy_role::mask, mask::none, P, Q>,
    picked<policy_role::weight_gate, gate::no_weight_factor, P, Q>,
    picked<policy_role::value_term, value_term::none, P, Q>>;

template <class P, class Q>
constexpr composition composition_of() {
  if constexpr (P::role == Q::role && P::role != policy_role::kernel && !std::is_same_v<P, Q>) {
    return {};  // two values of one choice
  } else {
    using op = operator_of_two<P, Q>;
    return {attune::detail::compose<op>, accepted_calls<op>};
  }
}

template <class... P>
struct policy_list {
  static constexpr std::size_t size = sizeof...(P);
  static std::vector<choice_facts> facts(std::vector<char const*> const& texts) {
    std::vector<choice_facts> to{{"", int(P::role), features_of<P>()}...};
    for (std::size_t n = 0; n < size; ++n) to[n].text = texts[n];
    return to;
  }
  /// Of Q, which is number `Index`, with each policy from its own number on.
  template <class Q, std::size_t Index, std::size_t... N>
  static constexpr std::array<composition, size> with(std::index_sequence<N...>) {
    return {[] {
      if constexpr (N < Index)
        return composition{};
      else
        return composition_of<Q, P>();
    }()...};
  }
  template <std::size_t... N>
  static constexpr std::array<std::array<composition, size>, size> all(std::index_sequence<N...> each) {
    return {with<P, N>(each)...};
  }
};

struct no_policy {};
#define ATTUNE_PAIRS_POLICY(name, ...) , policy_of<choice::name>
template <class, class... P>
using list_of = policy_list<P...>;
using every_policy = list_of<no_policy ATTUNE_PAIRS_CHOICES(ATTUNE_PAIRS_POLICY)>;
#undef ATTUNE_PAIRS_POLICY

constexpr auto compositions = every_policy::all(std::make_index_sequence<every_policy::size>{});

/// Every contraction of policies/contraction.hpp, by the structs that the build found there.
std::set<std::string> contractions_of_the_library() {
  std::set<std::string> to{"later_sum",    "later_sum_with_own", "earlier_sum", "earlier_sum_with_own",
                           "interpolated", "elementwise",        "own term"};
  using contraction::table_place;
  for (table_place const place :
       {table_place::column, table_place::of_distance, table_place::of_pair, table_place::of_key})
    to.insert(std::string("own term") + name_of_place(place));
  to.insert(std::string("own term") + name_of_place(table_place::row) + name_of_place(table_place::row));
#define ATTUNE_PAIRS_STRUCT(name) \
  if constexpr (contraction::is_known<contraction::name> && OffersTerm<contraction::name>) to.insert(#name);
#include "contraction_structs.inc"
#undef ATTUNE_PAIRS_STRUCT
  return to;
}

void add_pairs(pair_set& to, std::set<std::string> const& a, std::set<std::string> const& b) {
  for (auto const& x : a)
    for (auto const& y : b)
      if (x != y) to.insert(pair_of(x, y));
}

/// Whether a fact may be drawn beside a feature, a call or what another fact needs.
bool possible(call_fact const& fact, std::string const& other) {
  return other.empty() || fact.never_with.empty() || fact.never_with != other;
}

}  // namespace

std::vector<choice_facts> const& all_choices() {
#define ATTUNE_PAIRS_TEXT(name, ...) #name,
  static std::vector<choice_facts> const all = every_policy::facts({ATTUNE_PAIRS_CHOICES(ATTUNE_PAIRS_TEXT)});
#undef ATTUNE_PAIRS_TEXT
  return all;
}

composition composed(std::size_t a, std::size_t b) { return compositions[(std::min)(a, b)][(std::max)(a, b)]; }

std::vector<std::string> features_without_choice() {
  std::set<std::string> wanted, there;
  for_each_field([&]<field F>() {
    if (F != field::v) wanted.insert(std::string("input ") + name_of(F));
  });
  for (std::string const& c : contractions_of_the_library()) wanted.insert("contraction " + c);
  for (choice_facts const& c : all_choices()) there.insert(c.features.begin(), c.features.end());
  std::vector<std::string> missing;
  std::set_difference(wanted.begin(), wanted.end(), there.begin(), there.end(), std::back_inserter(missing));
  return missing;
}

pair_set const& accepted_by_types() {
  static pair_set const all = [] {
    pair_set to;
    auto const& choices = all_choices();
    for (std::size_t a = 0; a < choices.size(); ++a)
      for (std::size_t b = a; b < choices.size(); ++b) {
        composition const c = composed(a, b);
        if (!c.composes) continue;
        std::set<std::string> features = choices[a].features, calls;
        features.insert(choices[b].features.begin(), choices[b].features.end());
        features.insert("input v");
        for (std::size_t n = 0; n < call_count; ++n)
          if ((c.calls >> n & 1) != 0) calls.insert(all_calls[n].name);
        add_pairs(to, features, features);
        add_pairs(to, features, calls);
      }
    return to;
  }();
  return all;
}

pair_set const& accepted_with_facts() {
  static pair_set const all = [] {
    pair_set to;
    std::set<std::string> others;  // features and calls
    for (auto const& [a, b] : accepted_by_types()) others.insert({a, b});
    auto const together = [&](std::string const& a, std::string const& b) {
      return a.empty() || b.empty() || a == b || accepted_by_types().contains(pair_of(a, b));
    };
    auto const& facts = call_facts();
    for (std::size_t n = 0; n < facts.size(); ++n) {
      for (std::string const& other : others)
        if (together(facts[n].needs, other) && possible(facts[n], other)) to.insert(pair_of(facts[n].name, other));
      for (std::size_t m = 0; m < n; ++m)
        if (facts[n].axis != facts[m].axis && together(facts[n].needs, facts[m].needs) &&
            possible(facts[n], facts[m].needs) && possible(facts[m], facts[n].needs) &&
            possible(facts[n], facts[m].name) && possible(facts[m], facts[n].name))
          to.insert(pair_of(facts[n].name, facts[m].name));
    }
    return to;
  }();
  return all;
}

pair_set pairs_of_row(design_row const& r) {
  pair_set to;
  add_pairs(to, r.features, r.features);
  add_pairs(to, r.features, r.calls);
  return to;
}

pair_set pairs_of_problem(design_row const& r, run_record const& record) {
  pair_set to;
  add_pairs(to, record.facts, record.facts);
  add_pairs(to, record.facts, r.features);
  add_pairs(to, record.facts, record.calls);
  return to;
}

}  // namespace attune::pairs
