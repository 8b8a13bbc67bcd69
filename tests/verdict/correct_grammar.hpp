// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   correct_forward c(seed, n);    c.problem, c.kind, c.words()
//   correct_backward c(seed, n);   c.problem, c.dout, c.kind, c.words()
//
// Kernels that are right, drawn at random: more problems, inputs and ways to sum than defects are planted in.
#pragma once

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "defect_grammar.hpp"
#include "simulated_backward.hpp"

namespace attune::test {

/// Inputs that are hard in one way.
enum class input_kind {
  equal_keys,    ///< in each head. Forward alone: some gradients are 0, and their rounding is all that is left
  equal_values,  ///< the same
  usual,
  equal_logits,   ///< q is 0
  equal_queries,  ///< in each head: all rows round alike
  peaked,
  flat,
  huge_logits,
  far_keys,    ///< a mean of 2
  far_values,  ///< a mean of 3
  huge_values,
  tiny_values,
  huge_cotangents,  ///< backward alone
  tiny_cotangents,  ///< the same
  count
};
inline char const* name_of(input_kind k) {
  constexpr char const* names[] = {"equal keys",  "equal values", "usual",       "equal logits", "equal queries",
                                   "peaked",      "flat",         "huge logits", "far keys",     "far values",
                                   "huge values", "tiny values",  "huge dout",   "tiny dout"};
  static_assert(std::size(names) == std::size_t(input_kind::count));
  return names[int(k)];
}

/// The parts that forward and backward cases share.
class correct_numbers : protected drawn_numbers {
 public:
  simulated_problem problem;
  input_kind inputs = input_kind::usual;

 protected:
  using drawn_numbers::drawn_numbers;

  index_t draw_lanes() { return one_of({1, 1, 4, 16, 256}); }
  /// A third of the problems whose heads allow it have values with other heads than keys.
  void draw_value_heads() {
    if (below(3) != 0) return;
    problem.value_heads = problem.key_heads > 1 ? problem.key_heads / 2 : problem.heads;
    if (problem.key_heads % 2 != 0 && problem.key_heads > 1) problem.value_heads = problem.key_heads;
  }
  /// From the kinds `first`, ..., before `last`.
  void draw_inputs(storage stored, input_kind first, input_kind last, double peaked, double tiny) {
    simulated_problem& p = problem;
    inputs = input_kind(int(first) + int(below(int(last) - int(first))));
    auto const is = [&](input_kind k) { return inputs == k; };
    double const q = is(input_kind::equal_logits)  ? 0
                     : is(input_kind::peaked)      ? peaked
                     : is(input_kind::flat)        ? 0.1
                     : is(input_kind::huge_logits) ? 10 * peaked
                                                   : 1,
                 v = is(input_kind::huge_values)   ? 1e4
                     : is(input_kind::tiny_values) ? tiny
                                                   : 1;
    fill(p.q, p.of_queries().size(), stored, q, 0);
    fill(p.k, p.of_keys().size(), stored, 1, is(input_kind::far_keys) ? 2 : 0);
    fill(p.v, p.of_values().size(), stored, v, is(input_kind::far_values) ? 3 : 0);
    if (is(input_kind::equal_queries)) repeat(p.q, p.queries);
    if (is(input_kind::equal_keys)) repeat(p.k, p.keys);
    if (is(input_kind::equal_values)) repeat(p.v, p.keys);
  }
  std::string words(char const* formats) const {
    simulated_problem const& p = problem;
    char text[256];
    std::snprintf(text, sizeof text, "%s, %s, %td x %td, %td x %td heads, %td of k, %td of v, width %td%s", formats,
                  name_of(inputs), p.queries, p.keys, p.batch, p.heads, p.key_heads, p.value_heads, p.width,
                  p.causal ? ", causal" : "");
    return text;
  }

 private:
  /// The first of each `rows` rows, in all of them.
  void repeat(std::vector<float>& x, index_t rows) const {
    std::size_t const width = std::size_t(problem.width), each = std::size_t(rows) * width;
    for (std::size_t n = 0; n < x.size(); ++n) x[n] = x[n / each * each + n % width];
  }
};

/// A correct forward pass: number n of a seed.
struct correct_forward : correct_numbers {
  kernel_kind kind;

  correct_forward(std::uint64_t seed, std::uint64_t n) : correct_numbers(seed * 1000003 + n + 151) {
    if (below(50) == 0) {
      draw_extents(problem, {{1, 2, 1, 2, 16384, 16}, {1, 1, 1, 1, 65536, 8}, {2, 1, 1, 1, 131072, 8}});
    } else {
      draw_extents(problem, forward_extents,
                   {{2, 4, 2, 61, 37, 16},  // rows without keys, if causal
                    {1, 6, 3, 5, 1, 16},
                    {3, 6, 2, 24, 24, 64},
                    {1, 2, 2, 16, 33, 128}});
      draw_value_heads();
    }
    draw_kind(kind);
    kind.lanes = draw_lanes();
    kind.patience = below(4) == 0 ? 8.f : 0;
    draw_inputs(kind.stored, input_kind::equal_keys, input_kind::huge_cotangents, 6, 1e-5);
  }
  std::string words() const {
    char text[128];
    std::snprintf(text, sizeof text, "%s, P in %s%s%s, tile %td, %td splits, %td lanes", certify::name_of(kind.stored),
                  certify::name_of(kind.weights), kind.divides_first ? " divided first" : "",
                  kind.patience > 0 ? ", patient" : "", kind.tile, kind.splits, kind.lanes);
    return correct_numbers::words(text);
  }
};

/// A correct backward pass: number n of a seed.
struct correct_backward : correct_numbers {
  std::vector<float> dout;
  backward_kind kind;

  correct_backward(std::uint64_t seed, std::uint64_t n) : correct_numbers(seed * 1000003 + n + 229) {
    draw_extents(problem, backward_extents,
                 {{1, 4, 2, 30, 20, 8},  // rows without keys, if causal
                  {1, 2, 1, 1, 1024, 16},
                  {2, 2, 1, 16, 24, 64}});
    draw_value_heads();
    draw_kind(kind);
    kind.lanes = draw_lanes();
    draw_inputs(kind.stored, input_kind::usual, input_kind::count, 4, 1e-3);
    double const size = inputs == input_kind::huge_cotangents ? 1e3 : inputs == input_kind::tiny_cotangents ? 1e-3 : 1;
    fill(dout, problem.of_queries().size(), kind.stored, size, 0);
  }
  std::string words() const {
    char text[128];
    std::snprintf(text, sizeof text, "%s, products in %s, tile %td, %td lanes", certify::name_of(kind.stored),
                  certify::name_of(kind.products), kind.tile, kind.lanes);
    return correct_numbers::words(text);
  }
};

}  // namespace attune::test
