// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  contractions, logits, reference -> masses -> value sums    lanes: features, keys, features
//
// The recurrence of operators/row_state.hpp for few rows that share their keys and values. Keys and values are read
// once for all these rows. In pointwise code, every variable is a batch of keys, and a row is bound with the same facts
// in every lane. Policies are inlined into the executor only here and in the tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/cpu/decode/key_sources.hpp>
#include <attune/exec/cpu/decode/sums.hpp>
#include <attune/exec/cpu/decode/visibility.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_cpu {

/// The facts of one row, the same in every lane.
template <class T, class Arch>
ATTUNE_NOINLINE row<xsimd::batch<T, Arch>> row_in_every_lane(problem_shape const& p, index_t b, index_t h, index_t i,
                                                             index_t visible) {
  using batch = xsimd::batch<T, Arch>;
  return attune::detail::row_facts<batch>(p, {b, h, i, i + 1},  // parameters: lane l reads query min(i + l, i)
                                          batch(T(i + p.offset_of(b))), batch(T(visible)),
                                          batch(visible > 0 ? T(std::log(double(visible))) : T(0)),
                                          batch(T(attune::detail::inverse_sqrt_width(p))));
}

/// A worker's memory and the rows of its current task. The operator is of family masses or range_weighted, has no value
/// gate, and has a decode_contractor for each contraction. Source: see key_sources.hpp. Products: float_products or
/// another type.
template <class T, class Arch, class Op, class Source, class Products>
class decode_worker : decode_sums<T, Arch, sums_of<Op>, Products> {
 public:
  using normalizer = typename Op::normalizer_policy;
  using sums = sums_of<Op>;
  using base = decode_sums<T, Arch, sums, Products>;
  using base::adjusted;
  using base::block;
  using base::lanes;
  using typename base::batch;
  using typename base::tile;
  using contractions = typename Op::contractions;
  static constexpr normalizer_traits traits = normalizer::traits;
  /// Buffers of one block of pairs: one per contraction, and at least as many as the weights need.
  static constexpr int buffers = pair_planes<Op>::count;

  decode_worker(Op const& op, Source const& keys, problem_shape const& p, index_t most_rows)
      : base(p, most_rows, buffers, resident_memory_size<T, contractions, packed_of>(p, most_rows),
             block_memory_size<T, contractions, copies_of>(p).shared),
        op_(&op), source_(keys), most_rows_(most_rows), bound_(most_rows) {}

  /// Streams the keys [keys.first, keys.last) through the rows and writes their states to `to`. visible[r] is K of row
  /// r.
  void run(decode_place const& at, index_t const* visible, key_interval keys, row_states<T, sums>& to) {
    start(at, visible, keys.first);
    for (index_t j = nearest(keys.first); j < keys.last; j = nearest(j)) {
      index_t const n = (std::min)({(j / block + 1) * block, keys.last, source_.end(j)}) - j;
      accumulate({j, n}, (std::min)(block, keys.last - j - n));
      j += n;
    }
    this->write_states(to);
  }

 private:
  template <class C>
  using contractor = typename Products::template contractor<C, T, Arch>;
  using bound = decltype(std::declval<Op const&>().bind(std::declval<row<batch> const&>()));
  static_assert(std::is_trivially_destructible_v<bound>);
  using base::at_;
  using base::copy_;
  using base::masses_;
  using base::p_;
  using base::packed_;
  using base::pairs_;
  using base::plane_;
  using base::seen_;

  template <class C>
  using packed_of = typename contractor<C>::packed;
  template <class C>
  using copies_of = typename contractor<C>::copies;

  /// Visits each contraction with its policy and its packed rows.
  template <class Visit>
  void each_contraction(Visit const& visit) const {
    arena<T> packed(packed_.data());
    for_each_contraction(*op_, [&](auto c, auto const& owner, auto number) {
      visit(c, owner, packed_of<decltype(c)>(packed, *p_, most_rows_), number);
    });
  }

  void start(decode_place const& at, index_t const* visible, index_t first) {
    this->clear(at);
    sees_.clear();
    for (index_t r = 0; r < at.rows; ++r) {
      index_t const h = at.head_of(r), i = at.query_of(r);
      bound const& f =
          *std::construct_at(bound_.data() + r, op_->bind(row_in_every_lane<T, Arch>(*p_, at.b, h, i, visible[r])));
      if constexpr (!adjusted)
        masses_[std::size_t(r)].reference = initial_reference<normalizer, decltype(f.normalizer), batch>(f.normalizer);
      sees_.emplace_back(op_->mask, p_->row(at.b, h, i), first);
    }
    each_contraction([&](auto c, auto const& owner, auto const& own, auto) {
      contractor<decltype(c)>::pack(own, source_.resident(), owner, at);
    });
  }

  /// No row sees a key in [j, nearest(j)). A predicate with bounds starts at whole blocks, like one without: then both
  /// have the same bits.
  index_t nearest(index_t j) {
    index_t first = p_->keys;
    for (auto& row : sees_) first = (std::min)(first, row.nearest(j));
    if constexpr (BoundsKeys<typename Op::mask_policy>) first = (std::max)(j, first / block * block);
    return first;
  }

