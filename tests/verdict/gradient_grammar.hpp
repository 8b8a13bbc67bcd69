// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_backward c(seed, n);   c.problem, c.dout, c.kind, c.defect;   named_right(c.problem, c.defect, report)
//
// Backward passes and their defects, drawn at random: what is wrong x where x how much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <attune/testing/verdict_report.hpp>

#include "defect_grammar.hpp"
#include "simulated_backward.hpp"

namespace attune::test {

/// In the order of `backward_fault`.
inline constexpr defect_words words_of_backward_faults[] = {
    {"none", ""},
    {"scale of logits", "kernel.scale|factor of the recomputed logits|all gradients"},
    {"factor of dq", "dq"},
    {"factor of dk", "dk"},
    {"factor of dv", "dv"},
    {"dq without the scale", "dq"},
    {"dk without the scale", "dk"},
    {"no row term", "row term <dout, out>"},
    {"row term in bf16", "row term <dout, out>"},
    {"row term in fp16", "row term <dout, out>"},
    {"row term of the next query", "row term <dout, out>"},
    {"dP in bf16", "dP rounded to bf16|dS or dP rounded to bf16"},
    {"dP in fp16", "dP rounded to fp16|dS or dP rounded to fp16"},
    {"dS in bf16", "dS rounded to bf16|dS or dP rounded to bf16"},
    {"dS in fp16", "dS rounded to fp16|dS or dP rounded to fp16"},
    {"P in bf16", "probabilities rounded to bf16"},
    {"P in fp16", "probabilities rounded to fp16"},
    {"logits in bf16", "logits rounded"},
    {"logits in fp16", "logits rounded"},
    {"dq summed in bf16", "sums of dq rounded to 16 bits"},
    {"dq summed in fp16", "sums of dq rounded to 16 bits"},
    {"dk summed in bf16", "sums of dk"},
    {"dk summed in fp16", "sums of dk"},
    {"dv summed in bf16", "sums of dv|sums of dk and dv"},
    {"dv summed in fp16", "sums of dv|sums of dk and dv"},
    {"one head of each group", "gradients of one head of each group alone"},
    {"groups summed in bf16", "sums of dk|sums of dv"},
    {"groups summed in fp16", "sums of dk|sums of dv"},
    {"through the maximum", "gradient through the maximum"},
    {"dv from unnormalized P", "dv from weights that are not normalized"},
    {"mask later", "mask shifted by +1|one key too many at the end"},
    {"mask earlier", "mask shifted by -1|last visible key missing"},
    {"mask ignored", "mask ignored"},
    {"mask top-left", "mask aligned top-left"},
    {"lse off", "all gradients|saved lse"},
    {"lse of the next query", "saved lse"},
    {"keys skipped in dq", "keys skipped in dq:"},
    {"queries skipped in dk and dv", "queries skipped in dk and dv:"},
    {"next key head", "keys and values of the next key head"}};
static_assert(std::size(words_of_backward_faults) == std::size_t(backward_fault::count));
inline char const* name_of(backward_fault f) { return words_of_backward_faults[std::size_t(f)].name; }
inline char const* causes_of(backward_fault f) { return words_of_backward_faults[std::size_t(f)].causes; }
inline std::string words(planted_backward const& d) {
  return std::string(name_of(d.what)) + ", " + name_of(d.where.where) + ", " + std::to_string(d.where.size);
}

/// A case of the study: number n of a seed.
struct drawn_backward : private drawn_numbers {
  simulated_problem problem;
  std::vector<float> dout;
  backward_kind kind;
  planted_backward defect;

  drawn_backward(std::uint64_t seed, std::uint64_t n) : drawn_numbers(seed * 1000003 + n + 77) {
    draw_extents(problem, backward_extents);
    draw_kind(kind);
    draw_tensors(problem, kind.stored, 4);
    fill(dout, problem.batch * problem.heads * problem.queries * problem.width, kind.stored, 1, 0);
    defect.what = backward_fault(1 + below(int(backward_fault::count) - 1));
    defect.where.where = one_of(
        {place::everywhere, place::everywhere, place::one_head, place::one_batch, place::half_tile, place::last_rows});
    draw_place(defect.where, problem, 3);
    if (defect.what == backward_fault::keys_skipped || defect.what == backward_fault::queries_skipped)
      defect.where.size = double(1 + below(4));
  }
};

/// Whether a report names the defect, or the region that has it.
inline bool named_right(simulated_problem const& p, planted_backward const& d, testing::verdict_report const& r) {
  // Where q is 0, neither weights nor dk depend on the scale: a factor of dq and a scale that is off are the same.
  bool const scales = (d.what == backward_fault::dq_factor || d.what == backward_fault::dq_scale_missing) &&
                      std::all_of(p.q.begin(), p.q.end(), [](float x) { return x == 0; });
  return says(r, causes_of(d.what)) || (scales && says(r, "kernel.scale")) || names_place(p, d.where, r) ||
         (d.where.where == place::one_head && p.heads != p.key_heads &&
          names_region(r, "in key head " + std::to_string(d.where.head * p.key_heads / p.heads)));
}

}  // namespace attune::test
