// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The verdict on gradients of `cuda` on emulated warps: PASS. With one head of a gradient that is 2 % off: FAIL. And the
// gradients are what differences of the forward pass in 50 digits say.
#include <cstdio>
#include <random>
#include <string>

#include <attune/attune.hpp>
#include <attune/testing/gradient_check.hpp>
#include <attune/testing/gradient_verdict.hpp>

#include "../unit/exec/cuda/gradients.hpp"

namespace attune::test {
namespace {
int failures = 0;

void require(bool right, char const* name, std::string const& what) {
  failures += right ? 0 : 1;
  std::printf("%s  %-20s %s\n", right ? "PASS" : "FAIL", name, what.c_str());
  std::fflush(stdout);
}

template <class E, class Op>
void judge(char const* name, Op const& op) {
  gradient_problem<Op, E> p(op, {.batch = 2, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 40, .keys = 70});
  auto const got = p.template on_host<exec_cuda::widths<64>>();
  auto const decision = [&](auto const& arrays) {
    testing::gradient_candidate given;
    for (std::size_t f = 0; f < field_count; ++f)
      if (!arrays[f].empty()) given.with(field(f), tensor<E const>(arrays[f].data(), p.extents(field(f))));
    return p.in_double(
        [&](auto const& in, auto const& d) { return testing::gradient_verdict(op, in, d, given).decision; });
  };
  require(decision(got) == testing::judgement::pass, name, "as they are: PASS");
  for (field const f : {field::q, field::v}) {
    auto off = got;
    shape const e = p.extents(f);
    for (index_t n = 0; n < e.size(); ++n)
      if (n / (e.position * e.feature) % e.head == 1) {
        E& x = off[std::size_t(f)][std::size_t(n)];
        x = E(1.02f * float(x));
      }
    require(decision(off) == testing::judgement::fail, name,
            std::string("one head of d") + name_of(f) + " 2 % off: FAIL");
  }
}

/// <cotangents, outputs> in 50 digits.
template <class Problem, class In, class By>
digits50 objective(Problem const& p, In const& in, By const& d) {
  auto const r = forward(reference<digits50>{}, p.op(), in);
  digits50 sum(0);
  index_t h = 0;
  for (auto const& head : r.heads) {
    index_t const heads = r.extents.heads;
    for (index_t i = 0; i < r.extents.queries; ++i) {
      for (index_t c = 0; c < r.extents.value_width; ++c)
        sum += digits50(double(d.out(h / heads, h % heads, i, c))) * head.out(i, c);
      if constexpr (std::remove_cvref_t<decltype(p.op())>::has_lse)
        sum += digits50(double(d.lse(h / heads, h % heads, i, 0))) * head.lse(i);
      if constexpr (std::remove_cvref_t<decltype(p.op())>::has_ground_weight)
        sum += digits50(double(d.ground_weight(h / heads, h % heads, i, 0))) * head.ground_weight(i);
    }
    ++h;
  }
  return sum;
}

/// Some entries of each gradient against (L(x + step) - L(x - step)) / (2 step).
template <class E, class Op>
void differences(char const* name, Op const& op) {
  gradient_problem<Op, E> p(op, {.heads = 2, .queries = 5, .keys = 7, .width = 16, .value_width = 8, .gate_width = 4});
  auto const got = p.template on_host<exec_cuda::widths<64>>();
  auto const bounds = p.in_double([&](auto const& in, auto const& d) {
    return certify::gradient_error_bound(op, in, d,
                                         std::is_same_v<E, bfloat16> ? certify::storage::bf16 : certify::storage::fp16);
  });
  std::mt19937 random(3);
  double worst = 0;
  int compared = 0;
  for (std::size_t f = 0; f < field_count; ++f)
    for (int n = 0; n < 12 && !got[f].empty(); ++n) {
      std::size_t const at = random() % got[f].size();
      double const step = 0x1p-20;
      auto const value = [&](double by) {
        return p.in_double([&](auto const& in, auto const& d) {
          auto moved = in;
          std::vector<double> copy;
          for_each_field([&]<field F>() {
            if constexpr (Op::uses(F)) {
              if (std::size_t(F) != f) return;
              auto& x = member<F>(moved);
              shape const e = x.extents();
              for (index_t m = 0; m < e.size(); ++m)
                copy.push_back(x(m / (e.feature * e.position * e.head), m / (e.feature * e.position) % e.head,
                                 m / e.feature % e.position, m % e.feature));
              copy[at] += by;
              x = tensor<double const>(copy.data(), e);
            }
          });
          return objective(p, moved, d);
        });
      };
      double const slope = double(digits50((value(step) - value(-step)) / digits50(2 * step)));
      double const error = std::fabs(double(float(got[f][at])) - slope), allowed = bounds.fields[f][at].bound;
      ++compared;
      if (!(error <= worst * allowed)) worst = error / allowed;
    }
  require(worst <= 1 && compared > 0, name,
          attune::detail::text(compared, " differences, largest share of the bound ", worst));
  auto const report =
      testing::check_gradients(op, {.heads = 2, .queries = 5, .keys = 7, .width = 4}, 11, {.entries = 6});
  require(report.passed(), name, "check_gradients() of the operator");
}

template <class E, class Op>
void check(char const* name, Op const& op) {
  judge<E>(name, op);
  differences<E>(name, op);
}

}  // namespace
}  // namespace attune::test

int main() {
  using namespace attune;
  using namespace attune::test;
  check<bfloat16>("softmax, bf16", softmax_attention(mask::causal{}));
  check<float16>("softmax, fp16", softmax_attention());
  check<bfloat16>("Principled, bf16", principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}));
  check<float16>("affine-scaled, fp16", affine_scaled_attention(0.8, 0.9, mask::causal{}));
  std::printf("%d failures\n", failures);
  return failures != 0;
}
