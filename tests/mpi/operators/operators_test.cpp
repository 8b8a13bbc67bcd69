// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every operator of the registry over ranks, forward and vjp, against the reference within the bounds of the CPU
// executor: once each, and on random problems. Shards are uneven, empty, in zigzag order; masks are of every kind. Every
// rank computes; rank 0 compares.
//
// ATTUNE_SEED and ATTUNE_FUZZ_COUNT steer the random problems (support/random.hpp); a failure prints its seed.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "../../support/gradients.hpp"
#include "divided.hpp"

namespace attune::test {
namespace {

using mpi_tests::ranks;

constexpr std::uint64_t fixed_seed = 20261127;
constexpr int patience = 20;  // failures to report before giving up a run

/// The worst errors of a run, relative to their bounds.
struct record {
  double outputs = 0, gradients = 0;
  int cases = 0, discontinuous = 0, failures = 0;

  /// True on all ranks if rank 0 has seen too much.
  bool gives_up() const { return ranks().lowest(-failures) <= -patience; }
  void finish(std::string const& run) const {
    if (ranks().rank() != 0) return;
    MESSAGE(run << ": " << cases << " problems; worst error / bound of outputs " << outputs << ", of gradients "
                << gradients << "; " << discontinuous << " accepted at a discontinuity");
    CHECK(cases > 0);
    CHECK(discontinuous <= 2 + 0.02 * cases);
  }
};

/// Runs a problem over ranks, by shards and a plan that follow from its seed.
void check_sample(sample const& s, rank_plan plan, record& all) {
  rng random(s.seed + 1);
  shards& where = mpi_tests::division();
  where.queries = mpi_tests::random_sharding(s.n.queries, ranks().size(), random);
  where.keys = mpi_tests::random_sharding(s.n.keys, ranks().size(), random);
  where.plan = s.op->has_threshold && plan == rank_plan::states ? rank_plan::chosen : plan;
  cotangent const d = random_cotangent(*s.op, s.n, random);
  options how;
  how.odd_strides = s.seed % 2 == 1;
  how.threads = 1 + int(s.seed / 2 % 2);
  CAPTURE(s.op->name);
  CAPTURE(s.seed);
  result const got = s.op->run(s.p, backend::cpu_double, how);
  instances::gradients const by = s.op->vjp(s.p, backend::cpu_double, d, how);
  ++all.cases;
  if (ranks().rank() != 0) return;
  result const reference = s.op->run(s.p, backend::reference_double, {});
  comparison const out = compare(got, reference, s.op->bounds(s.p, backend::cpu_double));
  gradient_reference beside(*s.op, s.p, d, s.n, s.seed);
  gradient_comparison const back = compare(by, backend::cpu_double, beside);
  all.outputs = std::fmax(all.outputs, out.worst);
  all.gradients = std::fmax(all.gradients, back.worst);
  all.discontinuous += back.discontinuous;
  bool const passed = out.failure.empty() && back.failure.empty();
  all.failures += !passed;
  CHECK_MESSAGE(passed, describe(*s.op, backend::cpu_double, s.n, name(s.mask), s.seed)
                            << mpi_tests::to_string(where) << '\n'
                            << out.failure << back.failure);
}

constexpr rank_plan plans[] = {rank_plan::ring, rank_plan::states, rank_plan::chosen};

void fuzz(std::string const& run, std::uint64_t seed, index count) {
  if (ranks().rank() == 0) MESSAGE(run << ": " << count << " cases, first case seed " << seed);
  record all;
  for (std::uint64_t n = 0; n < static_cast<std::uint64_t>(count) && !all.gives_up(); ++n)
    check_sample(random_sample(seed + n, small_dimensions), plans[n % 3], all);
  all.finish(run);
}

/// A fresh seed that all ranks know.
std::uint64_t shared_seed() {
  std::uint64_t seed = ranks().rank() == 0 ? fresh_seed() : 0;
  ranks().broadcast(std::span<std::uint64_t>(&seed, 1), 0);
  return seed;
}

TEST_SUITE("full operators") {
  TEST_CASE("operators over ranks: each one by both plans") {
    record all;
    std::uint64_t number = 0;
    for (auto const& [_, e] : instances::registry()) {
      if (all.gives_up()) break;
      for (rank_plan const plan : {rank_plan::ring, rank_plan::states}) {
        if (e.has_threshold && plan == rank_plan::states) continue;
        std::uint64_t const seed = fixed_seed + number++;
        rng random(seed);
        sample s;
        s.op = &e;
        s.seed = seed;
        s.n = random_dimensions(random, 40, 12);
        s.mask = all_mask_kinds[number % std::size(all_mask_kinds)];
        recipe how;
        how.mask = s.mask;
        s.p = make_problem(e, s.n, how, random);
        poison(s.p, s.n, random);
        check_sample(s, plan, all);
      }
    }
    all.finish("every operator");
  }
  TEST_CASE("operators over ranks: random problems, fixed seed") {
    fuzz("random, fixed", fixed_seed + 10000, case_count(0.03));
  }
  TEST_CASE("operators over ranks: random problems, fresh seed") {
    fuzz("random, fresh", shared_seed(), case_count(0.03));
  }
}

}  // namespace
}  // namespace attune::test
