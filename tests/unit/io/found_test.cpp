// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Files as other programs write them, which attune once refused or misread. Right is what NumPy and the package
// safetensors read. They are generated again, with many more, by tests/zoo.
#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>
#include <attune/io/zlib.hpp>

#include "files.hpp"

using namespace attune;
using namespace io_tests;

namespace {

std::filesystem::path found(char const* name) { return std::filesystem::path(ATTUNE_TEST_FOUND) / name; }

}  // namespace

TEST_SUITE("io_found") {
  TEST_CASE("A tensor of a type that attune does not have costs itself alone (F2)") {
    for (char const* name : {"t_F8_E8M0.safetensors", "t_F4.safetensors"}) {
      CAPTURE(std::string(name));
      io::safetensors_file file(found(name));
      CHECK(file.read("q").type == io::element_type::float32);
      CHECK(says(refusal([&] { file.read("x"); }), "tensor 'x', 'dtype'"));
    }
  }

  TEST_CASE("Bytes behind the header's object are refused, NUL too (F3); metadata may be null") {
    CHECK(says(refusal([] { io::safetensors_file{found("nulgarbage.safetensors")}; }), "a byte 0"));
    CHECK(io::safetensors_file(found("nullmeta.safetensors")).names() == std::vector<std::string>{"q"});
  }

  TEST_CASE("zip64 in other writers' ways (F4, F5); members compressed by bzip2 (F8); a member without .npy") {
#if __has_include(<zlib.h>)
    for (char const* name : {"w_streamzip_zip64.npz", "w_bsdtar64.npz"}) {
      CAPTURE(std::string(name));
      io::npz_file file(found(name), io::zlib_inflate);
      CHECK(file.read("q").extents == std::vector<index_t>{2, 3, 5});
      CHECK(file.read("k").type == io::element_type::float64);
    }
#endif
    io::npz_file bz2(found("bz2.npz"));
    CHECK(bz2.read("q").extents == std::vector<index_t>{2, 3, 5});
    CHECK(io::npz_file(found("noext.npz")).read("q").extents == std::vector<index_t>{2, 3, 5});
  }

  TEST_CASE("Descriptors with any mark of byte order (F7)") {
    CHECK(io::read_npy(found("b1_less.npy")).type == io::element_type::boolean);
    CHECK(io::read_npy(found("f4_eq.npy")).type == io::element_type::float32);
    CHECK(io::read_npy(found("int_i1.npy")).type == io::element_type::int8);
  }

  TEST_CASE("65,535 members, a number that stood for zip64 (F6)") {
    folder const in;
    std::map<std::string, io::array> arrays;
    for (int n = 0; n < 65534; ++n)
      arrays[std::to_string(n)] = io::array{io::element_type::uint8, {1}, {static_cast<unsigned char>(n)}, "n"};
    io::write_npz(in.path / "many.npz", arrays);
    bytes file = file_bytes(in.path / "many.npz");
    // One more, a copy of the first entry of the directory under the name that it has, so that the count is 65,535.
    auto const end = file.end() - 22;
    std::uint64_t const begin = io::detail::little_endian<4>(&*(end + 16)),
                        size = io::detail::little_endian<4>(&*(end + 12));
    std::uint64_t const name = io::detail::little_endian<2>(&file[begin + 28]), entry = 46 + name;
    bytes record(end, file.end());
    bytes const first(file.begin() + std::ptrdiff_t(begin), file.begin() + std::ptrdiff_t(begin + entry));
    file.erase(end, file.end());
    file = file + first;
    record[8] = record[9] = record[10] = record[11] = 0xff;
    for (int n = 0; n < 4; ++n) record[std::size_t(12 + n)] = static_cast<unsigned char>((size + entry) >> (8 * n));
    file = file + record;
    io::npz_file many(file, "memory");
    CHECK(many.names().size() == 65534);
    CHECK(io::integers(many.read("513")) == std::vector<index_t>{1});
  }
}
