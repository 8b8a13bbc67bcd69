// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   key j if  i + offset - before <= j <= i + offset + after  and both are in one document        offset = Lk - Lq
//
// The keys that a query sees, by positions: one interval per query, whose ends never move back as i grows. This makes
// the visible pairs split into few rectangles (order.hpp), for any scalars.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune::sorted {

/// Rules, which intersect. Documents have one id per position, ascending (packed sequences), and must outlive the
/// value.
class visibility {
  static constexpr index_t unlimited = (std::numeric_limits<index_t>::max)();

 public:
  static visibility const full, causal;

  constexpr visibility() = default;
  /// The `width` most recent keys, the query's own position included: mask::causal_window.
  static constexpr visibility causal_window(index_t width) {
    return {checked("causal_window", "width", width, 1) - 1, 0};
  }
  /// Keys at a distance of at most `radius` on both sides: mask::window.
  static constexpr visibility window(index_t radius) {
    checked("window", "radius", radius, 0);
    return {radius, radius};
  }
  /// The same rules within documents: mask::documents. Lq and Lk ids, of every batch and head.
  constexpr visibility within(std::span<index_t const> of_queries, std::span<index_t const> of_keys) const {
    visibility v = *this;
    v.query_document_ = of_queries;
    v.key_document_ = of_keys;
    v.documents_ = true;
    return v;
  }

  constexpr bool sees_all() const { return before_ == unlimited && after_ == unlimited && !documents_; }
  friend constexpr bool operator==(visibility const& a, visibility const& b) {
    return a.before_ == b.before_ && a.after_ == b.after_ && a.documents_ == b.documents_ &&
           std::equal(a.query_document_.begin(), a.query_document_.end(), b.query_document_.begin(),
                      b.query_document_.end()) &&
           std::equal(a.key_document_.begin(), a.key_document_.end(), b.key_document_.begin(), b.key_document_.end());
  }

  /// The code that makes it: "causal_window(5) within documents".
  friend std::string to_string(visibility const& v) {
    std::string const within = v.documents_ ? " within documents" : "";
    if (v.before_ == unlimited) return (v.after_ == unlimited ? "full" : "causal") + within;
    if (v.after_ == 0) return attune::detail::text("causal_window(", v.before_ + 1, ")", within);
    return attune::detail::text("window(", v.before_, ")", within);
  }

  /// Throws attune::error unless documents fit the problem and their ids ascend.
  void(check)(char const* function, index_t queries, index_t keys) const {
    if (!documents_) return;
    check_ids(function, "documents of queries", query_document_, queries);
    check_ids(function, "documents of keys", key_document_, keys);
  }
  /// The keys that each query sees; first and last are ascending. O(Lq + Lk).
  std::vector<key_interval> intervals(index_t queries, index_t keys) const {
    std::vector<key_interval> seen(static_cast<std::size_t>(queries));
    index_t begin = 0, end = 0;  // of the query's document
    for (index_t i = 0; i < queries; ++i) {
      index_t const at = i + keys - queries;
      key_interval k{mask::detail::minus(at, before_), mask::detail::plus(at, after_)};
      k.last = mask::detail::plus(k.last, 1);
      if (documents_) {
        index_t const id = query_document_[std::size_t(i)];
        while (begin < keys && key_document_[std::size_t(begin)] < id) ++begin;
        for (end = (std::max)(begin, end); end < keys && key_document_[std::size_t(end)] == id; ++end) {
        }
        k = {(std::max)(k.first, begin), (std::min)(k.last, end)};
      }
      k.first = std::clamp<index_t>(k.first, 0, keys);
      k.last = (std::max)(k.first, (std::min)(k.last, keys));
      seen[std::size_t(i)] = k;
    }
    return seen;
  }

 private:
  constexpr visibility(index_t before, index_t after) : before_(before), after_(after) {}
  static constexpr index_t checked(char const* rule, char const* argument, index_t value, index_t least) {
    if (value < least)
      throw error(attune::detail::text("sorted::visibility::", rule), argument,
                  attune::detail::text("the value ", value), attune::detail::text("at least ", least));
    return value;
  }
  static void check_ids(char const* function, char const* argument, std::span<index_t const> ids, index_t count) {
    if (index_t(ids.size()) != count)
      throw error(function, argument, attune::detail::text(ids.size(), " ids"), attune::detail::text(count));
    if (auto const at = std::is_sorted_until(ids.begin(), ids.end()); at != ids.end())
      throw error(
          function, argument, attune::detail::text("id ", *at, " after ", *(at - 1), " at position ", at - ids.begin()),
          "ids that ascend: the keys that a query sees are one interval here (mask::documents takes any order)");
  }

  index_t before_ = unlimited, after_ = unlimited;
  std::span<index_t const> query_document_{}, key_document_{};
  bool documents_ = false;
};

inline constexpr visibility visibility::full{};
inline constexpr visibility visibility::causal{unlimited, 0};

}  // namespace attune::sorted
