// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every operation on batches and masks that attune uses, on every element type and instruction set, against scalars.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/core/xsimd.hpp>

namespace attune::test {
namespace {

/// The instruction sets that this file is compiled for, and that the machine has.
template <class... Arch>
using compiled =
    decltype(std::tuple_cat(std::declval<std::conditional_t<Arch::supported(), std::tuple<Arch>, std::tuple<>>>()...));
using every_arch = decltype(std::tuple_cat(
    std::declval<compiled<xsimd::avx512bw, xsimd::avx512f, xsimd::fma3<xsimd::avx2>, xsimd::avx2, xsimd::avx,
                          xsimd::sse4_1, xsimd::sse2, xsimd::neon64>>(),
#if XSIMD_WITH_NEON && !XSIMD_WITH_NEON64
    std::declval<compiled<xsimd::neon>>(),
#endif
#if XSIMD_WITH_EMULATED
    std::declval<std::tuple<xsimd::emulated<128>>>()
#else
    std::declval<std::tuple<>>()
#endif
        ));

template <class Arch>
bool runs_here() {
#if XSIMD_WITH_EMULATED
  return true;
#else
  return simd::machine_has<Arch>();
#endif
}

template <class T>
std::vector<T> numbers() {
  using limits = std::numeric_limits<T>;
  std::vector<T> x{T(0), T(1), T(2), T(3), T(7), limits::max(), limits::lowest()};
  if constexpr (std::is_signed_v<T>) x.insert(x.end(), {T(-1), T(-2), T(-5)});
  if constexpr (std::is_floating_point_v<T>)
    x.insert(x.end(), {T(-0.0), limits::infinity(), -limits::infinity(), limits::quiet_NaN(), limits::denorm_min(),
                       -limits::min(), T(0.3), T(-1.75), T(2.5), T(1e6) + T(0.5)});
  return x;
}
template <class T>
std::uint64_t bits_of(T const& x) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<std::uint32_t>(x);
  else
    return std::bit_cast<std::uint64_t>(x);
}
/// Equal, the signs of zeros too. Any NaN is any NaN.
template <class T>
bool same(T const& x, T const& y) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return bits_of(x) == bits_of(y);
}

template <class T, class Arch>
struct operations {
  using batch = xsimd::batch<T, Arch>;
  using mask = xsimd::batch_bool<T, Arch>;
  static constexpr std::size_t lanes = batch::size;
  struct alignas(64) array {
    T at[lanes];
  };
  struct flags {
    bool at[lanes];
  };
  std::mt19937 random{1};
  std::vector<T> const pool = numbers<T>();
  int wrong = 0;
  std::string what;

  static batch load(array const& x) { return batch::load_aligned(x.at); }
  static array lanes_of(batch const& x) {
    array y;
    x.store_aligned(y.at);
    return y;
  }
  /// By select: a mask has no other use in attune.
  static flags flags_of(mask const& c) {
    array const y = lanes_of(simd::select(c, batch(T(1)), batch(T(0))));
    flags to;
    for (std::size_t l = 0; l < lanes; ++l) to.at[l] = y.at[l] == T(1);
    return to;
  }
  array draw() {
    array x;
    for (T& lane : x.at) lane = pool[random() % pool.size()];
    return x;
  }
  flags draw_flags() {
    flags x;
    std::uint32_t const likely = random() % 4;  // also all and none
    for (bool& lane : x.at) lane = likely == 0 ? false : likely == 1 ? true : random() % 2 == 0;
    return x;
  }
  static mask mask_of(flags const& f) {
    array x;
    for (std::size_t l = 0; l < lanes; ++l) x.at[l] = f.at[l] ? T(1) : T(2);
    return load(x) < batch(T(2));
  }
  void count(bool right, char const* name) {
    if (!right) ++wrong, what = name;
  }
  template <class Each>
    requires std::is_floating_point_v<T>
  void expect(char const* name, mask const& got, Each const& each) {
    flags const f = flags_of(got);
    bool right = true, some = false, every = true;
    for (std::size_t l = 0; l < lanes; ++l) {
      right = right && f.at[l] == bool(each(l));
      some = some || each(l), every = every && each(l);
    }
    count(right && simd::any(got) == some && simd::all(got) == every, name);
  }
  template <class Each>
  void expect(char const* name, batch const& got, Each const& each) {
    array const y = lanes_of(got);
    bool right = true;
    for (std::size_t l = 0; l < lanes; ++l) right = right && same<T>(y.at[l], T(each(l)));
    count(right, name);
  }

