// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_case c(seed, n);   c.problem, c.kind, c.defect;   words(c.defect), named_right(c.problem, c.defect, report)
//
// Problems, correct kernels and defects, drawn at random: what is wrong x where x how much.
#pragma once

#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <attune/testing/verdict_report.hpp>

#include "simulated_backward.hpp"
#include "simulated_kernel.hpp"

namespace attune::test {

/// A defect in words, and the names that a report may give it, up to '|'; "": none is known.
struct defect_words {
  char const *name, *causes;
};
/// In the order of `fault`.
inline constexpr defect_words words_of_faults[] = {
    {"none", ""},
    {"scale", "kernel.scale"},
    {"out", "out"},
    {"keys lost", "keys missing:"},
    {"keys twice", "keys counted twice:"},
    {"mask later", "mask shifted by +1|one key too many at the end"},
    {"mask earlier", "mask shifted by -1|last visible key missing"},
    {"mask ignored", "mask ignored"},
    {"mask top-left", "mask aligned top-left"},
    {"sum in bf16", "sum of weights"},
    {"sum in fp16", "sum of weights"},
    {"accumulator in bf16", "sums of out|probabilities or sums"},
    {"accumulator in fp16", "sums of out|probabilities or sums"},
    {"logits in bf16", "logits rounded to bf16"},
    {"logits in fp16", "logits rounded to fp16"},
    {"P in bf16", "probabilities rounded to bf16|probabilities or sums"},
    {"P in fp16", "probabilities rounded to fp16|probabilities or sums"},
    {"not rescaled", ""},
    {"values late", "values shifted by one key"},
    {"a weight wrong", "the weight of key|keys missing:|keys counted twice:"},
    {"neighbor's batch", "keys and values of the next batch element"},
    {"neighbor's head", "keys and values of the next key head|key heads interleaved"},
    {"lse in base 2", "lse in base 2|only the lse is seen to be wrong"},
    {"lse off", "lse|only the lse is seen to be wrong"}};
static_assert(std::size(words_of_faults) == std::size_t(fault::count));
inline char const* name_of(fault f) { return words_of_faults[std::size_t(f)].name; }
inline char const* causes_of(fault f) { return words_of_faults[std::size_t(f)].causes; }
inline char const* name_of(place p) {
  constexpr char const* names[] = {"everywhere",     "one head",  "one batch element",
                                   "half of a tile", "last rows", "long rows"};
  return names[int(p)];
}
inline std::string words(planted const& d) {
  return std::string(name_of(d.what)) + ", " + name_of(d.where) + ", " + std::to_string(d.size);
}

/// Batch, heads, key heads, queries, keys, width.
using extents_of_case = index_t[6];
inline constexpr extents_of_case forward_extents[] = {
    {1, 4, 2, 37, 61, 16},  {2, 8, 4, 32, 48, 16},  {1, 16, 4, 72, 130, 16}, {4, 4, 4, 64, 64, 32},
    {1, 8, 1, 1, 2050, 32}, {2, 4, 2, 2, 4099, 16}, {1, 32, 8, 32, 96, 16},  {1, 2, 2, 130, 260, 32}};
inline constexpr extents_of_case backward_extents[] = {
    {1, 4, 2, 37, 61, 16}, {2, 4, 2, 24, 40, 16},  {1, 8, 2, 32, 48, 8},  {4, 2, 2, 32, 32, 8},
    {1, 4, 1, 4, 260, 16}, {1, 2, 2, 72, 130, 16}, {1, 2, 1, 130, 130, 8}};

/// Numbers of a seed, and the parts that all cases share.
class drawn_numbers {
 protected:
  explicit drawn_numbers(std::uint64_t seed) : random_(seed) {}
  index_t below(index_t n) { return index_t(random_() % std::uint64_t(n)); }
  template <class T, std::size_t N>
  T one_of(T const (&list)[N]) {
    return list[below(index_t(N))];
  }
  /// From one list, or from two together.
  template <std::size_t N>
  void draw_extents(simulated_problem& p, extents_of_case const (&sizes)[N]) {
    set_extents(p, sizes[below(index_t(N))]);
  }
  template <std::size_t N, std::size_t M>
  void draw_extents(simulated_problem& p, extents_of_case const (&sizes)[N], extents_of_case const (&more)[M]) {
    std::size_t const n = std::size_t(below(index_t(N + M)));
    set_extents(p, n < N ? sizes[n] : more[n - N]);
  }
  storage draw_storage() { return one_of({storage::fp32, storage::bf16, storage::fp16}); }
  /// Formats, tiles and orders of a kernel that stores in a format drawn at random.
  void draw_kind(kernel_kind& kind) {
    kind.stored = draw_storage();
    kind.tile = index_t(16) << below(4);
    kind.splits = below(3) == 0 ? 1 + below(4) : 1;
    kind.base_two = below(2) == 0;
    kind.backwards = below(3) == 0;
    if (kind.stored != storage::fp32 && below(2) == 0) {
      kind.weights = kind.stored;
      kind.divides_first = below(3) == 0;
    }
  }
  void draw_kind(backward_kind& kind) {
    kind.stored = draw_storage();
    kind.tile = index_t(16) << below(3);
    kind.backwards = below(3) == 0;
    if (kind.stored != storage::fp32 && below(3) != 0) kind.products = kind.stored;
  }
  void set_extents(simulated_problem& p, extents_of_case const& e) {
    p.batch = e[0], p.heads = e[1], p.key_heads = p.value_heads = e[2], p.queries = e[3], p.keys = e[4], p.width = e[5];
    p.causal = below(4) != 0;
  }
  /// Usual, equal logits, peaked (of this size), flat, values far from 0.
  void draw_tensors(simulated_problem& p, storage stored, double peaked) {
    auto const shape_of_inputs = below(8);
    double const q_size = shape_of_inputs == 0 ? 0 : shape_of_inputs == 1 ? peaked : shape_of_inputs == 2 ? 0.1 : 1;
    fill(p.q, p.batch * p.heads * p.queries * p.width, stored, q_size, 0);
    fill(p.k, p.batch * p.key_heads * p.keys * p.width, stored, 1, 0);
    fill(p.v, p.batch * p.value_heads * p.keys * p.width, stored, 1, shape_of_inputs == 3 ? 3 : 0);
  }
  void fill(std::vector<float>& to, index_t n, storage stored, double size, double mean) {
    std::normal_distribution<double> normal;
    to.resize(std::size_t(n));
    for (float& x : to) x = float(rounded_to(stored, mean + size * normal(random_)));
  }
  /// The place of a defect that is drawn already; tile: the smallest of `tiles` sizes.
  void draw_place(planted& d, simulated_problem const& p, index_t tiles) {
    d.head = below(p.heads);
    d.batch = below(p.batch);
    d.tile = index_t(8) << below(tiles);
    d.size = one_of({0.003, 0.01, 0.03, 0.1}) * (below(2) == 0 ? 1 : -1);
  }

