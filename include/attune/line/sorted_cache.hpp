// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   line::sorted_cache<float> kv({.heads = H, .value_groups = G, .value_width = Dv});
//   line::token t = kv.insert(sort_keys, values);     kv.erase(t);     O(log n) per order, O(G Dv) to store the values
//
// The sorted key-value cache of Scalar Sort. Tokens are ordered by a number, so that the tokens near a query are found
// without reading the others. Values are stored once per group, in the order of arrival; each head has its own order
// over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/line/cache/ordered_keys.hpp>
#include <attune/line/cache/row_store.hpp>

namespace attune::line {

/// How many sort keys per token a cache keeps.
enum class sort_keys {
  per_head,  ///< H keys per token and H orders: every head selects by its own coordinate
  /// G keys per token and G orders: the heads of a group select by one coordinate, each with its own query and tau.
  /// This replaces the paper's "sort head": keys of several heads cannot share one order, because only one head's keys
  /// are sorted in it.
  per_group
};

/// The parts of a token. Head h reads value group h / (heads / value_groups) and vector key h / (heads / key_heads).
struct cache_layout {
  index_t heads = 1;         ///< H: number of query heads
  index_t value_groups = 1;  ///< divides heads
  // The order of these members matters: g++ 12 stores {1, 1, 1, 0} as four times 1 (-O2 -march=native, AVX-512).
  index_t key_width = 0;                              ///< of the vector keys of hybrid attention; 0: none
  index_t value_width = 0;                            ///< at least 1
  index_t key_heads = 0;                              ///< divides heads; 0: as many as heads
  line::sort_keys order = line::sort_keys::per_head;  ///< one order per head, or per value group
};

/// Bytes by purpose. `printed` is the paper's count, in elements of T: G n Dv + H n.
struct cache_memory {
  std::size_t values,  ///< value rows
      vector_keys,     ///< vector keys of hybrid attention
      sort_keys;       ///< sort keys by token
  /// The trees: a second copy of each key, the tokens (a permutation per order), counts and bounds.
  std::size_t orders;
  std::size_t bookkeeping;   ///< arrival numbers, bounds of vector keys
  std::size_t printed;       ///< G n Dv + H n numbers
  std::size_t permutations;  ///< one 32-bit number per token and order, which the paper's formula omits
  /// The bytes in use: everything but `printed` and `permutations`, which are for comparison.
  std::size_t total() const { return values + vector_keys + sort_keys + orders + bookkeeping; }
};

/// The cache of one sequence (one batch element); T is float or double, as stored.
/// It is a value: copies are deep and independent.
/// Errors:      attune::error names function, argument, value and expectation. The cache is then unchanged, also when
///              memory runs out.
/// Complexity:  insert and erase O(H log n + H log K + G Dv + Hk D); lookups O(log n).
/// Threads:     any number of readers, or one writer.
/// Source:      Scalar Sort, "The KV cache is sortable" and "Grouped value attention".
template <class T>
class sorted_cache {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: line::sorted_cache stores float or double");

 public:
  using value_type = T;                ///< the type of all numbers in the cache
  using order_type = ordered_keys<T>;  ///< the keys of one order, sorted

  /// An empty cache. Throws attune::error if the layout is not valid.
  explicit sorted_cache(cache_layout const& layout) : layout_(checked(layout)) { make_stores(); }

  cache_layout const& layout() const { return layout_; }  ///< with key_heads filled in
  index_t size() const { return size_; }                  ///< number of tokens
  /// The number of orders, and of sort keys per token.
  index_t orders() const { return layout_.order == sort_keys::per_head ? layout_.heads : layout_.value_groups; }

  /// Adds a token: orders() sort keys, value_groups rows of values and key_heads rows of vector keys, one after the
  /// other. Sort keys and vector keys must be finite. Values may be anything (a row that no window reaches is never
  /// read).
  token insert(std::span<T const> keys, std::span<T const> values, std::span<T const> vector_keys = {}) {
    check_length("insert", "keys", index_t(keys.size()), orders());
    check_length("insert", "values", index_t(values.size()), values_.width());
    check_length("insert", "vector_keys", index_t(vector_keys.size()), vectors_.width());
    check_finite("insert", "keys", keys);
    check_finite("insert", "vector_keys", vector_keys);
    if (size_ >= most_tokens)
      throw error("line::sorted_cache::insert", "the cache", attune::detail::text(size_, " tokens"), "fewer");

    // Everything that can fail comes first.
    token const id = unused_ == none ? token(tokens_) : unused_;
    if (unused_ == none)
      for (auto* store : {&keys_, &values_, &vectors_, &bounds_}) store->reserve(tokens_ + 1);
    arrivals_.reserve(index_t(id) + 1);
    for (auto& o : trees_) o.reserve_one();

    if (unused_ == none)
      ++tokens_;
    else
      unused_ = token(*arrivals_[id]);
    std::copy(keys.begin(), keys.end(), keys_[id]);
    std::copy(values.begin(), values.end(), values_[id]);
    if (!vector_keys.empty()) std::copy(vector_keys.begin(), vector_keys.end(), vectors_[id]);
    *arrivals_[id] = ++arrived_;
    for (index_t g = 0; g < layout_.value_groups; ++g)
      value_bounds_[std::size_t(g)] =
          (std::max)(value_bounds_[std::size_t(g)], norm_bound(value(g, id), layout_.value_width));
    for (index_t o = 0; o < orders(); ++o) {
      T const bound = vector_bound(o, id);
      if (bounds_.width() > 0) bounds_[id][o] = bound;
      trees_[std::size_t(o)].insert(keys[std::size_t(o)], id, bound, facts_of{*this, o});
    }
    ++size_;
    return id;
  }

