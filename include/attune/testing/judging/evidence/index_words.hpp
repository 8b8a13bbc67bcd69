// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   words_of_indices({"query", "queries"}, set)    "queries 64..127", "each query i with i mod 32 in 16..31"
//
// Sets of indices, and boxes of them, as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::testing::detail {

/// The indices where a predicate holds, as "3, 5..9".
template <class Holds>
std::string ranges(std::size_t n, Holds const& holds) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) {
    if (!holds(i)) continue;
    std::size_t last = i;
    while (last + 1 < n && holds(last + 1)) ++last;
    all += (all.empty() ? "" : ", ") + std::to_string(i) + (last > i ? ".." + std::to_string(last) : "");
    i = last;
  }
  return all;
}
inline std::string ranges(std::vector<bool> const& has) {
  return ranges(has.size(), [&](std::size_t n) { return has[n]; });
}

/// The names of an axis, and the letter of its index.
struct axis_words {
  char const *one, *more, *letter;
};

/// The residues of a set that repeats, as "each query i with i mod 32 in 16..31"; "" if it does not.
inline std::string words_of_residues(axis_words const& of, std::vector<bool> const& has) {
  for (std::size_t modulus = 2; modulus <= 256 && 2 * modulus <= has.size(); ++modulus) {
    bool repeats = true;
    for (std::size_t n = modulus; n < has.size() && repeats; ++n) repeats = has[n] == has[n - modulus];
    if (!repeats) continue;
    std::string const which = ranges(modulus, [&](std::size_t n) { return has[n]; });
    return attune::detail::text("each ", of.one, " ", of.letter, " with ", of.letter, " mod ", modulus,
                                which.find_first_of(".,") == std::string::npos ? " = " : " in ", which);
  }
  return "";
}

/// A set of indices as text; "" if it has all of them.
inline std::string words_of_indices(axis_words const& of, std::vector<bool> const& has) {
  auto const count = std::size_t(std::count(has.begin(), has.end(), true));
  if (count == has.size()) return "";
  std::string const which = ranges(has);
  if (std::count(which.begin(), which.end(), ',') < 3) return (count > 1 ? of.more : of.one) + (" " + which);
  std::string const residues = words_of_residues(of, has);
  if (!residues.empty()) return residues;
  if (which.size() <= 40) return of.more + (" " + which);
  return attune::detail::text(count, " of ", has.size(), " ", of.more);
}

/// A part of a tensor: of each axis some indices.
struct index_box {
  std::vector<bool> batch, head, position, feature;

  explicit index_box(shape const& e = {0, 0, 0, 0})
      : batch(std::size_t(e.batch), false), head(std::size_t(e.head), false), position(std::size_t(e.position), false),
        feature(std::size_t(e.feature), false) {}
  bool has(index_t b, index_t h, index_t i, index_t c) const {
    return batch[std::size_t(b)] && head[std::size_t(h)] && position[std::size_t(i)] && feature[std::size_t(c)];
  }
  void add(index_t b, index_t h, index_t i, index_t c) {
    batch[std::size_t(b)] = head[std::size_t(h)] = position[std::size_t(i)] = feature[std::size_t(c)] = true;
  }
  void add(index_box const& x) {
    auto const unite = [](std::vector<bool>& to, std::vector<bool> const& from) {
      for (std::size_t n = 0; n < to.size() && n < from.size(); ++n) to[n] = to[n] || from[n];
    };
    unite(batch, x.batch), unite(head, x.head), unite(position, x.position), unite(feature, x.feature);
  }
  /// The number of elements.
  index_t size() const {
    index_t n = 1;
    for (auto const* x : {&batch, &head, &position, &feature}) n *= std::count(x->begin(), x->end(), true);
    return n;
  }
  /// "head 5, queries 64..127, features 48..63"; "" for everything.
  std::string words(bool of_keys = false) const {
    axis_words const positions = of_keys ? axis_words{"key", "keys", "j"} : axis_words{"query", "queries", "i"};
    std::string all;
    auto const add = [&](axis_words const& of, std::vector<bool> const& x) {
      std::string const one = words_of_indices(of, x);
      if (!one.empty()) all += (all.empty() ? "" : ", ") + one;
    };
    add({"batch element", "batch elements", "b"}, batch);
    add(of_keys ? axis_words{"key head", "key heads", "h"} : axis_words{"head", "heads", "h"}, head);
    add(positions, position);
    add({"feature", "features", "d"}, feature);
    return all;
  }
};

}  // namespace attune::testing::detail
