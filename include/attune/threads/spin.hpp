// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   if (!spin_until([&] { return arrived.load(); })) sleep();
//
// Waits for what comes soon. Putting a thread to sleep and waking it costs 20 to 100 microseconds on a virtual machine.
#pragma once

#include <chrono>

namespace attune::detail {

/// As long as waking a thread takes. Spinning in vain then costs at most twice what sleeping would have cost.
inline constexpr std::chrono::microseconds longest_spin{50};

/// Gives way to the other hardware thread of the core.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether done() became true within longest_spin. Calls done() at least 16 times.
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
