// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// `instantiate<...>(to)` of instance.hpp for the Thrust executor: puts it in the place of the CPU in entries that are
// there, so that the table of largest errors takes it for one of its columns. On the host system of one core: a row is
// the same program on each.
#pragma once

#include <map>
#include <string>

#include <thrust/system/cpp/execution_policy.h>

#include <attune/thrust.hpp>

#include "calls.hpp"

namespace attune::tool {

/// Other functions than those of instance.hpp for the linker.
inline namespace on_thrust {

template <auto const& Recipe>
results run(problem const& p) {
  auto const op = detail::operator_of(Recipe, p);
  if (p.in == arithmetic::float64)
    return detail::run_on<double, tensor<double const>>(thrust_on<double>(::thrust::cpp::par), op, p);
  return detail::run_on<float, tensor<float const>>(thrust_on<float>(::thrust::cpp::par), op, p);
}

template <auto const& Recipe>
results gradient(problem const& p) {
  auto const op = detail::operator_of(Recipe, p);
  if (p.in == arithmetic::float64)
    return detail::gradient_on<double, tensor<double const>>(thrust_on<double>(::thrust::cpp::par), op, p);
  return detail::gradient_on<float, tensor<float const>>(thrust_on<float>(::thrust::cpp::par), op, p);
}

template <auto const& Recipe>
void instantiate(std::map<std::string, runner>& to) {
  to.at(Recipe.name).run = &run<Recipe>;
  to.at(Recipe.name).gradient = &gradient<Recipe>;
}

}  // namespace on_thrust
}  // namespace attune::tool
