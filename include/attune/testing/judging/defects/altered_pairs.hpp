// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   altered_pairs pairs(op, inputs, shape);   pairs.keys_of(change, b, h, i);   pair_reader<T, Op>(pairs, change, ...)
//
// The pairs of a query and its keys as a kernel with a defect reads them: which keys, with which contractions, logits
// and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <attune/exec/reference/contractions/known.hpp>
#include <attune/exec/reference/executor.hpp>
#include <attune/exec/reference/row.hpp>
#include <attune/testing/judging/defects/row_change.hpp>
#include <attune/testing/judging/kernel_parts.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// Rounded to a number of significant bits: 11 for tf32, 4 for e4m3.
inline double rounded_to_bits(int bits, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent;
  double const fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

/// The logit of a pair from its contractions.
template <class Op, class T, class Bound>
T logit_of(row_change const& c, Bound const& f, T const* x, key<T> const& k) {
  using gate_of = gate::evaluation<typename Op::gate_policy>;
  T const s = f.score(x, k);
  T a = c.without_gate ? f.length_scale.scale(s)
        : c.without_length_scale
            ? gate_of::gate(f.gate, T(s - f.logit_shift), x + (Op::logit_contractions - gate_of::contractions::size))
            : f.logit_of_score(s, x);
  if (c.cap > 0) a = T(c.cap) * math::tanh(T(a / T(c.cap)));
  if (c.cap_after_mask && a != a) a = -math::infinity<T>();  // no cap: hidden keys stay hidden
  if constexpr (std::is_same_v<T, double>)
    if (c.logits_stored) a = rounded_to(*c.logits_stored, a);
  if constexpr (std::is_same_v<T, double>)
    if (c.logit_bits > 0) a = rounded_to_bits(c.logit_bits, a);
  return a;
}

/// The pairs of an operator's call, with one change.
template <class Op>
class altered_pairs {
  using view = any_tensor;

 public:
  /// The visible keys of a row, from the visible keys that are right.
  using edges = std::function<key_interval(index_t b, index_t h, index_t i, key_interval right)>;

  altered_pairs(Op const& op, inputs<Op, view> const& in, problem_shape const& p) : op_(op), in_(in), p_(p) {}
  altered_pairs(altered_pairs const&) = delete;  // it refers to its arguments

  Op const& op() const { return op_; }
  inputs<Op, view> const& in() const { return in_; }
  problem_shape const& shape_of_call() const { return p_; }

  /// The keys that marked::missing, doubled and elsewhere mean.
  void mark(std::vector<bool> keys) { marked_ = std::move(keys); }
  /// Where marked::elsewhere reads them: `by` keys later, in another batch element.
  void read_from(index_t batch, index_t by) { from_batch_ = batch, from_by_ = by; }
  /// From now on a row sees the keys between these ends; null: as the mask says.
  void see_between(edges ends) { ends_ = std::move(ends); }

  bool is_elsewhere(row_change const& c, index_t j) const {
    return c.keys == marked::elsewhere && marked_[std::size_t(j)];
  }
  index_t elsewhere_batch() const { return from_batch_; }
  index_t elsewhere_by() const { return from_by_; }

  /// The position that the score takes, where it is not the query's.
  std::optional<index_t> moved_position(row_change const& c, index_t b, index_t i) const {
    if (c.query_top_left) return i;
    index_t const position = i + p_.offset_of(b) + c.query;
    if ((c.query != 0 && position >= 0 && position < p_.keys) || c.without_positions) return position;
    return std::nullopt;
  }
  /// The key head of a query head, of `count` heads.
  index_t head_of(heads which, index_t h, index_t count) const {
    index_t const own = p_.group(h, count);
    switch (which) {
      case heads::own:
        return own;
      case heads::interleaved:
        return h % count;
      case heads::next:
        return (own + 1) % count;
      case heads::previous:
        return (own + count - 1) % count;
      case heads::last_first:
        return count - 1 - own;
      case heads::first:
        return 0;
    }
    return own;
  }

  index_t batch_of(batches which, index_t b) const {
    return which == batches::own ? b : which == batches::next ? (b + 1) % p_.batch : 0;
  }

  /// The keys that a row sees, in the order in which it adds them.
  std::vector<index_t> keys_of(row_change const& c, index_t b, index_t h, index_t i) const {
    std::vector<index_t> keys;
    mask_row m = p_.row(b, h, i);
    if (c.all_keys || c.cap_after_mask) {
      for (index_t j = 0; j < p_.keys; ++j) keys.push_back(j);
      return keys;
    }
    if (c.top_left) m.position = i;
    m.position += c.position;
    index_t from = 0;
    for (key_interval k = mask::next(op_.mask, m, 0); !k.empty(); k = mask::next(op_.mask, m, k.last)) {
      key_interval const ends = ends_ ? ends_(b, h, i, k) : k;
      index_t const first = c.from_first_key ? 0 : ends.first + (c.inner && k.first == 0 ? 0 : c.first),
                    last = c.to_last_key       ? p_.keys
                           : c.whole_tiles > 0 ? (ends.last + c.whole_tiles - 1) / c.whole_tiles * c.whole_tiles
                                               : ends.last + (c.inner && k.last == p_.keys ? 0 : c.last);
      for (index_t j = (std::max)(from, first); j < (std::min)(p_.keys, last); ++j) keys.push_back(j);
      from = keys.empty() ? 0 : keys.back() + 1;
    }
    if (c.keys == marked::missing) std::erase_if(keys, [&](index_t j) { return marked_[std::size_t(j)]; });
    if (keys.empty()) return keys;
    if (c.keys == marked::doubled) {
      std::vector<index_t> twice;
      for (index_t j : keys)
        if (marked_[std::size_t(j)]) twice.push_back(j);
      keys.insert(keys.end(), twice.begin(), twice.end());
    }
    if (c.twice == end_key::first) keys.insert(keys.begin(), keys.front());
    if (c.twice == end_key::last) keys.push_back(keys.back());
    return keys;
  }
  /// Whether a row of the right operator sees a key.
  bool hides(index_t b, index_t h, index_t i, index_t j) const {
    key_interval const k = mask::next(op_.mask, p_.row(b, h, i), j);
    return k.empty() || k.first > j;
  }

  /// The contractions of a row with all keys. Most changes keep them. Null: they take too much memory.
  double const* known_contractions(index_t b, index_t h, index_t i) const {
    std::size_t const size = std::size_t(Op::contractions::size) * std::size_t(p_.keys);
    if (size == 0) return nullptr;
    std::size_t const row = std::size_t((b * p_.heads + h) * p_.queries + i);
    auto found = known_.find(row);
    if (found == known_.end()) {
      if ((known_.size() + 1) * size > most_known) return nullptr;
      found = known_.emplace(row, std::vector<double>(size)).first;
      lift<double> const numbers{};
      attune::detail::reference_contraction<double, Op, view> const contract{op_, in_, p_, numbers};
      for (index_t j = 0; j < p_.keys; ++j)
        contract.all(found->second.data() + std::size_t(j) * std::size_t(Op::contractions::size), b, h, i, j);
    }
    return found->second.data();
  }
  /// The keys of all heads as a kernel reads them that takes the rows of the matrix otherwise.
  any_tensor keys_read_as(matrix how) const {
    if constexpr (Op::uses(field::k)) {
      if (how == matrix::right) return in_.k;
      shape const e = in_.k.extents();
      std::vector<double>& to = turned_keys_[int(how)];
      if (to.empty())
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t j = 0; j < e.position; ++j)
              for (index_t d = 0; d < e.feature; ++d) {
                auto const at = place_in(how, e, h, j, d);
                to.push_back(in_.k(b, at.head, at.row, at.feature));
              }
      return tensor<double const>(to, e);
    } else {
      return {};
    }
  }
  struct matrix_place {
    index_t head, row, feature;
  };
  /// The place that a kernel reads for (head, row, feature).
  static matrix_place place_in(matrix how, shape const& e, index_t head, index_t row, index_t feature) {
    switch (how) {
      case matrix::right:
        break;
      case matrix::one_row_late:
        return {head, (std::min)(row + 1, e.position - 1), feature};
      case matrix::by_position: {
        index_t const place = row * e.head + head;
        return {place / e.position, place % e.position, feature};
      }
      case matrix::rows_turned:
        return {head, e.position - 1 - row, feature};
      case matrix::squares: {
        index_t const r = row / 16 * 16, f = feature / 16 * 16;
        if (r + 16 <= e.position && f + 16 <= e.feature) return {head, r + feature - f, f + row - r};
        break;
      }
    }
    return {head, row, feature};
  }

 private:
  static constexpr std::size_t most_known = 4'000'000;  ///< numbers: 32 MB

  Op const& op_;
  inputs<Op, view> const& in_;
  problem_shape const& p_;
  std::vector<bool> marked_;
  edges ends_;
  index_t from_batch_ = 0, from_by_ = 0;
  mutable std::unordered_map<std::size_t, std::vector<double>> known_;  ///< by row
  mutable std::unordered_map<int, std::vector<double>> turned_keys_;    ///< by matrix
};

