// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <random>
#include <string>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/view.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>

namespace attune::test {
namespace {

problem_shape problem(index_t queries, index_t keys) {
  problem_shape p;
  p.batch = p.heads = 1;
  p.queries = queries;
  p.keys = keys;
  p.set_offset(keys - queries);
  return p;
}

/// Walks a tile of 8 queries from `begin` over blocks of `step` keys; the first thing that disagrees with mask::sees.
template <class Mask>
std::string tile_differs(Mask const& m, problem_shape const& p, index_t first_query, index_t begin, index_t step) {
  constexpr int lanes = 8;
  using visibility = exec_cpu::tile_visibility<Mask, lanes>;
  visibility v(m, p, 0, 0, first_query);
  auto const sees = [&](int l, index_t j) {
    return mask::sees(m, p.row(0, 0, std::min(first_query + l, p.queries - 1)), j);
  };
  for (index_t j = 0; j < p.keys; ++j) {
    bool all = true, any = false;
    for (int l = 0; l < lanes; ++l) all = all && sees(l, j), any = any || sees(l, j);
    if (any && (j < v.hull.first || j >= v.hull.last)) return detail::text("key ", j, " outside the hull");
    if (!all && j >= v.common.first && j < v.common.last) return detail::text("key ", j, " is not common");
  }
  for (int l = 0; l < lanes; ++l) {
    index_t n = 0;
    for (index_t j = 0; j < p.keys; ++j) n += sees(l, j);
    if (v.count[l] != n) return detail::text("count of lane ", l);
  }
  std::vector<std::uint64_t> bits(std::size_t(step), ~std::uint64_t(0));  // garbage of an earlier block
  for (index_t first = begin; first < p.keys; first += step) {
    index_t const last = std::min(first + step, p.keys);
    index_t n = 0;
    for (index_t j = first; j < last; ++j)
      for (int l = 0; l < lanes; ++l) n += sees(l, j);
    auto const seen = v.block(first, last, bits.data());
    auto const expected = n == 0                        ? visibility::seen::none
                          : n == (last - first) * lanes ? visibility::seen::all
                                                        : visibility::seen::some;
    if (seen != expected) return detail::text("block at ", first, " is ", int(seen), ", not ", int(expected));
    if (seen == visibility::seen::some)
      for (index_t j = first; j < last; ++j)
        for (int l = 0; l < 64; ++l)
          if (((bits[std::size_t(j - first)] >> l) & 1) != (l < lanes && sees(l, j) ? 1u : 0u))
            return detail::text("key ", j, ", lane ", l);
  }
  return {};
}

template <class Mask>
void check(Mask const& m, problem_shape const& p) {
  for (index_t first_query = 0; first_query < p.queries; first_query += 5)
    for (index_t begin : {0, 3})
      for (index_t step : {1, 4, 7, 64}) CHECK(tile_differs(m, p, first_query, begin, step) == "");
}

TEST_CASE("tile_visibility: masks of positions; tiles past the last query repeat it") {
  for (auto const& [queries, keys] : {std::pair<index_t, index_t>{20, 20}, {3, 30}, {30, 3}, {1, 1}, {9, 65}}) {
    problem_shape const p = problem(queries, keys);
    check(mask::none{}, p);
    check(mask::causal{}, p);
    check(mask::causal_window{6}, p);
    check(mask::window{2}, p);
    check(mask::sink_window{2, 3}, p);
  }
}

TEST_CASE("tile_visibility: by hand") {
  // Queries 8 ... 15 of 16 over 16 keys, causal: lane l sees 0 ... 8 + l.
  exec_cpu::tile_visibility<mask::causal, 8> v(mask::causal{}, problem(16, 16), 0, 0, 8);
  using seen = decltype(v)::seen;
  CHECK(v.count[0] == 9);
  CHECK(v.count[7] == 16);
  CHECK(v.hull == key_interval{0, 16});
  CHECK(v.common == key_interval{0, 9});
  std::uint64_t bits[8];
  CHECK(v.block(0, 8, bits) == seen::all);
  CHECK(v.block(8, 16, bits) == seen::some);
  CHECK(bits[0] == 0xff);  // key 8: everybody
  CHECK(bits[1] == 0xfe);  // key 9: not query 8
  CHECK(bits[7] == 0x80);  // key 15: query 15 only
}

TEST_CASE("tile_visibility: no lane sees a key") {
  exec_cpu::tile_visibility<mask::causal, 8> v(mask::causal{}, problem(16, 4), 0, 0, 0);  // query 7 is at position -5
  CHECK(v.hull.empty());
  CHECK(v.common.empty());
  CHECK(v.count[7] == 0);
}

TEST_CASE("tile_visibility: random tables and hulls") {
  std::mt19937 random(7);
  for (int n = 0; n < 60; ++n) {
    index_t const queries = 1 + index_t(random() % 20), keys = 1 + index_t(random() % 40);
    std::vector<unsigned char> table;
    std::vector<key_interval> hulls;
    auto const density = random() % 9;
    for (index_t i = 0; i < queries; ++i) {
      auto const row_density = random() % 4 == 0 ? random() % 2 * 8 : density;
      for (index_t j = 0; j < keys; ++j) table.push_back(random() % 8 < row_density);
      index_t const first = index_t(random() % 40), last = index_t(random() % 60);
      hulls.push_back({first, last});
    }
    mask::runtime m;
    if (n % 3 != 0) m.visible = table.data(), m.visible_shape = {1, 1, queries, keys};
    if (n % 3 != 1) m.hulls = hulls.data(), m.hull_shape = {1, 1, queries, 1};
    check(m, problem(queries, keys));
  }
}

TEST_CASE_TEMPLATE("lanes_of: bit l is lane l; higher bits belong to other batches", T, float, double) {
  using batch = xsimd::batch<T>;
  for (std::uint64_t bits :
       {0x0ull, 0x1ull, 0xaaaaaaaaaaaaaaaaull, 0xffffffffffffffffull, 0x8000000000000000ull, 0x6ull}) {
    batch const x = xsimd::select(exec_cpu::lanes_of<T, xsimd::default_arch>(bits), batch(T(1)), batch(T(0)));
    for (std::size_t l = 0; l < batch::size; ++l) CHECK(x.get(l) == T((bits >> l) & 1));
  }
}

}  // namespace
}  // namespace attune::test
