// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   system.effect(row, key) = ...;   system.residual(row) = ...;   system.solved()    relative error of each weight
//
// Least squares for the errors of all keys' weights at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <attune/core/tensor.hpp>

namespace attune::testing::detail {

/// The median of the sizes of some numbers.
inline double typical_size(std::vector<double> numbers) {
  for (double& x : numbers) x = std::fabs(x);
  auto const middle = numbers.begin() + std::ptrdiff_t(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// One equation per number of the residual: sum over the keys of effect * x = residual.
class key_equations {
 public:
  key_equations(index_t numbers, index_t keys)
      : effects_(Eigen::MatrixXd::Zero(numbers, keys)), residual_(Eigen::VectorXd::Zero(numbers)) {}
  double& effect(index_t number, index_t key) { return effects_(number, key); }
  double& residual(index_t number) { return residual_(number); }
  /// x, the relative error of each key's weight; empty if keys do not explain the residual.
  std::vector<double> solved() const {
    Eigen::MatrixXd normal = effects_.transpose() * effects_;
    double const ridge = 1e-9 * normal.diagonal().maxCoeff();
    if (!std::isfinite(ridge)) return {};
    normal.diagonal().array() += ridge;
    Eigen::VectorXd const x = normal.ldlt().solve(effects_.transpose() * residual_);
    std::vector<double> all(x.data(), x.data() + x.size());
    // The equations of any residual have a solution in which no key has weight. They give it where keys explain
    // nothing.
    return typical_size(all) < 0.5 ? all : std::vector<double>{};
  }
  /// Of each unknown.
  struct estimates {
    std::vector<double> x, precision;  ///< precision: 1 / variance, if the residual has variance 1
  };
  /// The same without a judgement. Unknowns that no equation has get the precision 0.
  estimates estimated() const {
    Eigen::MatrixXd normal = effects_.transpose() * effects_;
    auto const n = normal.rows();
    double const ridge = 1e-9 * normal.diagonal().maxCoeff();
    estimates to{std::vector<double>(std::size_t(n), 0), std::vector<double>(std::size_t(n), 0)};
    if (!std::isfinite(ridge) || ridge == 0) return to;
    normal.diagonal().array() += ridge;
    Eigen::LDLT<Eigen::MatrixXd> const solver = normal.ldlt();
    Eigen::VectorXd const x = solver.solve(effects_.transpose() * residual_);
    Eigen::VectorXd const variance = solver.solve(Eigen::MatrixXd::Identity(n, n)).diagonal();
    for (Eigen::Index k = 0; k < n; ++k) {
      double const precision = 1 / variance(k) - ridge;
      if (!(precision > ridge)) continue;
      to.x[std::size_t(k)] = x(k), to.precision[std::size_t(k)] = precision;
    }
    return to;
  }

 private:
  Eigen::MatrixXd effects_;
  Eigen::VectorXd residual_;
};

}  // namespace attune::testing::detail