  /// Removes a token. Its number will be used again.
  void erase(token id) {
    check_token("erase", id);
    for (index_t o = 0; o < orders(); ++o) trees_[std::size_t(o)].erase(keys_[id][o], id, facts_of{*this, o});
    *arrivals_[id] = not_in_use | unused_;
    unused_ = id;
    if (--size_ == 0) value_bounds_.assign(value_bounds_.size(), 0.0);
  }

  /// Whether a token of this number is in the cache.
  bool holds(token id) const { return index_t(id) < tokens_ && (*arrivals_[id] & not_in_use) == 0; }

  /// Removes all tokens and frees their memory.
  void clear() { *this = sorted_cache(layout_); }

  /// A copy of the cache, and the way back to it.
  sorted_cache snapshot() const { return *this; }
  /// Replaces the contents by a snapshot. Throws attune::error if it has another layout.
  void restore(sorted_cache const& saved) {
    cache_layout const &a = layout_, &b = saved.layout_;
    if (a.heads != b.heads || a.value_groups != b.value_groups || a.value_width != b.value_width ||
        a.key_width != b.key_width || a.key_heads != b.key_heads || a.order != b.order)
      throw error("line::sorted_cache::restore", "the snapshot", "another layout", "that of this cache");
    sorted_cache copy(saved);
    *this = std::move(copy);
  }

  // ---- the parts of a token
  // ------------------------------------------------------------------------------------------

  // The functions below do not check their arguments: the token must be in the cache.

  /// The sort key of a token in one order.
  T sort_key(index_t order, token id) const { return keys_[id][order]; }
  /// The value of a token in one value group: value_width numbers.
  T const* value(index_t group, token id) const { return values_[id] + group * layout_.value_width; }
  /// The vector key of a token in one key head: key_width numbers.
  T const* vector_key(index_t key_head, token id) const { return vectors_[id] + key_head * layout_.key_width; }
  /// A number that grows with every insertion and is never used again.
  std::uint64_t arrival(token id) const { return *arrivals_[id]; }

  /// The order that a query head selects in.
  index_t order_of(index_t head) const { return layout_.order == sort_keys::per_head ? head : group_of(head); }
  /// The value group that a query head reads.
  index_t group_of(index_t head) const { return head / (layout_.heads / layout_.value_groups); }
  /// The key head whose vector keys a query head reads.
  index_t key_head_of(index_t head) const { return head / (layout_.heads / layout_.key_heads); }

  // ---- the order ----------------------------------------------------------------------------------------------------

  /// The sorted keys of one order; not checked.
  order_type const& keys(index_t order) const { return trees_[std::size_t(order)]; }
  /// The number of keys < x.
  index_t lower_bound(index_t order, double x) const {
    check_order("lower_bound", order);
    if (x != x) throw error("line::sorted_cache::lower_bound", "x", "NaN", "a number");
    return keys(order).lower_bound(x).rank;
  }
  /// f(key, token) for the keys in [lowest, highest], in order: O(log n + keys).
  template <class F>
  void scan(index_t order, double lowest, double highest, F const& f) const {
    check_order("scan", order);
    if (lowest != lowest || highest != highest)
      throw error("line::sorted_cache::scan", "the range", "NaN", "two numbers");
    order_type const& o = keys(order);
    o.blocks(o.lower_bound(lowest).rank, o.upper_bound(highest).rank,
             [&](typename order_type::leaf const& l, std::uint32_t first, std::uint32_t last) {
               for (std::uint32_t i = first; i < last; ++i) f(l.key[i], l.id[i]);
             });
  }

  /// An upper bound on the Euclidean norm of every value of the group: the largest norm since the cache was last empty.
  /// Infinite if a value is not finite.
  double value_bound(index_t group) const { return value_bounds_[std::size_t(group)]; }

  /// The memory that the cache uses now.
  cache_memory memory() const {
    std::size_t trees = 0;
    for (auto const& o : trees_) trees += o.bytes();
    auto const n = std::size_t(size_);
    return {.values = values_.bytes(),
            .vector_keys = vectors_.bytes(),
            .sort_keys = keys_.bytes(),
            .orders = trees,
            .bookkeeping = arrivals_.bytes() + bounds_.bytes(),
            .printed =
                (std::size_t(layout_.value_groups * layout_.value_width) + std::size_t(layout_.heads)) * n * sizeof(T),
            .permutations = std::size_t(orders()) * n * sizeof(token)};
  }

