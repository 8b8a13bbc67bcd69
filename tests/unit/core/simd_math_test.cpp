// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The elementary functions on SIMD registers against those of long double: errors in units in the last place (ulp) over
// dense grids, and the special values lane by lane. Every instruction set the compiler was allowed to use is run.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "simd_check.hpp"

namespace attune::test {
namespace {

/// Greatest error allowed, in ulp. What was measured (g++ 12 and clang 14, float and double) stands behind each.
struct bounds {
  double exp_nonpositive, exp, expm1, log, log1p, log1p_unit, softplus, sigmoid, tanh;
};
constexpr bounds fused{1.0, 1.0, 1.75, 0.9, 0.9, 1.5, 2.0, 2.5, 4.25};
constexpr bounds unfused{1.25, 1.25, 1.75, 0.9, 0.9, 2.0, 2.25, 3.0, 4.25};

template <class Batch>
constexpr bounds bounds_of() {
  using arch = typename Batch::arch_type;
  return std::is_base_of_v<xsimd::avx512f, arch> || std::is_base_of_v<xsimd::fma3<xsimd::avx2>, arch> ? fused : unfused;
}

/// exp_nonpositive is 0 from a little below this on.
template <class T>
T const lowest_log = std::is_same_v<T, float> ? T(-66.88) : T(-687.94);
/// exp is 0 from a little below this on.
template <class T>
T const lowest_normal_log = std::is_same_v<T, float> ? T(-87.3365) : T(-708.3964);
/// The greatest x for which e^x is finite.
template <class T>
T const highest_log = std::is_same_v<T, float> ? T(0x1.62e42ep6) : T(0x1.62e42fefa39efp9);

/// The neighbours of (n + 1/2) log 2, where the reduction changes n and the remainder is largest.
template <class T>
std::vector<T> seams(double low, double high) {
  std::vector<T> x;
  for (double n = std::ceil(low / 0.6931471805599453); n * 0.6931471805599453 < high; ++n)
    for (int i = -20; i <= 20; ++i) {
      T const at = T((n + 0.5) * 0.6931471805599453 + 1e-3 * i);
      if (low <= at && at <= high) x.push_back(at);
    }
  return x;
}

// Functions as values: the ones under test, and what they should give.
auto const exp_nonpositive = [](auto const& x) { return math::exp_nonpositive(x); };
auto const exp = [](auto const& x) { return math::exp(x); };
auto const expm1 = [](auto const& x) { return math::expm1(x); };
auto const log = [](auto const& x) { return math::log(x); };
auto const log1p = [](auto const& x) { return math::log1p(x); };
auto const log1p_unit = [](auto const& x) { return scalar<std::decay_t<decltype(x)>>::log1p_unit(x); };
auto const softplus = [](auto const& x) { return math::softplus(x); };
auto const sigmoid = [](auto const& x) { return math::sigmoid(x); };
auto const tanh = [](auto const& x) { return math::tanh(x); };

auto const exact_exp = [](long double x) { return std::exp(x); };
auto const exact_expm1 = [](long double x) { return std::expm1(x); };
auto const exact_log = [](long double x) { return std::log(x); };
auto const exact_log1p = [](long double x) { return std::log1p(x); };
auto const exact_softplus = [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); };
auto const exact_sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
auto const exact_tanh = [](long double x) { return std::tanh(x); };

TEST_CASE_TEMPLATE_DEFINE("exp_nonpositive", Batch, exp_nonpositive_id) {
  using T = value<Batch>;
  auto const x = joined<T>({linear<T>(double(lowest_log<T>), 0, 60000), linear<T>(-4, 0, 30000),
                            geometric<T>(-1, -70, 6, 3000), seams<T>(double(lowest_log<T>), 0)});
  check_accuracy<Batch>("exp_nonpositive", x, exp_nonpositive, exact_exp, bounds_of<Batch>().exp_nonpositive);
  for (T const y : map<Batch>(linear<T>(double(lowest_log<T>) - 3, double(lowest_log<T>) + 3, 2000), exp_nonpositive))
    CHECK((y == 0 || y >= std::sqrt(T(0.4)) * attune::detail::least_weight<T>));
  T const tiny = std::numeric_limits<T>::denorm_min(), far = lowest_log<T> - T(0.02);
  check_values<Batch>("exp_nonpositive", exp_nonpositive,
                      {{T(0), T(1)},
                       {T(-0.0), T(1)},
                       {-inf<T>, T(0)},
                       {nan<T>, nan<T>},
                       {-tiny, T(1)},
                       {far, T(0)},
                       {T(-1000), T(0)},
                       {std::numeric_limits<T>::lowest(), T(0)},
                       {-nan<T>, nan<T>}});
}

TEST_CASE_TEMPLATE_DEFINE("exp", Batch, exp_id) {
  using T = value<Batch>;
  double const low = double(lowest_normal_log<T>), high = double(highest_log<T>);
  auto const x = joined<T>({linear<T>(low, high, 80000), linear<T>(-2, 2, 20000), linear<T>(high - 0.4, high, 4000),
                            geometric<T>(1, -70, 6, 3000), seams<T>(low, high)});
  check_accuracy<Batch>("exp", x, exp, exact_exp, bounds_of<Batch>().exp);
  for (T const y : map<Batch>(linear<T>(low * 1.3, low + 1, 2000), exp))
    CHECK((y == 0 || y >= std::numeric_limits<T>::min()));
  T const above = std::nextafter(highest_log<T>, inf<T>);
  check_values<Batch>("exp", exp,
                      {{T(0), T(1)},
                       {T(-0.0), T(1)},
                       {-inf<T>, T(0)},
                       {inf<T>, inf<T>},
                       {nan<T>, nan<T>},
                       {above, inf<T>},
                       {std::numeric_limits<T>::max(), inf<T>},
                       {std::nextafter(T(low), -inf<T>), T(0)},
                       {std::numeric_limits<T>::lowest(), T(0)}});
}

TEST_CASE_TEMPLATE_DEFINE("expm1", Batch, expm1_id) {
  using T = value<Batch>;
  double const high = double(highest_log<T>), small = std::numeric_limits<T>::min_exponent + 1;
  auto const x = joined<T>({linear<T>(-50, high, 40000), linear<T>(-4, 4, 80000), linear<T>(high - 0.4, high, 4000),
                            geometric<T>(1, small, 0, 20000), geometric<T>(-1, small, 0, 20000), seams<T>(-50, high)});
  check_accuracy<Batch>("expm1", x, expm1, exact_expm1, bounds_of<Batch>().expm1);
  T const above = std::nextafter(highest_log<T>, inf<T>);
  check_values<Batch>("expm1", expm1,
                      {{T(0), T(0)},
                       {T(-0.0), T(0)},
                       {-inf<T>, T(-1)},
                       {inf<T>, inf<T>},
                       {nan<T>, nan<T>},
                       {above, inf<T>},
                       {T(-1000), T(-1)},
                       {std::numeric_limits<T>::max(), inf<T>}});
}

TEST_CASE_TEMPLATE_DEFINE("log", Batch, log_id) {
  using T = value<Batch>;
  using limits = std::numeric_limits<T>;
  double const low = limits::min_exponent - limits::digits, high = limits::max_exponent - 0.01;
  auto const x =
      joined<T>({linear<T>(1e-5, 4, 80000), linear<T>(0.99, 1.01, 20000), geometric<T>(1, low, high, 40000)});
  check_accuracy<Batch>("log", x, log, exact_log, bounds_of<Batch>().log);
  check_values<Batch>("log", log,
                      {{T(1), T(0)},
                       {T(0), -inf<T>},
                       {T(-0.0), -inf<T>},
                       {inf<T>, inf<T>},
                       {nan<T>, nan<T>},
                       {T(-1), nan<T>},
                       {-limits::denorm_min(), nan<T>},
                       {-inf<T>, nan<T>},
                       {-nan<T>, nan<T>}});
}

TEST_CASE_TEMPLATE_DEFINE("log1p", Batch, log1p_id) {
  using T = value<Batch>;
  using limits = std::numeric_limits<T>;
  double const low = limits::min_exponent - limits::digits, high = limits::max_exponent - 0.01;
  auto const x = joined<T>({linear<T>(-1 + 1e-6, 4, 80000), linear<T>(-0.01, 0.01, 20000),
                            geometric<T>(1, low, high, 40000), geometric<T>(-1, low, -0.01, 20000)});
  check_accuracy<Batch>("log1p", x, log1p, exact_log1p, bounds_of<Batch>().log1p);
  check_values<Batch>("log1p", log1p,
                      {{T(0), T(0)},
                       {T(-0.0), T(0)},
                       {T(-1), -inf<T>},
                       {inf<T>, inf<T>},
                       {nan<T>, nan<T>},
                       {std::nextafter(T(-1), T(-2)), nan<T>},
                       {T(-2), nan<T>},
                       {-inf<T>, nan<T>}});
}

TEST_CASE_TEMPLATE_DEFINE("log1p_unit", Batch, log1p_unit_id) {
  using T = value<Batch>;
  using limits = std::numeric_limits<T>;
  auto const x = joined<T>({linear<T>(0, 1, 100000), geometric<T>(1, limits::min_exponent - limits::digits, 0, 20000)});
  check_accuracy<Batch>("log1p_unit", x, log1p_unit, exact_log1p, bounds_of<Batch>().log1p_unit);
  T const tiny = limits::denorm_min();
  check_values<Batch>("log1p_unit", log1p_unit, {{T(0), T(0)}, {nan<T>, nan<T>}, {tiny, tiny}});
}

TEST_CASE_TEMPLATE_DEFINE("softplus, sigmoid, tanh", Batch, composed_id) {
  using T = value<Batch>;
  double const low = double(lowest_log<T>), high = 200;
  auto const x = joined<T>({linear<T>(low, high, 40000), linear<T>(-4, 4, 40000), geometric<T>(1, -60, 6, 5000),
                            geometric<T>(-1, -60, 6, 5000)});
  bounds const b = bounds_of<Batch>();
  check_accuracy<Batch>("softplus", x, softplus, exact_softplus, b.softplus);
  check_accuracy<Batch>("sigmoid", x, sigmoid, exact_sigmoid, b.sigmoid);
  check_accuracy<Batch>("tanh", x, tanh, exact_tanh, b.tanh);
  check_values<Batch>("softplus", softplus, {{-inf<T>, T(0)}, {inf<T>, inf<T>}, {nan<T>, nan<T>}, {T(-1000), T(0)}});
  check_values<Batch>("sigmoid", sigmoid, {{-inf<T>, T(0)}, {inf<T>, T(1)}, {nan<T>, nan<T>}, {T(0), T(0.5)}});
  check_values<Batch>("tanh", tanh, {{-inf<T>, T(-1)}, {inf<T>, T(1)}, {nan<T>, nan<T>}, {T(0), T(0)}});
}

TEST_CASE_TEMPLATE_DEFINE("larger, smaller, select: all pairs of special values", Batch, order_id) {
  using T = value<Batch>;
  std::array<T, 7> const places{T(0), T(-0.0), T(1), T(-2), inf<T>, -inf<T>, nan<T>};
  std::vector<T> a, b;
  for (T const x : places)
    for (T const y : places) a.push_back(x), b.push_back(y);
  while (a.size() % Batch::size != 0) a.push_back(T(1)), b.push_back(T(2));

  auto const same = [](T x, T y) {  // the sign of a zero counts: it tells which operand was taken
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
  };
  std::vector<T> larger(a.size()), smaller(a.size()), chosen(a.size());
  for (std::size_t i = 0; i < a.size(); i += Batch::size) {
    auto const x = Batch::load_unaligned(&a[i]), y = Batch::load_unaligned(&b[i]);
    math::larger(x, y).store_unaligned(&larger[i]);
    math::smaller(x, y).store_unaligned(&smaller[i]);
    math::select(x < y, x, y).store_unaligned(&chosen[i]);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    CHECK(same(larger[i], math::larger(a[i], b[i])));
    CHECK(same(smaller[i], math::smaller(a[i], b[i])));
    CHECK(same(chosen[i], a[i] < b[i] ? a[i] : b[i]));
  }
}

TEST_CASE_TEMPLATE_DEFINE("abs, sqrt, infinity, scale_keeping_off", Batch, simple_id) {
  using T = value<Batch>;
  check_values<Batch>("abs", [](auto const& x) { return math::abs(x); },
                      {{T(-0.0), T(0)}, {T(-3), T(3)}, {-inf<T>, inf<T>}, {nan<T>, nan<T>}});
  check_values<Batch>("sqrt", [](auto const& x) { return math::sqrt(x); },
                      {{T(9), T(3)}, {T(-1), nan<T>}, {inf<T>, inf<T>}, {T(0), T(0)}});
  check_values<Batch>("0 * s", [](auto const& s) { return math::scale_keeping_off(Batch(T(0)), s); },
                      {{-inf<T>, -inf<T>}, {T(5), T(0)}, {inf<T>, nan<T>}, {nan<T>, nan<T>}});
  check_values<Batch>("-2 * s", [](auto const& s) { return math::scale_keeping_off(Batch(T(-2)), s); },
                      {{-inf<T>, -inf<T>}, {T(5), T(-10)}, {inf<T>, -inf<T>}});
  check_values<Batch>("infinity", [](auto const& x) { return x * math::infinity<Batch>(); }, {{T(1), inf<T>}});
}

TEST_CASE_TEMPLATE_APPLY(exp_nonpositive_id, batches);
TEST_CASE_TEMPLATE_APPLY(exp_id, batches);
TEST_CASE_TEMPLATE_APPLY(expm1_id, batches);
TEST_CASE_TEMPLATE_APPLY(log_id, batches);
TEST_CASE_TEMPLATE_APPLY(log1p_id, batches);
TEST_CASE_TEMPLATE_APPLY(log1p_unit_id, batches);
TEST_CASE_TEMPLATE_APPLY(composed_id, batches);
TEST_CASE_TEMPLATE_APPLY(order_id, batches);
TEST_CASE_TEMPLATE_APPLY(simple_id, batches);

}  // namespace
}  // namespace attune::test
