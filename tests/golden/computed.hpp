// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the families share that need no operator of the registry: a case as numbers of one kind, and results as doubles.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../instances/digits.hpp"
#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {

/// The inputs of a case as numbers of one kind.
template <class T>
class reader {
 public:
  explicit reader(golden_case const& c) : case_(c) {}
  std::vector<T> operator()(char const* name) const {
    auto const& data = case_.inputs.at(name).data;
    return {data.begin(), data.end()};
  }
  T one(char const* name) const { return T(case_.inputs.at(name).data.at(0)); }
  bool has(char const* name) const { return case_.inputs.count(name) != 0; }
  index width(char const* name) const { return case_.inputs.at(name).shape.back(); }
  T param(char const* name) const { return T(*numeric_param(case_, name)); }

 private:
  golden_case const& case_;
};

template <class T>
std::vector<double> plain(std::vector<T> const& values) {
  std::vector<double> r;
  for (T const& x : values) r.push_back(static_cast<double>(x));
  return r;
}
template <class T>
std::vector<double> plain(T const& value) {
  return {static_cast<double>(value)};
}

/// compute(T{}) in the scalar that stands for an executor.
template <class F>
auto in_scalar_of(instances::backend executor, F const& compute) {
  switch (executor) {
    case instances::backend::cpu_float:
      return compute(0.0f);
    case instances::backend::reference_50:
      return compute(instances::digits(0.0));
    case instances::backend::reference_double:
    case instances::backend::cpu_double:
      break;
  }
  return compute(0.0);
}

}  // namespace attune::golden
