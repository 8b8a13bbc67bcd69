// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_backward c(seed, n);   c.problem, c.dout, c.kind, c.defect;   named_right(c.problem, c.defect, report)
//
// Backward passes and their defects, drawn at random: what is wrong x where x how much.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <attune/testing/verdict_report.hpp>

#include "defect_grammar.hpp"
#include "simulated_backward.hpp"

namespace attune::test {

inline char const* name_of(backward_fault f) {
  constexpr char const* names[] = {"none",
                                   "scale of logits",
                                   "factor of dq",
                                   "factor of dk",
                                   "factor of dv",
                                   "dq without the scale",
                                   "dk without the scale",
                                   "no row term",
                                   "row term in bf16",
                                   "row term in fp16",
                                   "row term of the next query",
                                   "dP in bf16",
                                   "dP in fp16",
                                   "dS in bf16",
                                   "dS in fp16",
                                   "P in bf16",
                                   "P in fp16",
                                   "logits in bf16",
                                   "logits in fp16",
                                   "dq summed in bf16",
                                   "dq summed in fp16",
                                   "dk summed in bf16",
                                   "dk summed in fp16",
                                   "dv summed in bf16",
                                   "dv summed in fp16",
                                   "one head of each group",
                                   "groups summed in bf16",
                                   "groups summed in fp16",
                                   "through the maximum",
                                   "dv from unnormalized P",
                                   "mask later",
                                   "mask earlier",
                                   "mask ignored",
                                   "mask top-left",
                                   "lse off",
                                   "lse of the next query",
                                   "keys skipped in dq",
                                   "queries skipped in dk and dv",
                                   "next key head"};
  return names[int(f)];
}
inline std::string words(planted_backward const& d) {
  return std::string(name_of(d.what)) + ", " + name_of(d.where.where) + ", " + std::to_string(d.where.size);
}

/// The names that a report may give a defect, up to '|'; "": none is known.
inline std::string causes_of(backward_fault f) {
  switch (f) {
    case backward_fault::scale_of_logits:
      return "kernel.scale|factor of the recomputed logits|saved lse";
    case backward_fault::dq_factor:
    case backward_fault::dq_scale_missing:
      return "dq";
    case backward_fault::dk_factor:
    case backward_fault::dk_scale_missing:
      return "dk";
    case backward_fault::dv_factor:
      return "dv";
    case backward_fault::row_term_missing:
      return "row term <dout, out>";
    case backward_fault::row_term_bf16:
    case backward_fault::row_term_fp16:
    case backward_fault::row_term_late:
      return "row term <dout, out>";
    case backward_fault::dp_bf16:
      return "dP rounded to bf16|dS or dP rounded to bf16";
    case backward_fault::ds_bf16:
      return "dS rounded to bf16|dS or dP rounded to bf16";
    case backward_fault::dp_fp16:
      return "dP rounded to fp16|dS or dP rounded to fp16";
    case backward_fault::ds_fp16:
      return "dS rounded to fp16|dS or dP rounded to fp16";
    case backward_fault::weights_bf16:
      return "probabilities rounded to bf16";
    case backward_fault::weights_fp16:
      return "probabilities rounded to fp16";
    case backward_fault::logits_bf16:
      return "logits rounded";
    case backward_fault::logits_fp16:
      return "logits rounded";
    case backward_fault::dq_sum_bf16:
    case backward_fault::dq_sum_fp16:
      return "sums of dq rounded to 16 bits";
    case backward_fault::dk_sum_bf16:
    case backward_fault::dk_sum_fp16:
      return "sums of dk";
    case backward_fault::dv_sum_bf16:
    case backward_fault::dv_sum_fp16:
      return "sums of dv|sums of dk and dv";
    case backward_fault::group_bf16:
    case backward_fault::group_fp16:
      return "sums of dk|sums of dv";
    case backward_fault::group_alone:
      return "gradients of one head of each group alone";
    case backward_fault::through_maximum:
      return "gradient through the maximum";
    case backward_fault::unnormalized_dv:
      return "dv from weights that are not normalized";
    case backward_fault::mask_later:
      return "mask shifted by +1|one key too many at the end";
    case backward_fault::mask_earlier:
      return "mask shifted by -1|last visible key missing";
    case backward_fault::mask_ignored:
      return "mask ignored";
    case backward_fault::mask_top_left:
      return "mask aligned top-left";
    case backward_fault::lse_off:
    case backward_fault::lse_late:
      return "saved lse";
    case backward_fault::keys_skipped:
      return "keys skipped in dq:";
    case backward_fault::queries_skipped:
      return "queries skipped in dk and dv:";
    case backward_fault::next_key_head:
      return "keys and values of the next key head";
    default:
      return "";
  }
}

/// A case of the study: number n of a seed.
struct drawn_backward {
  simulated_problem problem;
  std::vector<float> dout;
  backward_kind kind;
  planted_backward defect;