  void masks() {
    flags const f = draw_flags(), g = draw_flags();
    mask const a = mask_of(f), b = mask_of(g);
    expect("&&", a && b, [&](std::size_t l) { return f.at[l] && g.at[l]; });
    expect("||", a || b, [&](std::size_t l) { return f.at[l] || g.at[l]; });
    expect("!", !a, [&](std::size_t l) { return !f.at[l]; });
    expect("exclusive_or", simd::exclusive_or(a, b), [&](std::size_t l) { return f.at[l] != g.at[l]; });
    expect("twice !", !(!a && b), [&](std::size_t l) { return f.at[l] || !g.at[l]; });
  }
  void comparisons() {
    array const x = draw(), y = draw();
    batch const a = load(x), b = load(y);
    expect("<", a < b, [&](std::size_t l) { return x.at[l] < y.at[l]; });
    expect("<=", a <= b, [&](std::size_t l) { return x.at[l] <= y.at[l]; });
    expect(">", a > b, [&](std::size_t l) { return x.at[l] > y.at[l]; });
    expect(">=", a >= b, [&](std::size_t l) { return x.at[l] >= y.at[l]; });
    expect("==", a == b, [&](std::size_t l) { return x.at[l] == y.at[l]; });
    expect("unequal", simd::unequal(a, b), [&](std::size_t l) { return x.at[l] != y.at[l]; });
    flags const f = draw_flags();
    expect("select", simd::select(mask_of(f), a, b), [&](std::size_t l) { return f.at[l] ? x.at[l] : y.at[l]; });
  }
  void arithmetic() {
    array const x = draw(), y = draw();
    batch const a = load(x), b = load(y);
    using wide = std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_same_v<T, float>, float, std::uint32_t>,
                                    std::conditional_t<std::is_same_v<T, double>, double, std::uint64_t>>;
    auto const of = [](auto z) { return T(z); };
    expect("+", a + b, [&](std::size_t l) { return of(wide(x.at[l]) + wide(y.at[l])); });
    expect("-", a - b, [&](std::size_t l) { return of(wide(x.at[l]) - wide(y.at[l])); });
    if constexpr (std::is_floating_point_v<T>) {
      expect("*", a * b, [&](std::size_t l) { return x.at[l] * y.at[l]; });
      array const negative = lanes_of(-a);
      expect("unary -", -a, [&](std::size_t l) { return x.at[l] == T(0) ? negative.at[l] : -x.at[l]; });
      expect("abs", simd::abs(a), [&](std::size_t l) { return std::fabs(x.at[l]); });
      expect("sign_of", simd::sign_of(a), [&](std::size_t l) {
        return std::isnan(x.at[l]) ? lanes_of(simd::sign_of(a)).at[l] : std::copysign(T(0), x.at[l]);
      });
      if constexpr (!std::is_same_v<T, float> || !is_neon32) {
        expect("quotient", simd::quotient(a, b), [&](std::size_t l) { return x.at[l] / y.at[l]; });
      }
      expect("square_root", simd::square_root(a), [&](std::size_t l) { return std::sqrt(x.at[l]); });
      if constexpr (simd::has_floor<Arch>)
        // Where xsimd makes it of others, the floor of -0 is 0.
        expect("floor", simd::floor(a) + batch(T(0)), [&](std::size_t l) { return std::floor(x.at[l]) + T(0); });
      array const z = draw();
      array const got = lanes_of(simd::fma(a, b, load(z)));
      bool right = true;
      for (std::size_t l = 0; l < lanes; ++l)  // fused or not
        right = right && (same<T>(got.at[l], std::fma(x.at[l], y.at[l], z.at[l])) ||
                          same<T>(got.at[l], T(product(x.at[l], y.at[l]) + z.at[l])));
      count(right, "fma");
    } else {
      expect("&", a & b, [&](std::size_t l) { return of(x.at[l] & y.at[l]); });
      expect("|", a | b, [&](std::size_t l) { return of(x.at[l] | y.at[l]); });
      expect("^", a ^ b, [&](std::size_t l) { return of(x.at[l] ^ y.at[l]); });
      expect("~", ~a, [&](std::size_t l) { return of(~x.at[l]); });
      if constexpr (std::is_unsigned_v<T>) {
        int const by = int(random() % (8 * sizeof(T)));
        expect("shifted_up", simd::shifted_up(a, by), [&](std::size_t l) { return of(x.at[l] << by); });
        expect("shifted_down", simd::shifted_down(a, by), [&](std::size_t l) { return of(x.at[l] >> by); });
      }
    }
  }
  /// Rounded before it is added: no compiler contracts it.
  static T product(T const& x, T const& y) {
    T volatile z = x * y;
    return z;
  }
  static constexpr bool is_neon32 = !simd::has_doubles<Arch>;

