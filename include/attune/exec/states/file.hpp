// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   write_states("part0.states", accumulate(exec, op, inputs, {0, n}));
//   auto part = read_states(exec, op, inputs, "part0.states");
//
// States in files: parts that programs compute one after another, or on machines without a common network.
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <attune/exec/states/serialized.hpp>

namespace attune {

/// Writes states to a file, in the format of exec/states/serialized.hpp. Throws attune::error if the file cannot be
/// written.
template <class States>
void write_states(std::filesystem::path const& file, States const& states) {
  std::vector<std::byte> const bytes = to_bytes(states);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (!out)
    throw error("write_states", "file " + file.string(), std::string("a problem: ") + std::strerror(errno),
                "a writable file");
  out.write(reinterpret_cast<char const*>(bytes.data()), std::streamsize(bytes.size()));
  out.close();
  if (!out) throw error("write_states", "file " + file.string(), "a write error", "room for the states");
}

/// Reads the states of a call from a file. The arguments are as for `accumulate`, with the same extents and an
/// operator with equal parameters. Of `in` only the extents are read. Throws
/// attune::error as `accumulate` and `from_bytes` do, or if the file cannot be read.
template <class Exec, class Op>
states_of<typename Exec::value_type, Op> read_states(Exec const&, Op const& op,
                                                     inputs<Op, typename Exec::view> const& in,
                                                     std::filesystem::path const& file) {
  detail::require_mergeable<Op>();
  problem_shape const p = detail::checked_inputs("read_states", op, in);
  std::string const name = "file " + file.string();
  std::error_code problem;
  auto const size = std::filesystem::is_regular_file(file, problem) ? std::filesystem::file_size(file, problem) : 0;
  std::ifstream from(file, std::ios::binary);
  if (!from || problem)
    throw error("read_states", name, std::string("a problem: ") + (problem ? problem.message() : std::strerror(errno)),
                "a readable file");
  std::vector<std::byte> bytes;
  if (size > bytes.max_size())
    throw error("read_states", name, std::to_string(size) + " bytes", "a file that fits into memory");
  bytes.resize(static_cast<std::size_t>(size));
  if (!from.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(size)))
    throw error("read_states", name, "a read error", "readable bytes");
  states_of<typename Exec::value_type, Op> states(op, p);
  from_bytes("read_states", name, bytes, states);
  return states;
}

}  // namespace attune
