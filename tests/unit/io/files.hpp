// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the tests of readers share: bytes made by hand, files that disappear, and what a reader says about damage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/core/error.hpp>
#include <attune/io/array.hpp>

namespace io_tests {

using bytes = std::vector<unsigned char>;

inline bytes of(std::string const& s) { return {s.begin(), s.end()}; }

template <class T>
bytes raw(std::vector<T> const& values) {
  bytes b(values.size() * sizeof(T));
  if (!b.empty()) std::memcpy(b.data(), values.data(), b.size());
  return b;
}
inline bytes operator+(bytes a, bytes const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A folder that is removed at the end.
struct folder {
  std::filesystem::path path;
  folder() {
    std::random_device random;
    path =
        std::filesystem::temp_directory_path() / ("attune-io-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directory(path);
  }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};
inline bytes file_bytes(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What attune::error says, "" if nothing is thrown; any other exception ends the test.
template <class Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (attune::error const& e) {
    return e.what();
  }
  return "";
}
inline bool says(std::string const& message, std::string const& part) {
  if (message.find(part) != std::string::npos) return true;
  MESSAGE("\"" << message << "\" does not say \"" << part << "\"");
  return false;
}

/// Every beginning of the file is refused in words; every file with one byte changed is read or refused, and nothing
/// else.
enum class bytes_behind { refused, allowed };
template <class Read>
void check_damage(bytes const& whole, Read const& read, bytes_behind behind = bytes_behind::refused) {
  REQUIRE(refusal([&] { read(whole); }) == "");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(refusal([&] { read(bytes(whole.begin(), whole.begin() + std::ptrdiff_t(n))); }) != "");
  }
  CHECK((refusal([&] { read(whole + of("x")); }) == "") == (behind == bytes_behind::allowed));
  for (std::size_t n = 0; n < whole.size(); ++n)
    for (int change : {1, 2, 16, 128, 255}) {
      bytes damaged = whole;
      damaged[n] = static_cast<unsigned char>(damaged[n] ^ change);
      (void)refusal([&] { read(damaged); });
    }
}

}  // namespace io_tests
