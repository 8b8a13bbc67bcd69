// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// ema (cases/README.md, section 5): the running average of alpha, step by step.
#include <attune/core/moving_average.hpp>

#include "computed.hpp"

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
    // The cases divide by 1 - rho^t whatever the initial value was; the library takes its remainder rho^t a_0 out
    // first.
    T const kept = math::exp(T(T(static_cast<double>(a.count())) * math::log(T(momentum))));
    T const remainder = kept * T(initial) / (T(1) - kept);
    got.debiased.push_back(static_cast<double>(T(a.debiased() + remainder)));
  }
  return got;
}

}  // namespace

outcome run_moving_average(golden_case const& c, registry const&, backend executor) {
  auto const momentum = numeric_param(c, "rho"), initial = numeric_param(c, "init");
  if (!momentum || !initial) throw unplannable("has no params rho and init");
  averages const got = in_scalar_of(
      executor, [&]<class T>(T const&) { return run<T>(c.inputs.at("alpha_batches"), *momentum, *initial); });
  return compared(c, {{"alpha_ma", got.value}, {"alpha_ma_debiased", got.debiased}}, 1, executor);
}

}  // namespace attune::golden
