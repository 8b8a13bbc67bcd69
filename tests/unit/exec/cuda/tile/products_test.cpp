// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Weights that are far from 1, in fp16.
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/exec/cuda/tile/products.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

namespace attune::test {
namespace {

/// Masses (a + Shift)^2, as large as they like.
template <index_t Shift>
struct squared {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    ATTUNE_HD T earned(T const& a, T const&) const { return (a + T(float(Shift))) * (a + T(float(Shift))); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

/// The largest error of `op` on emulated warps over its bound: 2.2 units of the sum of |weight value|, and the smallest
/// number of E. weight(s): of a product s. Divides: by the sum of the weights.
template <class E, class Op, class Weight>
double share_of_bound(Op const& op, double values, bool divides, Weight const& weight) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> draw(-1, 1);
  shape const e{1, 1, 70, 64}, of_keys{1, 1, 150, 64};
  std::vector<E> q, k, v;
  for (index_t n = 0; n < e.size(); ++n) q.push_back(E(draw(random)));
  for (index_t n = 0; n < of_keys.size(); ++n) k.push_back(E(draw(random)));
  for (index_t n = 0; n < of_keys.size(); ++n) v.push_back(E(float(values) * draw(random)));
  std::vector<E> out(q.size());
  inputs<Op, tensor<E const>> const in{.q = {q.data(), e}, .k = {k.data(), of_keys}, .v = {v.data(), of_keys}};
  testing::forward_on_host_warps<exec_cuda::widths<64>>(op, in, outputs<Op, E>{.out = tensor<E>(out.data(), e)});
  double worst = 0;
  for (index_t i = 0; i < e.position; ++i) {
    std::vector<double> w;
    double sum = 0;
    for (index_t j = 0; j < of_keys.position; ++j) {
      double s = 0;
      for (index_t d = 0; d < 64; ++d) s += double(float(in.q(0, 0, i, d))) * double(float(in.k(0, 0, j, d)));
      w.push_back(weight(s / 8));
      sum += w.back();
    }
    for (index_t d = 0; d < 64; ++d) {
      double right = 0, absolute = 0;
      for (index_t j = 0; j < of_keys.position; ++j) {
        double const x = w[std::size_t(j)] * double(float(in.v(0, 0, j, d))) / (divides ? sum : 1);
        right += x;
        absolute += std::fabs(x);
      }
      double const unit = std::is_same_v<E, float16> ? 0x1p-11 : 0x1p-8;
      double const error = std::fabs(double(float(out[std::size_t(i * 64 + d)])) - right);
      worst = std::isfinite(error) ? std::fmax(worst, error / (2.2 * unit * absolute + 6e-8)) : 1e9;
    }
  }
  return worst;
}

TEST_SUITE_BEGIN("cuda products");

TEST_CASE("weights that fp16 has no numbers for keep their precision") {
  for (double bias : {-9.0, -12.0, -16.0, -18.0, -30.0}) {
    CAPTURE(bias);
    double const values = bias < -20 ? 30000 : 1000;  // outputs that fp16 has numbers for
    auto const weight = [&](double a) { return 1 / (1 + std::exp(-(a + bias))); };
    CHECK(share_of_bound<float16>(sigmoid_attention(parameter(bias)), values, false, weight) < 1);
    CHECK(share_of_bound<bfloat16>(sigmoid_attention(parameter(bias)), values, false, weight) < 1);
  }
}

TEST_CASE("weights above the largest number of fp16 stay finite") {
  auto const share = []<index_t Shift>(std::integral_constant<index_t, Shift>) {
    auto const weight = [](double a) { return (a + Shift) * (a + Shift); };
    return share_of_bound<float16>(attention(kernel::dot_product{}, squared<Shift>{}), 1, true, weight);
  };
  CHECK(share(std::integral_constant<index_t, 300>{}) < 1);
  CHECK(share(std::integral_constant<index_t, 1000000000000>{}) < 1);
}

}  // namespace
}  // namespace attune::test
