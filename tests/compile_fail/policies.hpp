// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What snippets are written against: tensors, and policies of which a snippet writes the bound object alone.
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

inline std::vector<float> memory(8);
inline tensor<float> const x(memory, {1, 1, 1, 8}), y(memory, {1, 1, 1, 8});
template <class Op>
void call(Op const&, inputs<Op, tensor<float const>> const&, outputs<Op, float> const&) {}

template <policy_role Role, template <class> class Bound>
struct policy_of {
  static constexpr auto role = Role;
  template <class T>
  Bound<T> bind(row<T> const&) const {
    return {};
  }
};
template <template <class> class Bound, class Contraction>
struct kernel_of : policy_of<policy_role::kernel, Bound> {
  using contraction = Contraction;
};
template <template <class> class Bound, class Contraction, policy_role Role = policy_role::gate>
struct gate_of : policy_of<Role, Bound> {
  using contraction = Contraction;
};
template <policy_role Role, template <class> class Bound, class... Contractions>
struct policy_of_list : policy_of<Role, Bound> {
  using contractions = contraction::list<Contractions...>;
};
template <template <class> class Bound, class... Contractions>
using kernel_of_list = policy_of_list<policy_role::kernel, Bound, Contractions...>;
using traits = normalizer_traits;
template <template <class> class Bound, normalizer_traits Traits = traits{}>
struct normalizer_of : policy_of<policy_role::normalizer, Bound> {
  static constexpr auto traits = Traits;
};
template <mask_form Form>
struct mask_of {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = Form;
};
// Reads a table in bind().
template <policy_role Role, template <class> class Bound>
struct with_entries {
  static constexpr auto role = Role;
  table w;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::array{listed("w", &with_entries::w, table_width::one, table_use::bind)};
  }
  template <class T>
  Bound<T> bind(row<T> const& r) const {
    return {r.entries(w)};
  }
};

template <class T>
struct score_of_one {
  T score(T const& x, key<T> const&) const { return x; }
};
template <class T>
struct score_of_two {
  T score(T const& x, T const& y, key<T> const&) const { return x + y; }
};
template <class T>
struct score_of_three {
  T score(T const& x, T const&, T const& z, key<T> const&) const { return x + z; }
};
template <class T>
struct sigmoid_of_logit {
  T earned(T const& a, T const&) const { return math::sigmoid(a); }
};
template <class T>
struct gate_of_one {
  T gate(T const& s, T const& x) const { return s + x; }
};
