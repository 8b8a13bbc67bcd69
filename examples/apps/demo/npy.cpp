// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "npy.hpp"

#include <bit>
#include <fstream>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>

namespace demo {
namespace {

/// The value of `key` in the header's Python dictionary, as far as the pattern matches; empty if there is none.
std::string entry(std::string const& header, char const* key, char const* pattern) {
  std::smatch found;
  std::regex const text(std::string("'") + key + "'\\s*:\\s*" + pattern);
  return std::regex_search(header, found, text) ? found[1].str() : std::string();
}

}  // namespace

npy_array read_npy(std::filesystem::path const& file) {
  static_assert(std::endian::native == std::endian::little, "read_npy copies little-endian numbers as they are");
  auto const refuse = [&](std::string const& why) { return std::runtime_error(file.string() + ": " + why); };
  std::ifstream in(file, std::ios::binary);
  if (!in) throw refuse("cannot be opened");

  unsigned char start[8];
  if (!in.read(reinterpret_cast<char*>(start), 8) || std::string(start, start + 6) != "\x93NUMPY")
    throw refuse("is not a .npy file");
  int const version = start[6];
  if (version < 1 || version > 3) throw refuse("has .npy version " + std::to_string(version) + "; expected 1 to 3");
  unsigned char size_bytes[4] = {};
  in.read(reinterpret_cast<char*>(size_bytes), version == 1 ? 2 : 4);
  std::uint32_t const size = size_bytes[0] | std::uint32_t(size_bytes[1]) << 8 | std::uint32_t(size_bytes[2]) << 16 |
                             std::uint32_t(size_bytes[3]) << 24;
  if (!in || size > 65536) throw refuse("has a damaged header");
  std::string header(size, ' ');
  if (!in.read(header.data(), std::streamsize(size))) throw refuse("ends within its header");

  std::string const type = entry(header, "descr", "'([^']*)'"), fortran = entry(header, "fortran_order", "(True|False)");
  if (type != "<f4") throw refuse("holds elements of type '" + type + "'; expected '<f4', little-endian float32");
  if (fortran != "False") throw refuse("is not in C order; save numpy.ascontiguousarray(x)");
  npy_array array;
  std::string const extents = entry(header, "shape", "\\(([0-9, ]*)\\)");
  std::ptrdiff_t count = 1;
  std::regex const number("[0-9]+");
  for (std::sregex_iterator n(extents.begin(), extents.end(), number), end; n != end; ++n) {
    if (n->length() > 9) throw refuse("has the shape (" + extents + "), too large");
    std::ptrdiff_t const extent = std::stol(n->str());
    if (extent > 0 && count > (std::ptrdiff_t(1) << 40) / extent) throw refuse("has the shape (" + extents + "), too large");
    array.shape.push_back(extent);
    count *= extent;
  }

  auto const data_begin = std::uintmax_t(in.tellg()), bytes = std::filesystem::file_size(file) - data_begin;
  if (bytes != std::uintmax_t(count) * sizeof(float))
    throw refuse("holds " + std::to_string(bytes) + " bytes of data; expected " +
                 std::to_string(std::uintmax_t(count) * sizeof(float)) + " for the shape (" + extents + ")");
  array.data.resize(std::size_t(count));
  if (!in.read(reinterpret_cast<char*>(array.data.data()), std::streamsize(bytes))) throw refuse("could not be read");
  return array;
}

}  // namespace demo
