// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Masks over arrays.
#include <vector>

#include <attune/policies/mask/block_sparse.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/runtime.hpp>

#include "rules.hpp"

namespace attune::test {
namespace {

using bytes = std::vector<unsigned char>;

TEST_CASE("padding: j < lengths[batch]") {
  std::vector<index_t> const lengths{0, 3, 5};
  CHECK(call_differs(mask::padding(lengths),
                     [&](mask_row const& r, index_t j) { return j < lengths[std::size_t(r.batch)]; },
                     {3, 2, 4, 5}) == "");
}

TEST_CASE("padding: errors") {
  std::vector<index_t> const long_one{5, 6}, negative{-1, 2};
  CHECK(rejects(mask::padding(long_one), {3, 1, 4, 5}) ==
        "attune::mask::padding: lengths has 2 entries; expected 3, one per batch element");
  CHECK(rejects(mask::padding(long_one), {2, 1, 4, 5}) ==
        "attune::mask::padding: lengths[1] has the value 6; expected a number in [0, 5]");
  CHECK(rejects(mask::padding(negative), {2, 1, 4, 5}) ==
        "attune::mask::padding: lengths[0] has the value -1; expected a number in [0, 5]");
  CHECK(rejects(mask::padding(long_one), {2, 1, 4, 6}) == "");
}

TEST_CASE("documents: equal ids, sorted or not, shared by the batch or not") {
  std::vector<index_t> const queries{1, 1, 7, 2}, keys{1, 2, 2, 1, 9};
  CHECK(
      call_differs(mask::documents(queries, keys),
                   [&](mask_row const& r, index_t j) { return queries[std::size_t(r.query)] == keys[std::size_t(j)]; },
                   {2, 2, 4, 5}) == "");
  std::vector<index_t> const ids{0, 0, 1, 3, 3, 3};  // batch 2, 3 positions
  auto const id = [&](index_t b, index_t i) { return ids[std::size_t(3 * b + i)]; };
  CHECK(call_differs(mask::documents(ids, 2),
                     [&](mask_row const& r, index_t j) { return id(r.batch, r.query) == id(r.batch, j); },
                     {2, 1, 3, 3}) == "");
}

TEST_CASE("documents: errors") {
  std::vector<index_t> const four(4), five(5);
  CHECK(rejects(mask::documents(four, five, 2), {3, 1, 2, 2}) ==
        "attune::mask::documents: batch has the value 2; expected 1 or 3");
  CHECK(rejects(mask::documents(four, five), {3, 1, 4, 4}) ==
        "attune::mask::documents: the array of ids has 4 query and 5 key entries; expected 4 and 4");
  CHECK(rejects(mask::documents(four, 2), {2, 1, 4, 4}) ==
        "attune::mask::documents: the array of ids has 4 query and 4 key entries; expected 8 and 8");
  CHECK(rejects(mask::documents(four, five), {3, 1, 4, 5}) == "");
}

TEST_CASE("block_sparse: a table of blocks; the last ones may be short") {
  // 2 heads, 5 queries in blocks of 2, 7 keys in blocks of 3: 2 x 3 x 3
  bytes const table{1, 1, 0, 0, 0, 0, 1, 0, 1,  //
                    0, 0, 1, 1, 1, 1, 0, 1, 0};
  CHECK(call_differs(mask::block_sparse(table, 2, 3, 2),
                     [&](mask_row const& r, index_t j) {
                       return table[std::size_t((r.head * 3 + r.query / 2) * 3 + j / 3)] != 0;
                     },
                     {2, 2, 5, 7}) == "");
  bytes const shared{1, 0, 0, 1};
  CHECK(call_differs(mask::block_sparse(shared, 4, 4),
                     [&](mask_row const& r, index_t j) { return shared[std::size_t(r.query / 4 * 2 + j / 4)] != 0; },
                     {1, 3, 8, 8}) == "");
}

TEST_CASE("block_sparse: errors") {
  bytes const table(4);
  CHECK(rejects(mask::block_sparse(table, 0, 2), {1, 1, 4, 4}) ==
        "attune::mask::block_sparse: the block has extents (0, 2); expected at least (1, 1)");
  CHECK(rejects(mask::block_sparse(table, 2, 2, 3), {1, 2, 4, 4}) ==
        "attune::mask::block_sparse: heads has the value 3; expected 1 or 2");
  CHECK(rejects(mask::block_sparse(table, 2, 2), {1, 2, 4, 5}) ==
        "attune::mask::block_sparse: table has 4 entries; expected 6, one per (head, query block, key block)");
  CHECK(rejects(mask::block_sparse(table, 2, 2), {1, 2, 4, 4}) == "");
}

TEST_CASE("runtime: every key, a hull per row, a table, both") {
  mask_shape const s{2, 2, 3, 5};
  CHECK(call_differs(mask::runtime{}, [](mask_row const&, index_t) { return true; }, s) == "");

  // hulls per head, shared by the batch; they may be empty, reversed or reach outside
  std::vector<key_interval> const hulls{{0, 5}, {2, 2}, {1, 3}, {-4, 2}, {3, 90}, {4, 1}};
  auto const in_hull = [&](mask_row const& r, index_t j) {
    key_interval const k = hulls[std::size_t(r.head * 3 + r.query)];
    return k.first <= j && j < k.last;
  };
  mask::runtime m{hulls.data(), {1, 2, 3, 1}};
  CHECK(call_differs(m, in_hull, s) == "");

  bytes table(30);  // per batch, shared by the heads
  for (std::size_t n = 0; n < 30; ++n) table[n] = n % 7 < 4;
  auto const in_table = [&](mask_row const& r, index_t j) {
    return table[std::size_t((r.batch * 3 + r.query) * 5 + j)] != 0;
  };
  m.visible = table.data();
  m.visible_shape = {2, 1, 3, 5};
  CHECK(call_differs(m, [&](mask_row const& r, index_t j) { return in_hull(r, j) && in_table(r, j); }, s) == "");
  m.hulls = nullptr;
  CHECK(call_differs(m, in_table, s) == "");
}

TEST_CASE("runtime: errors") {
  std::vector<key_interval> const hulls(6);
  bytes const table(30);
  mask_shape const s{2, 2, 3, 5};
  mask::runtime m{hulls.data(), {1, 2, 4, 1}};
  CHECK(rejects(m, s) ==
        "attune::mask::runtime: the array of hulls has shape (1, 2, 4, 1); expected (1 or 2, 1 or 2, 3, 1)");
  m.hull_shape = {1, 3, 3, 1};
  CHECK(rejects(m, s) ==
        "attune::mask::runtime: the array of hulls has shape (1, 3, 3, 1); expected (1 or 2, 1 or 2, 3, 1)");
  m.hull_shape = {1, 2, 3, 1};
  CHECK(rejects(m, s) == "");
  m.visible = table.data();
  m.visible_shape = {2, 1, 3, 4};
  CHECK(rejects(m, s) == "attune::mask::runtime: visible has shape (2, 1, 3, 4); expected (1 or 2, 1 or 2, 1 or 3, 5)");
  m.visible_shape = {2, 1, 3, 5};
  CHECK(rejects(m, s) == "");
}

}  // namespace
}  // namespace attune::test
