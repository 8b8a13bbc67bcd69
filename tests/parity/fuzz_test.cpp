// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every backend against the reference on random problems: any operator, mask, head grouping, parameter granularity and
// memory layout, with empty rows, planted -inf, and NaN wherever no row looks.
//
// Steered by ATTUNE_SEED and ATTUNE_FUZZ_COUNT (support/random.hpp); a failure prints the seed of its case.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "../support/comparison.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("fuzz");

constexpr std::uint64_t fixed_seed = 20260101;
constexpr int patience = 20;  // failures to report before giving up a run

/// The worst error / bound of each backend over a run, with its case.
struct record {
  struct worst_case {
    double ratio = 0;
    std::string where;
  };
  std::map<backend, worst_case> worst;
  int failures = 0;

  void note(sample const& s, backend b, comparison const& c) {
    if (!c.failure.empty()) ++failures;
    worst_case& w = worst[b];
    if (!(c.worst <= w.ratio)) w = {c.worst, s.op->name + ", case seed " + std::to_string(s.seed)};
  }
  void print(std::string const& run) const {
    for (auto const& [b, w] : worst)
      MESSAGE(run << ": worst error / bound on " << std::string(instances::name(b)) << " " << w.ratio << " (" << w.where
                  << ")");
  }
};

template <class Draw>
void fuzz(std::string const& run, std::uint64_t seed, index count, Draw draw) {
  MESSAGE(run << ": " << count << " cases, first case seed " << seed);
  record all;
  for (std::uint64_t n = 0; n < static_cast<std::uint64_t>(count) && all.failures < patience; ++n) {
    sample const s = random_sample(seed + n, draw);
    result const reference = s.op->run(s.p, backend::reference_double, {});
    for (backend b : instances::cpu_backends) {
      options how;
      how.odd_strides = s.seed % 2 == 1;
      comparison const c = compare(s.op->run(s.p, b, how), reference, s.op->bounds(s.p, b));
      all.note(s, b, c);
      CHECK_MESSAGE(c.failure.empty(), describe(*s.op, b, s.n, name(s.mask), s.seed) << c.failure);
    }
  }
  all.print(run);
}

TEST_CASE("fuzz: small problems, fixed seed") { fuzz("small, fixed", fixed_seed, case_count(0.5), small_dimensions); }

TEST_CASE("fuzz: small problems, fresh seed") { fuzz("small, fresh", fresh_seed(), case_count(0.5), small_dimensions); }

TEST_CASE("fuzz: block edges, fixed seed") {
  fuzz("edges, fixed", fixed_seed, case_count(0.025), block_edge_dimensions);
}

TEST_CASE("fuzz: block edges, fresh seed") {
  fuzz("edges, fresh", fresh_seed(), case_count(0.025), block_edge_dimensions);
}

TEST_CASE("fuzz: the double reference against 50 digits") {
  record all;
  for (index n = 0; n < case_count(0.04) && all.failures < patience; ++n) {
    sample const s =
        random_sample(fixed_seed + static_cast<std::uint64_t>(n), [](rng& r) { return random_dimensions(r, 12, 40); });
    result const exact = s.op->run(s.p, backend::reference_50, {});
    comparison const c =
        compare(s.op->run(s.p, backend::reference_double, {}), exact, s.op->bounds(s.p, backend::reference_double));
    all.note(s, backend::reference_double, c);
    CHECK_MESSAGE(c.failure.empty(), describe(*s.op, backend::reference_double, s.n, name(s.mask), s.seed)
                                         << c.failure);
  }
  all.print("50 digits");
}

/// The key with the most weight in the first head.
index heaviest_key(sample const& s, result const& reference) {
  std::vector<double> sums(to_size(s.n.keys), 0);
  for (index i = 0; i < s.n.queries; ++i)
    for (index j = 0; j < s.n.keys; ++j)
      if (double const w = std::fabs(element(reference.weights, s.n.heads, 0, 0, i, j)); std::isfinite(w))
        sums[to_size(j)] += w;
  return std::max_element(sums.begin(), sums.end()) - sums.begin();
}

// Limits that pass every result would pass the tests above. Here the weight of one key is off by 2^-14, 512 units in the
// last place of a float: rows where this weight is most of the sum tell, long rows of equal weights need not.
TEST_CASE("fuzz: a weight that is off is seen in most problems") {
  index planted = 0, seen = 0;
  for (index n = 0; n < case_count(0.04); ++n) {
    sample const s = random_sample(fixed_seed + static_cast<std::uint64_t>(n), small_dimensions);
    result const exact = s.op->run(s.p, backend::reference_double, {});
    problem off = s.p;
    index const key = heaviest_key(s, exact);
    for (index d = 0; d < s.n.value_width; ++d)
      element(off.tensors.at("v"), s.n.value_heads, 0, 0, key, d) *= 1 + 0x1p-14;
    result const wrong = s.op->run(off, backend::reference_double, {});
    if (same_bits(wrong, exact)) continue;  // nothing has a weight
    ++planted;
    seen += compare(wrong, exact, s.op->bounds(s.p, backend::cpu_float)).failure.empty() ? 0 : 1;
  }
  MESSAGE("planted: " << seen << " of " << planted << " seen");
  CHECK(seen > 0.75 * static_cast<double>(planted));
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("determinism");

TEST_CASE("determinism: 1, 2 and 3 threads and any memory layout give the same bits") {
  for (index n = 0; n < case_count(0.03); ++n) {
    std::uint64_t const seed = fixed_seed + 1000003 + static_cast<std::uint64_t>(n);
    sample const s = n % 5 == 0 ? random_sample(seed, block_edge_dimensions) : random_sample(seed, small_dimensions);
    for (backend b : instances::cpu_backends) {
      auto const run = [&](int threads, bool odd_strides) {
        options how;
        how.threads = threads;
        how.odd_strides = odd_strides;
        return s.op->run(s.p, b, how);
      };
      result const one = run(1, false);
      std::string const where = describe(*s.op, b, s.n, name(s.mask), s.seed);
      CHECK_MESSAGE(same_bits(run(2, false), one), where << "2 threads differ from 1");
      CHECK_MESSAGE(same_bits(run(3, false), one), where << "3 threads differ from 1");
      CHECK_MESSAGE(same_bits(run(1, true), one), where << "odd strides differ from dense");
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
