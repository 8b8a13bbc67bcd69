// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal program to ../terms_beside_inputs.cpp and ../value_as_operand.cpp.
#include <attune/attune.hpp>
using namespace attune;
struct waves
    : contraction::sum_of<contraction::of_query<field::q>, contraction::by_feature<contraction::tables::frequency>> {
  template <class S>
  static S term(S const& q, S const& w, S const&, S const& n) {
    return q * math::cos(S(w * n));
  }
};
struct product_with_key
    : contraction::product<contraction::plain_left, contraction::of_query<field::q>, contraction::of_key<field::k>> {};
bool reads = waves::uses(field::q) && product_with_key::uses(field::k);
