// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// ema (cases/README.md, section 5): the running average of alpha, step by step.
#include <attune/core/moving_average.hpp>

#include "../instances/digits.hpp"
#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {
namespace {

using instances::backend;

struct averages {
  std::vector<double> value, debiased;
};

template <class T>
averages run(tensor const& batches, double momentum, double initial) {
  averages got;
  moving_average<T> a{T(momentum), T(initial)};
  auto const width = batches.shape.at(1);
  for (auto batch = batches.data.begin(); batch != batches.data.end(); batch += width) {
    a.update(std::vector<T>(batch, batch + width));
    got.value.push_back(static_cast<double>(a.value()));
    // The cases divide by 1 - rho^t whatever the initial value was; the library takes its remainder rho^t a_0 out first.
    T const kept = math::exp(T(T(static_cast<double>(a.count())) * math::log(T(momentum))));
    T const remainder = kept * T(initial) / (T(1) - kept);
    got.debiased.push_back(static_cast<double>(T(a.debiased() + remainder)));
  }
  return got;
}

averages run_on(backend executor, tensor const& batches, double momentum, double initial) {
  switch (executor) {
    case backend::cpu_float:
      return run<float>(batches, momentum, initial);
    case backend::reference_50:
      return run<instances::digits>(batches, momentum, initial);
    case backend::reference_double:
    case backend::cpu_double:
      break;
  }
  return run<double>(batches, momentum, initial);
}

}  // namespace

outcome run_moving_average(golden_case const& c, registry const&, backend executor) {
  auto const momentum = numeric_param(c, "rho"), initial = numeric_param(c, "init");
  if (!momentum || !initial) throw unplannable("has no params rho and init");
  averages const got = run_on(executor, c.inputs.at("alpha_batches"), *momentum, *initial);
  checker checks(c, magnitude_of(c, 1), accuracy_of(executor));
  for (auto const& [name, expected] : forward_expectations(c)) {
    if (name == "alpha_ma")
      checks.check(name, expected, got.value);
    else if (name == "alpha_ma_debiased")
      checks.check(name, expected, got.debiased);
    else
      checks.check(name, expected, std::nullopt);
  }
  return checks.result();
}

}  // namespace attune::golden
