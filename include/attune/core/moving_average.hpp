// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a_t = rho a_{t-1} + (1 - rho) mean of the new values
//
// The running average of alpha that Affine-Scaled Attention keeps during training, as a value. It is the only state
// that attune's operators carry from step to step. You can compare it, copy it, and write it to a checkpoint bit for
// bit.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/math.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// One running average a, of momentum rho in [0, 1). Without `initial`, a_0 = 0 as in the paper. The state is per head:
/// keep a std::vector<moving_average<>>, update each with the values of its head, and pass the values to
/// normalizer::affine as per_head(...). Update first, then use value(): the paper does not give the order. Inference
/// uses the frozen value. `parameter::moving_average` is the same step inside a call, where gradients may pass through
/// it.
template <class T = double>
class moving_average {
 public:
  constexpr moving_average() = default;
  /// a_0 = initial, no step yet. Throws attune::error unless momentum is in [0, 1) and initial is finite.
  constexpr explicit moving_average(T momentum, T initial = T(0))
      : momentum_(momentum), initial_(initial), value_(initial) {
    if (!(momentum >= T(0) && momentum < T(1)))
      throw error("moving_average", "momentum", detail::text("the value ", double(momentum)), "a number in [0, 1)");
    if (!finite(initial))
      throw error("moving_average", "initial", detail::text("the value ", double(initial)), "a finite number");
  }

  /// One step with the mean of `values`. Throws attune::error if there is no value or one is not finite; then nothing
  /// changes.
  void update(std::span<T const> values) {
    step(index_t(values.size()), [&](index_t n) { return values[std::size_t(n)]; });
  }
  /// One step with the mean of a vector.
  void update(std::vector<T> const& values) { update(std::span<T const>(values)); }
  /// One step with the mean over all elements of a view, for example (B, 1, Lq, 1) of one head.
  template <class E>
    requires std::is_arithmetic_v<std::remove_const_t<E>>
  void update(tensor<E> const& values) {
    shape const e = values.extents();
    step(e.batch * e.head * e.position * e.feature, [&](index_t n) {
      index_t const d = n % e.feature, i = n / e.feature % e.position, h = n / e.feature / e.position % e.head;
      return T(values(n / e.feature / e.position / e.head, h, i, d));
    });
  }

  /// a_t, the current average.
  constexpr T const& value() const { return value_; }
  /// rho, the weight of the previous average in a step.
  constexpr T const& momentum() const { return momentum_; }
  /// a_0.
  constexpr T const& initial() const { return initial_; }
  /// Number of steps t.
  constexpr std::int64_t count() const { return count_; }
  /// (a_t - rho^t a_0) / (1 - rho^t): without the bias of the initial value (ours, as in Adam). At t = 0 the initial
  /// value itself.
  T debiased() const {
    if (count_ == 0 || momentum_ == T(0)) return value_;
    T const log_kept =
        T(double(count_)) * math::log(momentum_);  // 1 - rho^t by expm1: no cancellation for rho close to 1
    return (value_ - math::exp(log_kept) * initial_) / -math::expm1(log_kept);
  }

  friend bool operator==(moving_average const&, moving_average const&) = default;

  /// Text that from_string reads back bit for bit, in every locale: "attune.moving_average 1 <momentum> <initial>
  /// <value> <count>", numbers in hexadecimal floating point without "0x". The 1 is the version of the format.
  std::string to_string() const
    requires std::is_floating_point_v<T>
  {
    return detail::text(format, " ", hex(momentum_), " ", hex(initial_), " ", hex(value_), " ", count_);
  }
  /// The average that to_string wrote, bit for bit. Throws attune::error if the text has another format or illegal
  /// numbers.
  static moving_average from_string(std::string const& text)
    requires std::is_floating_point_v<T>
  {
    auto const demand = [&](bool ok, char const* what) {
      if (!ok)
        throw error("moving_average::from_string", "text", detail::text("the value \"", text, "\""),
                    detail::text("\"", format, " <momentum> <initial> <value> <count>\" with ", what));
    };
    std::string_view rest = text;
    demand(rest.starts_with(format), "that head");
    rest.remove_prefix(std::string_view(format).size());
    moving_average a;
    std::array<T*, 3> const numbers{&a.momentum_, &a.initial_, &a.value_};
    for (T* number : numbers) demand(take(rest, *number, std::chars_format::hex), "hexadecimal numbers");
    demand(take(rest, a.count_) && rest.empty(), "one whole number at the end");
    demand(a.momentum_ >= T(0) && a.momentum_ < T(1), "a momentum in [0, 1)");
    demand(finite(a.initial_) && finite(a.value_), "finite numbers");
    demand(a.count_ > 0 || (a.count_ == 0 && a.value_ == a.initial_), "a count >= 0, 0 only at the initial value");
    return a;
  }

 private:
  static constexpr char const* format = "attune.moving_average 1";

  static constexpr bool finite(T const& x) { return x - x == T(0); }

  template <class Value>
  void step(index_t count, Value const& value) {
    if (count == 0) throw error("moving_average::update", "values", "no element", "at least one");
    T sum(0);
    for (index_t n = 0; n < count; ++n) {
      T const x = value(n);
      if (!finite(x))
        throw error("moving_average::update", "values", detail::text("the value ", double(x), " at ", n),
                    "finite numbers");
      sum = sum + x;
    }
    value_ = momentum_ * value_ + (T(1) - momentum_) * (sum / T(double(count)));
    ++count_;
  }

  static std::string hex(T x) {
    std::array<char, 64> digits;
    return std::string(digits.data(),
                       std::to_chars(digits.data(), digits.data() + digits.size(), x, std::chars_format::hex).ptr);
  }
  /// Reads " <number>" from the front of `from` and removes it.
  template <class Number, class... Format>
  static bool take(std::string_view& from, Number& to, Format... how) {
    if (from.empty() || from.front() != ' ') return false;
    auto const [end, problem] = std::from_chars(from.data() + 1, from.data() + from.size(), to, how...);
    if (problem != std::errc{}) return false;
    from.remove_prefix(std::size_t(end - from.data()));
    return true;
  }

  T momentum_ = T(9) / T(10), initial_ = T(0), value_ = T(0);
  std::int64_t count_ = 0;
};

}  // namespace attune
