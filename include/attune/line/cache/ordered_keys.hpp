// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   k_(0) <= k_(1) <= ... <= k_(n-1)      ties in the order of arrival; insert, erase, lower_bound, select: O(log n)
//
// A plain sorted array moves n / 4 keys per insertion on average, whatever gaps it has (Scalar Sort names it first
// among structures with O(log n) insertion). Here the array is cut into blocks of up to 64 keys, the leaves of a
// B+-tree. A window is a walk along blocks that SIMD scans. For each child, a branch knows the number of keys, the
// least and the greatest key, and a bound that the caller gave with the keys. These O(log n) numbers certify the tail
// of an attention row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <attune/core/tensor.hpp>
#include <attune/line/cache/node_pool.hpp>
#include <attune/line/cache/nodes.hpp>

namespace attune::line {

/// Sorted keys of type T with their tokens.
/// Facts is any object with `arrival(token)`, a number that grows with every insertion, and `bound(token)`, the T >= 0
/// that was given with the key. The tree does not store these.
/// Complexity: insert, erase, lower_bound, upper_bound and select visit O(log n) nodes; a scan visits the blocks in its
///             range.
/// Memory:     8 + 8 bytes per slot of a block (float: 4 + 4). Blocks are half full to full. Copies are deep.
/// Limits:     2^32 - 2 keys; no NaN (the caller checks).
template <class T>
class ordered_keys {
 public:
  static constexpr std::uint32_t leaf_size = detail::leaf_size, fan_out = detail::fan_out, nothing = detail::no_node;
  using leaf = detail::key_leaf<T>;
  using range = detail::key_range<T>;

  /// The keys below a node; height 0: a leaf.
  struct subtree : range {
    int height = 0;
    std::uint32_t node = nothing;
  };
  /// A position among the keys; the position after the last key has rank size().
  struct position {
    std::uint32_t node, at;  ///< the leaf, and the index of the key in it
    index_t rank;
  };

  index_t size() const { return size_; }

  /// Reserves memory for one insertion, so that insert() cannot fail.
  void reserve_one() {
    leaves_.reserve(2);
    branches_.reserve(static_cast<std::size_t>(height_) + 2);
  }

  /// Inserts after all equal keys. Call reserve_one() first.
  template <class Facts>
  void insert(T key, token id, T bound, Facts const& facts) noexcept {
    if (root_ == nothing) {
      root_ = leaves_.take();
      leaves_[root_] = leaf{};
    }
    bound_ = (std::max)(bound_, bound);
    std::uint32_t const right = insert_below(height_, root_, key, id, bound, facts);
    ++size_;
    if (right == nothing) return;
    std::uint32_t const top = branches_.take();
    branch& b = branches_[top];
    b.size = 2;
    b.put(0, root_, describe(height_, root_, facts));
    b.put(1, right, describe(height_, right, facts));
    root_ = top;
    ++height_;
  }

  /// Removes a token, which must be present with this key.
  template <class Facts>
  void erase(T key, token id, Facts const& facts) noexcept {
    erase_below(height_, root_, key, id, facts);
    --size_;
    while (height_ > 0 && branches_[root_].size == 1) {
      std::uint32_t const only = branches_[root_].child[0];
      branches_.give(root_);
      root_ = only;
      --height_;
    }
    if (size_ == 0)
      *this = ordered_keys();
    else if (!(facts.bound(id) < bound_))
      bound_ = describe(height_, root_, facts).bound;
  }

  /// The number of keys < x, and the first key that is not.
  position lower_bound(double x) const {
    return partition([x](T k) { return double(k) < x; });
  }
  /// The number of keys <= x, and the first key > x.
  position upper_bound(double x) const {
    return partition([x](T k) { return double(k) <= x; });
  }
  /// The key of this rank, 0 <= rank <= size().
  position select(index_t rank) const {
    if (size_ == 0) return {root_, 0, 0};
    std::uint32_t node = root_;
    index_t rest = rank;
    for (int height = height_; height > 0; --height) {
      branch const& b = branches_[node];
      std::uint32_t c = 0;
      while (c + 1 < b.size && rest >= index_t(b.keys[c])) rest -= index_t(b.keys[c++]);
      node = b.child[c];
    }
    return normal({node, std::uint32_t(rest), rank});
  }

  leaf const& block(std::uint32_t node) const { return leaves_[node]; }

