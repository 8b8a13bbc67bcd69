// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Kernels of ordered sums, and stick-breaking attention (Tan et al. 2024) as two loops.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include <attune/policies.hpp>

namespace attune::test {

/// log(1 - sigmoid(c x)): what a key leaves to the keys before it.
struct left_over {
  template <class Bound, class T>
  ATTUNE_HD static T map(Bound const& bound, T const& x) {
    return -math::softplus(T(bound.c * x));
  }
};
/// a_ij = log sigmoid(z_ij) + sum log(1 - sigmoid(z_ij')) over j' > j, z = c <q, k>. With the key's own term the first
/// summand is z itself.
struct stick_breaking {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::later_sum_with_own<contraction::dot, left_over>;
  parameter scale;
  static constexpr auto parameters() { return std::array{listed("scale", &stick_breaking::scale)}; }
  template <class T>
  struct bound {
    T c;
    ATTUNE_HD T score(T const& x, T const& later, key<T> const&) const { return c * x + later; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};
/// The same, from the sum without the key's own term.
struct stick_breaking_by_parts : stick_breaking {
  using contraction = attune::contraction::later_sum<attune::contraction::dot, left_over>;
  static constexpr auto parameters() { return std::tuple{listed("scale", &stick_breaking_by_parts::scale)}; }
  template <class T>
  struct bound {
    T c;
    ATTUNE_HD T score(T const& x, T const& later, key<T> const&) const { return later - math::softplus(T(-(c * x))); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(scale, r.inverse_sqrt_width)};
  }
};

/// -rate log(1 + sum of sigmoid(<q, k>)): positions that count what they pass.
struct sigmoid_of {
  template <class T>
  ATTUNE_HD static T map(T const& x) {
    return math::sigmoid(x);
  }
};
template <class Sum>
struct counted_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = Sum;
  parameter rate = 0.7;
  static constexpr auto parameters() { return std::array{listed("rate", &counted_distance::rate)}; }
  template <class T>
  struct bound {
    T rate;
    ATTUNE_HD T score(T const&, T const& count, key<T> const&) const { return -rate * math::log1p(count); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate)};
  }
};

/// c <q, k> plus a sum of zeros.
struct nothing {
  template <class T>
  ATTUNE_HD static T map(T const&) {
    return T(0);
  }
};
template <class Sum>
struct dot_and_sum {
  static constexpr auto role = policy_role::kernel;
  using contraction = Sum;
  template <class T>
  struct bound {
    T c;
    ATTUNE_HD T score(T const& x, T const& sum, key<T> const&) const { return c * x + sum; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};

/// Stick-breaking of one head, from its definition: w_j = b_j times the product of 1 - b_l over the visible l > j,
/// b = sigmoid(scale <q, k>). dz_l = (1 - b_l) w_l <do, v_l> - b_l sum of w_j <do, v_j> over the visible j < l.
struct two_loops {
  index_t queries, keys, width, value_width;
  double scale;
  double const *q, *k, *v, *by_out;
  std::vector<double> out, dq, dk, dv, rest;  ///< rest: the product over all visible keys
  double d_scale = 0;

  template <class Sees>
  void operator()(Sees const& sees) {
    out.assign(std::size_t(queries * value_width), 0);
    dq.assign(std::size_t(queries * width), 0);
    dk.assign(std::size_t(keys * width), 0);
    dv.assign(std::size_t(keys * value_width), 0);
    rest.assign(std::size_t(queries), 1);
    for (index_t i = 0; i < queries; ++i) {
      std::vector<double> x, b, w, gain;
      std::vector<index_t> seen;
      for (index_t j = 0; j < keys; ++j)
        if (sees(i, j)) {
          double dot = 0;
          for (index_t d = 0; d < width; ++d) dot += q[i * width + d] * k[j * width + d];
          seen.push_back(j);
          x.push_back(dot);
          b.push_back(1 / (1 + std::exp(-scale * dot)));
        }
      for (std::size_t n = 0; n < seen.size(); ++n) {
        double left = 1;
        for (std::size_t l = n + 1; l < seen.size(); ++l) left *= 1 - b[l];
        w.push_back(b[n] * left);
        rest[std::size_t(i)] *= 1 - b[n];
        double sum = 0;
        for (index_t d = 0; d < value_width; ++d) {
          out[std::size_t(i * value_width + d)] += w[n] * v[seen[n] * value_width + d];
          dv[std::size_t(seen[n] * value_width + d)] += w[n] * by_out[i * value_width + d];
          sum += by_out[i * value_width + d] * v[seen[n] * value_width + d];
        }
        gain.push_back(sum);
      }
      for (std::size_t l = 0; l < seen.size(); ++l) {
        double dz = (1 - b[l]) * w[l] * gain[l];
        for (std::size_t n = 0; n < l; ++n) dz -= b[l] * w[n] * gain[n];
        d_scale += dz * x[l];
        for (index_t d = 0; d < width; ++d) {
          dq[std::size_t(i * width + d)] += dz * scale * k[seen[l] * width + d];
          dk[std::size_t(seen[l] * width + d)] += dz * scale * q[i * width + d];
        }
      }
    }
  }
};

}  // namespace attune::test
