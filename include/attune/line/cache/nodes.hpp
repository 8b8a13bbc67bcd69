// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   leaf: up to 64 keys and their tokens      branch: up to 32 children, and a summary of the keys below each child
//
// The nodes of line/cache/ordered_keys.hpp, and how their entries move.
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/core/tensor.hpp>

namespace attune::line {

/// The number of a cached token. Numbers of erased tokens are used again.
using token = std::uint32_t;

namespace detail {

inline constexpr std::uint32_t leaf_size = 64, fan_out = 32, no_node = ~std::uint32_t(0);

/// std::copy by a count: g++ 12 assumes that a difference of pointers may be negative, and warns.
template <class X>
void move_entries(X const* from, std::uint32_t count, X* to) noexcept {
  if (count <= leaf_size)  // no node has more; g++ for 32 bits cannot see that, and warns
    std::memmove(to, from, std::size_t(count) * sizeof(X));
}
/// Shares `left` entries and `right` entries after them: the first `keep` go to l and the rest to r.
template <class X>
void share_entries(X* l, std::uint32_t left, X* r, std::uint32_t right, std::uint32_t keep) noexcept {
  if (keep <= left) {
    move_entries(r, right, r + (left - keep));
    move_entries(l + keep, left - keep, r);
  } else {
    move_entries(r, keep - left, l + left);
    move_entries(r + (keep - left), left + right - keep, r);
  }
}

/// A block of neighboring keys. Lanes beyond `size` hold arbitrary numbers.
template <class T>
struct key_leaf {
  alignas(64) T key[leaf_size] = {};
  token id[leaf_size] = {};
  std::uint32_t size = 0, before = no_node, after = no_node;

  void insert(std::uint32_t at, T k, token t) noexcept {
    move_entries(key + at, size - at, key + at + 1);
    move_entries(id + at, size - at, id + at + 1);
    key[at] = k;
    id[at] = t;
    ++size;
  }
  void erase(std::uint32_t at) noexcept {
    move_entries(key + at + 1, size - at - 1, key + at);
    move_entries(id + at + 1, size - at - 1, id + at);
    --size;
  }
  /// Shares the entries of both leaves: the first `keep` stay here and the rest go to `r`.
  void share(key_leaf& r, std::uint32_t keep) noexcept {
    share_entries(key, size, r.key, r.size, keep);
    share_entries(id, size, r.id, r.size, keep);
    r.size = size + r.size - keep;
    size = keep;
  }
};

/// A summary of neighboring keys, available without reading them.
template <class T>
struct key_range {
  std::uint32_t keys = 0;
  token first_id = 0;
  T first = 0, last = 0, bound = 0;
};

template <class T>
struct key_branch {
  alignas(64) T first[fan_out] = {};
  T last[fan_out] = {}, bound[fan_out] = {};
  std::uint32_t child[fan_out] = {}, keys[fan_out] = {};
  token first_id[fan_out] = {};
  std::uint32_t size = 0;

  key_range<T> get(std::uint32_t c) const { return {keys[c], first_id[c], first[c], last[c], bound[c]}; }
  void put(std::uint32_t c, std::uint32_t node, key_range<T> const& r) {
    child[c] = node;
    keys[c] = r.keys;
    first_id[c] = r.first_id;
    first[c] = r.first;
    last[c] = r.last;
    bound[c] = r.bound;
  }
  void make_gap(std::uint32_t at) {
    columns([&](auto* x) { move_entries(x + at, size - at, x + at + 1); });
    ++size;
  }
  void close_gap(std::uint32_t at) {
    columns([&](auto* x) { move_entries(x + at + 1, size - at - 1, x + at); });
    --size;
  }
  void share(key_branch& r, std::uint32_t keep) noexcept {
    share_entries(first, size, r.first, r.size, keep);
    share_entries(last, size, r.last, r.size, keep);
    share_entries(bound, size, r.bound, r.size, keep);
    share_entries(child, size, r.child, r.size, keep);
    share_entries(keys, size, r.keys, r.size, keep);
    share_entries(first_id, size, r.first_id, r.size, keep);
    r.size = size + r.size - keep;
    size = keep;
  }

 private:
  template <class F>
  void columns(F const& f) {
    f(first), f(last), f(bound), f(child), f(keys), f(first_id);
  }
};

}  // namespace detail
}  // namespace attune::line
