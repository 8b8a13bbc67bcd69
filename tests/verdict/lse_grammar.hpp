// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lse_case c(seed, n);       c.problem, c.kind, c.wrong, c.words()
//   lse_backward c(seed, n);   c.problem, c.dout, c.kind, c.words()
//
// Kernels that normalize by an lse, drawn at random: correct ones, and an lse that is wrong.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "defect_grammar.hpp"
#include "lse_kernel.hpp"
#include "simulated_backward.hpp"

namespace attune::test {

/// The inputs: the logits of a row have a standard deviation of 0.3 to 60, and in some cases a large mean.
struct lse_inputs : protected drawn_numbers {
  simulated_problem problem;
  double deviation = 1, mean = 0;  ///< of the logits
  char const* values = "";

 protected:
  using drawn_numbers::drawn_numbers;
  /// equal: whether all values may be equal, which leaves gradients through logits nothing but rounding.
  void draw_inputs(storage stored, bool equal) {
    deviation = one_of({0.3, 1., 3., 8., 20., 60.});
    mean = one_of({0., 0., 0., 0., 200., -200.});
    simulated_problem& p = problem;
    fill(p.q, p.of_queries().size(), stored, deviation, 0);
    fill(p.k, p.of_keys().size(), stored, 1, 0);
    if (mean != 0) {  // the last feature moves all logits
      double const root = std::sqrt(std::fabs(mean) * std::sqrt(double(p.width)));
      auto const put = [&](std::vector<float>& to, double x) {
        for (std::size_t at = std::size_t(p.width - 1); at < to.size(); at += std::size_t(p.width))
          to[at] = float(rounded_to(stored, x));
      };
      put(p.q, mean < 0 ? -root : root);
      put(p.k, root);
    }
    auto const which = below(5) + (equal ? 0 : 2);
    values = which == 0 ? ", far values" : which == 1 ? ", equal values" : which == 2 ? ", huge values" : "";
    fill(p.v, p.of_values().size(), stored, which == 2 ? 1e4 : 1, which == 0 ? 3 : 0);
    if (which == 1)
      for (std::size_t x = 0; x < p.v.size(); ++x) p.v[x] = p.v[x % std::size_t(p.width)];
  }
  std::string words(char const* kernel) const {
    simulated_problem const& p = problem;
    char text[320];
    std::snprintf(text, sizeof text, "%s, logits %g +- %g%s, %td x %td, %td x %td heads, %td of k, width %td%s", kernel,
                  mean, deviation, values, p.queries, p.keys, p.batch, p.heads, p.key_heads, p.width,
                  p.causal ? ", causal" : "");
    return text;
  }
};

/// A forward pass: number n of a seed.
struct lse_case : lse_inputs {
  lse_kind kind;
  lse_fault wrong = lse_fault::none;
  bool with_lse = true;  ///< whether the kernel returns its lse

  lse_case(std::uint64_t seed, std::uint64_t n) : lse_inputs(seed * 1000003 + n + 307) {
    draw_extents(problem, {{1, 4, 2, 37, 61, 16},
                           {1, 2, 1, 128, 128, 32},
                           {2, 4, 4, 64, 64, 32},
                           {1, 8, 8, 1, 2050, 32},
                           {1, 2, 2, 16, 33, 128},
                           {1, 4, 2, 3, 1024, 64},
                           {1, 2, 2, 130, 260, 64}});
    kind.formula = lse_formula(below(int(lse_formula::count)));
    kind.stored = draw_storage();
    if (kind.stored != storage::fp32 && below(2) == 0) kind.weights = kind.stored;
    kind.parts = index_t(2) << below(4);
    kind.lanes = one_of({1, 4, 16});
    kind.base_two = below(2) == 0;
    draw_inputs(kind.stored, true);
    with_lse = below(4) != 0;
    wrong = lse_fault(1 + below(int(lse_fault::count) - 1));
  }
  std::string words() const {
    char text[128];
    std::snprintf(text, sizeof text, "%s, %s, P in %s%s, %td parts, %td lanes%s", name_of(kind.formula),
                  certify::name_of(kind.stored), certify::name_of(kind.weights), kind.base_two ? ", base 2" : "",
                  kind.parts, kind.lanes, with_lse ? "" : ", no lse");
    return lse_inputs::words(text);
  }
};

/// A backward pass: number n of a seed. All of them recompute e^(s - lse).
struct lse_backward : lse_inputs {
  std::vector<float> dout;
  backward_kind kind;
  storage narrow = storage::bf16;  ///< of a saved lse that is wrong

  lse_backward(std::uint64_t seed, std::uint64_t n) : lse_inputs(seed * 1000003 + n + 401) {
    draw_extents(problem, backward_extents, {{1, 2, 1, 1, 1024, 16}, {2, 2, 1, 16, 24, 64}});
    draw_kind(kind);
    draw_inputs(kind.stored, false);
    fill(dout, problem.of_queries().size(), kind.stored, 1, 0);
    narrow = one_of({storage::bf16, storage::fp16});
  }
  std::string words() const {
    char text[128];
    std::snprintf(text, sizeof text, "%s, products in %s, tile %td, %td lanes", certify::name_of(kind.stored),
                  certify::name_of(kind.products), kind.tile, kind.lanes);
    return lse_inputs::words(text);
  }
};

}  // namespace attune::test