  /// `more`: the number of keys of this task in the next block.
  void accumulate(key_block_place const& keys, index_t more) {
    std::uint64_t any = 0;
    for (std::size_t r = 0; r < sees_.size(); ++r) any |= seen_[r] = sees_[r].block(keys.first, keys.n);
    if (any == 0) return;
    index_t const end = keys.first + keys.n;
    block_of_keys const rows{at_.b, at_.head, at_.head_of(at_.rows - 1), keys.first, keys.n};
    auto const& in = source_.block(rows);
    at_.values = source_.template ahead<field::v>(at_.b, p_->group(at_.head, p_->value_heads), keys.first, end);
    each_contraction([&](auto c, auto const& owner, auto const& own, auto number) {
      constexpr int n = decltype(number)::value, plane = n < Op::logit_contractions ? n : pair_planes<Op>::gate;
      contractor<decltype(c)>::run(pairs_.data() + plane * plane_, own, in, owner, at_, keys,
                                   arena<T>::template in<copies_of<decltype(c)>>(copy_.data(), *p_));
    });
    weigh(keys);
    if constexpr (pair_planes<Op>::factors_weights)
      gate_decode_weights<T, Arch, Op>(*op_, bound_.data(), pairs_.data(), plane_, seen_.data(), at_, keys);
    prefetch_range next;
    if constexpr (Op::uses(field::k))
      next = source_.template ahead<field::k>(at_.b, p_->group(at_.head, p_->key_heads), end, end + more);
    this->add_values(source_.values(rows), keys, next);
    this->each_sum([&](index_t plane, T* sum) {
      pair_values<T, Arch, Op>::add_decoded(*op_, at_, keys, pairs_.data() + plane * plane_, seen_.data(), sum,
                                            this->width_);
    });
  }

  /// Turns contractions into the weights of the values, in place. Updates the reference of each row and the sums of
  /// earned and ground mass. Pairs that are not seen add no mass of any kind.
  ATTUNE_NOINLINE void weigh(key_block_place const& keys) {
    alignas(64) T index[lanes];
    for (int l = 0; l < lanes; ++l) index[l] = T(l);
    batch const lane = batch::load_aligned(index), off(-math::infinity<T>()), zero(T(0));
    index_t const end = tile::whole(keys.n);
    for (index_t r = 0; r < at_.rows; ++r) {
      std::uint64_t const seen = seen_[std::size_t(r)];
      if (seen == 0) continue;
      bound const f = bound_.data()[r];  // a local copy, so the compiler knows that stores of logits do not change it
      decode_masses<T, Arch>& masses = masses_[std::size_t(r)];
      T* const pairs = pairs_.data() + r * block;
      [[maybe_unused]] batch top = masses.reference, low = masses.lowest;
      for (index_t j = 0; j < end; j += lanes) {
        T* const at = pairs + j;
        batch x[buffers];
        for (int c = 0; c < Op::logit_contractions; ++c) x[c] = batch::load_aligned(at + c * plane_);
        batch a = f.logit(x, key<batch>{batch(T(keys.first + j)) + lane});
        a = simd::select(lanes_of<T, Arch>(seen >> j), a, off);
        if constexpr (traits.reference == mass_reference::running_maximum) top = math::larger(top, a);
        if constexpr (adjusted) low = math::select(a == off, low, math::smaller(low, a));
        a.store_aligned(at);
      }
      masses.lowest = low;
      if constexpr (traits.reference == mass_reference::running_maximum)
        if (simd::any(top > masses.reference)) this->raise(r, largest_lane(top));
      batch const m = masses.reference;
      batch earned = zero;
      [[maybe_unused]] batch ground = zero;
      for (index_t j = 0; j < end; j += lanes) {
        T* const at = pairs + j;
        batch const a = batch::load_aligned(at);
        auto const mine = lanes_of<T, Arch>(seen >> j);
        batch e;
        if constexpr (adjusted)
          e = math::exp_nonpositive(batch(a - m));
        else
          e = earned_mass<typename Op::normalizer_policy>(f.normalizer, a, m);
        e = simd::select(mine, e, zero);
        earned = earned + e;
        if constexpr (traits.ground_mass) ground = ground + simd::select(mine, batch(f.normalizer.ground(a, m)), zero);
        e.store_aligned(at);
        if constexpr (adjusted) math::select(a == off, zero, batch(e * (a - m))).store_aligned(at + plane_);
      }
      masses.earned = masses.earned + earned;  // a block sums from zero: error grows with the block, not with Lk
      if constexpr (traits.ground_mass) masses.ground = masses.ground + ground;
    }
  }

  Op const* op_;
  Source source_;
  index_t most_rows_;
  aligned_buffer<bound> bound_;
  std::vector<row_visibility<typename Op::mask_policy>> sees_;
};

}  // namespace attune::exec_cpu
