// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   Z = sum of e^s over the keys read,   T >= sum over the others,   dropped share:  at most T / (Z + T)
//
// One row of decode(): selects keys, computes their weights and the sum of their values, and bounds the rest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <attune/line/cache/scores.hpp>
#include <attune/line/cache/weighted_sum.hpp>
#include <attune/line/certificates.hpp>
#include <attune/line/sorted_cache.hpp>
#include <attune/line/windows.hpp>

namespace attune::line::detail {

template <class T>
struct row_query {
  index_t head;
  double sort_q, tau;
  T const* q;  ///< null: no vector keys
  index_t q_step;
  double scale;
};

/// Scratch memory of one thread, with which it decodes rows.
template <class T, class Arch>
class row_decoder {
  using order = ordered_keys<T>;
  using leaf = typename order::leaf;
  using range = typename order::range;
  using subtree = typename order::subtree;
  using batch = xsimd::batch<double, Arch>;
  static constexpr index_t lanes = index_t(batch::size);
  static constexpr double unit = std::numeric_limits<double>::epsilon() / 2;

 public:
  explicit row_decoder(sorted_cache<T> const& kv)
      : kv_(kv), product_(kv.layout().key_width), sum_(kv.layout().value_width) {}

  /// Bound on the effect of rounding on the result, in units of the largest |v|, for any window. With |log w_j - exact|
  /// <= 14 u |a_j| for the scalar part a_j of the score and (D + 6) u B for the rest, sum_j w_j |a_j| <= ln n + 2 B. In
  /// addition, 2.5 u per exponential, and 67 u for each of the two sums (blocks of 64 keys, compensated between
  /// blocks). For weights twice that, since they are normalized. Finally the rounding to T.
  double rounding(row_query<T> const& r) {
    bind(r);
    return rounding();
  }

  template <class Window>
  row_report run(row_query<T> const& r, Window const& window, T* out, index_t step) {
    bind(r);
    row_report report;
    clear();
    if (keys_->size() == 0) return finish(report, out, step);
    report.rounding = rounding();
    auto const at = keys_->lower_bound(r.sort_q);
    report.insertion = at.rank;
    scores_ = relative_scores(r.sort_q, nearest_key(r.sort_q, at), r.tau);
    choose(r, window, report);
    report.scored = count_;
    return finish(report, out, step);
  }

 private:
  struct candidate {
    double bound;     ///< upper bound of the scores in this subtree
    double priority;  ///< bound + log of the count: log of the weight it could hold
    subtree keys;
    index_t rank;
    bool operator<(candidate const& other) const { return priority < other.priority; }
  };

  void bind(row_query<T> const& r) {
    order_ = kv_.order_of(r.head);
    keys_ = &kv_.keys(order_);
    key_head_ = kv_.key_head_of(r.head);
    group_ = kv_.group_of(r.head);
    scale_ = r.scale;
    hybrid_ = r.q != nullptr;
    if (!hybrid_) return;
    for (index_t d = 0; d < index_t(product_.query().size()); ++d)
      product_.query()[std::size_t(d)] = double(r.q[d * r.q_step]);
    reach_ = std::fabs(scale_) * product_.norm() * (1 + 8 * unit);
  }
  double rounding() const {
    return keys_->size() == 0 ? 0 : weight_rounding() + double(std::numeric_limits<T>::epsilon()) / 2;
  }
  double weight_rounding() const {
    double const n = double(keys_->size()), largest = hybrid_ ? reach(double(keys_->root().bound)) : 0;
    double const width = double(kv_.layout().key_width);
    return unit * (28 * std::log(n) + (2 * width + 68) * largest + 160);
  }
  /// Upper bound of |c <q, k>| for |k| <= bound.
  double reach(double bound) const { return hybrid_ && bound > 0 ? reach_ * bound : 0; }

  void clear() {
    count_ = 0;
    most_ = -std::numeric_limits<double>::infinity();
    mass_ = 0;
    tail_ = tail_of_ends_ = negligible_ = 0;
    sum_.clear();
  }

