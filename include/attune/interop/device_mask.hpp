// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   device_call_mask(call).mask()
//
// The mask of a call on a device. A device copies the mask with the operator, so one type must serve all calls: a band.
#pragma once

#include <cstdint>

#include <attune/core/error.hpp>
#include <attune/interop/c_abi.h>
#include <attune/policies/mask/band.hpp>

namespace attune::interop {

/// The mask of a call on a device: none, causal or a band of keys, or bands combined by "both" that count from the same
/// end. Throws attune::error for every other mask.
class device_call_mask {
 public:
  using policy = mask::band;  ///< the mask policy of operators on a device
  /// Reads the nodes of a call.
  explicit device_call_mask(attune_call const& c) {
    if (c.mask_count > 0) mask_ = node(c, c.mask_count - 1);
  }
  policy mask() const { return mask_; }  ///< the mask

 private:
  static constexpr char const* expected =
      "full, causal, a window of keys, or two of these combined by & that count from the same end";
  static index_t width(std::int64_t x) { return x == -1 ? policy::no_limit : x; }
  static bool limited(policy const& m) { return m.before != policy::no_limit || m.after != policy::no_limit; }
  static index_t narrower(index_t a, index_t b) { return a < b ? a : b; }

  static policy node(attune_call const& c, std::int64_t n) {
    attune_mask_node const& m = c.mask[n];
    switch (m.kind) {
      case attune_mask_none:
        return {};
      case attune_mask_causal:
        return {policy::no_limit, 0};
      case attune_mask_band:
        return {width(m.a), width(m.b)};
      case attune_mask_band_from_start:
        return {width(m.a), width(m.b), true};
      case attune_mask_both:
        if (m.a >= 0 && m.a < n && m.b >= 0 && m.b < n) return both(node(c, m.a), node(c, m.b));
        [[fallthrough]];
      default:
        throw error("call", "the mask", attune::detail::text("the kind ", m.kind, " on a device"), expected);
    }
  }
  static policy both(policy const& x, policy const& y) {
    if (!limited(x)) return y;
    if (!limited(y)) return x;
    if (x.from_start != y.from_start)
      throw error("call", "the mask", "windows that count from different ends, on a device", expected);
    return {narrower(x.before, y.before), narrower(x.after, y.after), x.from_start};
  }
  policy mask_;
};

}  // namespace attune::interop
