// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_case c(seed, n);   c.problem, c.kind, c.defect;   words(c.defect), named_right(c.problem, c.defect, report)
//
// Problems, correct kernels and defects, drawn at random: what is wrong x where x how much.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <attune/testing/verdict_report.hpp>

#include "simulated_kernel.hpp"

namespace attune::test {

inline char const* name_of(fault f) {
  constexpr char const* names[] = {"none",
                                   "scale",
                                   "out",
                                   "keys lost",
                                   "keys twice",
                                   "mask later",
                                   "mask earlier",
                                   "mask ignored",
                                   "mask top-left",
                                   "sum in bf16",
                                   "sum in fp16",
                                   "accumulator in bf16",
                                   "accumulator in fp16",
                                   "logits in bf16",
                                   "logits in fp16",
                                   "P in bf16",
                                   "P in fp16",
                                   "not rescaled",
                                   "values late",
                                   "a weight wrong",
                                   "neighbor's batch",
                                   "neighbor's head",
                                   "lse in base 2",
                                   "lse off"};
  return names[int(f)];
}
inline char const* name_of(place p) {
  constexpr char const* names[] = {"everywhere",     "one head",  "one batch element",
                                   "half of a tile", "last rows", "long rows"};
  return names[int(p)];
}
inline std::string words(planted const& d) {
  return std::string(name_of(d.what)) + ", " + name_of(d.where) + ", " + std::to_string(d.size);
}

/// The names that a report may give a defect, up to '|'; "": none is known.
inline std::string causes_of(planted const& d) {
  switch (d.what) {
    case fault::scale:
      return "kernel.scale";
    case fault::out:
      return "out";
    case fault::keys_lost:
      return "keys missing:";
    case fault::keys_twice:
      return "keys counted twice:";
    case fault::mask_later:
      return "mask shifted by +1|one key too many at the end";
    case fault::mask_earlier:
      return "mask shifted by -1|last visible key missing";
    case fault::mask_ignored:
      return "mask ignored";
    case fault::mask_top_left:
      return "mask aligned top-left";
    case fault::logits_bf16:
      return "logits rounded to bf16";
    case fault::logits_fp16:
      return "logits rounded to fp16";
    case fault::weights_bf16:
      return "probabilities rounded to bf16|probabilities or sums";
    case fault::weights_fp16:
      return "probabilities rounded to fp16|probabilities or sums";
    case fault::values_late:
      return "values shifted by one key";
    case fault::lse_base_two:
      return "lse in base 2";
    case fault::lse_off:
      return "lse|only the lse is wrong";
    case fault::neighbor_batch:
      return "keys and values of the next batch element";
    case fault::neighbor_head:
      return "keys and values of the next key head|key heads interleaved";
    case fault::denominator_bf16:
    case fault::denominator_fp16:
      return "sum of weights|only the lse is wrong";
    case fault::accumulator_bf16:
    case fault::accumulator_fp16:
      return "sums of out|probabilities or sums";
    case fault::value_wrong:
      return "the weight of key|keys missing:|keys counted twice:";
    default:
      return "";
  }
}

/// A case of the study: number n of a seed.
struct drawn_case {
  simulated_problem problem;
  kernel_kind kind;
  planted defect;

