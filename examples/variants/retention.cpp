// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Retention (RetNet)
//   Sun et al., Retentive Network: A Successor to Transformer for Large Language Models, 2023, arXiv 2307.08621
//   s_ij = c <R(i) q_i, R(j) k_j> g^(i-j) / sqrt(sum_{l <= i} g^(i-l)),   w_ij = s_ij / max(|sum_l s_il|, 1)
//
// R(p) is a rotary embedding, and g = e^-rate is 1 - 2^(-5 - h) for head h = 0, 1, ... The paper then normalizes the
// output of each head.
#include "shared/turned.hpp"

using namespace attune;

// [snippet: variant]
struct decaying_rotary : kernel::rotary {
  parameter rate = 1;
  static constexpr auto parameters() {
    return std::tuple{listed("scale", &rotary::scale), listed("rate", &decaying_rotary::rate, domain::positive)};
  }
  template <class T>
  struct bound {
    T scale, rate, position;
    T score(T const& x, key<T> const& k) const { return scale * x * math::exp(T(-rate * (position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    T const decays = math::expm1(T(-r(rate) * (r.position + T(1)))) / math::expm1(T(-r(rate)));  // a geometric sum
    return {r(scale, r.inverse_sqrt_width) / math::sqrt(decays), r(rate), r.position};
  }
};
struct retention_sum {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::one, .reference = mass_reference::none, .weight_factor = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return a; }
    T weight_factor(T const& earned, T const&) const { return T(1) / math::larger(math::abs(earned), T(1)); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

int main() {
  std::vector<double> const rate{-std::log1p(-1.0 / 32), -std::log1p(-1.0 / 64)};
  rotary_angles<double> angles(rotary_frequencies::plain(8), 1);
  return variants::run(
      [&](testing::problem_extents const& e) {
        angles = rotary_angles<double>(rotary_frequencies::plain(e.width), e.keys);
        return attention(decaying_rotary{{.angles = angles}, per_head(rate)}, retention_sum{}, mask::causal{});
      },
      [](auto const& x, auto const& row, variants::weights& w) {
        std::vector<double> frequencies;
        for (index_t r = 0; r < x.width / 2; ++r)
          frequencies.push_back(std::pow(10000, -2 * double(r) / double(x.width)));
        double const g = 1 - std::exp2(-5 - double(row.h));
        double decays = 0, sum = 0;
        for (index_t j = 0; j <= row.position; ++j) decays += std::pow(g, double(row.position - j));
        for (index_t j = 0; j <= row.position; ++j)
          sum += w[std::size_t(j)] = x.scale() * variants::turned_dot(x, row, j, frequencies) *
                                     std::pow(g, double(row.position - j)) / std::sqrt(decays);
        for (double& y : w) y /= std::max(std::fabs(sum), 1.0);
      });
}
