// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   digits: attune::digits50 behind functions that are compiled once
//
// Boost's arithmetic is templates through and through: inlined into every operator it is most of what the tests take to
// compile. Here a number is plain data, and each operation is a call into digits.cpp: the same bits, no headers.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace attune::instances {

class digits {
 public:
  digits() = default;  ///< no value, like a double
  digits(double x);
  template <class Number>
    requires(std::is_integral_v<Number>)
  digits(Number x) : digits(static_cast<double>(x)) {}  // what the library converts is small
  explicit operator double() const;

  friend digits operator-(digits const& x);
  friend digits operator+(digits const& x, digits const& y);
  friend digits operator-(digits const& x, digits const& y);
  friend digits operator*(digits const& x, digits const& y);
  friend digits operator/(digits const& x, digits const& y);
  digits& operator+=(digits const& y) { return *this = *this + y; }
  digits& operator-=(digits const& y) { return *this = *this - y; }
  digits& operator*=(digits const& y) { return *this = *this * y; }
  friend bool operator<(digits const& x, digits const& y);
  friend bool operator>(digits const& x, digits const& y);
  friend bool operator<=(digits const& x, digits const& y);
  friend bool operator>=(digits const& x, digits const& y);
  friend bool operator==(digits const& x, digits const& y);
  friend bool operator!=(digits const& x, digits const& y);
  friend digits abs(digits const& x);
  friend digits exp(digits const& x);
  friend digits expm1(digits const& x);
  friend digits log(digits const& x);
  friend digits log1p(digits const& x);
  friend digits sqrt(digits const& x);
  friend digits sin(digits const& x);
  friend digits cos(digits const& x);

  static digits epsilon() noexcept;
  static digits lowest() noexcept;
  static digits largest() noexcept;
  static digits smallest() noexcept;
  static digits infinity() noexcept;
  static digits quiet_nan() noexcept;

 private:
  friend struct opened;
  std::uint64_t limbs_[3];
  std::int32_t exponent_;
  bool negative_;
};

}  // namespace attune::instances

template <>
class std::numeric_limits<attune::instances::digits> {
  using digits_type = attune::instances::digits;

 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int radix = 2;
  static digits_type epsilon() noexcept { return digits_type::epsilon(); }
  static digits_type lowest() noexcept { return digits_type::lowest(); }
  static digits_type max() noexcept { return digits_type::largest(); }
  static digits_type min() noexcept { return digits_type::smallest(); }
  static digits_type infinity() noexcept { return digits_type::infinity(); }
  static digits_type quiet_NaN() noexcept { return digits_type::quiet_nan(); }
};
