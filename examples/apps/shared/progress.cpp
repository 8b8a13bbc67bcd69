// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace apps {

progress::progress(double total, bool quiet) : total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

double progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void progress::stage(std::string text) {
  std::lock_guard const lock(guard_);
  text_ = std::move(text);
  drawn_ = -1;
  if (terminal_)
    draw();
  else if (!quiet_)
    std::fprintf(stderr, "[%5.1f s] %s\n", seconds(), text_.c_str());
}

void progress::add(double amount) {
  std::lock_guard const lock(guard_);
  done_ += amount;
  if (terminal_) draw();
}

void progress::draw() {
  if (quiet_) return;
  double const share = std::min(done_ / total_, 1.0);
  if (int(share * 1000) == drawn_) return;
  drawn_ = int(share * 1000);
  constexpr int width = 28;
  std::string bar(std::size_t(share * width), '#');
  bar.resize(width, '.');
  std::fprintf(stderr, "\r\033[K[%s] %3.0f %%  %3.0f s  %s", bar.c_str(), 100 * share, seconds(), text_.c_str());
  std::fflush(stderr);
}

void progress::end() {
  std::lock_guard const lock(guard_);
  if (terminal_ && !quiet_ && drawn_ >= 0) std::fprintf(stderr, "\r\033[K");
  drawn_ = -1;
}

}  // namespace apps
