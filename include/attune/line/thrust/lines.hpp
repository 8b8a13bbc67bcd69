// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   keys of every head, sorted by their scalar      scan over the keys of each line, from either side
//
// Code that the operators on sorted keys share on Thrust. All heads are sorted at once, by head and then by value. A
// line is the sorted keys of one head with its values and bandwidth; heads that share all three share a line and its
// scan. States carry the number of their line. The product of states of two different lines is the second, so that one
// scan serves all lines.
#pragma once

#include <numeric>

#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

#include <attune/exec/thrust/memory.hpp>
#include <attune/exec/thrust/scan.hpp>
#include <attune/line/call/call.hpp>

namespace attune::line::detail {

/// The number of features of one state, in addition to its mass.
inline constexpr int line_stretch = 8;

/// A key during sorting.
template <class W>
struct sorted_entry {
  W value;
  index_t head, place;
};
struct earlier_entry {
  template <class W>
  ATTUNE_HD bool operator()(sorted_entry<W> const& a, sorted_entry<W> const& b) const {
    return a.head != b.head ? a.head < b.head : a.value < b.value;
  }
};
/// Entry n of (B, H', Lk), in order of position.
template <class W, class T>
struct entry_program {
  tensor<T const> from;
  sorted_entry<W>* entries;
  ATTUNE_HD void operator()(index_t n) const {
    shape const e = from.extents();
    index_t const head = n / e.position, place = n % e.position;
    entries[n] = {W(from(head / e.head, head % e.head, place, 0)), head, place};
  }
};
template <class W>
struct rank_program {
  sorted_entry<W> const* entries;
  W* values;
  index_t* places;
  ATTUNE_HD void operator()(index_t n) const {
    values[n] = entries[n].value;
    places[n] = entries[n].place;
  }
};

/// The keys of every (batch, key head) in ascending order, equal ones in order of position.
template <class W, class Policy>
class sorted_scalars {
 public:
  template <class T>
  sorted_scalars(thrust_executor<T, Policy> const& exec, tensor<T const> const& k)
      : values_(exec, k.extents().size()), places_(exec, k.extents().size()) {
    index_t const n = k.extents().size();
    attune::exec_thrust::numbers<sorted_entry<W>, Policy> memory(exec, n);
    sorted_entry<W>* const entries = memory.data();
    attune::exec_thrust::for_each_task(exec, n, entry_program<W, T>{k, entries});
    ::thrust::stable_sort(exec.policy, entries, entries + n, earlier_entry{});
    attune::exec_thrust::for_each_task(exec, n, rank_program<W>{entries, values_.data(), places_.data()});
  }
  W const* values() { return values_.data(); }
  index_t const* places() { return places_.data(); }

 private:
  attune::exec_thrust::numbers<W, Policy> values_;
  attune::exec_thrust::numbers<index_t, Policy> places_;
};

/// Sorted keys, their values and the heads that read them. Copied to the memory where programs run.
template <class W, class T>
struct key_lines {
  extents e;
  index_t lines;  ///< per batch
  W const* scalars;
  index_t const* places;
  tensor<T const> v, q;

  /// The smallest number of lines: a divisor of the heads that key and value heads divide. All heads if each has its
  /// own bandwidth.
  static index_t count(extents const& e, bool bandwidth_of_heads) {
    return bandwidth_of_heads ? e.heads : std::lcm(e.key_heads, e.value_heads);
  }
  index_t states() const { return e.batch * lines * e.keys; }
  ATTUNE_HD index_t line_of(index_t b, index_t h) const { return b * lines + h * lines / e.heads; }
  /// The first head of a line.
  ATTUNE_HD index_t head_of(index_t line) const { return line % lines * e.heads / lines; }
  ATTUNE_HD index_t batch_of(index_t line) const { return line / lines; }
  /// The sorted keys of a line.
  ATTUNE_HD W const* keys_of(index_t line) const { return scalars + first_of(line); }
  ATTUNE_HD index_t place_of(index_t line, index_t rank) const { return places[first_of(line) + rank]; }
  ATTUNE_HD T value(index_t line, index_t place, index_t d) const {
    return v(batch_of(line), e.value_head(head_of(line)), place, d);
  }
  /// The number of keys before x; the second function counts keys at x too.
  ATTUNE_HD index_t before(index_t line, W const& x) const {
    W const* const k = keys_of(line);
    return index_t(::thrust::lower_bound(::thrust::seq, k, k + e.keys, x) - k);
  }
  ATTUNE_HD index_t not_behind(index_t line, W const& x) const {
    W const* const k = keys_of(line);
    return index_t(::thrust::upper_bound(::thrust::seq, k, k + e.keys, x) - k);
  }

