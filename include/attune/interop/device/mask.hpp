// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   namespace on_device = attune::interop::on_device;
//   #define ATTUNE_C_DEVICE_MASK on_device::both<on_device::band, on_device::one<attune::mask::padding>>
//
// The mask of a call on a device. A device copies the mask with the operator, so its type has no pointer to other
// nodes: each form of a mask expression is a type, and a companion is compiled for one. Arrays are memory of the
// device.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/core/error.hpp>
#include <attune/interop/c_abi.h>
#include <attune/interop/c_views.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/none.hpp>

#ifndef ATTUNE_C_DEVICE_MASK
/// The form of the masks of a library's calls.
#define ATTUNE_C_DEVICE_MASK ::attune::interop::on_device::band
#endif

namespace attune::interop {

/// Forms of masks: each reads node n of a call, and says which mask that is. Throws attune::error if the node has
/// another form.
namespace on_device {

/// The exception for a node that a form does not read.
inline error unread(attune_mask_node const& m, char const* expected) {
  return error("call", "the mask", attune::detail::text("the kind ", m.kind, " on a device"), expected);
}
/// The node before n that m names.
inline std::int64_t part(std::int64_t at, std::int64_t n) {
  if (at < 0 || at >= n)
    throw error("call", attune::detail::text("mask node ", n), attune::detail::text("the index ", at),
                "an earlier node");
  return at;
}

/// None, causal or a band of keys, or bands combined by "both" that count from the same end: one interval.
struct band {
  using policy = mask::band;  ///< the mask
  /// Node n of a call.
  static policy read(attune_call const& c, std::int64_t n) {
    attune_mask_node const& m = c.mask[n];
    switch (m.kind) {
      case attune_mask_none:
        return {};
      case attune_mask_causal:
        return {policy::no_limit, 0};
      case attune_mask_band:
        return band_of(m, false);
      case attune_mask_band_from_start:
        return band_of(m, true);
      case attune_mask_both:
        return both(read(c, part(m.a, n)), read(c, part(m.b, n)));
      default:
        throw unread(m, "full, causal, a window of keys, or two of these combined by &: this library is for them");
    }
  }

 private:
  static bool limited(policy const& m) { return m.before != policy::no_limit || m.after != policy::no_limit; }
  static index_t narrower(index_t a, index_t b) { return a < b ? a : b; }
  static policy both(policy const& x, policy const& y) {
    if (!limited(x)) return y;
    if (!limited(y)) return x;
    if (x.from_start != y.from_start)
      throw error("call", "the mask", "windows that count from different ends, in one band", "both<band, band>");
    return {narrower(x.before, y.before), narrower(x.after, y.after), x.from_start};
  }
};

/// The attune_mask_kind of a mask of one node.
template <class>
inline constexpr int kind_of = -1;
template <>
inline constexpr int kind_of<mask::prefix> = attune_mask_prefix;
template <>
inline constexpr int kind_of<mask::sink_window> = attune_mask_sink_window;
template <>
inline constexpr int kind_of<mask::padding> = attune_mask_padding;
template <>
inline constexpr int kind_of<mask::documents> = attune_mask_documents;
template <>
inline constexpr int kind_of<mask::block_sparse> = attune_mask_block_sparse;
template <>
inline constexpr int kind_of<mask::visible_table> = attune_mask_visible;

/// A mask of one node: prefix, sink_window, padding, documents, block_sparse, visible_table.
template <class Mask>
struct one {
  using policy = Mask;  ///< the mask
  /// Node n of a call.
  static policy read(attune_call const& c, std::int64_t n) {
    if (c.mask[n].kind != kind_of<Mask>) throw unread(c.mask[n], "the mask that this library is for");
    return mask_of<Mask>(c.mask[n]);
  }
};
/// Sequences that follow one another.
struct ragged {
  using policy = mask::ragged<>;  ///< the mask
  /// Node n of a call.
  static policy read(attune_call const& c, std::int64_t n) {
    if (c.mask[n].kind != attune_mask_ragged) throw unread(c.mask[n], "sequences that follow one another");
    return ragged_of(c.mask[n], mask::none{});
  }
};
/// The same; another mask shows keys of each.
template <class Within>
struct ragged_within {
  using policy = mask::ragged<typename Within::policy>;  ///< the mask
  /// Node n of a call.
  static policy read(attune_call const& c, std::int64_t n) {
    attune_mask_node const& m = c.mask[n];
    if (m.kind != attune_mask_ragged_within) throw unread(m, "a mask of each sequence");
    return ragged_of(m, Within::read(c, part(m.a, n)));
  }
};
/// Two masks in one node of this kind.
template <int Kind, template <class, class> class Policy, class A, class B>
struct two {
  using policy = Policy<typename A::policy, typename B::policy>;  ///< the mask
  /// Node n of a call.
  static policy read(attune_call const& c, std::int64_t n) {
    attune_mask_node const& m = c.mask[n];
    if (m.kind != Kind)
      throw unread(m, Kind == attune_mask_both ? "two masks combined by &" : "two masks combined by |");
    return {A::read(c, part(m.a, n)), B::read(c, part(m.b, n))};
  }
};
/// Keys that both masks show.
template <class A, class B>
using both = two<attune_mask_both, mask::intersection, A, B>;
/// Keys that at least one of the masks shows.
template <class A, class B>
using either = two<attune_mask_either, mask::union_of, A, B>;

}  // namespace on_device

/// The mask of a call on a device, of one form.
template <class Form>
class device_call_mask {
 public:
  using policy = typename Form::policy;  ///< the mask policy of operators on a device
  /// Reads the nodes of a call.
  explicit device_call_mask(attune_call const& c) : mask_(read(c)) {}
  policy mask() const { return mask_; }  ///< the mask

 private:
  static policy read(attune_call const& c) {
    if (c.mask_count > 0) return Form::read(c, c.mask_count - 1);
    if constexpr (std::is_same_v<Form, on_device::band>)
      return {};
    else
      throw error("call", "the mask", "no value", "the mask that this library is for");
  }
  policy mask_;
};

}  // namespace attune::interop
