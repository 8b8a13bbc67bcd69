// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel that reads a row at an ordered sum.
#pragma once

#include "ordered.hpp"

template <class... C>
struct lookup {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<C...>;
  template <class T>
  struct bound {
    T score(T const& x, T const&, T const& z, key<T> const&) const { return x + z; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
using positions = lookup<contraction::dot, later, contraction::interpolated<later>>;