  void conversions() {
    array const x = draw();
    if constexpr (std::is_floating_point_v<T>) {
      using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      using signed_bits = xsimd::as_integer_t<T>;
      auto const as_bits = simd::bits_as<bits>(load(x));
      bool right = true;
      alignas(64) bits y[lanes];
      as_bits.store_aligned(y);
      for (std::size_t l = 0; l < lanes; ++l) right = right && y[l] == std::bit_cast<bits>(x.at[l]);
      count(right, "bits_as");
      alignas(64) signed_bits n[lanes], m[lanes];
      array whole;
      for (std::size_t l = 0; l < lanes; ++l) n[l] = signed_bits(random() >> 8), whole.at[l] = T(n[l]);
      simd::to_integers(load(whole)).store_aligned(m);
      right = true;
      for (std::size_t l = 0; l < lanes; ++l) right = right && n[l] == m[l];
      count(right, "to_integers");
      for (std::size_t l = 0; l < lanes; ++l) n[l] = signed_bits(random() >> 8) - signed_bits(1 << 23);
      expect("to_numbers", simd::to_numbers(xsimd::batch<signed_bits, Arch>::load_aligned(n)),
             [&](std::size_t l) { return T(n[l]); });
      array table[4];
      for (auto& row : table) row = draw();
      for (std::size_t l = 0; l < lanes; ++l) n[l] = signed_bits(random() % (4 * lanes));
      expect("gathered", simd::gathered<T, Arch>(table[0].at, xsimd::batch<signed_bits, Arch>::load_aligned(n)),
             [&](std::size_t l) { return (&table[0].at[0])[n[l]]; });
    }
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      array const y = draw();
      expect("product_of_low_halves", simd::product_of_low_halves(load(x), load(y)),
             [&](std::size_t l) { return std::uint64_t(std::uint32_t(x.at[l])) * std::uint32_t(y.at[l]); });
    }
  }
};

template <class T, class Arch>
void check() {
  operations<T, Arch> of;
  for (int n = 0; n < 400; ++n) {
    if constexpr (std::is_floating_point_v<T>) of.masks(), of.comparisons();
    of.arithmetic(), of.conversions();
  }
  INFO(of.what, " is wrong, on ", std::string(Arch::name()), ", elements of ", sizeof(T), " bytes");
  CHECK(of.wrong == 0);
}

TEST_CASE("xsimd: every operation that attune uses agrees with scalars") {
  static_assert(std::tuple_size_v<every_arch> > 0);
  std::apply(
      []<class... Arch>(Arch const&...) {
        auto const each = [&]<class A>(A const&) {
          if (!runs_here<A>()) return;
          check<float, A>();
          check<std::int32_t, A>();
          check<std::uint32_t, A>();
          check<std::int64_t, A>();
          check<std::uint64_t, A>();
          if constexpr (simd::has_doubles<A>) check<double, A>();
        };
        (each(Arch{}), ...);
      },
      every_arch{});
}

}  // namespace
}  // namespace attune::test
