// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_verdict_study correct|defects [COUNT] [SEED]
//
// What the verdict is worth: false alarms of correct kernels, and what it catches and names of drawn defects. Prints a
// summary, and every miss.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "judged_case.hpp"

namespace attune::test {
namespace {

using testing::judgement;
using testing::verdict_report;

char const* format(storage s) { return testing::name_of(s); }

int correct(int count, std::uint64_t seed) {
  int proved = 0, statistical = 0, undecidable = 0;
  std::map<std::string, double> largest;
  for (int n = 0; n < count; ++n) {
    drawn_case const c(seed, std::uint64_t(n));
    verdict_report const r = judged(c, run(c.problem, c.kind));
    for (auto const& e : r.energies) {
      double& most = largest[std::string(format(c.kind.stored)) + " " + e.output];
      most = std::fmax(most, e.used);
    }
    if (r.decision == judgement::pass) continue;
    if (r.decision == judgement::undecidable)
      ++undecidable;
    else
      ++(r.ground == testing::failure_ground::proved ? proved : statistical);
    std::ostringstream text;
    text << r;
    std::printf("case %d (%s, P in %s, %td x %td, %td heads, width %td%s):\n%s", n, format(c.kind.stored),
                format(c.kind.weights), c.problem.queries, c.problem.keys, c.problem.heads, c.problem.width,
                c.kind.divides_first ? ", divides first" : "", text.str().c_str());
  }
  for (auto const& [what, times] : largest)
    std::printf("%s: residuals reach %.3g of their limit\n", what.c_str(), times);
  std::printf("%d correct kernels: %d proved FAIL, %d statistical, %d UNDECIDABLE\n", count, proved, statistical,
              undecidable);
  return proved > 0 || statistical > 2 + count / 2500 || undecidable * 200 > count + 199;
}

int defects(int count, std::uint64_t seed) {
  int moved = 0, caught = 0, right = 0, wrong = 0, unnamed = 0, beyond = 0, beyond_caught = 0;
  for (int n = 0; n < count; ++n) {
    drawn_case const c(seed, std::uint64_t(n));
    simulated_result const good = run(c.problem, c.kind), bad = run(c.problem, c.kind, c.defect);
    exact_result const exact = exact_of(c.problem);
    errors const before = errors_of(exact, good), after = errors_of(exact, bad);
    if (!moves(before, after)) continue;
    ++moved;
    bool const by_rule = grows(before.most, after.most, 2);
    beyond += by_rule;
    verdict_report const r = judged(c, bad);
    bool const hit = r.decision == judgement::fail;
    caught += hit;
    beyond_caught += hit && by_rule;
    bool const named = hit && named_right(c.problem, c.defect, r),
               misnamed = hit && !named && r.caused && r.share >= 0.6;
    right += named;
    wrong += misnamed;
    unnamed += hit && !named && !misnamed;
    if (hit && !misnamed && named) continue;
    std::printf("%s %d (%s, %td x %td, %td x %td heads, %s): %s; rms x %.2f, max x %.2f, lse x %.2f\n%s",
                !hit       ? "MISSED"
                : misnamed ? "WRONG NAME"
                           : "no name",
                n, format(c.kind.stored), c.problem.queries, c.problem.keys, c.problem.batch, c.problem.heads,
                c.problem.causal ? "causal" : "full", words(c.defect).c_str(), after.rms / before.rms,
                after.most / before.most, after.rms_lse / std::fmax(before.rms_lse, 1e-30), "");
    for (std::string const& reason : r.reasons) std::printf("    %s\n", reason.c_str());
  }
  std::printf(
      "%d drawn, %d move the result, %d of them caught; %d named right, %d with no name, %d wrong; of %d beyond the 2x "
      "rule %d caught\n",
      count, moved, caught, right, unnamed, wrong, beyond, beyond_caught);
  // What was seen, less a little: defects that are caught today stay caught.
  return 100 * caught < 96 * moved || 100 * right < 85 * caught || 50 * wrong > caught ||
         100 * beyond_caught < 97 * beyond;
}

}  // namespace
}  // namespace attune::test

int main(int arguments, char** given) {
  std::string const what = arguments > 1 ? given[1] : "";
  int const count = arguments > 2 ? std::atoi(given[2]) : 100;
  std::uint64_t const seed = arguments > 3 ? std::strtoull(given[3], nullptr, 10) : 1;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  if (what == "correct") return attune::test::correct(count, seed);
  if (what == "defects") return attune::test::defects(count, seed);
  std::fprintf(stderr, "usage: attune_verdict_study correct|defects [COUNT] [SEED]\n");
  return 2;
}
