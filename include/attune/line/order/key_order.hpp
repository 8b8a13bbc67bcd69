// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a row = its keys near by position  +  from each rectangle of visible pairs, the keys near in the sort coordinate
//
// Splits a head into calls of the fused CPU executor that skip the keys with provably negligible weight. Rectangles of
// order.hpp become dense problems in key order whose masks are windows. The states of the parts merge like the states
// of any split. In the backward pass each part starts from the merged states, and gradients add.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/line/order/mass_rows.hpp>
#include <attune/line/order/order.hpp>
#include <attune/line/windows.hpp>
#include <attune/operators/attention.hpp>
#include <attune/policies/kernel/compose.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

/// The operators of the parts of a head. is_divided: rows are divided by their mass. If they are not, the mass is an
/// additional feature.
struct scalar_scores {
  static constexpr bool is_divided = true;
  static constexpr bool has_vectors = false;
  static auto op(parameter const& tau, parameter const&, mask::runtime const& m) {
    return attention(kernel::scalar_sort{tau}, normalizer::softmax{}, m);
  }
};
struct hybrid_scores {
  static constexpr bool is_divided = true;
  static constexpr bool has_vectors = true;
  static auto op(parameter const& tau, parameter const& scale, mask::runtime const& m) {
    return attention(kernel::dot_product{scale} + kernel::scalar_sort{tau}, normalizer::softmax{}, m);
  }
};
struct laplacian_scores {
  static constexpr bool is_divided = true;
  static constexpr bool has_vectors = false;
  static auto op(parameter const& tau, parameter const&, mask::runtime const& m) {
    return attention(kernel::scalar_laplacian{tau}, normalizer::softmax{}, m);
  }
};
struct relu_scores {
  static constexpr bool is_divided = false;
  static constexpr bool has_vectors = false;
  static auto op(parameter const&, parameter const&, mask::runtime const& m) {
    return attention(kernel::scalar_difference{}, normalizer::generic<normalizer::map::relu, divisor::one>{}, m);
  }
};

/// The tensors of one head, and the tau and scale of its rows.
template <class T>
struct head_tensors {
  tensor<T const> sort_q, sort_k, q, k, v;  ///< (1, 1, L, F)
  std::vector<double> tau, scale;           ///< per query

  /// Head h of x.
  template <class E>
  static tensor<E> of_head(tensor<E> const& x, index_t b, index_t h) {
    shape const e = x.extents();
    if (x.absent()) return x;
    return {x.data() == nullptr ? nullptr : x.row(b, h, 0), {1, 1, e.position, e.feature}, x.steps()};
  }
};

/// The queries and keys of one call, and the window of each query, as ranks in `keys`.
struct key_order_part {
  std::vector<index_t> queries, keys;
  std::vector<key_interval> windows;
};

/// The tensors of a part, copied row by row in the executor's type W.
template <class W, class T, class Scores>
class part_problem {
 public:
  using op_type = decltype(Scores::op(parameter(), parameter(), mask::runtime{}));

  part_problem(head_tensors<T> const& from, key_order_part const& part)
      : windows_(part.windows), queries_(index_t(part.queries.size())), keys_(index_t(part.keys.size())) {
    take(sort_q_, from.sort_q, part.queries);
    take(sort_k_, from.sort_k, part.keys);
    value_width_ = from.v.extents().feature;
    take(v_, from.v, part.keys);
    if constexpr (!Scores::is_divided) add_ones();
    if constexpr (Scores::has_vectors) {
      take(q_, from.q, part.queries);
      take(k_, from.k, part.keys);
    }
    for (index_t const i : part.queries) {
      tau_.push_back(from.tau[std::size_t(i)]);
      scale_.push_back(from.scale[std::size_t(i)]);
    }
    width_ = from.q.extents().feature;
  }
  op_type op() const {
    return Scores::op(per_query(tau_, 1), per_query(scale_, 1), mask::runtime{windows_.data(), {1, 1, queries_, 1}});
  }
  inputs<op_type, tensor<W const>> in() const {
    return make_inputs<op_type, tensor<W const>>([&]<field F>() {
      if constexpr (F == field::sort_q) return view(sort_q_, queries_, 1);
      if constexpr (F == field::sort_k) return view(sort_k_, keys_, 1);
      if constexpr (F == field::q) return view(q_, queries_, width_);
      if constexpr (F == field::k) return view(k_, keys_, width_);
      if constexpr (F == field::v) return view(v_, keys_, value_width_);
    });
  }
  /// States of the right shape, to be filled.
  states_of<W, op_type> blank_states() const {
    auto const all = in();
    op_type const what = op();
    return {what, attune::detail::checked_inputs("sorted", what, all)};
  }

