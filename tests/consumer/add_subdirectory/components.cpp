// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Linked to the components that the test asks for, attune::reference among them.
#include <attune/interop/eigen.hpp>

int main() {
  Eigen::MatrixXf x = Eigen::MatrixXf::Ones(2, 3);
  return attune::view(x)(0, 0, 1, 2) == 1 ? 0 : 1;
}
