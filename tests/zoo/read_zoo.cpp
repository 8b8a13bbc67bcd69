// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What attune's readers make of files, a line each: zoo_test.py compares it with NumPy and with the package
// safetensors.
#include <cstdio>
#include <string>

#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>
#include <attune/io/zlib.hpp>

using namespace attune;

namespace {

/// "<what> <name> <type> <extents> <CRC of the elements>", or "refused <name> <why>".
template <class Read>
void report(std::string const& name, Read const& read) {
  try {
    io::array const x = read();
    std::printf("array\t%s\t%s\t%s\t%08x\n", name.c_str(), io::name_of(x.type), io::to_string(x.extents).c_str(),
                unsigned(io::detail::crc32(x.bytes)));
  } catch (error const& e) {
    std::printf("refused\t%s\t%s\n", name.c_str(), e.what());
  }
}

template <class File>
void report_all(File& file) {
  for (auto const& name : file.names()) report(name, [&] { return file.read(name); });
}

void report_file(std::string const& path) {
  std::printf("file\t%s\n", path.c_str());
  try {
    if (path.ends_with(".npy")) return report("", [&] { return io::read_npy(path); });
    if (path.ends_with(".safetensors")) {
      io::safetensors_file file(path);
      return report_all(file);
    }
    io::npz_file file(path, io::zlib_inflate);
    report_all(file);
  } catch (error const& e) {
    std::printf("refused\t\t%s\n", e.what());
  }
}

}  // namespace

int main(int count, char** paths) {
  for (int n = 1; n < count; ++n) report_file(paths[n]);
}