  /// Copies the rows `ids` of a tensor of one head, in that order, into dense memory.
  static void take(std::vector<W>& to, tensor<T const> const& from, std::vector<index_t> const& ids) {
    index_t const width = from.extents().feature, step = from.steps().feature;
    to.resize(ids.size() * std::size_t(width));
    W* at = to.data();
    for (index_t const i : ids) {
      T const* const row = from.row(0, 0, i);
      if (step == 1)
        std::copy_n(row, width, at);
      else
        for (index_t d = 0; d < width; ++d) at[d] = W(row[d * step]);
      at += width;
    }
  }
  static tensor<W const> view(std::vector<W> const& x, index_t rows, index_t width) {
    return {x.data(), {1, 1, rows, width}};
  }
  index_t value_width() const { return value_width_; }

 private:
  void add_ones() {
    std::vector<W> wider;
    wider.reserve(v_.size() + std::size_t(keys_));
    for (index_t j = 0; j < keys_; ++j) {
      wider.insert(wider.end(), v_.begin() + j * value_width_, v_.begin() + (j + 1) * value_width_);
      wider.push_back(W(1));
    }
    v_ = std::move(wider);
    ++value_width_;
  }

  std::vector<key_interval> const& windows_;
  index_t queries_, keys_, width_ = 0, value_width_ = 0;
  std::vector<W> sort_q_, sort_k_, q_, k_, v_;
  std::vector<double> tau_, scale_;
};

/// The pairs that for_each_visible does not put into rectangles: up to two short stretches of keys per query, in the
/// order of positions.
class near_stretches {
 public:
  explicit near_stretches(index_t queries) {
    for (auto& x : of_row_) x.resize(std::size_t(queries));
  }
  void clear() {
    for (auto& x : of_row_) std::fill(x.begin(), x.end(), key_interval{0, 0});
  }
  void add(index_t i, index_t first, index_t last) {
    of_row_[of_row_[0][std::size_t(i)].empty() ? 0 : 1][std::size_t(i)] = {first, last};
  }
  /// Calls use(part) for at most `most` queries at a time, so that the copies of a call stay in cache.
  template <class Use>
  void for_each_part(index_t most, Use const& use) const {
    for (std::vector<key_interval> const& rows : of_row_)
      for (index_t begin = 0; begin < index_t(rows.size()); begin += most) {
        key_order_part part;
        key_interval used{(std::numeric_limits<index_t>::max)(), 0};
        for (index_t i = begin; i < (std::min)(begin + most, index_t(rows.size())); ++i) {
          key_interval const w = rows[std::size_t(i)];
          if (w.empty()) continue;
          part.queries.push_back(i);
          part.windows.push_back(w);
          used = {(std::min)(used.first, w.first), (std::max)(used.last, w.last)};
        }
        if (used.empty()) continue;
        for (key_interval& w : part.windows) w = {w.first - used.first, w.last - used.first};
        for (index_t j = used.first; j < used.last; ++j) part.keys.push_back(j);
        use(std::move(part));
      }
  }

 private:
  std::vector<key_interval> of_row_[2];
};

/// Bounds for dropping keys from the rows of one head, as logs: a lower bound of each row's mass, and an upper bound of
/// the mass that it lost. |c <q, k>| <= reach_i |k| by Cauchy-Schwarz. If a norm is not finite, no key is dropped.
class row_bounds {
  static constexpr double none = -std::numeric_limits<double>::infinity();

 public:
  row_bounds(index_t queries, double tolerance)
      : tolerance_(tolerance), found_(std::size_t(queries), none), lost_(found_), reach_(found_.size(), 0.0) {}

  double& reach(index_t i) { return reach_[std::size_t(i)]; }
  double found(index_t i) const { return found_[std::size_t(i)]; }
  double lost(index_t i) const { return lost_[std::size_t(i)]; }
  /// Records that the row has a mass of at least e^log_mass.
  void find(index_t i, double log_mass) { found_[std::size_t(i)] = (std::max)(found_[std::size_t(i)], log_mass); }
  /// For keys with norms of at most `longest`: each key farther away than this radius holds at most tolerance / visible
  /// of the row.
  double radius(index_t i, double tau, double longest, double visible) const {
    double const room = product(i, longest) - found_[std::size_t(i)] + std::log(visible) - std::log(tolerance_);
    return std::sqrt(tau * (std::max)(room, 0.0)) * (1 + 1e-9);
  }
  /// Records that `count` keys at a distance of at least d were dropped.
  void lose(index_t i, double count, double d, double tau, double longest) {
    if (count == 0) return;
    double const a = d * d / tau, more = std::log(count) + product(i, longest) - a * (1 - 1e-15);
    double& sum = lost_[std::size_t(i)];
    double const high = (std::max)(sum, more), low = (std::min)(sum, more);
    sum = high == none ? none : high + std::log1p(std::exp(low - high)) + 1e-15;
  }
  double product(index_t i, double longest) const {
    double const reach = reach_[std::size_t(i)] * longest;
    return reach <= (std::numeric_limits<double>::max)() ? reach : std::numeric_limits<double>::infinity();
  }