 private:
  static constexpr token none = (std::numeric_limits<token>::max)();
  static constexpr index_t most_tokens =
      index_t((std::min)(std::uint64_t(none) - 1, std::uint64_t((std::numeric_limits<index_t>::max)())));
  static constexpr std::uint64_t not_in_use = std::uint64_t(1) << 63;
  /// With keys up to this size, differences and sums of differences stay finite.
  static constexpr double largest_key = double((std::numeric_limits<T>::max)()) / 16;

  /// The facts that the tree of one order needs about its tokens.
  struct facts_of {
    sorted_cache const& cache;
    index_t order;
    std::uint64_t arrival(token id) const { return cache.arrival(id); }
    T bound(token id) const { return cache.bounds_.width() > 0 ? cache.bounds_[id][order] : T(0); }
  };

  static cache_layout checked(cache_layout l) {
    auto const positive = [](char const* name, index_t x) {
      if (x < 1) throw error("line::sorted_cache", name, attune::detail::text("the value ", x), "a number >= 1");
    };
    positive("heads", l.heads), positive("value_groups", l.value_groups), positive("value_width", l.value_width);
    if (l.key_width < 0)
      throw error("line::sorted_cache", "key_width", attune::detail::text("the value ", l.key_width),
                  "0 (no vector keys) or a width");
    if (l.key_heads == 0) l.key_heads = l.heads;
    positive("key_heads", l.key_heads);
    for (auto [name, x] : {std::pair{"value_groups", l.value_groups}, std::pair{"key_heads", l.key_heads}})
      if (l.heads % x != 0)
        throw error("line::sorted_cache", name, attune::detail::text("the value ", x),
                    attune::detail::text("a divisor of ", l.heads, " heads"));
    return l;
  }

  void make_stores() {
    keys_ = detail::row_store<T>(orders());
    values_ = detail::row_store<T>(layout_.value_groups * layout_.value_width);
    vectors_ = detail::row_store<T>(layout_.key_heads * layout_.key_width);
    bounds_ = detail::row_store<T>(layout_.key_width > 0 ? orders() : 0);
    trees_.resize(std::size_t(orders()));
    value_bounds_.assign(std::size_t(layout_.value_groups), 0.0);
  }

  /// An upper bound on |x|, in double; infinite if x is not finite.
  static double norm_bound(T const* x, index_t width) {
    double sum = 0, largest = 0;
    for (index_t d = 0; d < width; ++d) sum += double(x[d]) * double(x[d]);
    double const margin = 1 + double(width + 8) * std::numeric_limits<double>::epsilon();
    if (sum > 1e-280 && sum < 1e300) return std::sqrt(sum) * margin;
    for (index_t d = 0; d < width; ++d) {  // zero, not finite, or squares that are not finite
      double const a = std::fabs(double(x[d]));
      if (!(a <= (std::numeric_limits<double>::max)())) return std::numeric_limits<double>::infinity();
      largest = (std::max)(largest, a);
    }
    if (largest == 0) return 0;
    sum = 0;
    for (index_t d = 0; d < width; ++d) sum += (double(x[d]) / largest) * (double(x[d]) / largest);
    return largest * (std::sqrt(sum) * margin);
  }
  /// An upper bound on the norm of the vector keys of all heads that use an order, in T.
  T vector_bound(index_t order, token id) const {
    if (layout_.key_width == 0) return 0;
    double bound = 0;
    for (index_t h = 0; h < layout_.heads; ++h)
      if (order_of(h) == order)
        bound = (std::max)(bound, norm_bound(vector_key(key_head_of(h), id), layout_.key_width));
    T const rounded = T(bound);
    return double(rounded) < bound ? std::nextafter(rounded, std::numeric_limits<T>::infinity()) : rounded;
  }

  static void check_length(char const* function, char const* argument, index_t got, index_t wanted) {
    if (got != wanted)
      throw error(attune::detail::text("line::sorted_cache::", function), argument,
                  attune::detail::text(got, " numbers"), attune::detail::text(wanted));
  }
  static void check_finite(char const* function, char const* argument, std::span<T const> x) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!(std::fabs(double(x[i])) <= largest_key))
        throw error(attune::detail::text("line::sorted_cache::", function), argument,
                    attune::detail::text("the value ", double(x[i]), " at ", i),
                    attune::detail::text("finite numbers up to ", largest_key));
  }
  void check_token(char const* function, token id) const {
    if (!holds(id))
      throw error(attune::detail::text("line::sorted_cache::", function), "token",
                  attune::detail::text("the value ", id), "a token in the cache");
  }
  void check_order(char const* function, index_t order) const {
    if (order < 0 || order >= orders())
      throw error(attune::detail::text("line::sorted_cache::", function), "order",
                  attune::detail::text("the value ", order), attune::detail::text("0 .. ", orders() - 1));
  }

  cache_layout layout_;
  detail::row_store<T> keys_, values_, vectors_, bounds_;
  detail::row_store<std::uint64_t> arrivals_{1};  ///< of an unused token: not_in_use | the next unused token
  std::vector<order_type> trees_;
  std::vector<double> value_bounds_;
  token unused_ = none;
  index_t size_ = 0, tokens_ = 0;
  std::uint64_t arrived_ = 0;
};

}  // namespace attune::line
