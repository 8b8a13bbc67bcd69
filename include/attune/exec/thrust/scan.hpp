// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   scan(executor, x, n, product, scratch):   x[i] = x[0] x[1] ... x[i]
//
// Scans chunks of a fixed length, then the products of the chunks. Brackets depend on n alone, so the bits are the same
// on every run and for any number of threads. thrust::inclusive_scan does not promise that for numbers that round. A
// device compiles two short programs.
#pragma once

#include <attune/exec/thrust/memory.hpp>

namespace attune::exec_thrust {

inline constexpr index_t scan_chunk = 64;
inline index_t scan_chunks(index_t n) { return (n + scan_chunk - 1) / scan_chunk; }

/// The number of states that a scan of n needs as scratch.
inline index_t scan_scratch(index_t n) {
  index_t sum = 0;
  for (; n > scan_chunk; sum += n) n = scan_chunks(n) - 1;
  return sum;
}

/// The entries [first, last) of a chunk.
struct chunk {
  index_t first, last;
  ATTUNE_HD chunk(index_t number, index_t n)
      : first(number * scan_chunk), last(first + scan_chunk < n ? first + scan_chunk : n) {}
};

/// to[c] = the product of chunk c.
template <class State, class Product>
struct chunk_product_program {
  State const* x;
  index_t n;
  Product product;
  State* to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t c) const {
    chunk const of(c, n);
    State s = x[of.first];
    for (index_t i = of.first + 1; i < of.last; ++i) s = product(s, x[i]);
    to[c] = s;
  }
};
/// Scans chunk c, starting from the product of all chunks before it: before[c - 1].
template <class State, class Product>
struct chunk_scan_program {
  State* x;
  index_t n;
  Product product;
  State const* before;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t c) const {
    chunk const of(c, n);
    State s = x[of.first];
    if (c > 0) x[of.first] = s = product(before[c - 1], s);
    for (index_t i = of.first + 1; i < of.last; ++i) x[i] = s = product(s, x[i]);
  }
};

/// `product` is associative up to rounding. `scratch` has room for scan_scratch(n) states.
template <class Exec, class State, class Product>
void scan(Exec const& exec, State* x, index_t n, Product const& product, State* scratch) {
  index_t const chunks = scan_chunks(n);
  if (chunks > 1) {
    for_each_task(exec, chunks - 1, chunk_product_program<State, Product>{x, n, product, scratch});
    scan(exec, scratch, chunks - 1, product, scratch + (chunks - 1));
  }
  for_each_task(exec, chunks, chunk_scan_program<State, Product>{x, n, product, scratch});
}

/// The product of `first` and all of x, on the host.
template <class T, class Policy, class State, class Product>
State product_of(thrust_executor<T, Policy> const& exec, State const* x, index_t n, Product const& product,
                 State first) {
  numbers<State, Policy> chunks(exec, scan_chunks(n));
  for_each_task(exec, scan_chunks(n), chunk_product_program<State, Product>{x, n, product, chunks.data()});
  for (State const& s : chunks.copied()) first = product(first, s);
  return first;
}

}  // namespace attune::exec_thrust
