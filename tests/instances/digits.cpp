// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "digits.hpp"

#include <cstring>
#include <type_traits>

#include <attune/exec/reference/multiprecision.hpp>

namespace attune::instances {

/// From plain data to a number and back. The exponent also tells zero, infinity and NaN apart.
struct opened {
  using backend = digits50::backend_type;

  static digits50 number(digits const& x) {
    digits50 n;  // 0, and so is plain data of zeros
    if (x.limbs_[words - 1] == 0 && x.exponent_ == 0) return n;
    backend& b = n.backend();
    b.bits().resize(limbs, limbs);
    std::memcpy(b.bits().limbs(), x.limbs_, sizeof x.limbs_);
    b.bits().normalize();
    b.exponent() = x.exponent_;
    b.sign() = x.negative_;
    return n;
  }
  static digits plain(digits50 const& n) {
    backend const& b = n.backend();
    digits x{};
    std::memcpy(x.limbs_, b.bits().limbs(), b.bits().size() * sizeof(limb));
    x.exponent_ = b.exponent();
    x.negative_ = b.sign();
    return x;
  }

 private:
  using limb = std::remove_reference_t<decltype(*backend().bits().limbs())>;  // 64 bits, or 32 where pointers have
  static constexpr unsigned words = 3, limbs = words * sizeof(std::uint64_t) / sizeof(limb);
  static_assert(backend::bit_count <= 64 * words);
  static_assert(std::is_same_v<backend::exponent_type, std::int32_t>);
};

namespace {
digits50 open(digits const& x) { return opened::number(x); }
digits close(digits50 const& n) { return opened::plain(n); }
using limits = std::numeric_limits<digits50>;
}  // namespace

digits::digits(double x) { *this = close(digits50(x)); }
digits::operator double() const { return static_cast<double>(open(*this)); }

digits operator-(digits const& x) { return close(-open(x)); }
digits operator+(digits const& x, digits const& y) { return close(open(x) + open(y)); }
digits operator-(digits const& x, digits const& y) { return close(open(x) - open(y)); }
digits operator*(digits const& x, digits const& y) { return close(open(x) * open(y)); }
digits operator/(digits const& x, digits const& y) { return close(open(x) / open(y)); }

bool operator<(digits const& x, digits const& y) { return open(x) < open(y); }
bool operator>(digits const& x, digits const& y) { return open(x) > open(y); }
bool operator<=(digits const& x, digits const& y) { return open(x) <= open(y); }
bool operator>=(digits const& x, digits const& y) { return open(x) >= open(y); }
bool operator==(digits const& x, digits const& y) { return open(x) == open(y); }
bool operator!=(digits const& x, digits const& y) { return open(x) != open(y); }

digits abs(digits const& x) { return close(abs(open(x))); }
digits exp(digits const& x) { return close(exp(open(x))); }
digits expm1(digits const& x) { return close(expm1(open(x))); }
digits log(digits const& x) { return close(log(open(x))); }
digits log1p(digits const& x) { return close(log1p(open(x))); }
digits sqrt(digits const& x) { return close(sqrt(open(x))); }
digits sin(digits const& x) { return close(sin(open(x))); }
digits cos(digits const& x) { return close(cos(open(x))); }

digits digits::epsilon() noexcept { return close(limits::epsilon()); }
digits digits::lowest() noexcept { return close(limits::lowest()); }
digits digits::largest() noexcept { return close((limits::max)()); }
digits digits::smallest() noexcept { return close((limits::min)()); }
digits digits::infinity() noexcept { return close(limits::infinity()); }
digits digits::quiet_nan() noexcept { return close(limits::quiet_NaN()); }

}  // namespace attune::instances
