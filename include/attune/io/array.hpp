// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::array x = io::read_npy("q.npy");   x.type, x.extents, x.bytes     tensor(io::numbers<float>(x), io::tensor_shape(x))
//
// What a file holds: elements of a type known at run time, in C order, under extents of any rank. It becomes numbers of the
// caller's type and one of attune's shapes of four axes by the two rules below.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/tensor.hpp>

namespace attune::io {

static_assert(std::endian::native == std::endian::little, "attune/io copies little-endian numbers as they are");

/// Types of elements that files may hold. Tensors are made of the first four; masks, lengths and document ids of the others.
enum class element_type { float64, float32, float16, bfloat16, boolean, uint8, uint16, int32, int64 };

constexpr char const* name_of(element_type t) {
  constexpr char const* names[] = {"float64", "float32", "float16", "bfloat16", "boolean", "uint8", "uint16", "int32", "int64"};
  return names[int(t)];
}
constexpr std::size_t size_of(element_type t) {
  constexpr std::size_t sizes[] = {8, 4, 2, 2, 1, 1, 2, 4, 8};
  return sizes[int(t)];
}
constexpr bool is_floating(element_type t) { return t <= element_type::bfloat16; }

template <class T>
constexpr element_type type_of() {
  if constexpr (std::is_same_v<T, double>)
    return element_type::float64;
  else if constexpr (std::is_same_v<T, float>)
    return element_type::float32;
  else if constexpr (std::is_same_v<T, float16>)
    return element_type::float16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return element_type::bfloat16;
  else if constexpr (std::is_same_v<T, bool>)
    return element_type::boolean;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return element_type::uint8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return element_type::uint16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return element_type::int32;
  else {
    static_assert(std::is_same_v<T, std::int64_t>, "attune: no file holds elements of this type");
    return element_type::int64;
  }
}

struct array {
  element_type type = element_type::float32;
  std::vector<index_t> extents;      ///< any rank; rank 0 is one number
  std::vector<unsigned char> bytes;  ///< the elements, C order, little-endian
  std::string name = "the array";    ///< where it comes from, for errors: "file q.npy"

