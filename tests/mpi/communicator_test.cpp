// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/mpi/communicator.hpp>

#include "error_on_all.hpp"

namespace attune::test {
namespace {

/// A number that all ranks know for each rank and index.
float number(int rank, std::size_t n) { return 1.f / (3.f + float(rank) * 7.f + float(n)); }
std::vector<float> numbers_of(int rank, std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t n = 0; n < count; ++n) x[n] = number(rank, n);
  return x;
}
bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_CASE("communicator: the ranks of the original, on another duplicate each") {
  mpi::communicator const a(MPI_COMM_WORLD), b(MPI_COMM_WORLD), copy = a;
  int rank = 0, size = 0, relation = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(a.rank() == rank);
  CHECK(a.size() == size);
  MPI_Comm_compare(a.handle(), b.handle(), &relation);
  CHECK(relation == MPI_CONGRUENT);
  MPI_Comm_compare(a.handle(), copy.handle(), &relation);
  CHECK(relation == MPI_IDENT);
}

TEST_CASE("communicator: messages of the program do not meet attune's") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  int of_program = -1;
  std::vector<int> of_attune{-1};
  int const hundred = 100 + ranks.rank();
  std::vector<int> const mine{ranks.rank()};
  MPI_Request requests[2];
  MPI_Irecv(&of_program, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
  mpi::exchange step(ranks);
  step.receive(std::span(of_attune), left);
  step.send(std::span(mine), right);
  step.wait();
  MPI_Isend(&hundred, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(of_attune[0] == left);
  CHECK(of_program == 100 + left);
}

/// A ring with messages cut after `largest` bytes; also with sizes that need no cut, exactly one, and none.
void check_ring(std::size_t largest, std::size_t count) {
  INFO("messages of at most ", largest, " bytes, ", count, " numbers");
  mpi::communicator const ranks(MPI_COMM_WORLD, largest);
  int const right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  std::vector<float> const first = numbers_of(ranks.rank(), count), second = numbers_of(100 + ranks.rank(), count);
  std::vector<float> a(count), b(count);
  mpi::exchange step(ranks);
  step.receive(std::span(a), left);
  step.receive(std::span(b), left);  // the same tag: in the order in which they are sent
  step.send(std::span(first), right);
  step.send(std::span(second), right);
  step.wait();
  CHECK(step.progress());
  CHECK(same_bits(a, numbers_of(left, count)));
  CHECK(same_bits(b, numbers_of(100 + left, count)));
}

TEST_CASE("exchange: messages arrive whole, however small the largest message") {
  for (std::size_t const largest : {1u, 3u, 4u, 7u, 40u, 41u, 1u << 30})
    for (std::size_t const count : {0u, 1u, 2u, 10u, 11u}) check_ring(largest, count);
  check_ring(1u << 16, 1u << 20);  // 4 MiB, in 64 parts
}

TEST_CASE("exchange: messages of different tags may be received in another order") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  std::vector<float> const first = numbers_of(1, 5), second = numbers_of(2, 3);
  std::vector<float> a(5), b(3);
  mpi::exchange step(ranks);
  step.send(std::span(first), me, 1);
  step.send(std::span(second), me, 2);
  step.receive(std::span(b), me, 2);
  step.receive(std::span(a), me, 1);
  step.wait();
  CHECK(same_bits(a, first));
  CHECK(same_bits(b, second));
}

TEST_CASE("exchange: progress() ends with all messages through, without wait()") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  std::vector<float> const mine = numbers_of(ranks.rank(), 1 << 18);
  std::vector<float> got(mine.size());
  mpi::exchange step(ranks);
  CHECK(step.progress());  // nothing in flight
  step.receive(std::span(got), left);
  step.send(std::span(mine), right);
  while (!step.progress()) std::this_thread::yield();
  CHECK(same_bits(got, numbers_of(left, mine.size())));
}

TEST_CASE("exchange: an exception between messages and wait() leaves memory valid and later messages right") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  std::vector<float> got(1 << 18);
  {
    std::vector<float> const mine = numbers_of(ranks.rank(), got.size());
    try {
      mpi::exchange step(ranks);
      step.receive(std::span(got), left);
      step.send(std::span(mine), right);
      if (ranks.rank() == ranks.size() - 1) throw std::runtime_error("computing");
      step.wait();
    } catch (std::runtime_error const&) {
    }
  }
  CHECK(same_bits(got, numbers_of(left, got.size())));
  check_ring(1u << 30, 7);
}

