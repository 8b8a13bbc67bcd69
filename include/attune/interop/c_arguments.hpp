// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   view<float>("q", call.fields[0]), call_mask(call).mask(), guarded(error, [&] { ... })
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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/float8.hpp>
#include <attune/core/rotary_angles.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/stored_view.hpp>
#include <attune/interop/c_abi.h>
#include <attune/policies/mask/expression.hpp>
#ifdef ATTUNE_C_ON_DEVICE
#include <attune/interop/device_mask.hpp>
#endif

namespace attune::interop {

/// The names of attune_type.
inline char const* name_of_type(int type) {
  constexpr char const* names[] = {"float32", "float64", "bfloat16",      "float16",    "int64",
                                   "bytes",   "int32",   "float8_e4m3fn", "float8_e5m2"};
  return type >= 0 && type < 9 ? names[type] : "an unknown type";
}
/// The attune_type of T.
template <class T>
inline constexpr int type_code = -1;
template <>
inline constexpr int type_code<float> = attune_float32;
template <>
inline constexpr int type_code<double> = attune_float64;
template <>
inline constexpr int type_code<bfloat16> = attune_bfloat16;
template <>
inline constexpr int type_code<float16> = attune_float16;
template <>
inline constexpr int type_code<std::int64_t> = attune_int64;
template <>
inline constexpr int type_code<unsigned char> = attune_bytes;
template <>
inline constexpr int type_code<std::int32_t> = attune_int32;
template <>
inline constexpr int type_code<float8_e4m3fn> = attune_float8_e4m3fn;
template <>
inline constexpr int type_code<float8_e5m2> = attune_float8_e5m2;

/// Throws unless the tensor has this type.
ATTUNE_NOINLINE inline void require_type(std::string_view name, attune_tensor const& x, int type) {
  if (x.type != type)
    throw error("call", attune::detail::text("the type of ", name), name_of_type(x.type), name_of_type(type));
}
/// A view of a tensor of the caller; absent if it is not given.
template <class T>
tensor<T> view(std::string_view name, attune_tensor const& x) {
  if (!x.given) return {};
  require_type(name, x, type_code<std::remove_const_t<T>>);
  if (reinterpret_cast<std::uintptr_t>(x.data) % alignof(T) != 0)
    throw error("call", name, "an address that is not aligned",
                attune::detail::text("a multiple of ", alignof(T), " bytes: copy the array"));
  return {static_cast<T*>(x.data),
          {x.extents[0], x.extents[1], x.extents[2], x.extents[3]},
          {x.strides[0], x.strides[1], x.strides[2], x.strides[3]}};
}
/// A view of float32 or float64 numbers.
ATTUNE_NOINLINE inline stored_view numbers(std::string const& name, attune_tensor const& x) {
  if (x.type == attune_float64) return stored_view(view<double const>(name, x));
  return stored_view(view<float const>(name, x));
}
/// The elements of a dense tensor in memory. Throws unless it has this type and is dense.
template <class T>
std::span<T const> dense(std::string_view name, attune_tensor const& x) {
  tensor<T const> const all = view<T const>(name, x);
  shape const& e = all.extents();
  strides const s = all.steps(), d = strides::dense(e);
  auto const fits = [](index_t extent, index_t step, index_t wanted) { return extent <= 1 || step == wanted; };
  if (!fits(e.batch, s.batch, d.batch) || !fits(e.head, s.head, d.head) || !fits(e.position, s.position, d.position) ||
      !fits(e.feature, s.feature, d.feature))
    throw error("call", name, "gaps between its elements", "a dense array");
  return {all.data(), std::size_t(e.size())};
}

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
  static_assert(sizeof(index_t) == sizeof(std::int64_t), "attune: the C interface needs 64-bit indices");
  static index_t const* indices(std::span<std::int64_t const> x) {
    return static_cast<index_t const*>(static_cast<void const*>(x.data()));
  }
  static std::span<std::int64_t const> ids(char const* name, attune_tensor const& x) {
    return dense<std::int64_t>(name, x);
  }
  /// Sequences that follow one another; `within` shows keys of each.
  template <class Within>
  static mask::ragged<Within> packed(attune_mask_node const& m, Within const& within) {
    auto const q = ids("cu_seqlens of queries", m.x), k = ids("cu_seqlens of keys", m.y);
    if (q.size() != k.size() || q.empty())
      throw error("mask::ragged", "cu_seqlens", attune::detail::text(q.size(), " and ", k.size(), " entries"),
                  "one more entry than sequences, for queries and keys alike");
    return {indices(q), indices(k), index_t(q.size()) - 1, within};
  }
  mask::expression_node node(attune_call const& call, std::int64_t n) const {
    attune_mask_node const& m = call.mask[n];
    auto const width = [](std::int64_t x) { return x == -1 ? mask::band::no_limit : x; };
    switch (m.kind) {
      case attune_mask_none:
        return {mask::none{}};
      case attune_mask_causal:
        return {mask::causal{}};
      case attune_mask_band:
        return {mask::band{width(m.a), width(m.b)}};
      case attune_mask_band_from_start:
        return {mask::band{width(m.a), width(m.b), true}};
      case attune_mask_prefix:
        return {mask::prefix{index_t(m.a)}};
      case attune_mask_sink_window:
        return {mask::sink_window{index_t(m.a), index_t(m.b)}};
      case attune_mask_padding: {
        auto const lengths = ids("the lengths of a padding mask", m.x);
        return {mask::padding(indices(lengths), index_t(lengths.size()))};
      }
      case attune_mask_documents: {
        auto const q = ids("the ids of queries", m.x), k = ids("the ids of keys", m.y);
        return {mask::documents(indices(q), index_t(q.size()), indices(k), index_t(k.size()),
                                m.x.extents[0] * m.x.extents[1] * m.x.extents[2])};
      }
      case attune_mask_ragged:
        return {packed(m, mask::none{})};
      case attune_mask_ragged_within: {
        bool const known = m.a >= 0 && m.a < n;
        if (!known || call.mask[m.a].kind < attune_mask_none || call.mask[m.a].kind > attune_mask_sink_window)
          throw error("call", attune::detail::text("mask node ", n), attune::detail::text("the index ", m.a),
                      "an earlier node that is a mask without arrays");
        return {packed(m, policy{&nodes_[std::size_t(m.a)], 1})};
      }
      case attune_mask_block_sparse: {
        auto const table = dense<unsigned char>("the table of blocks", m.x);
        return {mask::block_sparse(table.data(), index_t(table.size()), index_t(m.a), index_t(m.b),
                                   index_t(m.x.extents[1]))};
      }
      case attune_mask_visible:
        return {mask::visible_table{view<unsigned char const>("the table of visible keys", m.x)}};
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
#ifdef ATTUNE_C_ON_DEVICE
using mask_of_call = device_call_mask;
#else
using mask_of_call = call_mask;  ///< reads the mask of a call
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