  drawn_backward(std::uint64_t seed, std::uint64_t n) : random_(seed * 1000003 + n + 77) {
    constexpr index_t sizes[][6] = {// batch, heads, key heads, queries, keys, width
                                    {1, 4, 2, 37, 61, 16}, {2, 4, 2, 24, 40, 16}, {1, 8, 2, 32, 48, 8},
                                    {4, 2, 2, 32, 32, 8},  {1, 4, 1, 4, 260, 16}, {1, 2, 2, 72, 130, 16},
                                    {1, 2, 1, 130, 130, 8}};
    auto const& e = sizes[below(7)];
    problem.batch = e[0], problem.heads = e[1], problem.key_heads = e[2], problem.queries = e[3], problem.keys = e[4];
    problem.width = e[5];
    problem.causal = below(4) != 0;
    constexpr storage formats[] = {storage::fp32, storage::bf16, storage::fp16};
    kind.stored = formats[below(3)];
    kind.tile = index_t(16) << below(3);
    kind.backwards = below(3) == 0;
    if (kind.stored != storage::fp32 && below(3) != 0) kind.products = kind.stored;
    auto const shape_of_inputs = below(8);
    double const q_size = shape_of_inputs == 0 ? 0 : shape_of_inputs == 1 ? 4 : shape_of_inputs == 2 ? 0.1 : 1;
    fill(problem.q, problem.batch * problem.heads * problem.queries, q_size, 0);
    fill(problem.k, problem.batch * problem.key_heads * problem.keys, 1, 0);
    fill(problem.v, problem.batch * problem.key_heads * problem.keys, 1, shape_of_inputs == 3 ? 3 : 0);
    fill(dout, problem.batch * problem.heads * problem.queries, 1, 0);

    defect.what = backward_fault(1 + below(int(backward_fault::count) - 1));
    constexpr place places[] = {place::everywhere, place::everywhere, place::one_head,
                                place::one_batch,  place::half_tile,  place::last_rows};
    defect.where.where = places[below(6)];
    defect.where.head = below(problem.heads);
    defect.where.batch = below(problem.batch);
    defect.where.tile = index_t(8) << below(3);
    constexpr double sizes_of[] = {0.003, 0.01, 0.03, 0.1};
    defect.where.size = sizes_of[below(4)] * (below(2) == 0 ? 1 : -1);
    if (defect.what == backward_fault::keys_skipped || defect.what == backward_fault::queries_skipped)
      defect.where.size = double(1 + below(4));
  }

 private:
  index_t below(index_t n) { return index_t(random_() % std::uint64_t(n)); }
  void fill(std::vector<float>& to, index_t rows, double size, double mean) {
    std::normal_distribution<double> normal;
    to.resize(std::size_t(rows * problem.width));
    for (float& x : to) x = float(rounded_to(kind.stored, mean + size * normal(random_)));
  }
  std::mt19937_64 random_;
};

/// Whether a report names the defect, or the region that has it.
inline bool named_right(simulated_problem const& p, planted_backward const& d, testing::verdict_report const& r) {
  return says(r, causes_of(d.what)) || names_place(p, d.where, r) ||
         (d.where.where == place::one_head && p.heads != p.key_heads &&
          names_region(r, "in key head " + std::to_string(d.where.head * p.key_heads / p.heads)));
}

}  // namespace attune::test