  index_t size() const { return index_t(bytes.size() / size_of(type)); }
};

/// "(2, 3)"
inline std::string to_string(std::vector<index_t> const& extents) {
  std::string s = "(";
  for (std::size_t n = 0; n < extents.size(); ++n) s += (n == 0 ? "" : ", ") + std::to_string(extents[n]);
  return s + (extents.size() == 1 ? ",)" : ")");
}

namespace detail {

using attune::detail::text;

/// Text out of a file, fit to be printed: other bytes than printable ASCII as \xNN, and not much of it.
inline std::string printable(std::string_view raw) {
  std::string s = "'";
  for (char const one : raw.substr(0, 60)) {
    auto const c = static_cast<unsigned char>(one);
    if (c >= 32 && c < 127 && c != '\\') {
      s += char(c);
      continue;
    }
    constexpr char const* digits = "0123456789abcdef";
    s += "\\x";
    s += digits[c / 16];
    s += digits[c % 16];
  }
  if (raw.size() > 60) s += "...";
  return s + "'";
}

template <class T, class Visit>
void for_each_as(array const& x, Visit const& visit) {
  for (std::size_t at = 0; at + sizeof(T) <= x.bytes.size(); at += sizeof(T)) {
    T one;
    std::memcpy(&one, x.bytes.data() + at, sizeof(T));
    visit(one);
  }
}

/// A double in float, so that rounding that to fewer bits rounds the double once: towards 0, with the last bit set where
/// anything was lost.
inline float to_odd(double x) {
  float f = float(x);
  if (double(f) == x || x != x) return f;
  if (std::fabs(double(f)) > std::fabs(x)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1u);
}

/// To nearest, once.
template <class T>
T rounded(double x) {
  if constexpr (storage_only<T>)
    return T(to_odd(x));
  else
    return T(x);
}

}  // namespace detail

/// The elements of a floating-point array as T (double, float), to nearest. Throws attune::error for other arrays.
template <class T>
std::vector<T> numbers(array const& x) {
  if (!is_floating(x.type))
    throw error("io::numbers", x.name, detail::text("elements of type ", name_of(x.type)),
                x.type == element_type::uint16 ? "floating-point numbers; if the words are bfloat16, say so where they are read"
                                               : "floating-point numbers");
  std::vector<T> to;
  to.reserve(std::size_t(x.size()));
  if (x.type == element_type::float64)
    detail::for_each_as<double>(x, [&](double e) { to.push_back(detail::rounded<T>(e)); });
  else if (x.type == element_type::float32)
    detail::for_each_as<float>(x, [&](float e) { to.push_back(T(e)); });
  else if (x.type == element_type::float16)
    detail::for_each_as<float16>(x, [&](float16 e) { to.push_back(T(float(e))); });
  else
    detail::for_each_as<bfloat16>(x, [&](bfloat16 e) { to.push_back(T(float(e))); });
  return to;
}

/// The elements of an array of integers or booleans. Throws attune::error for other arrays.
inline std::vector<index_t> integers(array const& x) {
  std::vector<index_t> to;
  to.reserve(std::size_t(x.size()));
  auto const take = [&](auto e) { to.push_back(index_t(e)); };
  switch (x.type) {
    case element_type::boolean:
    case element_type::uint8:
      detail::for_each_as<std::uint8_t>(x, take);
      return to;
    case element_type::uint16:
      detail::for_each_as<std::uint16_t>(x, take);
      return to;
    case element_type::int32:
      detail::for_each_as<std::int32_t>(x, take);
      return to;
    case element_type::int64:
      detail::for_each_as<std::int64_t>(x, take);
      return to;
    default:
      throw error("io::integers", x.name, detail::text("elements of type ", name_of(x.type)), "integers or booleans");
  }
}

/// An array of these numbers, stored as `type` (one of the four floating-point types), rounded to nearest once.
template <class T>
array make_array(std::span<T const> values, std::vector<index_t> extents, element_type type = type_of<T>()) {
  if (!is_floating(type)) throw error("io::make_array", "type", name_of(type), "a floating-point type");
  index_t count = 1;
  for (index_t e : extents) count *= e;
  if (count != index_t(values.size()))
    throw error("io::make_array", "extents", "the value " + to_string(extents), detail::text(values.size(), " elements"));
  array x{type, std::move(extents), std::vector<unsigned char>(values.size() * size_of(type)), "the array"};
  auto const store = [&]<class S>(S) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      S const one = detail::rounded<S>(double(values[n]));
      std::memcpy(x.bytes.data() + n * sizeof(S), &one, sizeof(S));
    }
  };
  if (type == element_type::float64)
    store(double{});
  else if (type == element_type::float32)
    store(float{});
  else if (type == element_type::float16)
    store(float16{});
  else
    store(bfloat16{});
  return x;
}

/// Tensors: leading axes that the array does not have are 1. (L, D), (H, L, D), (B, H, L, D) and (D,) are (1, 1, L, D),
/// (1, H, L, D), (B, H, L, D) and (1, 1, 1, D). Throws attune::error for more than four axes.
inline shape tensor_shape(array const& x) {
  if (x.extents.size() > 4)
    throw error("io::tensor_shape", x.name, "shape " + to_string(x.extents),
                "at most 4 axes: (batch, head, position, feature)");
  index_t axes[4] = {1, 1, 1, 1};
  for (std::size_t n = 0; n < x.extents.size(); ++n) axes[4 - x.extents.size() + n] = x.extents[n];
  return {axes[0], axes[1], axes[2], axes[3]};
}

/// One number per row or position (an lse, a parameter, sort keys): the axes are (batch, head, position), leading ones may be
/// missing, and a fourth one may be there if it is 1.
inline shape row_shape(array const& x) {
  if (x.extents.size() > 4 || (x.extents.size() == 4 && x.extents[3] != 1))
    throw error("io::row_shape", x.name, "shape " + to_string(x.extents),
                "at most 3 axes, or (batch, head, position, 1): one number per position");
  index_t axes[3] = {1, 1, 1};
  std::size_t const rank = x.extents.size() < 3 ? x.extents.size() : 3;
  for (std::size_t n = 0; n < rank; ++n) axes[3 - rank + n] = x.extents[n];
  return {axes[0], axes[1], axes[2], 1};
}

}  // namespace attune::io