 private:
  ATTUNE_HD index_t first_of(index_t line) const {
    return (batch_of(line) * e.key_heads + e.key_head(head_of(line))) * e.keys;
  }
};

/// The end of a line at which a scan starts.
enum class scan_end { lowest, highest };

/// Entry n of a scan is a key of line n / Lk. Its rank counts from the end where the scan starts.
template <class Lines, class Source, class State>
struct source_program {
  Lines lines;
  Source source;
  scan_end from;
  State* to;
  ATTUNE_HD void operator()(index_t n) const {
    index_t const line = n / lines.e.keys, rank = n % lines.e.keys;
    to[n] = source(lines, line, from == scan_end::lowest ? rank : lines.e.keys - 1 - rank);
  }
};

/// to[n] = the product of the entries of n's line up to n. `product` is associative up to rounding.
template <class Exec, class Lines, class Source, class Product, class State>
void scan_lines(scan_end from, Exec const& exec, Lines const& lines, Source const& source, Product const& product,
                State* to, State* scratch) {
  attune::exec_thrust::for_each_task(exec, lines.states(),
                                     source_program<Lines, Source, State>{lines, source, from, to});
  attune::exec_thrust::scan(exec, to, lines.states(), product, scratch);
}

/// A call on Thrust; rows see all keys.
template <class T, class Policy, class Op>
call<T, Op> full_call(char const* function, thrust_executor<T, Policy> const& exec, Op const& op,
                      inputs<Op, tensor<T const>> const& in, shape const& out) {
  static_assert(
      std::is_same_v<typename call<T, Op>::mask_type, mask::none>,
      "attune: on Thrust, an operator on a line sees all keys: rows that see less are sums over O(log n) runs "
      "of keys, which the CPU's threads do; take cpu{}, or op.dense()");
  return {function, op, in, out, exec.memory};
}

/// Calls run(view of a gradient in the memory where programs run). Afterwards its values are in `to`.
template <class T, class Policy, class Run>
void with_gradient(thrust_executor<T, Policy> const& exec, gradient_array<T>& to, Run const& run) {
  if constexpr (thrust_executor<T, Policy>::memory == memory_kind::host) {
    run(tensor<T>(to.values.data(), to.extents));
  } else {
    attune::exec_thrust::numbers<T, Policy> there(exec, to.extents.size());
    run(tensor<T>(there.data(), to.extents));
    to.values = there.copied();
  }
}
/// Calls run(views) of the gradients by sort_q, sort_k and v.
template <class T, class Policy, class Run>
void with_gradients(thrust_executor<T, Policy> const& exec, dense_gradients<T>& to, Run const& run) {
  with_gradient(exec, to.of(field::sort_q), [&](tensor<T> const& q) {
    with_gradient(exec, to.of(field::sort_k), [&](tensor<T> const& k) {
      with_gradient(exec, to.of(field::v), [&](tensor<T> const& v) { run(gradient_views<T>{q, k, v}); });
    });
  });
}

/// Task (b, h, i), one per query.
struct query_task {
  index_t b, h, i;
  ATTUNE_HD query_task(index_t n, extents const& e)
      : b(n / (e.heads * e.queries)), h(n / e.queries % e.heads), i(n % e.queries) {}
  static index_t count(extents const& e) { return e.batch * e.heads * e.queries; }
};

/// Task (b, key head, j): the sum over the heads that share a key, in units of 1 / tau.
template <class W, class T>
struct shared_key_program {
  extents e;
  parameter tau;
  W const* by_key;
  tensor<T> d_k;
  ATTUNE_HD void operator()(index_t n) const {
    index_t const j = n % e.keys, g = n / e.keys % e.key_heads, b = n / (e.keys * e.key_heads),
                  each = e.heads / e.key_heads;
    W sum(0);
    for (index_t h = g * each; h < (g + 1) * each; ++h)
      sum = sum + by_key[(b * e.heads + h) * e.keys + j] / tau.template value<W>(b, h, 0);
    d_k(b, g, j, 0) = T(sum);
  }
};

}  // namespace attune::line::detail