  /// f(leaf, first, last) for the blocks of the ranks [lower, upper), in order.
  template <class F>
  void blocks(index_t lower, index_t upper, F const& f) const {
    if (lower >= upper) return;
    position p = select(lower);
    for (index_t left = upper - lower; left > 0;) {
      leaf const& l = leaves_[p.node];
      auto const last = std::uint32_t((std::min<index_t>)(l.size, index_t(p.at) + left));
      f(l, p.at, last);
      left -= index_t(last - p.at);
      p = {l.after, 0, 0};
    }
  }

  /// The subtree of all keys. Needs size() > 0.
  subtree root() const {
    std::uint32_t node = root_;
    for (int h = height_; h > 0; --h) node = branches_[node].child[0];
    leaf const& first = leaves_[node];
    node = root_;
    for (int h = height_; h > 0; --h) node = branches_[node].child[branches_[node].size - 1];
    leaf const& last = leaves_[node];
    return {{std::uint32_t(size_), first.id[0], first.key[0], last.key[last.size - 1], bound_}, height_, root_};
  }
  /// f(subtree) for each child of a subtree with height > 0, in order.
  template <class F>
  void children(subtree const& of, F const& f) const {
    branch const& b = branches_[of.node];
    for (std::uint32_t c = 0; c < b.size; ++c) f(subtree{b.get(c), of.height - 1, b.child[c]});
  }

  /// f(range) for ranges that together cover all keys outside the ranks [lower, upper): whole subtrees, and single keys
  /// where a block is cut. O(log n) calls.
  template <class F>
  void outside(index_t lower, index_t upper, F const& f) const {
    if (size_ > 0) outside_below(root(), 0, lower, upper, f);
  }

  /// Bytes allocated, free nodes included.
  std::size_t bytes() const { return leaves_.bytes() + branches_.bytes(); }

 private:
  using branch = detail::key_branch<T>;
  static constexpr std::uint32_t leaf_least = leaf_size / 4, branch_least = fan_out / 4;

  std::uint32_t size_of(int height, std::uint32_t node) const {
    return height == 0 ? leaves_[node].size : branches_[node].size;
  }

  /// Computes the summary of a node from its entries: O(size of the node).
  template <class Facts>
  range describe(int height, std::uint32_t node, Facts const& facts) const {
    if (height == 0) {
      leaf const& l = leaves_[node];
      range r{l.size, l.id[0], l.key[0], l.key[l.size - 1], 0};
      if (bound_ > 0)
        for (std::uint32_t i = 0; i < l.size; ++i) r.bound = (std::max)(r.bound, facts.bound(l.id[i]));
      return r;
    }
    branch const& b = branches_[node];
    range r{0, b.first_id[0], b.first[0], b.last[b.size - 1], 0};
    for (std::uint32_t c = 0; c < b.size; ++c) {
      r.keys += b.keys[c];
      r.bound = (std::max)(r.bound, b.bound[c]);
    }
    return r;
  }

  position normal(position p) const {
    leaf const& l = leaves_[p.node];
    return p.at == l.size && l.after != nothing ? position{l.after, 0, p.rank} : p;
  }

  /// The first key for which `before` is false. The keys for which it is true must come first.
  template <class Before>
  position partition(Before const& before) const {
    if (size_ == 0) return {root_, 0, 0};
    std::uint32_t node = root_;
    index_t rank = 0;
    for (int height = height_; height > 0; --height) {
      branch const& b = branches_[node];
      std::uint32_t c = 0;
      for (std::uint32_t i = 1; i < b.size; ++i) c += before(b.first[i]);
      for (std::uint32_t i = 0; i < c; ++i) rank += index_t(b.keys[i]);
      node = b.child[c];
    }
    leaf const& l = leaves_[node];
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < l.size; ++i) at += before(l.key[i]);
    return normal({node, at, rank + index_t(at)});
  }

  // ---- insertion: returns the number of a new right neighbour of `node`, or `nothing`
  // --------------------------------

  template <class Facts>
  std::uint32_t insert_below(int height, std::uint32_t node, T key, token id, T bound, Facts const& facts) noexcept {
    if (height == 0) return insert_in_leaf(node, key, id);
    branch& b = branches_[node];
    std::uint32_t c = 0;
    for (std::uint32_t i = 1; i < b.size; ++i) c += b.first[i] <= key;
    std::uint32_t const right = insert_below(height - 1, b.child[c], key, id, bound, facts);
    if (right == nothing) {
      ++b.keys[c];
      if (key < b.first[c]) {
        b.first[c] = key;
        b.first_id[c] = id;
      }
      b.last[c] = (std::max)(b.last[c], key);
      b.bound[c] = (std::max)(b.bound[c], bound);
      return nothing;
    }
    b.put(c, b.child[c], describe(height - 1, b.child[c], facts));
    if (b.size < fan_out) {
      b.make_gap(c + 1);
      b.put(c + 1, right, describe(height - 1, right, facts));
      return nothing;
    }
    std::uint32_t const added = branches_.take();
    branch& r = branches_[added];
    r.size = 0;
    b.share(r, fan_out / 2);
    branch& to = c + 1 <= b.size ? b : r;
    std::uint32_t const at = c + 1 <= b.size ? c + 1 : c + 1 - b.size;
    to.make_gap(at);
    to.put(at, right, describe(height - 1, right, facts));
    return added;
  }