  double key_at(typename order::position const& p) const { return double(keys_->block(p.node).key[p.at]); }
  double key_of(index_t rank) const { return key_at(keys_->select(rank)); }
  /// Whether q - k_lower <= k_upper - q, exactly.
  static bool lower_is_near(double q, double lower, double upper) {
    exact_difference<double> const a(q, lower), b(q, upper);
    return (a.high + b.high) + (a.low + b.low) <= 0;
  }
  double nearest_key(double q, typename order::position const& at) const {
    if (at.rank == 0) return key_at(at);
    auto below = at;
    step_down(below);
    return at.rank == keys_->size() || lower_is_near(q, key_at(below), key_at(at)) ? key_at(below) : key_at(at);
  }

  // ---- scores of the keys read
  // ----------------------------------------------------------------------------------------

  ATTUNE_NOINLINE void score(leaf const& l, std::uint32_t first, std::uint32_t last) {
    alignas(64) double s[order::leaf_size];
    for (index_t i = 0; i < index_t(order::leaf_size); i += lanes)
      scores_(load_wide<Arch>(l.key + i)).store_aligned(s + i);
    if (hybrid_) add_products(l, first, last, s);
    std::size_t const begin = std::size_t(count_);
    count_ += index_t(last - first);
    if (score_.size() < std::size_t(count_) + order::leaf_size) {
      score_.resize(std::size_t(2 * count_) + 1024);
      id_.resize(score_.size());
    }
    std::copy(s + first, s + last, score_.data() + begin);
    std::copy(l.id + first, l.id + last, id_.data() + begin);
    double const block_most = greatest(s, first, last);
    if (block_most > most_) {
      mass_ *= std::exp(most_ - block_most);
      most_ = block_most;
    }
    mass_ += exponentials(score_.data() + begin, index_t(last - first), s);
  }
  void add_products(leaf const& l, std::uint32_t first, std::uint32_t last, double* s) const {
    index_t const bytes = kv_.layout().key_width * index_t(sizeof(T));
    for (std::uint32_t i = first; i < last; ++i)
      for (index_t line = 0; line < bytes; line += 64)
        ATTUNE_PREFETCH(reinterpret_cast<char const*>(kv_.vector_key(key_head_, l.id[i])) + line);
    for (std::uint32_t i = first; i < last; ++i) s[i] += scale_ * product_.with(kv_.vector_key(key_head_, l.id[i]));
  }
  /// to[i] = e^(from[i] - most), i < n <= 64; `from` has room for a whole block. Returns the sum.
  double exponentials(double const* from, index_t n, double* to) const {
    batch const most(most_);
    batch total(0.0);
    index_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      batch const w = math::exp_nonpositive(batch(batch::load_unaligned(from + i) - most));
      w.store_unaligned(to + i);
      total = total + w;
    }
    double lane[batch::size], sum = 0;
    total.store_unaligned(lane);
    for (double x : lane) sum += x;
    if (i < n) math::exp_nonpositive(batch(batch::load_unaligned(from + i) - most)).store_unaligned(to + i);
    for (; i < n; ++i) sum += to[i];
    return sum;
  }
  /// The greatest of s[first .. last); overwrites the entries outside.
  static double greatest(double* s, std::uint32_t first, std::uint32_t last) {
    double const none = -std::numeric_limits<double>::infinity();
    std::fill(s, s + first, none);
    std::fill(s + last, s + order::leaf_size, none);
    batch most = batch::load_aligned(s);
    for (index_t i = lanes; i < index_t(order::leaf_size); i += lanes)
      most = math::larger(most, batch(batch::load_aligned(s + i)));
    double lane[batch::size];
    most.store_unaligned(lane);
    return *std::max_element(lane, lane + lanes);
  }

  // ---- windows of fixed keys ----------------------------------------------------------------------------------------