 private:
  double tolerance_;
  std::vector<double> found_, lost_, reach_;
};

inline double norm_of(double const* x, index_t width) {
  double sum = 0;
  for (index_t d = 0; d < width; ++d) sum += x[d] * x[d];
  return std::sqrt(sum) * (1 + double(width + 8) * std::numeric_limits<double>::epsilon());
}

/// The window of a query: as far as `tolerance` requires, or `keys` neighbours in key order, or the distance at which a
/// weight before normalization is `eps`. The last two kinds have no guaranteed bound, but the dropped weight is still
/// measured by a bound.
enum class window_kind { certified, neighbours, radius };
struct window_rule {
  window_kind kind = window_kind::certified;
  double tolerance = 1e-6, eps = 1e-6;
  index_t keys = 64;
};
inline window_rule rule_of(certified const& w) { return {.tolerance = w.tolerance}; }
inline window_rule rule_of(half const& w) { return {.kind = window_kind::neighbours, .keys = w.k}; }
inline window_rule rule_of(radius const& w) { return {.kind = window_kind::radius, .eps = w.eps}; }

/// The window of each query in a rectangle, keys and queries in key order. Queries without a key and keys without a
/// query are removed. score_at(i, j): the score of a pair, or a lower bound of it. O(queries (log keys + D)).
template <class Score>
key_order_part windowed_rectangle(std::span<index_t const> queries, std::span<index_t const> keys,
                                  scalars<double> const& on, std::vector<double> const& tau,
                                  std::vector<double> const& key_norm, std::vector<key_interval> const& seen,
                                  window_rule const& rule, row_bounds& bounds, Score const& score_at) {
  std::vector<double> k;
  double longest = 0;
  for (index_t const j : keys) {
    k.push_back(on.k[std::size_t(j)]);
    double const norm = key_norm[std::size_t(j)];
    longest = norm <= longest ? longest : norm;  // keeps NaN
    if (longest != longest) longest = std::numeric_limits<double>::infinity();
  }
  index_t const n = index_t(k.size());
  key_order_part part;
  key_interval used{n, 0};
  for (index_t const i : queries) {
    double const q = on.q[std::size_t(i)], t = tau[std::size_t(i)];
    index_t const at = std::lower_bound(k.begin(), k.end(), q) - k.begin();
    index_t const nearest = at == n || (at > 0 && q - k[std::size_t(at - 1)] < k[std::size_t(at)] - q) ? at - 1 : at;
    bounds.find(i, score_at(i, keys[std::size_t(nearest)]));
    double const radius = rule.kind == window_kind::radius
                              ? radius_of(t, rule.eps)
                              : bounds.radius(i, t, longest, double(seen[std::size_t(i)].size()));
    key_interval w{0, n};
    if (rule.kind == window_kind::neighbours)
      w = {(std::max)(at - rule.keys / 2, index_t(0)), (std::min)(at - rule.keys / 2 + rule.keys, n)};
    if (rule.kind != window_kind::neighbours && radius <= (std::numeric_limits<double>::max)())
      w = {std::lower_bound(k.begin(), k.end(), q - radius) - k.begin(),
           std::upper_bound(k.begin(), k.end(), q + radius) - k.begin()};
    if (w.empty()) w = {at, at};
    if (w.size() < n) {
      if (w.first > 0) bounds.lose(i, double(w.first), q - k[std::size_t(w.first - 1)], t, longest);
      if (w.last < n) bounds.lose(i, double(n - w.last), k[std::size_t(w.last)] - q, t, longest);
    }
    if (w.empty()) continue;
    part.queries.push_back(i);
    part.windows.push_back(w);
    used = {(std::min)(used.first, w.first), (std::max)(used.last, w.last)};
  }
  if (used.empty()) return part;
  part.keys.assign(keys.begin() + used.first, keys.begin() + used.last);
  for (key_interval& w : part.windows) w = {w.first - used.first, w.last - used.first};
  return part;
}

}  // namespace attune::line::detail
