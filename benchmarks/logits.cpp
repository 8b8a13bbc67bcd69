// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every family of operators with logits that make weights tiny, beside the usual ones. Interleaved, one thread.
//
//   attune_logits [NAME]     families whose name contains NAME; all without
//
// Times are in milliseconds; a ratio is to the usual logits. On x86 with Linux the last two columns count the
// instructions that read or made a subnormal number: on many processors, each of them takes some 150 cycles.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include <support/stick_breaking.hpp>
#include <support/weight_gates.hpp>

#include <attune/attune.hpp>

#include "machine.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <csignal>

#include <immintrin.h>
#include <ucontext.h>
#define COUNTS_SUBNORMALS
#endif

namespace {

using namespace attune;

#if defined(COUNTS_SUBNORMALS)
long volatile counted = 0;
constexpr unsigned traps = 1u << 8 | 1u << 11, flags = 0x3f, single_step = 0x100;  // denormal operands; underflow

/// Lets the instruction run with the exceptions masked, and traps after it.
void on_exception(int, siginfo_t*, void* context) {
  auto* const at = static_cast<ucontext_t*>(context);
  counted = counted + 1;
  at->uc_mcontext.fpregs->mxcsr = (at->uc_mcontext.fpregs->mxcsr | traps) & ~flags;
  at->uc_mcontext.gregs[REG_EFL] |= single_step;
}
void on_step(int, siginfo_t*, void* context) {
  auto* const at = static_cast<ucontext_t*>(context);
  at->uc_mcontext.fpregs->mxcsr &= ~(traps | flags);
  at->uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(single_step);
}
template <class Call>
long subnormal_instructions(Call const& call) {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_exception;
  sigaction(SIGFPE, &action, nullptr);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, nullptr);
  counted = 0;
  unsigned const before = _mm_getcsr();
  _mm_setcsr(before & ~(traps | flags));
  call();
  _mm_setcsr(before);
  return counted;
}
#else
template <class Call>
long subnormal_instructions(Call const&) {
  return -1;
}
#endif

constexpr index_t heads = 4, length = 512, width = 64;
constexpr shape extents{1, heads, length, width};
constexpr auto count = std::size_t(heads * length * width);

std::vector<float> drawn(float deviation, float common, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& e : x) e = common + deviation * normal(random);
  return x;
}

struct kind {
  char const* name;
  float deviation, common;  ///< of q; a logit has the deviation of q
};
// q and k with a common part make logits that are all huge, here some -2,000: masses without a reference are all 0.
constexpr kind kinds[] = {{"usual", 1, 0}, {"peaked", 32, 0}, {"underflowing", 100, 0}, {"huge", 1, -250}};

template <class Op>
void family(char const* only, char const* name, Op op) {
  if (only != nullptr && std::strstr(name, only) == nullptr) return;
  using view = tensor<float const>;
  cpu<float> const exec(1);
  std::vector<float> const k = drawn(1, 1, 2), v = drawn(1, 0, 3), by_out = drawn(1, 0, 4);
  std::vector<float> out(count);
  constexpr std::size_t n = std::size(kinds);
  std::vector<float> q[n];
  double forward_s[n], vjp_s[n];
  for (std::size_t i = 0; i < n; ++i)
    q[i] = drawn(kinds[i].deviation, kinds[i].common / 8, 1), forward_s[i] = vjp_s[i] = 1e9;
  auto const in = [&](std::size_t i) {
    return inputs<Op, view>{.q = view(q[i], extents), .k = view(k, extents), .v = view(v, extents)};
  };
  auto const run_forward = [&](std::size_t i) { forward(exec, op, in(i), {.out = tensor<float>(out, extents)}); };
  auto const run_vjp = [&](std::size_t i) {
    bench::sink_hole = vjp(exec, op, in(i), {.out = view(by_out, extents)}).of(field::v).values[0];
  };
  auto const timed = [](auto const& run) {
    double const start = bench::now();
    run();
    return bench::now() - start;
  };
  for (int round = 0; round < 15; ++round)
    for (std::size_t i = 0; i < n; ++i) {
      forward_s[i] = std::min(forward_s[i], timed([&] { run_forward(i); }));
      vjp_s[i] = std::min(vjp_s[i], timed([&] { run_vjp(i); }));
    }
  for (std::size_t i = 0; i < n; ++i)
    std::printf("%-16s %-13s %8.2f %5.2f  %8.2f %5.2f  %9ld %9ld\n", name, kinds[i].name, 1e3 * forward_s[i],
                forward_s[i] / forward_s[0], 1e3 * vjp_s[i], vjp_s[i] / vjp_s[0],
                subnormal_instructions([&] { run_forward(i); }), subnormal_instructions([&] { run_vjp(i); }));
}

}  // namespace

int main(int arguments, char** argument) {
  char const* const only = arguments > 1 ? argument[1] : nullptr;
  using normalizer::adjusted_form;
  std::printf("%-16s %-13s %8s %5s  %8s %5s  %9s %9s\n", "family", "logits", "forward", "", "vjp", "", "subnormal",
              "in vjp");
  family(only, "softmax", attention(kernel::dot_product{}));
  family(only, "softmax causal", attention(kernel::dot_product{}, mask::causal{}));
  family(only, "alibi", attention(kernel::dot_product{} + kernel::alibi{0.5}, mask::causal{}));
  family(only, "rbf", attention(kernel::rbf{}));
  family(only, "sink", attention(kernel::dot_product{}, normalizer::sink{}));
  family(only, "affine", attention(kernel::dot_product{}, normalizer::affine{}));
  family(only, "sigmoid", attention(kernel::dot_product{}, normalizer::sigmoid{}));
  family(only, "exponential", attention(kernel::dot_product{}, normalizer::exponential{}));
  family(only, "relu", attention(kernel::dot_product{}, normalizer::relu{}));
  family(only, "self-adjusted", attention(kernel::dot_product{}, normalizer::self_adjusted<adjusted_form::product>{}));
  family(only, "sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{}));
  family(only, "entmax 1.1", attention(kernel::dot_product{}, normalizer::entmax{1.1}));
  family(only, "top-k", attention(kernel::dot_product{}, normalizer::top_k{32}));
  family(only, "weight decay", attention(kernel::dot_product{}, test::weight_decay{0.2}, mask::causal{}));
  family(only, "stick-breaking", attention(test::stick_breaking{}, normalizer::exponential{}, mask::causal{}));
}
