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

 private:
  Eigen::MatrixXd effects_;
  Eigen::VectorXd residual_;
};

}  // namespace attune::testing::detail
