// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::array x = io::read_npy("q.npy");  x.type, x.extents, x.bytes
//       tensor(io::numbers<float>(x), io::tensor_shape(x))
//
// The contents of a file: elements of a type known at run time, in C order, with extents of any rank. Two rules below
// turn it into numbers of your type and into one of attune's four-axis shapes.
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
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/float8.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/tensor.hpp>

namespace attune::io {

static_assert(std::endian::native == std::endian::little, "attune/io copies little-endian numbers as they are");

/// Element types of files. Tensors use the floating-point types, which come first; masks, lengths and document ids use
/// the others.
enum class element_type {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  boolean,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64
};

namespace detail {
/// Facts about a type: its name here, in NumPy's files and in safetensors. Types that NumPy does not have are stored
/// there as untyped words.
struct element_facts {
  char const* name;
  std::size_t size;
  char const* numpy;
  char const* safetensors;
};
inline constexpr element_facts elements[] = {{"float64", 8, "<f8", "F64"},
                                             {"float32", 4, "<f4", "F32"},
                                             {"float16", 2, "<f2", "F16"},
                                             {"bfloat16", 2, "<u2", "BF16"},
                                             {"float8_e4m3fn", 1, "|u1", "F8_E4M3"},
                                             {"float8_e5m2", 1, "|u1", "F8_E5M2"},
                                             {"boolean", 1, "|b1", "BOOL"},
                                             {"uint8", 1, "|u1", "U8"},
                                             {"uint16", 2, "<u2", "U16"},
                                             {"uint32", 4, "<u4", "U32"},
                                             {"uint64", 8, "<u8", "U64"},
                                             {"int8", 1, "|i1", "I8"},
                                             {"int16", 2, "<i2", "I16"},
                                             {"int32", 4, "<i4", "I32"},
                                             {"int64", 8, "<i8", "I64"}};
constexpr element_facts const& facts_of(element_type t) { return elements[int(t)]; }
}  // namespace detail

/// The name of a type as in element_type: "float32".
constexpr char const* name_of(element_type t) { return detail::facts_of(t).name; }
/// Bytes per element.
constexpr std::size_t size_of(element_type t) { return detail::facts_of(t).size; }
/// Whether a type is a floating-point type. Only these become tensors.
constexpr bool is_floating(element_type t) { return t <= element_type::float8_e5m2; }

namespace detail {
/// use(T{}) with the element type T; unsigned char for booleans.
template <class Use>
decltype(auto) with_type(element_type t, Use const& use) {
  switch (t) {
    case element_type::float64:
      return use(double{});
    case element_type::float32:
      return use(float{});
    case element_type::float16:
      return use(float16{});
    case element_type::bfloat16:
      return use(bfloat16{});
    case element_type::float8_e4m3fn:
      return use(float8_e4m3fn{});
    case element_type::float8_e5m2:
      return use(float8_e5m2{});
    case element_type::uint16:
      return use(std::uint16_t{});
    case element_type::uint32:
      return use(std::uint32_t{});
    case element_type::uint64:
      return use(std::uint64_t{});
    case element_type::int8:
      return use(std::int8_t{});
    case element_type::int16:
      return use(std::int16_t{});
    case element_type::int32:
      return use(std::int32_t{});
    case element_type::int64:
      return use(std::int64_t{});
    default:
      return use(std::uint8_t{});
  }
}
}  // namespace detail

/// The element type of a C++ type. A type that element_type does not list is a compile error.
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
  else if constexpr (std::is_same_v<T, float8_e4m3fn>)
    return element_type::float8_e4m3fn;
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    return element_type::float8_e5m2;
  else if constexpr (std::is_same_v<T, bool>)
    return element_type::boolean;
  else {
    static_assert(std::is_integral_v<T> && sizeof(T) <= 8, "attune: no file holds elements of this type");
    constexpr element_type of_size[2][4] = {
        {element_type::uint8, element_type::uint16, element_type::uint32, element_type::uint64},
        {element_type::int8, element_type::int16, element_type::int32, element_type::int64}};
    return of_size[std::is_signed_v<T>][std::bit_width(sizeof(T)) - 1];
  }
}

/// An array as a file holds it: a type, extents and bytes. The functions below convert it to numbers.
struct array {
  element_type type = element_type::float32;  ///< of each element
  std::vector<index_t> extents;               ///< any rank; rank 0 is one number
  std::vector<unsigned char> bytes;           ///< the elements, C order, little-endian
  std::string name = "the array";             ///< the source of the data, for errors: "file q.npy"

  index_t size() const { return index_t(bytes.size() / size_of(type)); }  ///< number of elements
};

/// "(2, 3)"
inline std::string to_string(std::vector<index_t> const& extents) {
  std::string s = "(";
  for (std::size_t n = 0; n < extents.size(); ++n) s += (n == 0 ? "" : ", ") + std::to_string(extents[n]);
  return s + (extents.size() == 1 ? ",)" : ")");
}

