// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   gradient_candidate().with(field::q, tensor(dq, s)).with(field::k, tensor(dk, s))
//
// The gradients of the kernel under test, read into doubles.
#pragma once

#include <map>
#include <vector>

#include <attune/testing/candidate.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// The gradients from the kernel under test, by input, read into doubles.
class gradient_candidate {
 public:
  /// The gradient by one input.
  struct one {
    storage stored;              ///< the format that the kernel wrote
    shape extents;               ///< of the input
    std::vector<double> values;  ///< row-major
  };

  /// A gradient as double, float, bfloat16 or float16, with the extents of the input and any strides.
  template <class E>
  gradient_candidate& with(field f, tensor<E> const& x) {
    return with(f, candidate(x));
  }
  /// Numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  gradient_candidate& with(field f, tensor<double const> const& x, storage stored) {
    return with(f, candidate(x, stored));
  }

  std::map<field, one> const& all() const { return all_; }  ///< those that were given

 private:
  gradient_candidate& with(field f, candidate const& x) {
    all_[f] = {x.stored(), x.extents(), x.out()};
    return *this;
  }
  std::map<field, one> all_;
};

}  // namespace attune::testing
