// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Steps of a call over ranks: what is thrown in one reaches all ranks; what is thrown between two ends them.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <attune/exec/mpi/collective.hpp>

#include "error_on_all.hpp"

namespace attune::test {
namespace {

using exec_mpi::collective;

/// A call of all ranks. The last rank is the odd one.
template <class Body>
void call(Body const& body) {
  exec_mpi::together(on_ranks(mpi::communicator(MPI_COMM_WORLD), cpu{1}), "forward",
                     [&](collective& all) { body(all, all.rank() == all.size() - 1); });
}
/// The error of all ranks if the last one throws this text.
std::string error_of_last(std::string const& what) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return "attune::forward: rank " + std::to_string(size - 1) + " has the exception \"" + what +
         "\"; expected none on any rank";
}

TEST_CASE("collective: a throw in a local step waits for the next agreed one; local code is left out until then") {
  int left_out = 0;
  double count = 0;
  bool after = false;
  CHECK(error_on_all([&] {
          call([&](collective& all, bool odd) {
            all.local([&] { odd ? throw std::runtime_error("first") : void(); });
            std::vector<double> one{1};
            all.sum(std::span<double>(one));
            count = one[0] / all.size();
            left_out = 1;
            all.local([&] { left_out = 0; });
            CHECK(left_out == odd);
            all.agreed([] { throw std::runtime_error("second"); });
            after = true;
          });
        }) == [] {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size == 1 ? error_of_last("first")
                     : "attune::forward: rank 0 has the exception \"second\"; expected none on any rank";
  }());
  CHECK(count == 1);
  CHECK(!after);
}

TEST_CASE("collective: a throw in the last local step reaches all ranks at the end of the call") {
  CHECK(error_on_all([] {
          call([](collective& all, bool odd) {
            all.local([&] { odd ? throw std::runtime_error("at the end") : void(); });
          });
        }) == error_of_last("at the end"));
  CHECK(error_on_all([] { call([](collective&, bool) {}); }) == "");
}

TEST_CASE("collective: agreed() returns what the step returns; gather() has the numbers of all ranks") {
  call([](collective& all, bool) {
    CHECK(*all.agreed([&] { return std::make_unique<int>(all.rank()); }) == all.rank());
    std::vector<int> const numbers = all.gather(std::vector<int>{all.rank(), -1});
    REQUIRE(numbers.size() == 2 * std::size_t(all.size()));
    for (int r = 0; r < all.size(); ++r) CHECK(numbers[2 * std::size_t(r)] == r);
  });
}

// Run alone, by the tests mpi.ends.*: each ends the program.
TEST_CASE("ends: threw outside of a local step" * doctest::skip()) {
  call([](collective& all, bool odd) {
    if (odd) throw std::runtime_error("between two collective lines");
    all.agreed([] {});
  });
}
TEST_CASE("ends: calls a collective function in a local step" * doctest::skip()) {
  call([](collective& all, bool odd) { all.local([&] { odd ? all.agreed([] {}) : void(); }); });
}

}  // namespace
}  // namespace attune::test