TEST_CASE("communicator: sums have the bits of adding rank by rank") {
  for (std::size_t const count : {0u, 1u, 2u, 3u, 7u, 1000u}) {
    mpi::communicator const ranks(MPI_COMM_WORLD, 64);
    std::vector<float> x = numbers_of(ranks.rank(), count), expected = numbers_of(0, count);
    for (int r = 1; r < ranks.size(); ++r)
      for (std::size_t n = 0; n < count; ++n) expected[n] += number(r, n);
    ranks.sum(std::span(x));
    INFO(count, " numbers");
    CHECK(same_bits(x, expected));
  }
}

TEST_CASE("communicator: combine applies any function in the order of the ranks") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  std::vector<long long> x{ranks.rank() + 1, 10 * (ranks.rank() + 1)};
  long long first = 1, second = 10;
  for (int r = 1; r < ranks.size(); ++r) first = 100 * first + r + 1, second = 100 * second + 10 * (r + 1);
  ranks.combine(std::span(x), [](long long a, long long b) { return 100 * a + b; });  // not associative
  CHECK(x == std::vector<long long>{first, second});
}

TEST_CASE("communicator: broadcast from each rank, cut messages too; lowest") {
  for (std::size_t const largest : {5u, 1u << 30}) {
    mpi::communicator const ranks(MPI_COMM_WORLD, largest);
    for (int root = 0; root < ranks.size(); ++root) {
      std::vector<float> x = numbers_of(ranks.rank(), 9);
      ranks.broadcast(std::span(x), root);
      CHECK(same_bits(x, numbers_of(root, 9)));
    }
    CHECK(ranks.lowest(10 - ranks.rank()) == 11 - ranks.size());
  }
}

TEST_CASE("communicator: gather_to_all of uneven parts, some empty") {
  mpi::communicator const ranks(MPI_COMM_WORLD, 10);
  std::vector<std::size_t> counts;
  std::vector<float> expected;
  for (int r = 0; r < ranks.size(); ++r) {
    counts.push_back(std::size_t(r % 2 == 0 ? 3 * r : 0));
    auto const part = numbers_of(r, counts.back());
    expected.insert(expected.end(), part.begin(), part.end());
  }
  auto const mine = numbers_of(ranks.rank(), counts[std::size_t(ranks.rank())]);
  std::vector<float> all(expected.size());
  ranks.gather_to_all(std::span(mine), std::span(std::as_const(counts)), std::span(all));
  CHECK(same_bits(all, expected));
}

TEST_CASE("communicator: the time spent waiting grows") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  double const before = ranks.seconds_waited();
  if (ranks.rank() == ranks.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ranks.lowest(0);
  CHECK(ranks.seconds_waited() > before);
  if (ranks.rank() < ranks.size() - 1) CHECK(ranks.seconds_waited() - before > 0.02);
}

TEST_CASE("communicator: wrong arguments are refused with a message") {
  CHECK(error_on_all([] { mpi::communicator{MPI_COMM_NULL}; }) ==
        "attune::mpi::communicator: from has the value MPI_COMM_NULL; expected a communicator that has this rank");
  CHECK(error_on_all([] { mpi::communicator(MPI_COMM_WORLD, 0); }) ==
        "attune::mpi::communicator: largest_message has the value 0; expected a number of bytes from 1 to 2^31 - 1");
  CHECK(
      error_on_all([] { mpi::communicator(MPI_COMM_WORLD, std::size_t(1) << 31); }) ==
      "attune::mpi::communicator: largest_message has the value 2147483648; expected a number of bytes from 1 to 2^31 "
      "- 1");
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  CHECK(
      error_on_all([&] { mpi::communicator(MPI_COMM_WORLD, rank == 1 ? 7 : 8); }) ==
      "attune::mpi::communicator: largest_message has several values on the ranks, from 7 to 8; expected one value on "
      "all ranks");
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : 1, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 5, &between);
  CHECK(
      error_on_all([&] { mpi::communicator{between}; }) ==
      "attune::mpi::communicator: from has two groups of ranks (an intercommunicator); expected one group: merge them "
      "with MPI_Intercomm_merge");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

TEST_CASE("communicator: another thread may not make one if MPI serves only the main thread") {
  int level = 0;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_FUNNELED) return;
  std::string words;
  std::thread([&] {
    try {
      mpi::communicator{MPI_COMM_WORLD};
    } catch (error const& e) {
      words = e.what();
    }
  }).join();
  CHECK(words ==
        "attune::mpi::communicator: MPI has another main thread; expected a call from the thread that initialized MPI: "
        "its level is MPI_THREAD_FUNNELED");
}

}  // namespace
}  // namespace attune::test
