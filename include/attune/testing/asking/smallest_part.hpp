// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   part_search(whole, rules, ask).smallest()
//
// The smallest part of a call that fails: fewer batch elements, heads, queries, keys. It depends on no operator and no
// kernel.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::testing {

/// Positions [first, last) of one axis.
struct part_span {
  index_t first = 0, last = 0;
  index_t count() const { return last - first; }  ///< how many
  friend auto operator<=>(part_span const&, part_span const&) = default;
};

/// A part of a call: batch elements, query heads, queries, keys.
struct call_part {
  std::array<part_span, 4> spans;
  part_span const& batch() const { return spans[0]; }    ///< of batch elements
  part_span const& heads() const { return spans[1]; }    ///< of query heads
  part_span const& queries() const { return spans[2]; }  ///< of queries
  part_span const& keys() const { return spans[3]; }     ///< of keys
  friend auto operator<=>(call_part const&, call_part const&) = default;
};

namespace detail {

/// Which axes may be cut.
struct part_rules {
  std::array<bool, 4> may_cut{true, true, true, true};
  bool fixed_start = false;  ///< the call says at which position query 0 is
};

/// Asks about parts, each once. ask(part): whether it fails; nothing if it cannot be asked.
class part_search {
 public:
  using answer = std::optional<bool>;  ///< whether a part fails

  part_search(call_part const& whole, part_rules const& rules, std::function<answer(call_part const&)> ask)
      : whole_(whole), rules_(rules), ask_(std::move(ask)) {}

  /// Whether a part fails.
  answer fails(call_part const& part) {
    auto const found = asked_.find(part);
    if (found != asked_.end()) return found->second;
    answer const now = ask_(part);
    if (now.has_value()) asked_[part] = now;
    return now;
  }
  /// Fewer batch elements and heads, of all queries and keys.
  call_part fewer_heads() {
    call_part now = whole_;
    for (std::size_t axis : {0u, 1u}) now = smaller(now, axis);
    return now;
  }
  /// Fewer queries and keys.
  call_part fewer_positions(call_part now) {
    for (int n = 0; n < 3; ++n) {
      call_part const before = now;
      for (std::size_t axis : {2u, 3u}) now = smaller(now, axis);
      if (now == before) break;
    }
    return now;
  }
  /// The part with another span of one axis; nothing if it does not mean the same mask.
  std::optional<call_part> with(call_part now, std::size_t axis, part_span const& span) const {
    part_span& keys = now.spans[3];
    // The last query stays at its key.
    if (axis == 2 && !rules_.fixed_start) keys.last -= now.spans[2].last - span.last;
    now.spans[axis] = span;
    if (keys.count() < 1 || (rules_.fixed_start && (now.spans[2].first > 0 || keys.first > 0))) return {};
    index_t const slack = (std::min)(whole_.keys().count() - whole_.queries().count(), index_t(0));
    if (keys.count() - now.queries().count() < slack) return {};  // each query sees a key, if it did before
    return now;
  }
  /// Sentences about the next smaller calls that pass.
  std::vector<std::string> passing(call_part const& now);
  /// "2 heads of 8 (4..5)".
  std::string words(call_part const& now) const;

 private:
  answer fails(std::optional<call_part> const& part) { return part ? fails(*part) : answer{}; }
  /// Numbers between two others, the middle first; then multiples of steps: a kernel may take these alone.
  static std::vector<index_t> counts(index_t low, index_t high) {
    index_t const middle = (low + high + 1) / 2;
    std::vector<index_t> found;
    auto const add = [&](index_t n) {
      if (low < n && n < high && std::find(found.begin(), found.end(), n) == found.end()) found.push_back(n);
    };
    add(middle);
    for (index_t step : {8, 16, 32, 64, 128}) {
      add((middle + step - 1) / step * step);
      add(middle / step * step);
    }
    return found;
  }
  /// The smallest failing span of one axis: halves, then without the last, then without the first ones.
  call_part smaller(call_part now, std::size_t axis) {
    if (!rules_.may_cut[axis]) return now;
    while (half(now, axis)) {
    }
    for (bool of_end : {true, false}) {
      index_t low = 0, high = now.spans[axis].count();  // `high` of them fail, `low` do not
      for (bool answered = true; answered && high - low > 1;) {
        answered = false;
        part_span const from = now.spans[axis];
        for (index_t count : counts(low, high)) {
          auto const part = with(
              now, axis, of_end ? part_span{from.first, from.first + count} : part_span{from.last - count, from.last});
          answer const found = fails(part);
          if (!found) continue;
          answered = true;
          (*found ? high : low) = count;
          if (*found) now = *part;
          break;
        }
      }
    }
    return now;
  }
  /// Whether a half of an axis fails, which is then `now`.
  bool half(call_part& now, std::size_t axis) {
    part_span const from = now.spans[axis];
    for (index_t count : counts(0, from.count())) {
      bool answered = false;
      std::array const halves{part_span{from.first, from.first + count}, part_span{from.last - count, from.last}};
      for (part_span const& span : halves) {
        auto const part = with(now, axis, span);
        answer const found = fails(part);
        answered = answered || found.has_value();
        if (!found.value_or(false)) continue;
        now = *part;
        return true;
      }
      if (answered) return false;
    }
    return false;
  }

  static constexpr std::array one_{"batch element", "head", "query", "key"};
  static constexpr std::array many_{"batch elements", "heads", "queries", "keys"};

  call_part whole_;
  part_rules rules_;
  std::function<answer(call_part const&)> ask_;
  std::map<call_part, answer> asked_;
};

inline std::vector<std::string> part_search::passing(call_part const& now) {
  std::vector<std::string> found;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    auto const [first, last] = now.spans[axis];
    if (last - first < 2 || !rules_.may_cut[axis]) continue;
    for (index_t end = last - 1; end > (std::max)(first, last - 5); --end) {
      answer const fewer = fails(with(now, axis, {first, end}));
      if (!fewer) continue;
      std::string const what = last - end > 1 ? attune::detail::text(last - end, " ", many_[axis]) : one_[axis];
      if (!*fewer) found.push_back("without the last " + what + " it passes");
      break;
    }
    if (axis < 2 && !fails(with(now, axis, {last - 1, last})).value_or(true))
      found.push_back(attune::detail::text(one_[axis], " ", last - 1, " alone passes"));
  }
  return found;
}

inline std::string part_search::words(call_part const& now) const {
  std::string all;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    index_t const count = now.spans[axis].count(), total = whole_.spans[axis].count(), first = now.spans[axis].first;
    if (total == 1) continue;
    all += attune::detail::text(all.empty() ? "" : ", ", count, " ", count == 1 ? one_[axis] : many_[axis]);
    if (count == total) continue;
    std::string const where = count == 1 ? attune::detail::text(one_[axis], " ", first)
                                         : attune::detail::text(first, "..", first + count - 1);
    all += attune::detail::text(" of ", total, " (", where, ")");
  }
  return all;
}

}  // namespace detail
}  // namespace attune::testing
