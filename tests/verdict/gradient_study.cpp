// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_gradient_study correct|defects|lse|wrong_lse [COUNT] [SEED]
//
// What the verdict on gradients is worth: false alarms of correct backward passes, and what it catches and names of
// drawn defects. lse, wrong_lse: large logits, and a saved lse of 16 bits. Prints a summary, and every miss.
#include <cmath>
#include <cstdio>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_verdict.hpp>

#include "correct_grammar.hpp"
#include "gradient_grammar.hpp"
#include "judged_case.hpp"
#include "lse_grammar.hpp"
#include "tally.hpp"

namespace attune::test {
namespace {

/// use(operator, inputs, cotangents) of a problem.
template <class Use>
auto with_call(simulated_problem const& p, std::vector<float> const& dout, Use const& use) {
  return with_call(p, [&]<class Op>(Op const& op, inputs<Op, any_tensor> const& in) {
    return use(op, in, cotangents<Op, any_tensor>{.out = tensor<float const>(dout, p.of_queries())});
  });
}
testing::verdict_report judged(simulated_problem const& p, std::vector<float> const& dout, backward_kind const& kind,
                               simulated_gradients const& got) {
  return with_call(p, dout, [&](auto const& op, auto const& in, auto const& d) {
    testing::gradient_candidate given;
    auto const give = [&](field f, std::vector<float> const& x, shape const& e) {
      std::vector<double> const y(x.begin(), x.end());
      given.with(f, tensor<double const>(y, e), kind.stored);
    };
    give(field::q, got.dq, p.of_queries());
    give(field::k, got.dk, p.of_keys());
    give(field::v, got.dv, p.of_values());
    testing::verdict_options how;
    how.how = certify::precision(kind.stored, storage::fp32, kind.products);
    return testing::gradient_verdict(op, in, d, given, how);
  });
}

struct gradient_errors {
  double rms[3] = {}, most[3] = {};
};
template <class Case>
gradient_errors errors_of(Case const& c, simulated_gradients const& got) {
  return with_call(c.problem, c.dout, [&](auto const& op, auto const& in, auto const& d) {
    auto const exact = vjp(reference<double>{}, op, in, d);
    gradient_errors e;
    int n = 0;
    for (auto const& [f, x] : {std::pair{field::q, &got.dq}, {field::k, &got.dk}, {field::v, &got.dv}}) {
      for (std::size_t k = 0; k < x->size(); ++k) {
        double const r = double((*x)[k]) - exact.of(f).values[k];
        e.rms[n] += r * r / double(x->size());
        e.most[n] = std::fmax(e.most[n], std::fabs(r));
      }
      e.rms[n] = std::sqrt(e.rms[n]);
      ++n;
    }
    return e;
  });
}

int correct(int count, std::uint64_t seed) {
  correct_tally tally;
  for (int n = 0; n < count; ++n) {
    correct_backward const c(seed, std::uint64_t(n));
    tally.add(judged(c.problem, c.dout, c.kind, run_backward(c.problem, c.dout, c.kind)), c.kind.stored, c.words());
  }
  return tally.finish("backward passes");
}

int lse(int count, std::uint64_t seed) {
  correct_tally tally;
  for (int n = 0; n < count; ++n) {
    lse_backward const c(seed, std::uint64_t(n));
    tally.add(judged(c.problem, c.dout, c.kind, run_backward(c.problem, c.dout, c.kind)), c.kind.stored, c.words());
  }
  return tally.finish("backward passes");
}

/// A saved lse of 16 bits that moves a gradient beyond the 2x rule is FAIL.
int wrong_lse(int count, std::uint64_t seed) {
  int moved = 0, missed = 0;
  for (int n = 0; n < count; ++n) {
    lse_backward const c(seed, std::uint64_t(n));
    backward_kind wrong = c.kind;
    wrong.lse = c.narrow;
    simulated_gradients const bad = run_backward(c.problem, c.dout, wrong);
    gradient_errors const before = errors_of(c, run_backward(c.problem, c.dout, c.kind)), after = errors_of(c, bad);
    bool moves = false;
    for (int k = 0; k < 3; ++k) moves = moves || grows(before.most[k], after.most[k], 2);
    if (!moves) continue;
    ++moved;
    testing::verdict_report const r = judged(c.problem, c.dout, c.kind, bad);
    if (r.decision == testing::judgement::fail) continue;
    ++missed;
    std::printf("%s %d: lse in %s; max x %.3g %.3g %.3g; %s\n", testing::name_of(r.decision), n,
                certify::name_of(c.narrow), after.most[0] / before.most[0], after.most[1] / before.most[1],
                after.most[2] / before.most[2], c.words().c_str());
  }
  std::printf("%d drawn, %d saved lse of 16 bits move a gradient beyond the 2x rule, %d of them are not FAIL\n", count,
              moved, missed);
  return missed > 0;
}

int defects(int count, std::uint64_t seed) {
  defect_tally tally;
  for (int n = 0; n < count; ++n) {
    drawn_backward const c(seed, std::uint64_t(n));
    simulated_problem const& p = c.problem;
    simulated_gradients const good = run_backward(p, c.dout, c.kind), bad = run_backward(p, c.dout, c.kind, c.defect);
    gradient_errors const before = errors_of(c, good), after = errors_of(c, bad);
    bool moves = false, by_rule = false;
    double rms[3], most[3];
    for (int k = 0; k < 3; ++k) {
      rms[k] = after.rms[k] / std::fmax(before.rms[k], 1e-30);
      most[k] = after.most[k] / std::fmax(before.most[k], 1e-30);
      moves = moves || !(rms[k] <= 1.5) || !(most[k] <= 2);
      by_rule = by_rule || !(most[k] <= 2);
    }
    if (!moves) continue;
    testing::verdict_report const r = judged(p, c.dout, c.kind, bad);
    char numbers[320];
    std::snprintf(numbers, sizeof numbers,
                  "%d (%s, %td x %td, %td x %td heads, %s): %s; rms x %.3g %.3g %.3g, max x %.3g %.3g %.3g", n,
                  certify::name_of(c.kind.stored), p.queries, p.keys, p.batch, p.heads, p.causal ? "causal" : "full",
                  words(c.defect).c_str(), rms[0], rms[1], rms[2], most[0], most[1], most[2]);
    tally.add(r, named_right(p, c.defect, r), by_rule, numbers);
  }
  return tally.finish(count, "a gradient");
}

}  // namespace
}  // namespace attune::test

int main(int arguments, char** given) {
  using namespace attune::test;
  return study_program(arguments, given,
                       {{"correct", correct}, {"defects", defects}, {"lse", lse}, {"wrong_lse", wrong_lse}});
}