namespace detail {

using attune::detail::text;

/// The length (two to four bytes) of the UTF-8 character at the beginning of s; 0 if there is none.
inline std::size_t utf8_character(std::string_view s) {
  auto const byte = [&](std::size_t n) { return n < s.size() ? static_cast<unsigned char>(s[n]) : 0u; };
  std::size_t const length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
  for (std::size_t n = 1; n < length; ++n)
    if ((byte(n) & 0xc0u) != 0x80u) return 0;
  unsigned const second = byte(1);
  bool const overlong = (byte(0) == 0xe0 && second < 0xa0) || (byte(0) == 0xf0 && second < 0x90);
  bool const outside =
      (byte(0) == 0xed && second >= 0xa0) || (byte(0) == 0xf4 && second >= 0x90);  // surrogates, beyond U+10FFFF
  bool const control = byte(0) == 0xc2 && second < 0xa0;
  return overlong || outside || control ? 0 : length;
}

/// Text from a file, made printable: UTF-8 is kept, other bytes than printable ASCII become \xNN, and long text is cut.
inline std::string printable(std::string_view raw) {
  std::string s = "'";
  for (std::size_t n = 0; n < raw.size(); ++n) {
    if (n >= 60) {
      s += "...";
      break;
    }
    auto const c = static_cast<unsigned char>(raw[n]);
    std::size_t const wide = detail::utf8_character(raw.substr(n));
    if (wide != 0) {
      s += raw.substr(n, wide);
      n += wide - 1;
    } else if (c >= 32 && c < 127 && c != '\\') {
      s += char(c);
    } else {
      constexpr char const* digits = "0123456789abcdef";
      s += "\\x";
      s += digits[c / 16];
      s += digits[c % 16];
    }
  }
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

/// A double as a float, rounded towards 0, with the last bit set if anything was lost. Rounding this float to fewer
/// bits then rounds the double only once.
inline float to_odd(double x) {
  float f = float(x);
  if (double(f) == x || x != x) return f;
  if (std::fabs(double(f)) > std::fabs(x)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1u);
}

/// Rounded to nearest, only once.
template <class T>
T rounded(double x) {
  if constexpr (std::is_class_v<T>)  // narrower than float
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
                x.type == element_type::uint16
                    ? "floating-point numbers; if the words are bfloat16, say so where they are read"
                    : "floating-point numbers");
  std::vector<T> to;
  to.reserve(std::size_t(x.size()));
  detail::with_type(x.type, [&]<class E>(E) {
    detail::for_each_as<E>(x, [&](E e) {
      if constexpr (std::is_same_v<E, double>)
        to.push_back(detail::rounded<T>(e));
      else
        to.push_back(T(float(e)));
    });
  });
  return to;
}

/// The elements of an array of integers or booleans. Throws attune::error for other arrays, and for a uint64 beyond
/// 2^63 - 1.
inline std::vector<index_t> integers(array const& x) {
  if (is_floating(x.type))
    throw error("io::integers", x.name, detail::text("elements of type ", name_of(x.type)), "integers or booleans");
  std::vector<index_t> to;
  to.reserve(std::size_t(x.size()));
  detail::with_type(x.type, [&]<class E>(E) {
    detail::for_each_as<E>(x, [&](E e) {
      if constexpr (std::is_integral_v<E>) {
        if (!std::in_range<index_t>(e))
          throw error("io::integers", x.name, detail::text("the value ", e), "numbers below 2^63");
        to.push_back(index_t(e));
      }
    });
  });
  return to;
}

/// An array of these numbers, stored as `type` (one of the floating-point types), rounded to nearest only once.
template <class T>
array make_array(std::span<T const> values, std::vector<index_t> extents, element_type type = type_of<T>()) {
  if (!is_floating(type)) throw error("io::make_array", "type", name_of(type), "a floating-point type");
  index_t count = 1;
  for (index_t e : extents) count *= e;
  if (count != index_t(values.size()))
    throw error("io::make_array", "extents", "the value " + to_string(extents),
                detail::text(values.size(), " elements"));
  array x{type, std::move(extents), std::vector<unsigned char>(values.size() * size_of(type)), "the array"};
  detail::with_type(type, [&]<class S>(S) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      S const one = detail::rounded<S>(double(values[n]));
      std::memcpy(x.bytes.data() + n * sizeof(S), &one, sizeof(S));
    }
  });
  return x;
}

/// For tensors: missing leading axes are 1. (L, D), (H, L, D), (B, H, L, D) and (D,) become (1, 1, L, D), (1, H, L, D),
/// (B, H, L, D) and (1, 1, 1, D). Throws attune::error for more than four axes.
inline shape tensor_shape(array const& x) {
  if (x.extents.size() > 4)
    throw error("io::tensor_shape", x.name, "shape " + to_string(x.extents),
                "at most 4 axes: (batch, head, position, feature)");
  index_t axes[4] = {1, 1, 1, 1};
  for (std::size_t n = 0; n < x.extents.size(); ++n) axes[4 - x.extents.size() + n] = x.extents[n];
  return {axes[0], axes[1], axes[2], axes[3]};
}

/// For one number per row or position (an lse, a parameter, sort keys): the axes are (batch, head, position). Leading
/// axes may be missing. A fourth axis is allowed if its extent is 1.
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
