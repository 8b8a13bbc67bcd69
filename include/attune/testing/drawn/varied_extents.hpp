// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   with_variation<Op>(extents, seed, 48, [&](varied_extents const& v) { ... v.text: "batch 2, offsets 3 1" ... });
//
// The extents of a second problem of an operator. Heads of each input with a row per key, and axes that inputs share,
// are drawn always. Lengths, a batch of 2 and offsets are drawn where the operator accepts them. Only a call knows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::testing::detail {

/// How much of a problem is drawn.
enum class variation {
  all,      ///< batch, lengths, offsets, heads, shared axes
  offsets,  ///< offsets, heads, shared axes
  inputs,   ///< heads and shared axes
};

/// Whether a mask may be asked about positions outside the caller's extents: it has no members, or a call checks its
/// arrays.
template <class M>
inline constexpr bool bears_other_places = std::is_empty_v<M> || ChecksShape<M>;
template <class A, class B>
inline constexpr bool bears_other_places<mask::intersection<A, B>> = bears_other_places<A> && bears_other_places<B>;
template <class A, class B>
inline constexpr bool bears_other_places<mask::union_of<A, B>> = bears_other_places<A> && bears_other_places<B>;
/// The same of an operator.
template <class Op>
inline constexpr bool varies_places = bears_other_places<typename Op::mask_policy>;
template <std::size_t N, class... Ops>
inline constexpr bool varies_places<fold_operator<N, Ops...>> = (varies_places<Ops> && ...);

/// The extents of a problem, and of each of its inputs.
struct varied_extents {
  problem_extents extents;
  std::array<shape, field_count> inputs{};
  std::vector<index_t> offsets;  ///< empty: as in `extents`
  std::string text;              ///< what was drawn, for the report
};

/// Draws what `what` says. `longest`: the most queries and the most keys.
template <class Op>
varied_extents vary(problem_extents const& e, variation what, normal_numbers& random, index_t longest) {
  varied_extents v;
  v.extents = e;
  problem_extents& to = v.extents;
  auto const note = [&](std::string const& words) { v.text += (v.text.empty() ? "" : ", ") + words; };
  auto const draws_offsets = what != variation::inputs && !e.offset.has_value() && !e.offsets.has_value();
  if (what == variation::all) {
    if (!e.offsets.has_value()) to.batch = 2;
    to.queries = 1 + random.below((std::min)(e.queries, longest));
    to.keys = 1 + random.below((std::min)(e.keys, longest));
    note(attune::detail::text("batch ", to.batch, ", ", to.queries, " queries, ", to.keys, " keys"));
  }
  if (draws_offsets) {
    // From the usual place to a few keys beyond: kernels that read a row for each position have none before 0.
    index_t const least = (std::max)(to.keys - to.queries, index_t(0));
    std::string words = "offsets";
    for (index_t b = 0; b < to.batch; ++b) {
      index_t const at = what == variation::all ? random.below(to.keys + 1) : least - random.below(least + 1);
      v.offsets.push_back(at);
      words += attune::detail::text(" ", at);
    }
    note(words);
  }
  v.inputs = drawn_problem<Op>::shapes_of(to);
  std::vector<index_t> divisors;
  for (index_t n = 1; n <= e.heads; ++n)
    if (e.heads % n == 0) divisors.push_back(n);
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      shape& x = v.inputs[std::size_t(F)];
      bool const of_keys = side_of(F) == input_side::key;
      if (F == field::value_gate) {
        x.head = v.inputs[std::size_t(field::v)].head;
      } else if (of_keys) {
        x.head = divisors[std::size_t(random.below(index_t(divisors.size())))];
        if (x.head != (F == field::v ? e.value_heads : e.key_heads))
          note(attune::detail::text(x.head, x.head == 1 ? " head of " : " heads of ", name_of(F)));
      }
      if (F == field::value_gate || shares_rows(F) || side_of(F) == input_side::pair ||
          side_of(F) == input_side::ground) {
        std::string shared;
        auto const share = [&](index_t& extent, char const* axis) {
          if (extent == 1 || random.uniform() < 0.5) return;
          extent = 1;
          shared += (shared.empty() ? "" : " and ") + std::string(axis);
        };
        share(x.batch, "batch");
        share(x.head, "heads");
        if (!of_keys) share(x.position, "queries");
        if (!shared.empty()) note(shared + " share " + name_of(F));
      }
    }
  });
  return v;
}

/// Calls run(varied_extents) with a drawn problem that the operator accepts. `run` throws attune::error if the operator
/// does not. Every operator accepts other heads and shared axes.
template <class Op, class Run>
void with_variation(problem_extents const& e, std::uint64_t seed, index_t longest, Run const& run) {
  std::string refused;
  for (variation const what : {variation::all, variation::offsets, variation::inputs}) {
    if (what != variation::inputs && !varies_places<Op>) continue;
    normal_numbers random(seed + 0x9E3779B97F4A7C15u);
    varied_extents v = vary<Op>(e, what, random, longest);
    if (!v.offsets.empty()) v.extents.offsets = std::span<index_t const>(v.offsets);
    if (!refused.empty()) v.text += (v.text.empty() ? "" : "; ") + ("the operator refuses more: " + refused);
    if (what == variation::inputs) return run(v);
    try {
      return run(v);
    } catch (error const& why) {  // a parameter, a table or angles for other extents or positions
      refused = why.what();
    }
  }
}

}  // namespace attune::testing::detail
