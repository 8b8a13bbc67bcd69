// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Training steps of an own operator on a sequence that lies on several ranks: run it with mpiexec, or scripts/mpi.
//
//   train_step [positions = 2048] [steps = 12]
//
// The operator is softmax with an own term of the score, -rate sqrt|i - j|. A hidden operator says what to make of random
// tokens. Learned are the projection to q, which every rank holds, and the rate. Whatever the number of ranks, the losses
// are the same up to rounding.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <thread>
#include <utility>
#include <vector>

// [snippet: includes]
#include <attune/mpi.hpp>
// [/snippet]

namespace {

using namespace attune;

// [snippet: policy]
/// An additive term of the score: -rate sqrt|i - j|. Positions are those of the whole sequence, on every rank.
struct root_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter rate = 1;
  static constexpr auto parameters() { return std::array{listed("rate", &root_distance::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    T score(key<T> const& k) const { return -rate * math::sqrt(math::abs(T(position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};
// [/snippet]

auto operator_with(parameter rate) {
  return attention(kernel::dot_product{} + root_distance{rate}, normalizer::softmax{}, mask::causal{});
}

constexpr index_t width = 16;

/// Number c of token i: nearly normal, and the same on every machine and for any number of ranks.
float token(index_t i, index_t c) {
  double sum = -6;
  for (std::uint64_t n = 0; n < 12; ++n) {  // splitmix64
    std::uint64_t z = (std::uint64_t(i * width + c) * 12 + n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    sum += double((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  return float(sum);
}

/// A projection of tokens, W x.
struct projection_matrix {
  std::vector<float> w = std::vector<float>(std::size_t(width * width), 0.f);
  void apply(std::vector<float> const& x, std::vector<float>& y) const {
    for (std::size_t i = 0; i < x.size(); i += width)
      for (std::size_t r = 0; r < width; ++r) {
        float sum = 0;
        for (std::size_t c = 0; c < width; ++c) sum += w[r * width + c] * x[i + c];
        y[i + r] = sum;
      }
  }
  /// The gradient by W, from that by W x: over the tokens of this rank.
  std::vector<double> gradient(std::vector<float> const& x, std::vector<float> const& by_y) const {
    std::vector<double> sum(w.size(), 0.);
    for (std::size_t i = 0; i < x.size(); i += width)
      for (std::size_t r = 0; r < width; ++r)
        for (std::size_t c = 0; c < width; ++c) sum[r * width + c] += double(by_y[i + r]) * double(x[i + c]);
    return sum;
  }
};

/// This rank's share of the processors of its machine, at least one.
int threads_of_this_rank() {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  int ranks_here = 1;
  MPI_Comm_size(machine, &ranks_here);
  MPI_Comm_free(&machine);
  return (std::max)(1, int(std::thread::hardware_concurrency()) / ranks_here);
}

int train(index_t positions, int steps) {
  // [snippet: ranks]
  mpi::communicator const ranks(MPI_COMM_WORLD);
  sharding const at = sharding::zigzag(positions, ranks.size());  // even work under a causal mask
  auto const exec = on_ranks(ranks, cpu{threads_of_this_rank()}, {.queries = at, .keys = at});
  // [/snippet]
  index_t const mine = at.size(ranks.rank());
  shape const local{1, 1, mine, width};
  auto const numbers = std::size_t(mine * width);
  std::vector<float> x(numbers), q(numbers), out(numbers), target(numbers), by_out(numbers);
  for (index_t i = 0; i < mine; ++i)
    for (index_t c = 0; c < width; ++c) x[std::size_t(i * width + c)] = token(at.global(ranks.rank(), i), c);
  tensor<float const> const X(x.data(), local), Q(q.data(), local);

  projection_matrix hidden, student;
  for (std::size_t r = 0; r < width; ++r) hidden.w[r * width + r] = 2, student.w[r * width + r] = 1;
  hidden.apply(x, q);
  forward(exec, operator_with(0.5), {.q = Q, .k = X, .v = X}, {.out = {target.data(), local}});

  double rate = 0.1, first = 0, loss = 0;
  for (int step = 0; step <= steps; ++step) {
    student.apply(x, q);
    // [snippet: step]
    auto const op = operator_with(rate);
    inputs<std::remove_const_t<decltype(op)>, tensor<float const>> const in{.q = Q, .k = X, .v = X};
    auto const saved = forward_and_save(exec, op, in, {.out = {out.data(), local}});
    double sum = 0;
    for (std::size_t n = 0; n < numbers; ++n) {
      by_out[n] = (out[n] - target[n]) / float(positions);
      sum += 0.5 * double(out[n] - target[n]) * double(by_out[n]);
    }
    auto const g = vjp(exec, op, in, saved, {.out = {by_out.data(), local}});
    // g.of(field::q) belongs to this rank's queries. What all ranks hold gets a gradient that is already summed ...
    rate -= 0.01 * double(g.parameter("rate").values[0]);
    // ... and what your program replicates it sums itself, in the order of the ranks.
    std::vector<double> by_w = student.gradient(x, g.of(field::q).values);
    by_w.push_back(sum);
    ranks.sum(std::span<double>(by_w));
    // [/snippet]
    loss = by_w.back();
    for (std::size_t n = 0; n < student.w.size(); ++n) student.w[n] -= float(0.1 * by_w[n]);
    if (step == 0) first = loss;
    if (ranks.rank() == 0 && step % 4 == 0) std::printf("step %2d   loss %.5f   rate %.3f\n", step, loss, rate);
  }
  bool const learned = loss < first / 4;
  if (ranks.rank() == 0)
    std::printf("%s\n", learned ? "trained: the loss is below a quarter of the first" : "THE LOSS DID NOT FALL");
  return learned ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE, status = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);  // attune's threads never call MPI
  try {
    status = train(argc > 1 ? std::atol(argv[1]) : 2048, argc > 2 ? std::atoi(argv[2]) : 12);
  } catch (std::exception const& e) {  // the same error on every rank
    std::fprintf(stderr, "%s\n", e.what());
  }
  MPI_Finalize();
  return status;
}
