// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::npz_file file("x.npz");   file.names() = {"q", "k", "v"},   io::array q = file.read("q")
//
// NumPy's archives: a zip file (io/zip.hpp) with one .npy file per name. Stored members (numpy.savez) need nothing
// else. Deflated members (numpy.savez_compressed) need a function that inflates, such as zlib_inflate of io/zlib.hpp.
// Members with other compressions are listed but cannot be read. Every size is checked against the file before memory
// is allocated; checksums are verified.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/io/array.hpp>
#include <attune/io/bytes.hpp>
#include <attune/io/npy.hpp>
#include <attune/io/zip.hpp>

namespace attune::io {

/// An archive of arrays, as numpy.savez writes it. read() reads one array.
class npz_file {
 public:
  /// Reads the directory. Throws attune::error that names the file and what is wrong.
  explicit npz_file(std::filesystem::path const& file, inflate_function inflate = nullptr)
      : npz_file(byte_source("io::npz_file", file), inflate) {}
  /// Reads the directory from memory, which must outlive this object.
  npz_file(std::span<unsigned char const> bytes, std::string const& name, inflate_function inflate = nullptr)
      : npz_file(byte_source("io::npz_file", name, bytes), inflate) {}

  /// The names of the arrays, without ".npy", sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& [name, m] : directory_.members)
      if (name.ends_with(".npy")) all.push_back(name.substr(0, name.size() - 4));
    return all;
  }
  /// The array of that name, with or without ".npy". Throws attune::error that names the file, the member and what is
  /// wrong.
  array read(std::string const& name, npy_options const& options = {}) {
    std::string const part = "member " + detail::printable(name);
    auto found = directory_.members.find(name + ".npy");
    if (found == directory_.members.end()) found = directory_.members.find(name);
    if (found == directory_.members.end()) {
      std::string all;
      for (auto const& n : names()) all += (all.empty() ? "" : ", ") + detail::printable(n);
      from_.fail(part, "no data", all.empty() ? "any: the archive has no .npy files" : "one of " + all.substr(0, 500));
    }
    auto const bytes = detail::read_member(from_, found->first, found->second, part, inflate_);
    byte_source inner(from_.function(), from_.name() + ", " + part, bytes);
    return detail::parse_npy(inner, options);
  }

 private:
  npz_file(byte_source from, inflate_function inflate) : from_(std::move(from)), directory_(from_), inflate_(inflate) {}

  byte_source from_;
  struct directory {
    std::map<std::string, detail::zip_member> members;
    explicit directory(byte_source& from) : members(detail::zip_directory(from).members) {}
  } directory_;
  inflate_function inflate_;
};

/// Writes arrays under their names, uncompressed. Throws attune::error if a file or array would exceed 4 GiB.
inline void write_npz(std::filesystem::path const& file, std::map<std::string, array> const& arrays) {
  std::vector<std::vector<unsigned char>> starts;  // the bytes before each array: a zip header and the .npy header
  std::vector<unsigned char> directory;
  std::vector<std::span<unsigned char const>> parts;
  std::uint64_t at = 0;
  for (auto const& [key, x] : arrays) {
    std::string const name = key + ".npy", npy = detail::npy_start(x);
    boost::crc_32_type sum;
    sum.process_bytes(npy.data(), npy.size());
    sum.process_bytes(x.bytes.data(), x.bytes.size());
    std::uint64_t const size = npy.size() + x.bytes.size();
    std::vector<unsigned char> common;                    // the fields that both headers share
    detail::append_little_endian<2>(common, 20);          // version needed
    detail::append_little_endian<2>(common, 1 << 11);     // names are UTF-8
    detail::append_little_endian<2>(common, 0);           // stored
    detail::append_little_endian<4>(common, 0x00210000);  // 1980-01-01 00:00: equal arrays make equal files
    detail::append_little_endian<4>(common, sum.checksum());
    detail::append_little_endian<4>(common, size);
    detail::append_little_endian<4>(common, size);
    detail::append_little_endian<2>(common, name.size());
    detail::append_little_endian<2>(common, 0);  // no extras

    auto& start = starts.emplace_back();
    start.insert(start.end(), {'P', 'K', 3, 4});
    start.insert(start.end(), common.begin(), common.end());
    start.insert(start.end(), name.begin(), name.end());
    start.insert(start.end(), npy.begin(), npy.end());
    directory.insert(directory.end(), {'P', 'K', 1, 2, 20, 0});
    directory.insert(directory.end(), common.begin(), common.end());
    directory.insert(directory.end(), 10, 0);  // no comment, first disk, no attributes
    detail::append_little_endian<4>(directory, at);
    directory.insert(directory.end(), name.begin(), name.end());
    at += start.size() + x.bytes.size();
    if (at > 0xfffffffe || name.size() > 65535 || starts.size() > 65534)
      throw error("io::write_npz", "file " + file.string(), detail::text(at, " bytes or more"),
                  "less than 4 GiB, or a safetensors file");
  }
  std::vector<unsigned char> end{'P', 'K', 5, 6, 0, 0, 0, 0};
  detail::append_little_endian<2>(end, starts.size());
  detail::append_little_endian<2>(end, starts.size());
  detail::append_little_endian<4>(end, directory.size());
  detail::append_little_endian<4>(end, at);
  detail::append_little_endian<2>(end, 0);
  std::size_t n = 0;
  for (auto const& [key, x] : arrays) {
    parts.emplace_back(starts[n++]);
    parts.emplace_back(x.bytes);
  }
  parts.emplace_back(directory);
  parts.emplace_back(end);
  detail::write_file("io::write_npz", file, parts);
}

}  // namespace attune::io
