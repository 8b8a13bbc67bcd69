// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   view<float>("q", call.fields[0]), dense<std::int64_t>("lengths", node.x), mask_of<mask::padding>(node)
//
// Memory of the caller of the C interface: tensors as views, nodes of masks as masks. Types and strides are checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <attune/core/error.hpp>
#include <attune/core/float8.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/stored_view.hpp>
#include <attune/interop/c_abi.h>
#include <attune/policies/mask/band.hpp>
#include <attune/policies/mask/block_sparse.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/ragged.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/visible_table.hpp>

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

static_assert(sizeof(index_t) == sizeof(std::int64_t), "attune: the C interface needs 64-bit indices");
/// The numbers of a mask's array.
inline std::span<index_t const> indices(char const* name, attune_tensor const& x) {
  auto const all = dense<std::int64_t>(name, x);
  return {static_cast<index_t const*>(static_cast<void const*>(all.data())), all.size()};
}
/// A window of keys from the numbers of a node. -1: no limit.
inline mask::band band_of(attune_mask_node const& m, bool from_start) {
  auto const width = [](index_t x) { return x == -1 ? mask::band::no_limit : x; };
  return {width(m.a), width(m.b), from_start};
}
/// Sequences that follow one another; `within` shows keys of each.
template <class Within>
mask::ragged<Within> ragged_of(attune_mask_node const& m, Within const& within) {
  auto const q = indices("cu_seqlens of queries", m.x), k = indices("cu_seqlens of keys", m.y);
  if (q.size() != k.size() || q.empty())
    throw error("mask::ragged", "cu_seqlens", attune::detail::text(q.size(), " and ", k.size(), " entries"),
                "one more entry than sequences, for queries and keys alike");
  return {q.data(), k.data(), index_t(q.size()) - 1, within};
}
/// Any other mask of one node.
template <class Mask>
Mask mask_of(attune_mask_node const& m) {
  if constexpr (std::is_same_v<Mask, mask::prefix>) {
    return mask::prefix{index_t(m.a)};
  } else if constexpr (std::is_same_v<Mask, mask::sink_window>) {
    return mask::sink_window{index_t(m.a), index_t(m.b)};
  } else if constexpr (std::is_same_v<Mask, mask::padding>) {
    auto const lengths = indices("the lengths of a padding mask", m.x);
    return mask::padding(lengths.data(), index_t(lengths.size()));
  } else if constexpr (std::is_same_v<Mask, mask::documents>) {
    auto const q = indices("the ids of queries", m.x), k = indices("the ids of keys", m.y);
    return mask::documents(q.data(), index_t(q.size()), k.data(), index_t(k.size()),
                           m.x.extents[0] * m.x.extents[1] * m.x.extents[2]);
  } else if constexpr (std::is_same_v<Mask, mask::block_sparse>) {
    auto const table = dense<unsigned char>("the table of blocks", m.x);
    return mask::block_sparse(table.data(), index_t(table.size()), index_t(m.a), index_t(m.b), index_t(m.x.extents[1]));
  } else {
    static_assert(std::is_same_v<Mask, mask::visible_table>);
    return mask::visible_table{view<unsigned char const>("the table of visible keys", m.x)};
  }
}

}  // namespace attune::interop
