// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   if (!spin_until([&] { return arrived.load(); })) sleep();
//
// To wait for what comes soon: to put a thread to sleep and wake it costs 20 to 100 microseconds on a virtual machine.
#pragma once

#include <chrono>

namespace attune::detail {

/// As long as waking a thread takes, so that to spin in vain costs no more than twice what to sleep would have.
inline constexpr std::chrono::microseconds longest_spin{50};

/// Lets the other thread of a core go first.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether done() became true within longest_spin. Asks at least 16 times.
template <class Done>
bool spin_until(Done const& done) {
  using clock = std::chrono::steady_clock;
  clock::time_point const end = clock::now() + longest_spin;
  do
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      spin_pause();
    }
  while (clock::now() < end);
  return false;
}

}  // namespace attune::detail
