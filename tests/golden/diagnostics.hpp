// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json (cases/README.md, section 9): what the parts of its runner share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../instances/digits.hpp"
#include "runner.hpp"

namespace attune::golden {

/// Computed tensors by the names of the expectations.
using results = std::map<std::string, std::vector<double>>;

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

/// compute(T{}) in the scalar that stands for an executor: the diagnostics have none of their own.
template <class F>
results in_scalar_of(instances::backend executor, F const& compute) {
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

// By kind of operation; empty if it is none of theirs.
results diagnose_row(golden_case const& c, instances::backend executor);
results diagnose_selection(golden_case const& c, instances::backend executor);
results diagnose_jacobian(golden_case const& c, instances::backend executor);

}  // namespace attune::golden
