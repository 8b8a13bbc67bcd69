// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a threshold search should have found, by other means: the sorted closed forms of sparsemax and entmax 1.5, and
// bisection in 50 digits for any other alpha. Callable on the result of any solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <attune/policies/normalizer/entmax.hpp>

#include "instances/digits.hpp"
#include "support/random.hpp"

namespace attune::test {

using instances::digits;

/// tau of the logits (alpha - 1)(a - max a), and level = tau + 1 over alpha - 1: above max a, in units of the logits.
struct true_threshold {
  digits level, tau;
};

/// (alpha - 1)(a - max a), sorted from the largest.
inline std::vector<digits> sorted_excess(std::vector<double> const& logits, digits const& rate) {
  double const most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<digits> x;
  for (double const a : sorted) x.push_back(rate * (digits(a) - digits(most)));
  return x;
}

/// Martins & Astudillo 2016, algorithm 1.
inline digits sparsemax_tau(std::vector<double> const& logits) {
  auto const x = sorted_excess(logits, 1);
  digits sum(0), tau(0);
  for (std::size_t r = 0; r < x.size(); ++r) {
    sum += x[r];
    if (1 + digits(double(r + 1)) * x[r] > sum) tau = (sum - 1) / digits(double(r + 1));
  }
  return tau;
}

/// Peters et al. 2019, algorithm 2: tau_r = M_r - sqrt((1 - r Var_r) / r), of the largest r with tau_r <= x_r.
inline digits entmax15_tau(std::vector<double> const& logits) {
  auto const x = sorted_excess(logits, digits(0.5));
  digits sum(0), squares(0), tau(0);
  for (std::size_t r = 0; r < x.size(); ++r) {
    digits const n(double(r + 1));
    sum += x[r];
    squares += x[r] * x[r];
    digits const mean = sum / n, root = (1 - (squares - sum * mean)) / n;
    if (root < 0) break;
    digits const candidate = mean - sqrt(root);
    if (candidate <= x[r]) tau = candidate;
  }
  return tau;
}

/// Bisection in units of the logits. Keys that a solver in double has far below its threshold are left out: they have
/// no weight.
inline digits bisected_level(std::vector<double> const& logits, double alpha) {
  digits const rate = digits(alpha) - 1;
  auto const x = sorted_excess(logits, digits(1));
  auto const mass = [&](digits const& level) {
    digits sum(0);
    for (digits const& a : x) {
      digits const base = 1 + rate * (a - level);
      if (base > 0)
        sum += exp(log(base) / rate);
      else
        break;
    }
    return sum;
  };
  digits const n(double(x.size()));
  digits low(0), high = -expm1(digits(-rate * log(n))) / rate;
  for (int step = 0; step < 70; ++step) {  // 2^-70: below what any double can tell
    digits const middle = (low + high) / 2;
    (mass(middle) >= 1 ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// alpha = 1 is the log-sum-exp.
inline true_threshold threshold_of(std::vector<double> const& logits, double alpha) {
  digits const rate = digits(alpha) - 1;
  if (alpha == 1) {
    digits sum(0);
    for (digits const& a : sorted_excess(logits, 1)) sum += exp(a);
    return {log(sum), digits(-1)};
  }
  if (alpha == 2 || alpha == 1.5) {
    digits const tau = alpha == 2 ? sparsemax_tau(logits) : entmax15_tau(logits);
    return {(tau + 1) / rate, tau};
  }
  digits const level = bisected_level(logits, alpha);
  return {level, rate * level - 1};
}

/// |tau found - tau|, both on (alpha - 1)(a - max a).
inline double error_of_tau(digits const& tau_found, true_threshold const& truth) {
  return double(abs(digits(tau_found - truth.tau)));
}
inline double error_of_level(digits const& level_found, true_threshold const& truth) {
  return double(abs(digits(level_found - truth.level)));
}

/// Columns on which a search may go wrong, each of `size` logits representable as floats.
inline std::vector<std::pair<std::string, std::vector<double>>> difficult_columns(std::size_t size,
                                                                                  std::uint64_t seed) {
  rng random(seed);
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  auto const add = [&](std::string name, auto const& draw) {
    std::vector<double> x;
    for (std::size_t n = 0; n < size; ++n) x.push_back(f32(draw(n)));
    columns.emplace_back(std::move(name), std::move(x));
  };
  add("normal", [&](std::size_t) { return random.normal(); });
  add("all equal", [&](std::size_t) { return 0.75; });
  add("few values", [&](std::size_t) { return double(random.between(-2, 2)) / 4; });
  add("huge", [&](std::size_t) { return 1e4 * random.normal(); });
  add("tiny", [&](std::size_t) { return 1e-6 * random.normal(); });
  add("shifted", [&](std::size_t) { return 1e5 + random.normal(); });
  add("one leads by 1", [&](std::size_t n) { return n == size / 2 ? 1.0 : 0.0; });
  add("one leads by a little less", [&](std::size_t n) { return n == size / 2 ? 1.0 - 0x1p-20 : 0.0; });
  add("two far above the rest",
      [&](std::size_t n) { return n % (size / 2 + 1) == 0 ? 50.0 + random.uniform() : random.uniform(); });
  add("steps", [&](std::size_t n) { return -double(n) / 16; });
  return columns;
}

}  // namespace attune::test
