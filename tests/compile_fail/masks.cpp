// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Masks: their form and their hooks.
#include "policies.hpp"

// expect-error mask_without_form: MaskPolicy: declare its form
struct mine {
  static constexpr auto role = policy_role::mask;
  bool visible(mask_row const&, index_t) const { return true; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error mask_hook_missing: of form predicate: write bool visible
struct mine : mask_of<mask_form::predicate> {
  bool visibel(mask_row const&, index_t) const { return true; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error bounds_of_intervals: bounds_keys is for masks of form predicate
struct mine : mask_of<mask_form::interval> {
  static constexpr bool bounds_keys = true;
  key_interval keys(mask_row const& r) const { return {0, r.keys}; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error bounds_without_may_see: bounds_keys is declared but there is no key_interval may_see
struct mine : mask_of<mask_form::predicate> {
  static constexpr bool bounds_keys = true;
  bool visible(mask_row const&, index_t) const { return true; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error undeclared_may_see: may_see\(\) is there but not declared: static constexpr bool bounds_keys = true
struct mine : mask_of<mask_form::predicate> {
  bool visible(mask_row const&, index_t) const { return true; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error undeclared_check: check\(\) is there but not declared: static constexpr bool checks_shape = true
struct mine : mask_of<mask_form::interval> {
  key_interval keys(mask_row const&) const { return {}; }
  void check(mask_shape const&) const {}
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error owning_policy: a policy must be trivially copyable
struct mine : mask_of<mask_form::interval> {
  std::vector<int> lengths;
  key_interval keys(mask_row const&) const { return {}; }
};
auto op = attention(kernel::dot_product{}, mine{});
