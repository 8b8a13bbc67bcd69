// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   hash h; h.add(numbers); h.text()      FNV-1a of the bits of numbers as doubles; all NaNs are one
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>

namespace attune::bits {

class hash {
 public:
  void add(double x) {
    std::uint64_t const bits = x == x ? std::bit_cast<std::uint64_t>(x) : ~std::uint64_t(0);
    for (int byte = 0; byte < 8; ++byte) state_ = (state_ ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  template <class Numbers>
  void add(Numbers const& x) {
    for (auto const& y : x) add(double(y));
  }
  std::string text() const {
    char to[17];
    std::snprintf(to, sizeof to, "%016llx", static_cast<unsigned long long>(state_));
    return to;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace attune::bits
