// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Weights of any size on tiles of fp16: normalizers without a running maximum.
#include <cmath>
#include <random>
#include <vector>

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

/// Weights e^a / sum e^a, computed from masses of any size: factor e^a.
struct raised {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::sum, .reference = mass_reference::none};
  parameter factor = 1;
  static constexpr auto parameters() { return std::array{listed("factor", &raised::factor)}; }
  template <class T>
  struct bound {
    T factor;
    ATTUNE_HD T earned(T const& a, T const&) const { return factor * math::exp(a); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(factor)};
  }
};

/// The largest relative error of out, less half the distance of subnormal numbers. Values are positive, so no sum
/// cancels.
template <class E, class Op, class Weight>
double worst_error(Op const& op, Weight const& weight, bool divided = false) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> sides(-1, 1), values(0, 2);
  shape const e{1, 1, 48, 64}, of_keys{1, 1, 130, 64};
  std::vector<E> q, k, v, out(std::size_t(e.size()));
  for (index_t n = 0; n < e.size(); ++n) q.push_back(E(sides(random)));
  for (index_t n = 0; n < of_keys.size(); ++n) k.push_back(E(sides(random))), v.push_back(E(values(random)));
  inputs<Op, tensor<E const>> const in{.q = {q.data(), e}, .k = {k.data(), of_keys}, .v = {v.data(), of_keys}};
  testing::forward_on_host_warps<exec_cuda::widths<64>>(op, in, outputs<Op, E>{.out = tensor<E>(out.data(), e)});
  double worst = 0;
  for (index_t i = 0; i < e.position; ++i) {
    std::vector<double> sum(64, 0.0);
    double mass = 0;
    for (index_t j = 0; j < of_keys.position; ++j) {
      double score = 0;
      for (index_t d = 0; d < 64; ++d)
        score += double(float(q[std::size_t(i * 64 + d)])) * double(float(k[std::size_t(j * 64 + d)]));
      double const w = weight(score / 8);
      mass += w;
      for (index_t d = 0; d < 64; ++d) sum[std::size_t(d)] += w * double(float(v[std::size_t(j * 64 + d)]));
    }
    for (index_t d = 0; d < 64; ++d) {
      double const exact = sum[std::size_t(d)] / (divided ? mass : 1),
                   got = double(float(out[std::size_t(i * 64 + d)]));
      double const half = std::is_same_v<E, float16> ? 0x1p-25 : 0;  // of the smallest number
      worst = std::fmax(worst, (std::fabs(got - exact) - half) / exact);
    }
  }
  return worst;
}

TEST_SUITE_BEGIN("cuda weights");

TEST_CASE("sigmoid with a low bias: weights below the numbers of fp16") {
  for (double bias : {0.0, -9.0, -12.0, -16.0, -18.0}) {
    CAPTURE(bias);
    auto const weight = [&](double s) { return 1 / (1 + std::exp(-(s + bias))); };
    CHECK(worst_error<float16>(sigmoid_attention(bias), weight) < 1e-3);
    CHECK(worst_error<bfloat16>(sigmoid_attention(bias), weight) < 6e-3);
  }
}

TEST_CASE("masses above and below all numbers of fp16") {
  for (double factor : {1e-20, 1e-7, 1.0, 1e6, 1e20}) {
    CAPTURE(factor);
    auto const op = attention(kernel::dot_product{}, raised{.factor = factor});
    CHECK(worst_error<float16>(op, [&](double s) { return factor * std::exp(s); }, true) < 1e-3);
  }
}

}  // namespace
}  // namespace attune::test
