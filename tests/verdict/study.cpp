// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_verdict_study correct|rows|defects|lse|wrong_lse [COUNT] [SEED]
//
// What the verdict is worth. correct: false alarms of correct kernels. rows: how often rows of correct kernels exceed
// limits, against the model's rate. defects: what the verdict catches and names of drawn defects. lse, wrong_lse: kernels
// that normalize by an lse. Prints a summary, and every miss.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "correct_grammar.hpp"
#include "judged_case.hpp"
#include "lse_grammar.hpp"
#include "tally.hpp"

namespace attune::test {
namespace {

int correct(int count, std::uint64_t seed) {
  correct_tally tally;
  for (int n = 0; n < count; ++n) {
    correct_forward const c(seed, std::uint64_t(n));
    tally.add(judged(c.problem, c.kind, run(c.problem, c.kind)), c.kind.stored, c.words());
  }
  return tally.finish("kernels");
}

certify::precision formats(lse_kind const& kind) { return {kind.stored, storage::fp32, kind.weights}; }

int lse(int count, std::uint64_t seed) {
  correct_tally tally;
  for (int n = 0; n < count; ++n) {
    lse_case const c(seed, std::uint64_t(n));
    tally.add(judged(c.problem, formats(c.kind), run(c.problem, c.kind), c.with_lse), c.kind.stored, c.words());
  }
  return tally.finish("kernels that normalize by an lse");
}

/// A wrong lse that moves the result, by more than the 2x rule allows the plain formula, is FAIL.
int wrong_lse(int count, std::uint64_t seed) {
  int moved = 0, missed = 0;
  for (int n = 0; n < count; ++n) {
    lse_case const c(seed, std::uint64_t(n));
    simulated_result const good = run(c.problem, c.kind), bad = run(c.problem, c.kind, c.wrong);
    exact_result const exact = exact_of(c.problem);
    errors const before = errors_of(exact, good), after = errors_of(exact, bad);
    errors const formula = errors_of(exact, {plain(c.problem, c.kind.stored), good.lse});
    if (!moves(before, after) || !grows(formula.most, after.most, 2)) continue;
    ++moved;
    testing::verdict_report const r = judged(c.problem, formats(c.kind), bad, c.with_lse);
    if (r.decision == testing::judgement::fail) continue;
    ++missed;
    std::printf("%s %d: lse %s; rms x %.3g, max x %.3g; %s\n", testing::name_of(r.decision), n, name_of(c.wrong),
                after.rms / before.rms, after.most / before.most, c.words().c_str());
  }
  std::printf("%d drawn, %d wrong lse move the result beyond the 2x rule, %d of them are not FAIL\n", count, moved,
              missed);
  return missed > 0;
}

/// Rows of correct kernels whose energy exceeds limits.
struct exceeding_rows {
  static constexpr double gates[] = {1, 2, 3, 4, 5};
  double rows = 0, over[std::size(gates)] = {}, expected = 0, energy = 0;
  void add(double of_row) {
    rows += 1;
    energy += of_row;
    for (std::size_t k = 0; k < std::size(gates); ++k)
      over[k] += of_row > testing::detail::largest_square_sum(1, gates[k]);
  }
};

int rows(int count, std::uint64_t seed) {
  std::map<std::string, exceeding_rows> of;
  double seen = 0;
  for (std::uint64_t n = 0; seen < count; ++n) {
    correct_forward const c(seed, n);
    simulated_problem const& p = c.problem;
    simulated_result const got = run(p, c.kind);
    auto const bounds =
        with_call(p, [&](auto const& op, auto const& in) { return certify::error_bound(op, in, formats(c.kind)); });
    auto const add = [&](char const* output, std::vector<float> const& x,
                         std::vector<certify::bounded_number> const& wanted, index_t width) {
      std::vector<double> const numbers(x.begin(), x.end());
      exceeding_rows& to = of[std::string(certify::name_of(c.kind.stored)) + " " + output];
      for (std::size_t row = 0; row < numbers.size(); row += std::size_t(width)) {
        auto const e = testing::detail::energy_of_row(numbers, wanted, row, width,
                                                      testing::detail::accumulation_of(storage::fp32));
        if (e.count > 0) to.add(e.mean());
      }
    };
    add("out", got.out, bounds.out, p.width);
    add("lse", got.lse, bounds.lse, 1);
    seen += double(got.lse.size());
  }
  std::printf("%.0f rows of correct kernels; share of them above the limit of a gate, and the model's share\n", seen);
  bool bad = false;
  for (auto const& [output, x] : of) {
    std::printf("%s: %.0f rows, energy %.3f;", output.c_str(), x.rows, x.energy / x.rows);
    for (std::size_t k = 0; k < std::size(exceeding_rows::gates); ++k) {
      double const gate = exceeding_rows::gates[k], model = std::erfc(gate / std::sqrt(2.)) / 2;
      std::printf(" %g: %.2g of %.2g", gate, x.over[k] / x.rows, model);
      bad = bad || x.over[k] > x.rows * model + 3 * std::sqrt(x.rows * model) + 1;
    }
    std::printf("\n");
  }
  return bad;
}

int defects(int count, std::uint64_t seed) {
  defect_tally tally;
  for (int n = 0; n < count; ++n) {
    drawn_case const c(seed, std::uint64_t(n));
    simulated_problem const& p = c.problem;
    simulated_result const good = run(p, c.kind), bad = run(p, c.kind, c.defect);
    exact_result const exact = exact_of(p);
    errors const before = errors_of(exact, good), after = errors_of(exact, bad);
    if (!moves(before, after)) continue;
    errors const formula = errors_of(exact, {plain(p, c.kind.stored), good.lse});
    testing::verdict_report const r = judged(p, c.kind, bad);
    char numbers[256];
    std::snprintf(numbers, sizeof numbers,
                  "%d (%s, %td x %td, %td x %td heads, %s): %s; rms x %.2f, max x %.2f, lse x %.2f", n,
                  certify::name_of(c.kind.stored), p.queries, p.keys, p.batch, p.heads, p.causal ? "causal" : "full",
                  words(c.defect).c_str(), after.rms / before.rms, after.most / before.most,
                  after.rms_lse / std::fmax(before.rms_lse, 1e-30));
    tally.add(r, named_right(p, c.defect, r), grows(formula.most, after.most, 2), numbers);
  }
  return tally.finish(count, "the result");
}

}  // namespace
}  // namespace attune::test

int main(int arguments, char** given) {
  using namespace attune::test;
  return study_program(
      arguments, given,
      {{"correct", correct}, {"rows", rows}, {"defects", defects}, {"lse", lse}, {"wrong_lse", wrong_lse}});
}
