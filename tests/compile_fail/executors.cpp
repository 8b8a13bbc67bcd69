// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What an executor computes in, what it offers, and threads of one's own.
#include "operators.hpp"

inline tensor<bfloat16> const brains;
inline tensor<float16> const halves;
struct my_threads {
  int count;
  int concurrency() const { return count; }
  void run(int workers, worker_body body) const { serial{}.run(workers, body); }
};

// expect-error executor_of_integers: cpu<T> computes in float or double
cpu<int> exec{};

// expect-error double_tensor_for_float: a tensor has another element type than the executor computes in
int main() { forward(cpu{}, plain, {.q = wide, .k = wide, .v = wide}, {.out = y}); }

// expect-error gradients_of_16_bits: writes saved rows and gradients to the caller's memory
int main() { vjp(cpu<bfloat16>{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }

// expect-error scores_of_16_bits: does not read scores, gates and biases given for each pair
int main() { forward(cpu<float16>{}, scored, {.v = halves, .scores = halves}, {.out = halves}); }

// expect-error decode_of_candidates: takes no candidate sets
int main() { decode(cpu{}, sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error temporary_threads: a thread executor that has a state is kept by reference and must outlive the calls
cpu<> exec{my_threads{4}};

// expect-error threads_without_run: a thread executor runs workers: void run.int workers, worker_body body.
struct without_run {
  int concurrency() const { return 2; }
  void runs(int workers, worker_body body) const { serial{}.run(workers, body); }
};
cpu<> exec{without_run{}};

// expect-no-error threads
struct my_tag {
  int concurrency() const { return 2; }
  void run(int workers, worker_body body) const { serial{}.run(workers, body); }
};
my_threads const named{4};
cpu<> exec{named};
cpu<> of_tag{my_tag{}};

// expect-error forward_of_other_inputs: forward\(\): the third argument is not the inputs
inputs<decltype(scored), tensor<float const>> const in{.v = x, .scores = x};
int main() { forward(cpu{}, plain, in, {.out = y}); }

// expect-error forward_of_other_outputs: forward\(\): the fourth argument is not the outputs
inputs<std::remove_const_t<decltype(plain)>, tensor<float const>> const in{.q = x, .k = x, .v = x};
int main() { forward(cpu{}, plain, in, y); }
