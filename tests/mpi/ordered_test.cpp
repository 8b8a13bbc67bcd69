// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over later and earlier keys over ranks, with any sharding: the numbers of one process.
#include "../support/cope.hpp"
#include "compare.hpp"

using namespace attune;
using namespace attune::test;

namespace {

struct softplus_of {
  template <class T>
  static T map(T const& x) {
    return -math::softplus(x);
  }
};
struct gated_sigmoid {
  template <class Bound, class T>
  static T map(Bound const& bound, T const& x) {
    return bound.rate * math::sigmoid(x);
  }
};
/// The score is the logit and its ordered sum.
template <class Sum>
struct summed {
  static constexpr auto role = policy_role::kernel;
  using contraction = Sum;
  parameter rate = 0.3;
  static constexpr auto parameters() { return std::array{listed("rate", &summed::rate)}; }
  template <class T>
  struct bound {
    T rate;
    T score(T const& x, T const& sum, key<T> const&) const { return T(0.25) * x + T(0.5) * sum; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate)};
  }
};

}  // namespace

TEST_CASE("mpi ordered sums: later keys, causal") {
  compare_with_one_process(
      "later",
      attention(summed<contraction::later_sum<contraction::dot, softplus_of>>{}, normalizer::softmax{}, mask::causal{}),
      90, 90);
}
TEST_CASE("mpi ordered sums: earlier keys and the own key, a parameter of the map, all keys visible") {
  compare_with_one_process("earlier",
                           attention(summed<contraction::earlier_sum_with_own<contraction::dot, gated_sigmoid>>{},
                                     normalizer::grounded{0.2}, gate::sigmoid_output{}, mask::none{}),
                           60, 130);
}
TEST_CASE("mpi ordered sums: rows read at a sum") {
  compare_with_one_process("cope", attention(cope_before{} + kernel::alibi{0.1}, mask::window{35}), 70, 80);
}
