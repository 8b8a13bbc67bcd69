// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a check found: text, and whether every step came out as the ledger says.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "shared/random.hpp"

namespace ledger {

using apps::numbers;
using apps::rng;

/// "%.4g"
inline std::string text(double x) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", x);
  return digits;
}
inline std::string text(int x) { return std::to_string(x); }
inline std::string text(std::ptrdiff_t x) { return std::to_string(x); }
inline std::string text(std::size_t x) { return std::to_string(x); }
inline std::string text(char const* x) { return x; }
inline std::string text(std::string const& x) { return x; }
inline std::string text(std::vector<double> const& x) {
  std::string all = "(";
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i > 0) all += ", ";
    all += text(x[i]);
  }
  all += ")";
  return all;
}
template <class First, class... Rest>
  requires(sizeof...(Rest) > 0)
std::string text(First const& first, Rest const&... rest) {
  std::string all = text(first);
  ((all += text(rest)), ...);
  return all;
}

class evidence {
 public:
  /// Random instances that a quantified statement has to pass.
  static constexpr int enough = 1000;

  /// Text, without a check.
  template <class... Parts>
  void note(Parts const&... parts) {
    add(text(parts...));
  }
  /// A step that has to come out.
  template <class... Parts>
  void confirm(bool holds, Parts const&... parts) {
    ++confirmed_;
    judge(holds, text(parts...));
  }
  /// A counterexample to the claim: `shown` is whether it still is one.
  template <class... Parts>
  void refute(bool shown, Parts const&... parts) {
    ++refuted_;
    judge(shown, text("counterexample: ", parts...));
  }
  /// holds(draw) on random instances, all of them.
  template <class F>
  void on_random(std::string const& what, F const& holds, int count = enough) {
    int passed = 0;
    for (int n = 0; n < count; ++n) {
      rng draw{std::uint64_t(n) + 1};
      if (holds(draw)) ++passed;
    }
    if (count > instances_) instances_ = count;
    judge(passed == count, text(what, ": ", passed, " of ", count, " random instances"));
  }

  bool stands() const { return stands_; }
  int confirmed() const { return confirmed_; }
  int refuted() const { return refuted_; }
  int instances() const { return instances_; }
  std::vector<std::string> const& findings() const { return findings_; }

 private:
  void add(std::string finding) { findings_.push_back(std::move(finding)); }
  void judge(bool holds, std::string const& what) {
    stands_ = stands_ && holds;
    add(holds ? what : text("NO LONGER: ", what));
  }

  bool stands_ = true;
  int confirmed_ = 0, refuted_ = 0, instances_ = 0;
  std::vector<std::string> findings_;
};

}  // namespace ledger
