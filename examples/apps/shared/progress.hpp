// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What is going on, on stderr: a bar where a person watches, a line per stage elsewhere.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace apps {

class progress {
 public:
  /// Does nothing if `quiet`.
  progress(double total, bool quiet);
  ~progress() { end(); }
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;

  void stage(std::string text);
  void add(double amount);  ///< from any thread
  void end();               ///< removes the bar
  double seconds() const;

 private:
  void draw();

  std::mutex guard_;
  std::string text_;
  double total_, done_ = 0;
  bool quiet_, terminal_;
  int drawn_ = -1;  ///< tenths of a percent
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace apps
