// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::forward(sorted::laplacian{tau, sorted::visibility::causal}, {sort_q, sort_k, v}, {out, lse})
//
// The operators of attune/line.hpp under their names of version 0.1. Version 0.3 removes them.
#pragma once

#include <cstdint>

#include <attune/line/certificates.hpp>
#include <attune/policies/concepts.hpp>
#include <attune/sorted/visibility.hpp>
#include <attune/threads/pool.hpp>

namespace attune::sorted {

/// line::laplacian.
struct laplacian {
  parameter tau = 1;
  visibility sees{};
};
/// line::sliced_relu: normalizer::relu is divisor::one, mean_relu count, normalized_relu sum.
struct sliced_relu {
  divisor divided_by = divisor::one;
  visibility sees{};
};
/// line::gaussian.
struct gaussian {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
};
/// line::hybrid with line::certified; line::windowed if no vectors are given. The next two structs do the same, with
/// line::half and line::radius.
struct hybrid {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
  parameter scale{};
};
struct truncated {
  parameter tau = 1;
  index_t keys = 64;
  visibility sees{};
  parameter scale{};
};
struct limited_radius {
  parameter tau = 1;
  double eps = 1e-6;
  visibility sees{};
  parameter scale{};
};
struct fourier_features {
  parameter tau = 1;
  index_t features = 64;
  std::uint64_t seed = 1;
};
struct nystroem {
  parameter tau = 1;
  index_t landmarks = 64;
};

using line::gaussian_certificate;
using line::low_rank_report;
using hybrid_certificate = line::window_certificate;

template <class T>
struct arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};
};
template <class T>
struct results {
  tensor<T> out{}, lse{};
};
template <class T>
struct cotangents {
  tensor<T const> out{}, lse{};
};
/// Gradients are written, not accumulated. Absent ones are not written.
template <class T>
struct gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, tau{};
};
template <class T>
struct hybrid_arrays {
  tensor<T const> sort_q{}, sort_k{}, v{}, q{}, k{}, sink_k{}, sink_v{};
};
template <class T>
struct hybrid_results {
  tensor<T> out{}, lse{};
  tensor<double> discarded{};
};
template <class T>
struct hybrid_gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, q{}, k{}, tau{}, scale{}, sink_k{}, sink_v{};
};

/// Which threads to use, and how many (0: as many as there are).
struct workers {
  int threads = 0;
  thread_executor_ref executor = thread_pool{};
};

}  // namespace attune::sorted