 private:
  std::mt19937_64 random_;
};

/// A case of the study: number n of a seed.
struct drawn_case : private drawn_numbers {
  simulated_problem problem;
  kernel_kind kind;
  planted defect;

  drawn_case(std::uint64_t seed, std::uint64_t n) : drawn_numbers(seed * 1000003 + n) {
    draw_extents(problem, forward_extents);
    draw_kind(kind);
    draw_tensors(problem, kind.stored, 6);
    defect.what = fault(1 + below(int(fault::count) - 1));
    defect.where = place(below(int(place::count)));
    draw_place(defect, problem, 4);
    if (defect.what == fault::keys_lost || defect.what == fault::keys_twice) defect.size = double(1 + below(8));
    if (defect.what == fault::value_wrong) defect.size *= 10;
  }
};

/// Whether the cause, or the observation where there is none, begins with one of the names, which '|' separates.
inline bool says(testing::verdict_report const& r, std::string const& causes) {
  for (std::size_t from = 0; !causes.empty() && from <= causes.size();) {
    std::size_t const to = std::min(causes.find('|', from), causes.size());
    std::string const& said = r.cause() != nullptr ? r.cause()->name : r.observation;
    if (said.rfind(causes.substr(from, to - from), 0) == 0) return true;
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
  return says(r, causes_of(d.what)) || names_place(p, d, r);
}

}  // namespace attune::test
