// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   other_call<Op> other(op, inputs, shape);   set_parameter(other.op, path, numbers);   other.rows.evaluate(...)
//
// The call that a kernel may have computed: an operator with other inputs or parameters.
#pragma once

#include <string>
#include <vector>

#include <attune/testing/judging/defects/altered_row.hpp>

namespace attune::testing::detail {

/// An operator with other inputs or parameters, and its rows.
template <class Op>
struct other_call {
  Op op;
  inputs<Op, any_tensor> in;
  std::vector<std::vector<double>> numbers;  ///< of tensors that were made for this call
  altered_rows<Op> rows;

  other_call(Op const& of, inputs<Op, any_tensor> const& from, problem_shape const& p)
      : op(of), in(from), rows(op, in, p) {}
};
/// Sets a parameter of an operator; of all policies, if several have one of that path. The numbers must live longer.
template <class Op>
void set_parameter(Op& op, std::string const& path, std::vector<double> const& values) {
  for (operator_parameter const& x : listed_parameters(op))
    if (x.path() == path)
      const_cast<parameter&>(*x.at) =
          parameter(tensor<double const>(values.data(), x.at->extents()));  // op is not const
}

}  // namespace attune::testing::detail
