// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   visible keys of a row  =  ascending, disjoint intervals [first, last)
//
// Every mask is one function: it takes a row and returns the next interval of visible keys. The count K, block
// skipping, intersection and union all follow from it, so your own mask is one function too.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// The role of a policy in an operator.
enum class policy_role {
  kernel,
  score_map,
  length_scale,
  gate,
  value_gate,
  output_gate,
  normalizer,
  mask,
  weight_gate,
  value_term
};

/// The rules of a role, where they are not in policies/concepts.hpp and diagnostics.hpp: a specialization has
/// `template <class P> static constexpr bool complete()`, which reports what a policy P lacks. Policies of such a role
/// need no `bind`.
template <policy_role R>
struct role_rules {};

/// Keys [first, last).
struct key_interval {
  index_t first = 0,  ///< the first key
      last = 0;       ///< one past the last key
  /// True if it holds no key.
  ATTUNE_HD constexpr bool empty() const { return first >= last; }
  /// Number of keys.
  ATTUNE_HD constexpr index_t size() const { return empty() ? 0 : last - first; }
  friend constexpr bool operator==(key_interval const&, key_interval const&) = default;
};

/// A query row, as masks see it.
struct mask_row {
  index_t batch = 0,     ///< batch element
      head = 0,          ///< query head
      query = 0;         ///< query
  index_t position = 0;  ///< position of the query among the keys: query + offset, offset = Lk - Lq by default
  index_t queries = 0;   ///< Lq
  index_t keys = 0;      ///< Lk
};

/// The problem that a mask is used on, for checks before the call runs.
struct mask_shape {
  index_t batch = 0,                       ///< B
      heads = 0,                           ///< H
      queries = 0,                         ///< Lq
      keys = 0;                            ///< Lk
  memory_kind memory = memory_kind::host;  ///< device: the mask's arrays must not be read here, only their sizes
};

namespace detail {
/// Throws if a device program would read an array of the mask that is a std::vector.
inline void require_readable(char const* mask, char const* array, bool in_a_vector, mask_shape const& s,
                             char const* instead) {
  if (in_a_vector && s.memory == memory_kind::device)
    throw error(mask, array, "a std::vector, in memory of the host", instead);
}
}  // namespace detail

/// Which of the three hooks a mask offers.
enum class mask_form {
  interval,  ///< key_interval keys(mask_row): one interval; clipped by the library
  /// key_interval next(mask_row, from): the first maximal interval that ends after `from`; empty if there is none
  intervals,
  predicate,  ///< bool visible(mask_row, key): any rule; scans each row, O(Lk), or the intervals of may_see
};

template <class M>
concept DeclaresMaskForm = requires {
  { M::form } -> std::convertible_to<mask_form>;
};
template <class M>
concept OffersKeys = requires(M const& m, mask_row r) {
  { m.keys(r) } -> std::convertible_to<key_interval>;
};
template <class M>
concept OffersNext = requires(M const& m, mask_row r, index_t from) {
  { m.next(r, from) } -> std::convertible_to<key_interval>;
};
template <class M>
concept OffersVisible = requires(M const& m, mask_row r, index_t j) {
  { m.visible(r, j) } -> std::convertible_to<bool>;
};

template <class M>
concept OffersItsForm = (M::form == mask_form::interval    ? OffersKeys<M>
                         : M::form == mask_form::intervals ? OffersNext<M>
                                                           : OffersVisible<M>);

/// Decides which keys a query sees.
template <class M>
concept MaskPolicy = requires {
  { M::role } -> std::convertible_to<policy_role>;
} && (M::role == policy_role::mask) && std::is_trivially_copyable_v<M> && DeclaresMaskForm<M> && OffersItsForm<M>;

/// A mask over arrays declares `static constexpr bool checks_shape = true` and offers `void check(mask_shape) const`.
/// The parentheses around this name here and elsewhere keep macros check(x) away, which macOS and Unreal Engine have.
template <class M>
concept ChecksShape = requires { requires M::checks_shape; };
template <class M>
concept OffersCheck = requires(M const& m, mask_shape s) { (m.check)(s); };

/// A predicate that scans parts of a row declares `static constexpr bool bounds_keys = true` and offers
/// `key_interval may_see(mask_row, from) const`: the first interval ending after `from` in which the row may see keys.
/// If there is none it is empty, or ends at `from` or before. Intervals ascend. Keys outside are not visible,
/// and visible() is not asked about them.
template <class M>
concept BoundsKeys = requires { requires M::bounds_keys; };
template <class M>
concept OffersMaySee = requires(M const& m, mask_row r, index_t from) {
  { m.may_see(r, from) } -> std::convertible_to<key_interval>;
};

