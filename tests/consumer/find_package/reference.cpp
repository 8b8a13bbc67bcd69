// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component reference: its dependencies are there.
#include <Eigen/Core>
#include <boost/multiprecision/cpp_bin_float.hpp>

double largest(Eigen::VectorXd const& x) { return boost::multiprecision::cpp_bin_float_50(x.maxCoeff()).convert_to<double>(); }
