// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_gradient_study correct|defects [COUNT] [SEED]
//
// What the verdict on gradients is worth: false alarms of correct backward passes, and what it catches and names of
// drawn defects. Prints a summary, and every miss.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_verdict.hpp>

#include "gradient_grammar.hpp"

namespace attune::test {
namespace {

using testing::judgement;
using testing::verdict_report;

shape of_queries(simulated_problem const& p) { return {p.batch, p.heads, p.queries, p.width}; }
shape of_keys(simulated_problem const& p) { return {p.batch, p.key_heads, p.keys, p.width}; }

template <class Op, class Use>
auto with_call(Op const& op, drawn_backward const& c, Use const& use) {
  simulated_problem const& p = c.problem;
  inputs<Op, any_tensor> const in{.q = tensor<float const>(p.q, of_queries(p)),
                                  .k = tensor<float const>(p.k, of_keys(p)),
                                  .v = tensor<float const>(p.v, of_keys(p))};
  cotangents<Op, any_tensor> const d{.out = tensor<float const>(c.dout, of_queries(p))};
  return use(op, in, d);
}
template <class Use>
auto with_call(drawn_backward const& c, Use const& use) {
  return c.problem.causal ? with_call(softmax_attention(mask::causal{}), c, use)
                          : with_call(softmax_attention(), c, use);
}
verdict_report judged(drawn_backward const& c, simulated_gradients const& got) {
  return with_call(c, [&](auto const& op, auto const& in, auto const& d) {
    testing::gradient_candidate given;
    auto const give = [&](field f, std::vector<float> const& x, shape const& e) {
      std::vector<double> const y(x.begin(), x.end());
      given.with(f, tensor<double const>(y, e), c.kind.stored);
    };
    give(field::q, got.dq, of_queries(c.problem));
    give(field::k, got.dk, of_keys(c.problem));
    give(field::v, got.dv, of_keys(c.problem));
    testing::verdict_options how;
    how.how = certify::precision(c.kind.stored, storage::fp32, c.kind.products);
    return testing::gradient_verdict(op, in, d, given, how);
  });
}

struct errors {
  double rms[3] = {}, most[3] = {};
};
errors errors_of(drawn_backward const& c, simulated_gradients const& got) {
  return with_call(c, [&](auto const& op, auto const& in, auto const& d) {
    auto const exact = vjp(reference<double>{}, op, in, d);
    errors e;
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

char const* format(storage s) { return testing::name_of(s); }

int correct(int count, std::uint64_t seed) {
  int proved = 0, statistical = 0, undecidable = 0;
  std::map<std::string, double> largest;
  for (int n = 0; n < count; ++n) {
    drawn_backward const c(seed, std::uint64_t(n));
    verdict_report const r = judged(c, run_backward(c.problem, c.dout, c.kind));
    for (auto const& e : r.energies) {
      double& most = largest[std::string(format(c.kind.stored)) + " " + e.output];
      most = std::fmax(most, e.used);
    }
    if (r.decision == judgement::pass) continue;
    if (r.decision == judgement::undecidable)
      ++undecidable;
    else
      ++(r.ground == testing::failure_ground::proved ? proved : statistical);
    std::printf("case %d (%s, products in %s, %td x %td, %td heads, width %td%s, tile %td)\n", n, format(c.kind.stored),
                format(c.kind.products), c.problem.queries, c.problem.keys, c.problem.heads, c.problem.width,
                c.problem.causal ? ", causal" : "", c.kind.tile);
    for (std::string const& reason : r.reasons) std::printf("    %s\n", reason.c_str());
  }
  for (auto const& [what, times] : largest)
    std::printf("%s: residuals reach %.3g of their limit\n", what.c_str(), times);
  std::printf("%d correct backward passes: %d proved FAIL, %d statistical, %d UNDECIDABLE\n", count, proved,
              statistical, undecidable);
  return proved > 0 || statistical > 2 + count / 2500 || undecidable * 200 > count + 199;
}

int defects(int count, std::uint64_t seed) {
  int moved = 0, caught = 0, right = 0, wrong = 0, unnamed = 0, beyond = 0, beyond_caught = 0;
  for (int n = 0; n < count; ++n) {
    drawn_backward const c(seed, std::uint64_t(n));
    simulated_gradients const good = run_backward(c.problem, c.dout, c.kind),
                              bad = run_backward(c.problem, c.dout, c.kind, c.defect);
    errors const before = errors_of(c, good), after = errors_of(c, bad);
    bool moves = false, by_rule = false;
    double rms[3], most[3];
    for (int k = 0; k < 3; ++k) {
      rms[k] = after.rms[k] / std::fmax(before.rms[k], 1e-30);
      most[k] = after.most[k] / std::fmax(before.most[k], 1e-30);
      moves = moves || !(rms[k] <= 1.5) || !(most[k] <= 2);
      by_rule = by_rule || !(most[k] <= 2);
    }
    if (!moves) continue;
    ++moved;
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
    if (named) continue;
    std::printf("%s %d (%s, %td x %td, %td x %td heads, %s): %s; rms x %.3g %.3g %.3g, max x %.3g %.3g %.3g\n",
                !hit       ? "MISSED"
                : misnamed ? "WRONG NAME"
                           : "no name",
                n, format(c.kind.stored), c.problem.queries, c.problem.keys, c.problem.batch, c.problem.heads,
                c.problem.causal ? "causal" : "full", words(c.defect).c_str(), rms[0], rms[1], rms[2], most[0], most[1],
                most[2]);
    for (std::string const& reason : r.reasons) std::printf("    %s\n", reason.c_str());
  }
  std::printf(
      "%d drawn, %d move a gradient, %d of them caught; %d named right, %d with no name, %d wrong; of %d beyond the 2x "
      "rule %d caught\n",
      count, moved, caught, right, unnamed, wrong, beyond, beyond_caught);
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
  std::fprintf(stderr, "usage: attune_gradient_study correct|defects [COUNT] [SEED]\n");
  return 2;
}