  void choose(row_query<T> const& r, nearest const& w, row_report& report) {
    index_t const n = keys_->size(), k = (std::min)(w.k, n);
    index_t lower = report.insertion, upper = lower;
    auto above = keys_->lower_bound(r.sort_q), below = above;  // the next keys to take
    if (lower > 0) step_down(below);
    while (upper - lower < k) {
      if (upper == n || (lower > 0 && lower_is_near(r.sort_q, key_at(below), key_at(above)))) {
        if (--lower > 0) step_down(below);
      } else {
        if (++upper < n) step_up(above);
      }
    }
    read(lower, upper, report);
  }
  void step_down(typename order::position& p) const {
    if (p.at == 0) {
      p.node = keys_->block(p.node).before;
      p.at = keys_->block(p.node).size;
    }
    --p.at;
  }
  void step_up(typename order::position& p) const {
    leaf const& l = keys_->block(p.node);
    if (++p.at < l.size) return;
    p.node = l.after;
    p.at = 0;
  }
  void choose(row_query<T> const&, half const& w, row_report& report) {
    index_t const n = keys_->size(), k = (std::min)(w.k, 2 * n);
    read((std::max)(index_t(0), report.insertion - k / 2), (std::min)(n, report.insertion + (k - k / 2)), report);
  }
  void choose(row_query<T> const& r, radius const& w, row_report& report) {
    double const reach = radius_of(r.tau, w.eps);
    read(keys_->lower_bound(r.sort_q - reach).rank, keys_->upper_bound(r.sort_q + reach).rank, report);
  }
  void read(index_t lower, index_t upper, row_report& report) {
    report.lower = lower;
    report.upper = upper;
    keys_->blocks(lower, upper, [&](leaf const& l, std::uint32_t first, std::uint32_t last) { score(l, first, last); });
    if (count_ == 0) {
      tail_ = tail_of_ends_ = std::numeric_limits<double>::infinity();
      return;
    }
    keys_->outside(lower, upper, [&](range const& t) { tail_ += held_by(bound_of(t), t.keys); });
    index_t const n = keys_->size();
    double const farthest = reach(double(keys_->root().bound));
    if (lower > 0) tail_of_ends_ += held_by(farthest + scores_(key_of(lower - 1)), lower);
    if (upper < n) tail_of_ends_ += held_by(farthest + scores_(key_of(upper)), n - upper);
  }

  // ---- certified ----------------------------------------------------------------------------------------------------

  double bound_of(range const& t) const {
    return scores_.best_of(double(t.first), double(t.last)) + reach(double(t.bound));
  }
  /// Upper bound of the weight of `keys` keys with scores up to `bound`, relative to the greatest score so far.
  template <class Count>
  double held_by(double bound, Count keys) const {
    return double(keys) * std::exp(bound - most_);
  }
  double push(subtree const& t, index_t rank) {
    double const bound = bound_of(t);
    open_.push_back({bound, bound + std::log(double(t.keys)), t, rank});
    std::push_heap(open_.begin(), open_.end());
    return bound;
  }
  double held_by_open() const {
    double sum = 0;
    for (candidate const& c : open_) sum += held_by(c.bound, c.keys.keys);
    return sum;
  }

  /// Most of the tolerance goes to the blocks that stay closed. The rest goes to keys that were scored and turned out
  /// to be negligible.
  ATTUNE_NOINLINE void choose(row_query<T> const&, certified const& w, row_report& report) {
    double const share = 0.75 * w.tolerance / slack();
    open_.clear();
    push(keys_->root(), 0);
    report.lower = keys_->size();
    double estimate = 0;  // of the weight in closed blocks: updated as they are opened, recomputed before it is used
    while (!open_.empty()) {
      double const limit = share * mass_;
      if (count_ > 0 && estimate <= limit && open_.front().priority <= most_ + std::log(limit)) {
        tail_ = held_by_open();
        if (tail_ <= limit) break;
        estimate = tail_;
      }
      candidate const top = open_.front();
      std::pop_heap(open_.begin(), open_.end());
      open_.pop_back();
      if (top.keys.height == 0) {
        leaf const& l = keys_->block(top.keys.node);
        score(l, 0, l.size);
        report.lower = (std::min)(report.lower, top.rank);
        report.upper = (std::max)(report.upper, top.rank + index_t(l.size));
      } else {
        index_t rank = top.rank;
        keys_->children(top.keys, [&](subtree const& t) {
          estimate += held_by(push(t, rank), t.keys);
          rank += index_t(t.keys);
        });
      }
      estimate -= std::exp(top.priority - most_);
      if (!std::isfinite(estimate)) estimate = 0;  // nothing has been scored yet, or nothing with weight
    }
    if (open_.empty()) tail_ = 0;
    tail_of_ends_ = -1;
    negligible_ = (std::max)(0.0, (w.tolerance / slack() * (1 - 1e-9) * mass_ - tail_) / double(count_));
  }

