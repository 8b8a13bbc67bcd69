// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Softpick
//   Zuhri et al., Softpick: No Attention Sink, No Massive Activations with Rectified Softmax, 2025, arXiv 2504.20966
//   w_ij = max(e^a_ij - 1, 0) / (eps + sum_l |e^a_il - 1|)
//
// A key with a positive logit earns e^a - 1. A key with a negative logit gives 1 - e^a to the ground, which has no
// value. eps is a constant mass.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
struct rectified {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.ground_mass = true, .constant_mass = true};
  parameter eps = 1e-6;
  static constexpr auto parameters() { return std::array{listed("eps", &rectified::eps, domain::positive)}; }

  template <class T>
  struct bound {
    T zero, eps;  // zero: the logit 0, relative to the row constant
    T earned(T const& a, T const& m) const {
      return math::select(a > zero, T(-math::exp_nonpositive(T(a - m)) * math::expm1(T(zero - a))), T(0));
    }
    T ground(T const& a, T const& m) const {
      return math::select(a < zero, T(-math::exp_nonpositive(T(zero - m)) * math::expm1(T(a - zero))), T(0));
    }
    T constant(T const& m) const { return eps * math::exp_nonpositive(T(zero - m)); }
    T lowest_reference() const { return zero; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit(0.0), r(eps)};
  }
};
auto const softpick = attention(kernel::dot_product{}, rectified{}, mask::causal{});
// [/snippet]

int main() {
  return variants::run(softpick, [](auto const& x, auto const& row, variants::weights& w) {
    auto const [b, h, i, position] = row;
    double sum = 1e-6;
    for (index_t j = 0; j <= position; ++j) {
      double const e = std::expm1(x.scale() * x.dot(b, h, i, j));
      sum += std::fabs(e);
      w[std::size_t(j)] = std::max(e, 0.0);
    }
    for (double& y : w) y /= sum;
  });
}
