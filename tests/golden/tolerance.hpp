// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How far a computed tensor may be from its golden expectation: the one home of cases/README.md, section 2.
//
//   |got - expected| <= C * eps * S * scale + floor
#pragma once

#include <string>
#include <vector>

#include "case_file.hpp"

namespace attune::golden {

/// What an executor promises.
enum class accuracy {
  binary32,          ///< computed in float
  binary64,          ///< computed in double
  correctly_rounded  ///< computed with so many digits that rounding to double must give the expectation bit for bit
};

/// The sizes a bound is relative to, other than those of the tensor itself.
struct magnitude {
  double logits = 1;      ///< S = 1 + max|a| over the visible final logits; 1 where some are infinite
  double values = 0;      ///< max|v, v0|
  double row_weight = 1;  ///< max(1, max_i sum_j |w_ij|)
};

/// S from the final logits of a case (invisible ones given as 0).
double logit_magnitude(std::vector<double> const& logits);

/// The sizes that follow from the inputs and the expected weights; `logits` is S.
magnitude magnitude_of(golden_case const& c, double logits);

/// The largest accepted |got - expected| for each entry of `c.expected.at(name)`; 0 asks for equality.
/// Non-finite entries have to match exactly whatever their bound.
std::vector<double> bounds(golden_case const& c, std::string const& name, magnitude const& size, accuracy promised);

/// The same for an expectation that the file does not list as a tensor (w0 of edge.json is a parameter).
std::vector<double> bounds(golden_case const& c, std::string const& name, tensor const& expected, magnitude const& size,
                           accuracy promised);

/// Whether an fp32 executor can read the same problem: every finite input is a float. If not, the case counts as passed
/// there.
bool representable_in_float(golden_case const& c);

}  // namespace attune::golden