/// Reads the pairs of one row with a change.
template <class T, class Op>
class pair_reader {
  using view = any_tensor;
  using reference = attune::detail::reference_contraction<T, Op, view>;

 public:
  pair_reader(altered_pairs<Op> const& pairs, row_change const& c, index_t b, index_t h, index_t i,
              lift<T> const& numbers)
      : pairs_(pairs), c_(c), b_(b), h_(h), i_(i), p_(pairs.shape_of_call()), op_(pairs.op()), in_(pairs.in()),
        elsewhere_in_(pairs.in()), contract_{op_, in_, p_, numbers},
        elsewhere_{pairs.op(), elsewhere_in_, p_, numbers} {
    if (auto const position = pairs.moved_position(c, b, i)) p_.set_offset(*position - i);
    if (c.other_rotary) turn_layout(op_.kernel);
    if constexpr (Op::uses(field::k)) {
      any_tensor const keys = pairs.keys_read_as(c.key_rows);
      if (c.key_rows != matrix::right) in_.k = keys;
      if (c.key_head != heads::own || c.key_batch != batches::own)
        in_.k = keys.of_head(pairs.batch_of(c.key_batch, b), pairs.head_of(c.key_head, h, p_.key_heads));
      if (c.keys == marked::elsewhere)
        elsewhere_in_.k = pairs.in().k.of_head(pairs.elsewhere_batch(), p_.group(h, p_.key_heads));
    }
    if (!reads_elsewhere(c)) known_ = pairs.known_contractions(b, h, i);
  }
  pair_reader(pair_reader const&) = delete;  // contract() refers to this object

