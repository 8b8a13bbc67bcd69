// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d table(i, d) += sum_pairs da  d a / d table(i, d)
//
// The gradients by the tables that `bind` reads. The logit of a pair is computed once more for every few entries, which
// are then the directions of its dual numbers. Operators without such tables have none of this.
#pragma once

#include <vector>

#include <attune/exec/cpu/contraction/sinks.hpp>
#include <attune/exec/cpu/row/bind.hpp>
#include <attune/operators/entries.hpp>

namespace attune::exec_cpu {

/// No table is read in `bind`.
template <class T, class Arch, class Op, bool = attune::detail::has_entries<Op>>
class entry_gradients {
 public:
  template <class Facts>
  entry_gradients(Op const&, Facts const&) {}
  template <class B, class Moved>
  ATTUNE_INLINE void pull(int, Moved const*, index_t, B const&) {}
  void flush(Op const&, gradient_sinks<T>&) const {}
};

template <class T, class Arch, class Op>
class entry_gradients<T, Arch, Op, true> {
  using batch = typename tiling<T, Arch>::batch;
  static constexpr int vectors = tiling<T, Arch>::vectors, pairs = Op::contractions::size,
                       some = attune::detail::entries_at_once;
  using D = dual<batch, some>;
  using bound = decltype(std::declval<Op const&>().bind(std::declval<row<D> const&>()));

 public:
  /// Binds the rows of a tile once for each pass. `facts`: one row of batches for each vector of the tile.
  template <class Facts>
  ATTUNE_NOINLINE entry_gradients(Op const& op, Facts const& facts) {
    index_t count = 0;
    for (operator_table const& x : listed_tables(op)) count += attune::detail::entries_of(x);
    for (index_t first = 0; first < count; first += some)
      for (int v = 0; v < vectors; ++v) {
        parameter_seeds seeds;
        seeds.first_entry = int(first);
        seeds.entries = some;
        passes_.push_back(op.bind(lifted(facts[v], lift<D>{facts[v].numbers, seeds})));
      }
    sums_.assign(passes_.size() * std::size_t(some), batch(T(0)));
  }

  /// Adds a pair of vector v with key j. `moved`: its contractions, as dual numbers. `by_logit`: its gradient, 0 in
  /// lanes that do not see the key.
  template <class Moved>
  ATTUNE_NOINLINE void pull(int v, Moved const* moved, index_t j, batch const& by_logit) {
    D x[pairs + 1];
    for (int c = 0; c < pairs; ++c) x[c] = D(moved[c].value);
    key<D> const at{D(batch(T(j)))};
    for (std::size_t n = std::size_t(v); n < passes_.size(); n += std::size_t(vectors)) {
      D const a = passes_[n].logit(x, at);
      batch* const sum = sums_.data() + n * std::size_t(some);
      for (int k = 0; k < some; ++k) sum[k] = sum[k] + attune::detail::chained(by_logit, a.tangent[k]);
    }
  }

  /// Passes the sums to the tables.
  ATTUNE_NOINLINE void flush(Op const& op, gradient_sinks<T>& to) const {
    index_t entry = 0;
    for (operator_table const& x : listed_tables(op)) {
      index_t const count = attune::detail::entries_of(x), columns = x.at->columns();
      for (index_t n = 0; n < count; ++n, ++entry)
        for (int v = 0; v < vectors; ++v) {
          alignas(64) T lanes[std::size_t(batch::size)];
          sums_[std::size_t((entry / some * vectors + v) * some + entry % some)].store_aligned(lanes);
          for (T const& lane : lanes) to.sum_of (*x.at)(0, 0, n / columns, n % columns) += double(lane);
        }
    }
  }

 private:
  std::vector<bound> passes_;  ///< [pass][vector]
  std::vector<batch> sums_;    ///< [pass][vector][entry]
};

}  // namespace attune::exec_cpu
