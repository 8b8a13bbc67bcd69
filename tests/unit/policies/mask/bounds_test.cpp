// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Predicates that say which intervals a row may see: the same mask as the predicate, asked about fewer keys.
#include <utility>

#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/predicate.hpp>
#include <attune/policies/mask/sliding_window.hpp>

#include "../../../support/grid.hpp"
#include "rules.hpp"

namespace attune::test {
namespace {

/// Random keys inside intervals of random length, some of which touch. Counts the calls.
struct random_rule {
  index_t* calls = nullptr;
  std::uint64_t seed = 1;

  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
  }
  /// Intervals begin at multiples of 8 and have 0 to 8 keys.
  index_t length(mask_row const& r, index_t block) const {
    return index_t(mixed(seed + 977 * std::uint64_t(r.query + 3) + std::uint64_t(block)) % 9);
  }
  bool shown(mask_row const& r, index_t j) const {
    return j % 8 < length(r, j / 8) && mixed(seed ^ (std::uint64_t(r.query + 7) << 20) ^ std::uint64_t(j)) % 4 != 0;
  }
  key_interval may_see(mask_row const& r, index_t from) const {
    for (index_t b = from / 8; b * 8 < r.keys; ++b)
      if (key_interval const k{b * 8, b * 8 + length(r, b)}; !k.empty() && k.last > from) return k;
    return {};
  }
};

auto bounded(random_rule const& rule) {
  return mask::bounded_predicate(
      [rule](mask_row const& r, index_t j) {
        if (rule.calls != nullptr) ++*rule.calls;
        return rule.shown(r, j);
      },
      [rule](mask_row const& r, index_t from) { return rule.may_see(r, from); });
}
auto scanned(random_rule const& rule) {
  return mask::predicate([rule](mask_row const& r, index_t j) {
    if (rule.calls != nullptr) ++*rule.calls;
    return rule.shown(r, j);
  });
}

TEST_CASE("bounded predicates: the same keys, alone and combined") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    random_rule const a{nullptr, seed}, b{nullptr, seed + 100};
    auto const in_a = [&](mask_row const& r, index_t j) { return a.shown(r, j); };
    auto const in_b = [&](mask_row const& r, index_t j) { return b.shown(r, j); };
    auto const up_to = [](mask_row const& r, index_t j) { return j <= r.position; };
    auto const check = [&](auto const& mask, auto const& rule) {
      for (auto const& [queries, keys] : {std::pair<index_t, index_t>{3, 40}, {2, 7}, {5, 1}, {4, 0}})
        CHECK(call_differs(mask, rule, {1, 1, queries, keys}) == "");
    };
    auto const both = [](auto const& x, auto const& y) {
      return [=](auto const& r, index_t j) { return x(r, j) && y(r, j); };
    };
    auto const any = [](auto const& x, auto const& y) {
      return [=](auto const& r, index_t j) { return x(r, j) || y(r, j); };
    };
    check(bounded(a), in_a);
    check(bounded(a) & bounded(b), both(in_a, in_b));
    check(scanned(a) & bounded(b), both(in_a, in_b));
    check(bounded(a) & mask::causal{}, both(in_a, up_to));
    check(mask::causal{} & scanned(b), both(up_to, in_b));
    check(bounded(a) | bounded(b), any(in_a, in_b));
    check((bounded(a) | mask::causal{}) & bounded(b), both(any(in_a, up_to), in_b));
    check((bounded(a) & scanned(b)) | mask::causal{}, any(both(in_a, in_b), up_to));
  }
}

TEST_CASE("bounded predicates: keys outside the bounds are hidden, and nobody asks about them") {
  auto const mask =
      mask::bounded_predicate([](mask_row const&, index_t) { return true; },
                              [](mask_row const&, index_t from) {
                                return from < 5 ? key_interval{2, 5} : from < 9 ? key_interval{5, 9} : key_interval{};
                              });
  CHECK(call_differs(mask, [](mask_row const&, index_t j) { return 2 <= j && j < 9; }, {1, 1, 2, 12}) == "");
  CHECK(call_differs(mask, [](mask_row const&, index_t j) { return 2 <= j && j < 9; }, {1, 1, 2, 6}) == "");
}

TEST_CASE("bounded predicates: a row costs the keys of its bounds") {
  index_t calls = 0;
  mask_row const r{0, 0, 2, 2, 3, 8000};
  random_rule const rule{&calls, 5};
  index_t inside = 0;
  for (key_interval k = rule.may_see(r, 0); !k.empty(); k = rule.may_see(r, k.last)) inside += k.size();
  CHECK(inside < 5000);
  auto const cost = [&](auto const& mask) {
    calls = 0;
    mask::count(mask, r);
    return calls;
  };
  CHECK(cost(scanned(rule)) >= 8000);
  CHECK(cost(bounded(rule)) <= 2 * inside);
  CHECK(cost(scanned(rule) & mask::causal_window{20}) <= 2 * 20);
  CHECK(cost(mask::causal_window{20} & scanned(rule)) <= 2 * 20);
  CHECK(cost(bounded(rule) & mask::causal_window{20}) <= 2 * 20);
  auto const short_hull = mask::bounded_predicate(
      [](mask_row const&, index_t) { return true; },
      [](mask_row const&, index_t from) { return from < 150 ? key_interval{100, 150} : key_interval{}; });
  CHECK(cost(scanned(rule) & short_hull) <= 2 * 50);
  CHECK(cost(short_hull & bounded(rule)) <= 2 * 50);
}

TEST_CASE("bounded predicates: the neighborhoods of a grid") {
  for (auto const& [rows, columns] : {std::pair<index_t, index_t>{5, 7}, {7, 5}, {1, 9}, {9, 1}, {2, 3}})
    for (index_t const radius : {0, 1, 2}) {
      neighborhood const plain{rows, columns, radius};
      bounded_neighborhood const fast{rows, columns, radius};
      CHECK(call_differs(fast, [&](mask_row const& r, index_t j) { return plain.visible(r, j); },
                         {1, 1, rows * columns, rows * columns}) == "");
    }
}

}  // namespace
}  // namespace attune::test