  drawn_case(std::uint64_t seed, std::uint64_t n) : random_(seed * 1000003 + n) {
    constexpr index_t sizes[][6] = {// batch, heads, key heads, queries, keys, width
                                    {1, 4, 2, 37, 61, 16},  {2, 8, 4, 32, 48, 16},  {1, 16, 4, 72, 130, 16},
                                    {4, 4, 4, 64, 64, 32},  {1, 8, 1, 1, 2050, 32}, {2, 4, 2, 2, 4099, 16},
                                    {1, 32, 8, 32, 96, 16}, {1, 2, 2, 130, 260, 32}};
    auto const& e = sizes[below(8)];
    problem.batch = e[0], problem.heads = e[1], problem.key_heads = e[2], problem.queries = e[3], problem.keys = e[4];
    problem.width = e[5];
    problem.causal = below(4) != 0;
    constexpr storage formats[] = {storage::fp32, storage::bf16, storage::fp16};
    kind.stored = formats[below(3)];
    kind.tile = index_t(16) << below(4);
    kind.splits = below(3) == 0 ? 1 + below(4) : 1;
    kind.base_two = below(2) == 0;
    kind.backwards = below(3) == 0;
    if (kind.stored != storage::fp32 && below(2) == 0) {
      kind.weights = kind.stored;
      kind.divides_first = below(3) == 0;
    }
    // usual, equal logits, peaked, flat, values far from 0
    auto const shape_of_inputs = below(8);
    double const q_size = shape_of_inputs == 0 ? 0 : shape_of_inputs == 1 ? 6 : shape_of_inputs == 2 ? 0.1 : 1;
    double const v_mean = shape_of_inputs == 3 ? 3 : 0;
    fill(problem.q, problem.batch * problem.heads * problem.queries, q_size, 0);
    fill(problem.k, problem.batch * problem.key_heads * problem.keys, 1, 0);
    fill(problem.v, problem.batch * problem.key_heads * problem.keys, 1, v_mean);

    defect.what = fault(1 + below(int(fault::count) - 1));
    defect.where = place(below(int(place::count)));
    defect.head = below(problem.heads);
    defect.batch = below(problem.batch);
    defect.tile = index_t(8) << below(4);
    constexpr double sizes_of[] = {0.003, 0.01, 0.03, 0.1};
    defect.size = sizes_of[below(4)] * (below(2) == 0 ? 1 : -1);
    if (defect.what == fault::keys_lost || defect.what == fault::keys_twice) defect.size = double(1 + below(8));
    if (defect.what == fault::value_wrong) defect.size *= 10;
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

/// Whether the cause begins with one of the names, which '|' separates.
inline bool says(testing::verdict_report const& r, std::string const& causes) {
  for (std::size_t from = 0; !causes.empty() && from <= causes.size();) {
    std::size_t const to = std::min(causes.find('|', from), causes.size());
    if (r.cause() != nullptr && r.cause()->name.rfind(causes.substr(from, to - from), 0) == 0) return true;
    from = to + 1;
  }
  return false;
}
/// Whether a reason has these words, and not a longer number in their place.
inline bool names_region(testing::verdict_report const& r, std::string const& words) {
  for (std::string const& reason : r.reasons)
    for (std::size_t at = reason.find(words); at != std::string::npos; at = reason.find(words, at + 1))
      if (at + words.size() == reason.size() || std::isdigit(reason[at + words.size()]) == 0) return true;
  return false;
}
/// The same queries, written as ranges: "in queries 16..31".
inline std::string words_of_half_tile(simulated_problem const& p, planted const& d) {
  return "queries " + testing::detail::ranges(std::size_t(p.queries),
                                              [&](std::size_t i) { return index_t(i) % d.tile >= d.tile / 2; });
}
/// Whether a report names the region that has the defect.
inline bool names_place(simulated_problem const& p, planted const& d, testing::verdict_report const& r) {
  switch (d.where) {
    case place::one_head:
      return names_region(r, "in head " + std::to_string(d.head));
    case place::one_batch:
      return names_region(r, "in batch element " + std::to_string(d.batch));
    case place::half_tile:
      return names_region(r, "i mod " + std::to_string(d.tile)) || names_region(r, words_of_half_tile(p, d));
    case place::last_rows:
    case place::long_rows: {  // "in queries A..B" or "in queries A", where A is one of its rows
      std::string all;
      for (std::string const& reason : r.reasons) all += reason + "\n";
      std::size_t const at = all.find("in queries ");
      index_t const first = d.where == place::last_rows ? p.queries - (p.queries + 7) / 8 : p.queries / 2;
      return at != std::string::npos && std::atoi(all.c_str() + at + 11) + 1 >= first * 7 / 8;
    }
    default:
      return false;
  }
}

/// Whether a report names the defect, or the region that has it.
inline bool named_right(simulated_problem const& p, planted const& d, testing::verdict_report const& r) {
  return says(r, causes_of(d)) || names_place(p, d, r);
}

}  // namespace attune::test
