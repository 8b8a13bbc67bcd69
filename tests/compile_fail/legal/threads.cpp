// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal programs to ../temporary_threads.cpp and ../threads_without_run.cpp.
#include <attune/exec/cpu/executor.hpp>

struct my_threads {
  int count;
  int concurrency() const { return count; }
  void run(int workers, attune::worker_body body) const { attune::serial{}.run(workers, body); }
};
struct my_tag {
  int concurrency() const { return 2; }
  void run(int workers, attune::worker_body body) const { attune::serial{}.run(workers, body); }
};
my_threads const named{4};
attune::cpu<> exec{named};
attune::cpu<> of_tag{my_tag{}};
int main() {}
