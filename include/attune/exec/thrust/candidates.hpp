// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   normalizer.solve(column)      the column of a row whose logits are not stored
//
// A column (policies/candidates.hpp) that computes its logits on demand. As soon as few enough of them can have weight,
// these few are kept. A threshold then costs a handful of passes over the keys, and memory is constant.
#pragma once

#include <attune/exec/thrust/rows.hpp>
#include <attune/policies/candidates.hpp>

namespace attune::exec_thrust {

/// The only place where a logit of a row with a candidate set is computed. Two passes over the keys must see the same
/// bits. Two inlined copies need not give the same bits: a compiler may contract one of them with what uses it. So the
/// host does not inline it, and a device rounds it before it is used.
template <class T, class Op>
ATTUNE_HD ATTUNE_PROGRAM T same_logit(row_pairs<T, Op> const& pairs, typename row_pairs<T, Op>::bound const& f,
                                      index_t j) {
  return rounded_here(pairs.logit(f, j));
}

/// Entries must be read in ascending order; each new pass starts from the first.
template <class T, class Op>
class recomputed_column {
 public:
  using bound = typename row_pairs<T, Op>::bound;

  ATTUNE_HD recomputed_column(row_pairs<T, Op> const& pairs, bound const& f, index_t visible)
      : pairs_(pairs), f_(f), size_(visible) {}

  ATTUNE_HD index_t size() const { return size_; }
  ATTUNE_HD T logit(index_t n) {
    if (kept_) return logits_[n];
    if (n == 0) {
      here_ = {0, 0};
      next_ = -1;
    }
    while (next_ < n) advance();
    return same_logit(pairs_, f_, here_.first);
  }
  ATTUNE_HD T highest() const {
    T m = -math::infinity<T>();
    pairs_.for_each_key([&](index_t j) { m = math::larger(m, same_logit(pairs_, f_, j)); });
    return m;
  }
  /// Drops nothing while there are too many entries to keep.
  template <class Interest>
  ATTUNE_HD void keep(Interest const& interest) {
    if (size_ == 0) return;
    if (kept_) {
      index_t count = 0;
      for (index_t n = 0; n < size_; ++n)
        if (interest(logits_[n]) > T(0)) logits_[count++] = logits_[n];
      size_ = count;
      return;
    }
    index_t count = 0;
    pairs_.for_each_key([&](index_t j) {
      if (count > room) return;
      T const a = same_logit(pairs_, f_, j);
      if (!(interest(a) > T(0))) return;
      if (count < room) logits_[count] = a;
      ++count;
    });
    if (count > room) return;
    kept_ = true;
    size_ = count;
  }
  /// Passes over the best `room` keys at a time, starting after those already passed over, until k keys are passed.
  ATTUNE_HD void largest(index_t k, T& cut, T& last) {
    T const off = -math::infinity<T>();
    index_t position[room], passed = -1;
    T level = math::infinity<T>();
    cut = last = off;
    while (k > 0) {
      index_t const wanted = k < room ? k : index_t(room);
      index_t count = 0;
      pairs_.for_each_key([&](index_t j) {
        T const a = same_logit(pairs_, f_, j);
        if (!(a > off)) return;
        if (passed >= 0 && !(a < level || (a == level && j > passed))) return;
        if (count == wanted && !(a > logits_[wanted - 1])) return;  // keys come in ascending order: ties rank below
        index_t n = count < wanted ? count++ : wanted - 1;
        for (; n > 0 && a > logits_[n - 1]; --n) {
          logits_[n] = logits_[n - 1];
          position[n] = position[n - 1];
        }
        logits_[n] = a;
        position[n] = j;
      });
      if (count < wanted) return;
      k -= wanted;
      level = logits_[wanted - 1];
      passed = position[wanted - 1];
    }
    cut = level;
    last = T(double(passed));
  }

 private:
  static constexpr int room = 64;

  ATTUNE_HD void advance() {
    ++here_.first;
    if (next_ < 0 || here_.first >= here_.last)
      here_ = mask::next(pairs_.at.op.mask, row_(), next_ < 0 ? 0 : here_.last);
    ++next_;
  }
  ATTUNE_HD mask_row row_() const { return pairs_.at.p.row(pairs_.b, pairs_.h, pairs_.i); }

  row_pairs<T, Op> const& pairs_;
  bound const& f_;
  index_t size_;
  key_interval here_{0, 0};  // its first key is entry number next_
  index_t next_ = -1;
  bool kept_ = false;
  T logits_[room];
};

}  // namespace attune::exec_thrust
