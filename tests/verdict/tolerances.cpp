// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_verdict_tolerances [COUNT] [SEED]     prints docs/reference/verdict_table.md
//
// The verdict and the usual tolerances on the same drawn kernels, wrong and right.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "judged_case.hpp"

namespace attune::test {
namespace {

/// |got - exact| <= absolute + relative |exact|, for every element.
bool is_close(exact_result const& exact, simulated_result const& got, double relative, double absolute) {
  for (std::size_t n = 0; n < exact.out.size(); ++n)
    if (!(std::fabs(double(got.out[n]) - exact.out[n]) <= absolute + relative * std::fabs(exact.out[n]))) return false;
  return true;
}

/// Who says that a kernel is wrong.
struct judges {
  bool verdict = false, twice = false, assert_close = false, flashinfer = false;

  judges(drawn_case const& c, exact_result const& exact, double most_of_plain, simulated_result const& got) {
    storage const s = c.kind.stored;
    verdict = judged(c.problem, c.kind, got).decision == testing::judgement::fail;
    twice = grows(most_of_plain, errors_of(exact, got).most, 2);
    // The defaults of torch.testing.assert_close, and those that FlashInfer's tests use for 16 bits.
    assert_close = !is_close(exact, got, s == storage::fp32 ? 1.3e-6 : s == storage::bf16 ? 1.6e-2 : 1e-3, 1e-5);
    double const close = s == storage::bf16 ? 1e-2 : 1e-3;
    flashinfer = s != storage::fp32 && !is_close(exact, got, close, close);
  }
};

struct tally {
  int kernels = 0, narrow = 0, verdict = 0, twice = 0, assert_close = 0, flashinfer = 0;
  void add(storage s, judges const& j) {
    ++kernels, narrow += s != storage::fp32;
    verdict += j.verdict, twice += j.twice, assert_close += j.assert_close, flashinfer += j.flashinfer;
  }
  void add(tally const& x) {
    kernels += x.kernels, narrow += x.narrow, verdict += x.verdict, twice += x.twice;
    assert_close += x.assert_close, flashinfer += x.flashinfer;
  }
  void print(char const* what) const {
    std::printf("| %s | %d | %d | %d | %d | %d of %d |\n", what, kernels, verdict, twice, assert_close, flashinfer,
                narrow);
  }
};

int table(int count, std::uint64_t seed) {
  tally right, wrong, of[std::size_t(fault::count)];
  for (int n = 0; n < count; ++n) {
    drawn_case const c(seed, std::uint64_t(n));
    exact_result const exact = exact_of(c.problem);
    simulated_result const good = run(c.problem, c.kind), bad = run(c.problem, c.kind, c.defect);
    simulated_result const formula{plain(c.problem, c.kind.stored), good.lse};
    double const most_of_plain = errors_of(exact, formula).most;
    right.add(c.kind.stored, judges(c, exact, most_of_plain, good));
    if (moves(errors_of(exact, good), errors_of(exact, bad)))
      of[std::size_t(c.defect.what)].add(c.kind.stored, judges(c, exact, most_of_plain, bad));
  }
  std::printf(
      "# Verdict and tolerances\n\n"
      "`scripts/verdict_tables %d %llu` wrote this page. [Error bounds](error_bounds.md#the-verdict) explains the "
      "verdict.\n\n"
      "The same simulated kernels are judged by four rules. There are %d kernels in fp32, bf16 and fp16, of 1 to "
      "4,099\n"
      "keys. Each is run without a defect, and with one defect that is drawn at random: which one, where, and how "
      "large\n"
      "(`tests/verdict/defect_grammar.hpp`). A defect counts if it moves the result: the root mean square of the "
      "errors\n"
      "of `out` or of the lse is more than 1.5 times as large as without it, or the largest error of `out` more than\n"
      "twice. `number` is the number of kernels of a row. The other cells say how many of them a rule rejects.\n\n"
      "| rule | rejects a kernel if |\n|---|---|\n"
      "| verdict | `testing::verdict` says FAIL. It is told the formats of inputs and weights |\n"
      "| 2x | the largest error of `out` is more than twice as large as the plain formula's, computed in the storage "
      "type |\n"
      "| assert_close | an element is outside the default tolerances of `torch.testing.assert_close`: relative 1.3e-6 "
      "(fp32), 1.6e-2 (bf16), 1e-3 (fp16), absolute 1e-5 |\n"
      "| FlashInfer | an element is outside relative and absolute 1e-2 (bf16) or 1e-3 (fp16), as in its tests "
      "`test_batch_attention.py` and `test_batch_prefill_kernels.py`; there are none in fp32 |\n\n"
      "All rules compare with the exact result. The last three do not look at the lse.\n\n"
      "| kernels | number | verdict | 2x | assert_close | FlashInfer, of 16 bits |\n|---|---|---|---|---|---|\n",
      count, static_cast<unsigned long long>(seed), count);
  for (std::size_t f = 1; f < std::size(of); ++f) {
    if (of[f].kernels > 0) of[f].print(name_of(fault(f)));
    wrong.add(of[f]);
  }
  wrong.print("**all defects**");
  right.print("**no defect**");
  return right.verdict > 0;
}

}  // namespace
}  // namespace attune::test

int main(int arguments, char** given) {
  int const count = arguments > 1 ? std::atoi(given[1]) : 400;
  std::uint64_t const seed = arguments > 2 ? std::strtoull(given[2], nullptr, 10) : 43;
  return attune::test::table(count, seed);
}
