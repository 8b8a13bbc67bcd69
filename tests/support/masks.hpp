// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random masks of every kind, as the dense table that problem.visible wants.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../instances/registry.hpp"
#include "random.hpp"

namespace attune::test {

/// Whether row i of batch b, head h sees key j.
using predicate = std::function<bool(index b, index h, index i, index j)>;

enum class mask_kind {
  none,
  causal,
  sliding,
  causal_sliding,
  prefix,
  documents,
  padding,
  block_sparse,
  sink_window,
  random,
  intersection,
  union_of_two,
  empty_rows
};
inline constexpr mask_kind all_mask_kinds[] = {
    mask_kind::none,        mask_kind::causal,    mask_kind::sliding,      mask_kind::causal_sliding,
    mask_kind::prefix,      mask_kind::documents, mask_kind::padding,      mask_kind::block_sparse,
    mask_kind::sink_window, mask_kind::random,    mask_kind::intersection, mask_kind::union_of_two,
    mask_kind::empty_rows};

inline std::string name(mask_kind kind) {
  static constexpr char const* names[] = {"none",         "causal",  "sliding",      "causal sliding", "prefix",
                                          "documents",    "padding", "block sparse", "sink + window",  "random",
                                          "intersection", "union",   "empty rows"};
  return names[static_cast<int>(kind)];
}

/// A mask of that kind for queries at positions i + offset. The predicate depends on b and h only if per_head is set.
inline predicate make_predicate(mask_kind kind, index batch, index heads, index queries, index keys, index offset,
                                bool per_head, rng& random) {
  auto const table = [&](index n, auto draw) {  // one draw for each (b, h), or one for all
    std::vector<index> values(static_cast<std::size_t>(n));
    for (index& x : values) x = draw();
    return values;
  };
  auto const plane = [per_head, heads](index b, index h) {
    return static_cast<std::size_t>(per_head ? b * heads + h : 0);
  };
  index const planes = per_head ? batch * heads : 1;
  index const window = random.between(1, keys + 1);
  switch (kind) {
    case mask_kind::none:
      return [](index, index, index, index) { return true; };
    case mask_kind::causal:
      return [=](index, index, index i, index j) { return j <= i + offset; };
    case mask_kind::sliding:
      return [=](index, index, index i, index j) { return std::abs(i + offset - j) <= window - 1; };
    case mask_kind::causal_sliding:
      return [=](index, index, index i, index j) { return j <= i + offset && i + offset - j < window; };
    case mask_kind::prefix: {
      auto const length = table(planes, [&] { return random.between(0, keys); });
      return [=](index b, index h, index i, index j) { return j < length[plane(b, h)] || j <= i + offset; };
    }
    case mask_kind::documents: {  // ids increase by 0 or 1: some rows may see no key
      double const rate = random.uniform(0.02, 0.5);
      auto const ids = [&](index n) {
        index id = 0;
        return table(n, [&] { return id += random.chance(rate) ? 1 : 0; });
      };
      auto const query_id = ids(queries), key_id = ids(keys);
      bool const causal = random.chance(0.5);
      return [=](index, index, index i, index j) {
        return query_id[static_cast<std::size_t>(i)] == key_id[static_cast<std::size_t>(j)] &&
               (!causal || j <= i + offset);
      };
    }
    case mask_kind::padding: {
      auto const length = table(planes, [&] { return random.between(0, keys); });
      return [=](index b, index h, index, index j) { return j < length[plane(b, h)]; };
    }
    case mask_kind::block_sparse: {
      index const rows = random.between(1, 40), columns = random.between(1, 40), across = keys / columns + 1;
      auto const block = table((queries / rows + 1) * across, [&] { return random.chance(0.5) ? index{1} : index{0}; });
      return [=](index, index, index i, index j) {
        return block[static_cast<std::size_t>(i / rows * across + j / columns)] != 0;
      };
    }
    case mask_kind::sink_window: {
      index const sinks = random.between(0, 4);
      return [=](index, index, index i, index j) { return j <= i + offset && (j < sinks || i + offset - j < window); };
    }
    case mask_kind::random: {
      double const density = random.pick({0.02, 0.3, 0.7, 0.98});
      auto const cell = table(planes * queries * keys, [&] { return random.chance(density) ? index{1} : index{0}; });
      return [=](index b, index h, index i, index j) {
        return cell[plane(b, h) * static_cast<std::size_t>(queries * keys) + static_cast<std::size_t>(i * keys + j)] !=
               0;
      };
    }
    case mask_kind::intersection:
    case mask_kind::union_of_two: {
      auto const simple = [&] { return static_cast<mask_kind>(random.between(1, 9)); };
      predicate const one = make_predicate(simple(), batch, heads, queries, keys, offset, per_head, random);
      predicate const two = make_predicate(simple(), batch, heads, queries, keys, offset, per_head, random);
      if (kind == mask_kind::intersection)
        return [=](index b, index h, index i, index j) { return one(b, h, i, j) && two(b, h, i, j); };
      return [=](index b, index h, index i, index j) { return one(b, h, i, j) || two(b, h, i, j); };
    }
    case mask_kind::empty_rows:
      break;
  }
  predicate const rest = make_predicate(static_cast<mask_kind>(random.between(0, 9)), batch, heads, queries, keys,
                                        offset, per_head, random);
  auto const full = table(planes * queries, [&] { return random.chance(0.6) ? index{1} : index{0}; });
  return [=](index b, index h, index i, index j) {
    return full[plane(b, h) * static_cast<std::size_t>(queries) + static_cast<std::size_t>(i)] != 0 && rest(b, h, i, j);
  };
}

/// Writes a predicate into the problem, as (1|B, 1|H, Lq, Lk).
inline void set_mask(instances::problem& p, index batch, index heads, index queries, index keys,
                     predicate const& sees) {
  p.visible_shape = {batch, heads, queries, keys};
  p.visible.clear();
  p.visible.reserve(static_cast<std::size_t>(batch * heads * queries * keys));
  for (index b = 0; b < batch; ++b)
    for (index h = 0; h < heads; ++h)
      for (index i = 0; i < queries; ++i)
        for (index j = 0; j < keys; ++j) p.visible.push_back(sees(b, h, i, j) ? 1 : 0);
}

}  // namespace attune::test