  /// Allowance for rounding in the bounds of the keys not read (16 u |score|, for scores down to -708) and in the
  /// weights.
  double slack() const { return 1 + 4e-12 + 4 * weight_rounding(); }

  // ---- the sum ------------------------------------------------------------------------------------------------------

  row_report finish(row_report& report, T* out, index_t step) {
    double dropped = 0;
    double const mass = weigh(dropped, report.summed);
    sum_values(report.summed);
    for (index_t d = 0; d < kv_.layout().value_width; ++d) out[d * step] = mass > 0 ? T(sum_[d] / mass) : T(0);
    if (keys_->size() == 0) return report;
    report.discarded = missing(tail_ * slack() + dropped, mass, report.summed);
    report.discarded_by_ends = tail_of_ends_ < 0 ? report.discarded : missing(tail_of_ends_, mass, report.summed);
    double const largest = kv_.value_bound(group_);
    report.output_error = largest == 0 ? 0 : (2 * report.discarded + report.rounding) * largest;
    if (mass > 0) report.lse = std::log(mass) + most_ + scores_.best();
    return report;
  }
  double missing(double tail, double mass, index_t summed) const {
    if (summed == keys_->size()) return 0;
    if (!(tail < (std::numeric_limits<double>::max)())) return 1;
    return (tail + underflow) / (mass + (tail + underflow));
  }
  /// Replaces scores by weights and drops the negligible ones. Returns the sum of the weights.
  ATTUNE_NOINLINE double weigh(double& dropped, index_t& kept) {
    compensated mass;
    double w[block];
    kept = 0;
    for (index_t i = 0; i < count_; i += block) {
      index_t const n = (std::min)(block, count_ - i);
      exponentials(score_.data() + i, n, w);
      double sum = 0;
      for (index_t j = 0; j < n; ++j) {
        if (w[j] < negligible_ || w[j] == 0) {
          dropped += w[j];
          continue;
        }
        sum += w[j];
        id_[std::size_t(kept)] = id_[std::size_t(i + j)];
        score_[std::size_t(kept)] = w[j];
        ++kept;
      }
      mass.add(sum);
    }
    return mass.value();
  }
  ATTUNE_NOINLINE void sum_values(index_t count) {
    T const* rows[2][block];
    auto const fetch = [&](index_t i, T const** to) {
      index_t const bytes = kv_.layout().value_width * index_t(sizeof(T)), n = (std::min)(block, count - i);
      for (index_t j = 0; j < n; ++j) {
        to[j] = kv_.value(group_, id_[std::size_t(i + j)]);
        for (index_t line = 0; line < bytes; line += 64) ATTUNE_PREFETCH(reinterpret_cast<char const*>(to[j]) + line);
      }
    };
    if (count > 0) fetch(0, rows[0]);
    for (index_t i = 0, turn = 0; i < count; i += block, turn ^= 1) {
      if (i + block < count) fetch(i + block, rows[turn ^ 1]);
      sum_.add(rows[turn], score_.data() + i, (std::min)(block, count - i));
    }
  }

  static constexpr index_t block = weighted_sum<T, Arch>::block;
  static constexpr double underflow = 1e-290;  ///< more than the sum of all weights below e^-708, which count as 0

  sorted_cache<T> const& kv_;
  query_products<T, Arch> product_;
  weighted_sum<T, Arch> sum_;
  ordered_keys<T> const* keys_ = nullptr;
  relative_scores scores_;
  index_t order_ = 0, key_head_ = 0, group_ = 0, count_ = 0;
  double scale_ = 0, reach_ = 0, most_ = 0, mass_ = 0, tail_ = 0, tail_of_ends_ = 0, negligible_ = 0;
  bool hybrid_ = false;
  std::vector<double> score_;
  std::vector<token> id_;
  std::vector<candidate> open_;
};

}  // namespace attune::line::detail
