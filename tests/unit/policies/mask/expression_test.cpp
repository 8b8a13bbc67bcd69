// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/expression.hpp>

#include "../../check.hpp"
#include "rules.hpp"

namespace attune::test {
namespace {

bool says(std::string const& message, char const* part) { return message.find(part) != std::string::npos; }

TEST_CASE("band: before and after, from either end") {
  mask_row const r{0, 0, 2, 5, 4, 9};  // query 2 of 4 at position 5 of 9 keys
  CHECK(mask::next(mask::band{}, r, 0) == key_interval{0, 9});
  CHECK(mask::next(mask::band{2, 1}, r, 0) == key_interval{3, 7});
  CHECK(mask::next(mask::band{mask::band::no_limit, 0, true}, r, 0) == key_interval{0, 3});
  CHECK(mask::next(mask::band{0, mask::band::no_limit}, r, 0) == key_interval{5, 9});
  CHECK(says(error_of([&] { mask::check(mask::band{-1, 0}, {}); }), "(before, after) has the value (-1, 0)"));
}

TEST_CASE("visible_table: strides and axes of extent 1") {
  std::vector<unsigned char> const bytes{1, 0, 1, 1, 0, 0};  // [key][query]
  mask::visible_table const m{tensor<unsigned char const>(bytes.data(), {1, 1, 2, 3}, {0, 0, 1, 2})};
  CHECK(call_differs(m, [&](auto const& r, index_t j) { return bytes[std::size_t(j * 2 + r.query)] != 0; },
                     {2, 2, 2, 3}) == "");
  CHECK(says(error_of([&] { mask::check(m, {1, 1, 5, 3}); }), "table has shape (1, 1, 2, 3)"));
}

/// A random mask, as an expression and as a rule that is asked key by key.
struct random_mask {
  std::mt19937_64& random;
  index_t queries, keys;
  std::vector<index_t> const &lengths, &of_queries, &of_keys;
  using rule = std::function<bool(mask_row const&, index_t)>;

  index_t number(index_t most) { return index_t(random() % std::uint64_t(most + 1)); }
  template <class M>
  std::pair<mask::expression, rule> leaf(M const& m) {
    return {m, [m](mask_row const& r, index_t j) { return mask::sees(m, r, j); }};
  }
  std::pair<mask::expression, rule> operator()(int depth) {
    if (depth == 0) {
      switch (number(6)) {
        case 0:
          return leaf(mask::causal{});
        case 1:
          return leaf(mask::band{number(4), number(3), number(1) == 0});
        case 2:
          return leaf(mask::sink_window{number(3), 1 + number(3)});
        case 3:
          return leaf(mask::padding(lengths));
        case 4:
          return leaf(mask::documents(of_queries, of_keys));
        case 5:
          return leaf(mask::prefix{number(keys)});
        default:
          return leaf(mask::none{});
      }
    }
    auto const [a, first] = (*this)(depth - 1);
    auto const [b, second] = (*this)(int(number(depth - 1)));
    if (number(1) == 0)
      return {a & b, [f = first, s = second](mask_row const& r, index_t j) { return f(r, j) && s(r, j); }};
    return {a | b, [f = first, s = second](mask_row const& r, index_t j) { return f(r, j) || s(r, j); }};
  }
};

TEST_CASE("an expression shows the keys of its masks: random trees") {
  std::mt19937_64 random(20261126);
  for (int n = 0; n < 500; ++n) {
    index_t const queries = 1 + index_t(random() % 6), keys = 1 + index_t(random() % 12);
    auto const numbers = [&](index_t count, index_t most) {
      std::vector<index_t> x;
      for (index_t i = 0; i < count; ++i) x.push_back(index_t(random() % std::uint64_t(most + 1)));
      return x;
    };
    std::vector<index_t> const lengths = numbers(2, keys), of_queries = numbers(queries, 2), of_keys = numbers(keys, 2);
    auto const [e, rule] = random_mask{random, queries, keys, lengths, of_queries, of_keys}(int(random() % 4));
    mask::composed const m = e.mask();
    m.check({2, 3, queries, keys});
    CHECK(call_differs(m, rule, {2, 3, queries, keys}) == "");
  }
}

TEST_CASE("an expression in each sequence of a pack: the same keys as the same mask of a type") {
  std::vector<index_t> const of_queries{0, 2, 2, 5, 6}, of_keys{0, 2, 3, 12, 12};
  auto const same = [&](mask::expression const& within, auto const& expected) {
    mask::expression const e = mask::ragged<mask::composed>(of_queries, of_keys, within.mask());
    e.mask().check({1, 2, 6, 12});
    return call_differs(e.mask(), [&](mask_row const& r, index_t j) { return mask::sees(expected, r, j); },
                        {1, 2, 6, 12});
  };
  CHECK(same(mask::causal{}, mask::ragged(of_queries, of_keys, mask::causal{})) == "");
  CHECK(same(mask::prefix{2}, mask::ragged(of_queries, of_keys, mask::prefix{2})) == "");
  CHECK(same(mask::expression(mask::band{1, 3}) & mask::causal{},
             mask::ragged(of_queries, of_keys, mask::band{1, 0})) == "");
}

TEST_CASE("an expression without nodes; a node that names a later one; a device") {
  CHECK(mask::next(mask::composed{}, {0, 0, 0, 0, 1, 4}, 1) == key_interval{1, 4});
  mask::expression_node const bad[] = {{mask::expression_node::pair{mask::combination::both, 0, 0}}};
  CHECK(says(error_of([&] { mask::composed{bad, 1}.check({1, 1, 1, 1}); }), "node 0 has the indices 0 and 0"));
  mask::expression const e = mask::causal{};
  CHECK(says(error_of([&] { e.mask().check({1, 1, 1, 1, memory_kind::device}); }), "memory has a device"));
}

}  // namespace
}  // namespace attune::test
