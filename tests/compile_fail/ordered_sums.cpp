// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over later or earlier keys, and rows that are read at such a sum.
#include "operators.hpp"

template <class... C>
using lookup = kernel_of_list<score_of_three, C...>;
using positions = lookup<contraction::dot, later, contraction::interpolated<later>>;

// expect-error ordered_without_map: write in F: template <class T> static T map\(T const& x\)
struct unnamed {
  template <class T>
  static T of(T const& x) {
    return x;
  }
};
auto op = attention(summed<contraction::later_sum<contraction::dot, unnamed>>{});

// expect-error ordered_without_score: KernelPolicy of an ordered sum: bind\(row\) must return an object with T score\(T const& x, T const& sum
auto op = attention(kernel_of<score_of_one, later>{});

// expect-error ordered_gate: an ordered sum belongs to the kernel
auto op = attention(kernel::dot_product{}, gate_of<gate_of_one, later>{});

// expect-error ordered_in_two_orders: it cannot have sums over later keys and sums over earlier keys
auto op = attention(summed<later>{} + summed<earlier>{});

// expect-error ordered_with_candidates: an ordered sum needs a normalizer of family masses
auto op = attention(summed<later>{}, normalizer::sparsemax{});

// expect-error ordered_accumulate: takes no ordered sums
int main() { accumulate(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {0, 1}); }

// expect-error ordered_decode: takes no ordered sums
int main() { decode(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-no-error ordered
struct with_bound {
  template <class Bound, class T>
  static T map(Bound const&, T const& x) {
    return x;
  }
};
auto one_order = attention(summed<later>{} + summed<contraction::later_sum_with_own<contraction::dot, with_bound>>{});
int main() { forward(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error interpolated_without_sum: contraction::interpolated<S> reads a row at the index that an ordered sum S gives
auto op = attention(lookup<contraction::dot, later, contraction::interpolated<contraction::dot>>{});

// expect-error interpolated_unlisted: contraction::interpolated<S> reads a row at the index that the sum S of the same kernel gives: list S
auto op = attention(lookup<contraction::dot, contraction::interpolated<later>, later>{});

// expect-error interpolated_without_score: KernelPolicy of contraction::interpolated: bind\(row\) must return an object with T score\(T const& x, T
auto op = attention(kernel_of<score_of_two, contraction::interpolated<later>>{});

// expect-error interpolated_without_rows: input .position_scores \(1 or batch, 1 or head, 1 or query, P\) is missing
int main() { forward(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error interpolated_accumulate: takes no ordered sums
int main() { accumulate(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {0, 1}); }

// expect-error interpolated_decode: takes no ordered sums
int main() { decode(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {.out = y}); }

// expect-no-error interpolated
auto named_alone = attention(kernel_of<score_of_three, contraction::interpolated<later>>{});
int main() { forward(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {.out = y}); }