namespace mask {

namespace detail {
inline constexpr index_t lowest_index = (std::numeric_limits<index_t>::min)(),
                         highest_index = (std::numeric_limits<index_t>::max)();
ATTUNE_HD constexpr index_t at_least(index_t a, index_t b) { return a < b ? b : a; }
ATTUNE_HD constexpr index_t at_most(index_t a, index_t b) { return b < a ? b : a; }
/// a - b and a + b for b >= 0, without overflow: a width may be the largest index, which means "no limit".
ATTUNE_HD constexpr index_t minus(index_t a, index_t b) { return a < lowest_index + b ? lowest_index : a - b; }
ATTUNE_HD constexpr index_t plus(index_t a, index_t b) { return a > highest_index - b ? highest_index : a + b; }

/// The first interval of may_see that ends after `from`, clipped to [from, Lk).
template <class M>
ATTUNE_HD constexpr key_interval bounds(M const& m, mask_row const& r, index_t from) {
  key_interval const k = m.may_see(r, from);
  return {at_least(k.first, from), at_most(k.last, r.keys)};
}
/// The first maximal run of visible keys from `from` on. Looks at the keys of the intervals of within(from) alone. A
/// run may cross intervals that touch.
ATTUNE_UNCHECKED template <class Within, class Visible>
ATTUNE_HD constexpr key_interval first_run(index_t from, Within const& within, Visible const& visible) {
  for (key_interval k = within(from); !k.empty(); k = within(k.last)) {
    index_t first = k.first;
    while (first < k.last && !visible(first)) ++first;
    if (first == k.last) continue;
    for (index_t last = first;;) {
      while (last < k.last && visible(last)) ++last;
      if (last < k.last) return {first, last};
      k = within(last);
      if (k.empty() || k.first > last) return {first, last};
    }
  }
  return {};
}
}  // namespace detail

/// The first interval of visible keys that ends after `from`, clipped to [from, Lk); empty if there is none.
template <class M>
ATTUNE_HD constexpr key_interval next(M const& m, mask_row const& r, index_t from) {
  from = detail::at_least(from, 0);
  if constexpr (M::form == mask_form::interval) {
    key_interval const k = m.keys(r);
    return {detail::at_least(k.first, from), detail::at_most(k.last, r.keys)};
  } else if constexpr (M::form == mask_form::intervals) {
    key_interval const k = m.next(r, from);
    return {detail::at_least(k.first, from), detail::at_most(k.last, r.keys)};
  } else if constexpr (BoundsKeys<M>) {
    return detail::first_run(
        from, [&](index_t at) { return detail::bounds(m, r, at); }, [&](index_t j) { return bool(m.visible(r, j)); });
  } else {
    while (from < r.keys && !m.visible(r, from)) ++from;
    index_t last = from;
    while (last < r.keys && m.visible(r, last)) ++last;
    return {from, last};
  }
}

/// K: the number of keys that the row sees.
template <class M>
ATTUNE_HD constexpr index_t count(M const& m, mask_row const& r) {
  index_t n = 0;
  for (key_interval k = next(m, r, 0); !k.empty(); k = next(m, r, k.last)) n += k.size();
  return n;
}

/// Whether the row sees key j.
template <class M>
ATTUNE_HD constexpr bool sees(M const& m, mask_row const& r, index_t j) {
  if constexpr (M::form == mask_form::predicate) {
    if constexpr (BoundsKeys<M>)
      if (key_interval const k = detail::bounds(m, r, j); k.empty() || k.first != j) return false;
    return m.visible(r, j);
  } else {
    key_interval const k = next(m, r, j);
    return !k.empty() && k.first == j;
  }
}

/// Whether every head sees the same keys. A mask that knows offers `bool same_for_heads() const`. It must be its own:
/// an inherited one says nothing about what the mask changes. Others may differ by head.
template <class M>
constexpr bool same_for_heads(M const& m) {
  if constexpr (requires { requires std::is_same_v<decltype(&M::same_for_heads), bool (M::*)() const>; })
    return m.same_for_heads();
  else
    return false;
}

/// Throws attune::error if the mask's arrays do not fit the problem.
template <class M>
void(check)(M const& m, mask_shape const& s) {
  if constexpr (ChecksShape<M>) (m.check)(s);
}

}  // namespace mask
}  // namespace attune