  struct row_place {
    index_t batch, head, query;
  };
  row_place place() const { return {b_, h_, i_}; }
  reference const& contract() const { return contract_; }

  void contractions(T* x, index_t j) {
    if (c_.without_positions) p_.set_offset(j - i_);
    if (c_.cap_after_mask && pairs_.hides(b_, h_, i_, j))
      return void(std::fill_n(x, Op::contractions::size, T(-math::infinity<T>())));
    if (pairs_.is_elsewhere(c_, j)) return elsewhere_.all(x, b_, h_, i_, j + pairs_.elsewhere_by());
    if (known_ == nullptr) return contract_.all(x, b_, h_, i_, j);
    T copies[Op::contractions::size + 1];
    attune::detail::contractions_with(contract_, x, b_, h_, i_, j, [&](int n) -> T const* {
      if (!std::is_same_v<T, double> && !is_product(typename Op::contractions{}, n)) return nullptr;
      return &(copies[n] = T(known_[std::size_t(j) * std::size_t(Op::contractions::size) + std::size_t(n)]));
    });
  }
  /// Adds the gradients by the contractions of key j, times `by`.
  void pull(T const* by, dense_gradients<T>& to, index_t j) {
    if (c_.without_positions) p_.set_offset(j - i_);
    contract_.pull_all(by, to, b_, h_, i_, j);
  }
  /// Feature d of the value of key j.
  template <class Bound>
  T value(Bound const& f, index_t j, index_t d) {
    if (c_.without_positions) p_.set_offset(j - i_);
    index_t b = pairs_.batch_of(c_.value_batch, b_);
    if (pairs_.is_elsewhere(c_, j)) b = pairs_.elsewhere_batch(), j += pairs_.elsewhere_by();
    auto const at = pairs_.place_in(c_.value_rows, pairs_.in().v.extents(),
                                    pairs_.head_of(c_.value_head, h_, p_.value_heads), j, d);
    if (c_.without_value_gate) return attune::detail::read<T>(pairs_.in().v, b, at.head, at.row, at.feature);
    return attune::detail::value_of_pair(contract_, f, b, h_, i_, at.head, at.row, at.feature);
  }

 private:
  altered_pairs<Op> const& pairs_;
  row_change const& c_;
  index_t b_, h_, i_;
  problem_shape p_;  ///< with the positions that the score sees
  Op op_;
  inputs<Op, view> in_, elsewhere_in_;
  reference contract_, elsewhere_;
  double const* known_ = nullptr;
};

}  // namespace attune::testing::detail
