// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Which registry entry computes an attention case, and the problem it is asked to solve.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../instances/registry.hpp"
#include "case_file.hpp"

namespace attune::golden {

/// The registry entry of a case, or why there cannot be one: then nothing of the case was looked at.
struct choice {
  std::string entry;        ///< kernel/length/gate/normalizer[/post]
  std::string ungated;      ///< the same without post: what has the weights of the case
  std::string unavailable;  ///< not empty: "no runner for ...", "normalizer affine not mapped"
};

choice choose(golden_case const& c);

/// A case of an available operator that does not fit it: an input or parameter is missing, or one is left over that the
/// mapping tables do not know. A failure of the case, never a reason to skip it.
class unplannable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The problems of a case, all with the same expectations: usually one; two with different v0 where the case says that
/// any v0 gives the same result.
std::vector<instances::problem> make_problems(golden_case const& c);

/// The gradient by input `source` of the case, by the name that the registry gives it; empty if no stage reads it.
std::string gradient_target(golden_case const& c, std::string const& source);

/// What the problem must give: the expected tensors without the gradients, and w0 where edge.json states it as a
/// parameter.
std::map<std::string, tensor> forward_expectations(golden_case const& c);

/// Registry form of a tensor: axes of extent 1 are put in front.
instances::array with_axes(std::vector<index> shape, std::vector<double> data, std::size_t axes);

}  // namespace attune::golden
