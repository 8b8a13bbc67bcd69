// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a call throws, on all ranks.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <mpi.h>

#include <attune/core/error.hpp>

namespace attune::test {

/// The text of the attune::error that f throws on every rank; empty if it throws on none. Checks that all ranks have the
/// same text. All ranks call it.
template <class F>
std::string error_on_all(F const& f) {
  std::string words;
  try {
    f();
  } catch (error const& e) {
    words = e.what();
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  constexpr std::size_t most = 2000;
  REQUIRE(words.size() < most);
  std::vector<char> all(most * std::size_t(size)), mine(most);
  std::memcpy(mine.data(), words.data(), words.size());
  MPI_Allgather(mine.data(), int(most), MPI_CHAR, all.data(), int(most), MPI_CHAR, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) CHECK(std::string(all.data() + most * std::size_t(r)) == words);
  return words;
}

}  // namespace attune::test