  std::uint32_t insert_in_leaf(std::uint32_t node, T key, token id) noexcept {
    leaf& l = leaves_[node];
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < l.size; ++i) at += l.key[i] <= key;
    if (l.size < leaf_size) {
      l.insert(at, key, id);
      return nothing;
    }
    std::uint32_t const added = leaves_.take();
    leaf& r = leaves_[added];
    r.size = 0;
    r.before = node;
    r.after = l.after;
    if (l.after != nothing) leaves_[l.after].before = added;
    l.after = added;
    // If keys arrive in ascending order, the blocks stay full.
    if (at == leaf_size && r.after == nothing) {
      r.insert(0, key, id);
    } else {
      l.share(r, leaf_size / 2);
      at <= l.size ? l.insert(at, key, id) : r.insert(at - l.size, key, id);
    }
    return added;
  }
  // ---- erasure ------------------------------------------------------------------------------------------------------

  template <class Facts>
  void erase_below(int height, std::uint32_t node, T key, token id, Facts const& facts) noexcept {
    if (height == 0) {
      leaf& l = leaves_[node];
      std::uint32_t at = 0;
      while (l.id[at] != id) ++at;
      l.erase(at);
      return;
    }
    branch& b = branches_[node];
    std::uint32_t c = 0;
    while (c + 1 < b.size &&
           (b.first[c + 1] < key || (b.first[c + 1] == key && facts.arrival(b.first_id[c + 1]) <= facts.arrival(id))))
      ++c;
    erase_below(height - 1, b.child[c], key, id, facts);
    if (size_of(height - 1, b.child[c]) < (height == 1 ? leaf_least : branch_least) && b.size > 1)
      mend(b, c, height - 1, facts);
    else
      b.put(c, b.child[c], describe(height - 1, b.child[c], facts));
  }

  /// Child c is too small: merge it with a neighbor, or share the entries of both evenly.
  template <class Facts>
  void mend(branch& b, std::uint32_t c, int height, Facts const& facts) noexcept {
    std::uint32_t const left = c > 0 ? c - 1 : c, l = b.child[left], r = b.child[left + 1];
    std::uint32_t const all = size_of(height, l) + size_of(height, r);
    bool const join = all <= (height == 0 ? leaf_size : fan_out) * 3 / 4;
    std::uint32_t const keep = join ? all : all / 2;
    if (height == 0)
      leaves_[l].share(leaves_[r], keep);
    else
      branches_[l].share(branches_[r], keep);
    b.put(left, l, describe(height, l, facts));
    if (!join) return b.put(left + 1, r, describe(height, r, facts));
    if (height == 0) {
      std::uint32_t const beyond = leaves_[r].after;
      leaves_[l].after = beyond;
      if (beyond != nothing) leaves_[beyond].before = l;
      leaves_.give(r);
    } else {
      branches_.give(r);
    }
    b.close_gap(left + 1);
  }

  template <class F>
  void outside_below(subtree const& t, index_t rank, index_t lower, index_t upper, F const& f) const {
    index_t const end = rank + index_t(t.keys);
    if (end <= lower || rank >= upper || lower >= upper) return f(static_cast<range const&>(t));
    if (rank >= lower && end <= upper) return;
    if (t.height > 0)
      return children(t, [&](subtree const& c) {
        outside_below(c, rank, lower, upper, f);
        rank += index_t(c.keys);
      });
    leaf const& l = leaves_[t.node];
    for (std::uint32_t i = 0; i < l.size; ++i)
      if (index_t const at = rank + index_t(i); at < lower || at >= upper)
        f(range{1, l.id[i], l.key[i], l.key[i], t.bound});
  }

  detail::node_pool<leaf> leaves_;
  detail::node_pool<branch> branches_;
  std::uint32_t root_ = nothing;
  int height_ = 0;
  index_t size_ = 0;
  T bound_ = 0;  ///< bound of all keys; 0: no key has a bound, so none is computed
};

}  // namespace attune::line
