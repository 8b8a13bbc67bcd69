// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   call_mask(call).mask(), call_constants{&call}("k", 8.0), guarded(error, [&] { ... })
//
// Arguments of the C interface as attune's: tensors, numbers, masks, errors. Every length, type and pointer is checked.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/rotary_angles.hpp>
#include <attune/interop/c_abi.h>
#include <attune/interop/c_views.hpp>
#ifdef ATTUNE_C_ON_DEVICE
#include <attune/interop/device/mask.hpp>
#else
#include <attune/policies/mask/expression.hpp>
#endif

namespace attune::interop {

#ifndef ATTUNE_C_ON_DEVICE
/// The mask of a call.
class call_mask {
 public:
  using policy = mask::composed;  ///< the mask policy of operators on the host
  /// Reads the nodes of a call, which must outlive the mask.
  explicit call_mask(attune_call const& c) {
    nodes_.reserve(std::size_t(c.mask_count));  // a node may refer to an earlier one by its address
    for (std::int64_t n = 0; n < c.mask_count; ++n) nodes_.push_back(node(c, n));
  }
  /// The policy; this object must outlive it.
  policy mask() const { return {nodes_.data(), index_t(nodes_.size())}; }

 private:
  mask::expression_node node(attune_call const& call, std::int64_t n) const {
    attune_mask_node const& m = call.mask[n];
    switch (m.kind) {
      case attune_mask_none:
        return {mask::none{}};
      case attune_mask_causal:
        return {mask::causal{}};
      case attune_mask_band:
        return {band_of(m, false)};
      case attune_mask_band_from_start:
        return {band_of(m, true)};
      case attune_mask_prefix:
        return {mask_of<mask::prefix>(m)};
      case attune_mask_sink_window:
        return {mask_of<mask::sink_window>(m)};
      case attune_mask_padding:
        return {mask_of<mask::padding>(m)};
      case attune_mask_documents:
        return {mask_of<mask::documents>(m)};
      case attune_mask_ragged:
        return {ragged_of(m, mask::none{})};
      case attune_mask_ragged_within: {
        bool const known = m.a >= 0 && m.a < n;
        if (!known || call.mask[m.a].kind < attune_mask_none || call.mask[m.a].kind > attune_mask_sink_window)
          throw error("call", attune::detail::text("mask node ", n), attune::detail::text("the index ", m.a),
                      "an earlier node that is a mask without arrays");
        return {ragged_of(m, policy{&nodes_[std::size_t(m.a)], 1})};
      }
      case attune_mask_block_sparse:
        return {mask_of<mask::block_sparse>(m)};
      case attune_mask_visible:
        return {mask_of<mask::visible_table>(m)};
      case attune_mask_both:
        return {mask::expression_node::pair{mask::combination::both, index_t(m.a), index_t(m.b)}};
      case attune_mask_either:
        return {mask::expression_node::pair{mask::combination::either, index_t(m.a), index_t(m.b)}};
      default:
        throw error("call", attune::detail::text("mask node ", n), attune::detail::text("the kind ", m.kind),
                    "one of attune_mask_kind");
    }
  }
  std::vector<mask::expression_node> nodes_;
};
using mask_of_call = call_mask;  ///< reads the mask of a call
#else
using mask_of_call = device_call_mask<ATTUNE_C_DEVICE_MASK>;
#endif
using mask_policy = mask_of_call::policy;  ///< the mask in expressions of operators

/// The constants and arrays of a call: by name, or the default.
struct call_constants {
  attune_call const* call = nullptr;                            ///< null: defaults only
  std::vector<std::pair<std::string, double>>* seen = nullptr;  ///< for the description
  std::vector<std::string>* arrays = nullptr;                   ///< names, in the order of the description
  std::size_t first_array = 0;                                  ///< where arrays begin in the tables of a call
  /// The constant of this name; `otherwise` where the call does not give it. Throws attune::error beyond 2^53.
  double operator()(char const* name, double otherwise) const {
    if (seen) seen->emplace_back(name, otherwise);
    for (std::int64_t n = 0; call && n < call->constant_count; ++n)
      if (std::strcmp(call->constants[n].name, name) == 0) return checked(name, call->constants[n].value);
    return otherwise;
  }
  /// The same where the default is a whole number: other numbers are refused.
  template <std::integral N>
  double operator()(char const* name, N otherwise) const {
    double const x = (*this)(name, double(otherwise));
    if (x != std::floor(x)) throw unfit(name, x, "a whole number, as its default is");
    return x;
  }
  /// An array without gradients that each call gives: a view of its numbers. Absent where there is no call.
  stored_view array(char const* name) const {
    if (!arrays) return {};
    std::size_t const n = std::size_t(std::find(arrays->begin(), arrays->end(), name) - arrays->begin());
    if (!call) return n == arrays->size() ? (arrays->push_back(name), stored_view()) : stored_view();
    attune_tensor const& x = call->tables[first_array + n];
    if (!x.given) throw error("call", name, "no tensor", "an array of numbers");
    return numbers(name, x);
  }
  /// Angles of kernel::rotary from an array (1|B, 1, rows, 2 R): R cosines, then R sines. Query i reads row i + offset.
  rotary_rows angles(char const* name) const {
    stored_view const x = array(name);
    return x.absent() ? rotary_rows() : rotary_rows(x);
  }
  /// The same with a row for each query and a row for each key.
  rotary_rows angles(char const* of_queries, char const* of_keys) const {
    stored_view const x = array(of_queries), y = array(of_keys);
    return x.absent() || y.absent() ? rotary_rows() : rotary_rows(x, y);
  }

 private:
  static double checked(char const* name, double value) {
    if (!(value > -0x1p53 && value < 0x1p53)) throw unfit(name, value, "a number between -2^53 and 2^53");
    return value;
  }
  static error unfit(char const* name, double value, char const* expected) {
    return error("call", attune::detail::text("the constant ", name), attune::detail::text("the value ", value),
                 expected);
  }
};

/// Writes a text with its end to the memory of the caller.
ATTUNE_NOINLINE inline int refuse(int status, char const* what, attune_text to) {
  if (to.at && to.room > 0) std::snprintf(to.at, std::size_t(to.room), "%s", what);
  return status;
}
/// Runs f and turns exceptions into a status and a text.
template <class F>
int guarded(attune_text to, F const& f) {
  try {
    f();
    return attune_done;
  } catch (std::bad_alloc const&) {
    return refuse(attune_out_of_memory, "attune: there is not enough memory", to);
  } catch (error const& e) {
    return refuse(attune_refused, e.what(), to);
  } catch (std::exception const& e) {
    return refuse(attune_failed, e.what(), to);
  } catch (...) {
    return refuse(attune_failed, "attune: an exception of an unknown type", to);
  }
}

}  // namespace attune::interop
