// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/io/npz.hpp>
#include <attune/io/zlib.hpp>

#include "files.hpp"

using namespace attune;
using namespace io_tests;

namespace {

void put(bytes& to, int count, std::uint64_t x) {
  for (int n = 0; n < count; ++n) to.push_back(static_cast<unsigned char>(x >> (8 * n)));
}

bytes npy_of(std::vector<float> const& values) {
  io::array const x = io::make_array<float>(values, {index_t(values.size())});
  return of(io::detail::npy_start(x)) + x.bytes;
}

/// A member as a test wants it: every number of the format may lie.
struct entry {
  std::string name = "a.npy", local_name = "a.npy";
  bytes data = npy_of({1, 2, 3});
  std::uint64_t method = 0, flags = 0, size = 0, packed = 0, header = 0, checksum = 0;
  bool lies_size = false, lies_packed = false, lies_header = false, lies_checksum = false, zip64 = false;
  std::uint64_t zip64_size = 0, zip64_packed = 0;
};

bytes zip(std::vector<entry> const& entries, bytes const& comment = {}) {
  bytes file, directory;
  for (entry const& e : entries) {
    std::uint64_t const header = e.lies_header ? e.header : file.size();
    std::uint64_t const size = e.lies_size ? e.size : e.data.size(), packed = e.lies_packed ? e.packed : e.data.size();
    std::uint64_t const checksum = e.lies_checksum ? e.checksum : io::detail::crc32(e.data);
    bytes extra;
    if (e.zip64) {
      put(extra, 2, 1);
      put(extra, 2, 16);
      put(extra, 8, e.zip64_size);
      put(extra, 8, e.zip64_packed);
    }
    auto const common = [&](bytes& to, bytes const& more) {
      put(to, 2, 20);
      put(to, 2, e.flags);
      put(to, 2, e.method);
      put(to, 4, 0);
      put(to, 4, checksum);
      put(to, 4, packed);
      put(to, 4, size);
      put(to, 2, &to == &file ? e.local_name.size() : e.name.size());
      put(to, 2, more.size());
    };
    file = file + of("PK\3\4");
    common(file, {});
    file = file + of(e.local_name) + e.data;
    directory = directory + of("PK\1\2") + bytes{20, 0};
    common(directory, extra);
    put(directory, 2, 0);
    put(directory, 8, 0);
    put(directory, 4, header);
    directory = directory + of(e.name) + extra;
  }
  std::uint64_t const begin = file.size();
  file = file + directory + of("PK\5\6");
  put(file, 4, 0);
  put(file, 2, entries.size());
  put(file, 2, entries.size());
  put(file, 4, directory.size());
  put(file, 4, begin);
  put(file, 2, comment.size());
  return file + comment;
}

std::vector<float> read(bytes const& b, io::inflate_function inflate = nullptr) {
  io::npz_file file(b, "memory", inflate);
  std::vector<float> last;
  for (auto const& name : file.names()) last = io::numbers<float>(file.read(name));
  return last;
}
std::string refused(bytes const& b) {
  return refusal([&] { read(b); });
}
template <class Change>
std::string refused_entry(Change const& change) {
  entry e;
  change(e);
  return refused(zip({e}));
}

}  // namespace

TEST_SUITE("io_npz") {
  TEST_CASE("Names and arrays, written and read") {
    folder const in;
    std::vector<double> const values{1, 2, 3, 4, 5, 6};
    std::map<std::string, io::array> arrays;
    arrays["q"] = io::make_array<double>(values, {2, 3}, io::element_type::float32);
    arrays["long name"] = io::make_array<double>(values, {6}, io::element_type::float64);
    io::write_npz(in.path / "x.npz", arrays);
    io::npz_file file(in.path / "x.npz");
    CHECK(file.names() == std::vector<std::string>{"long name", "q"});
    CHECK(file.read("q").extents == std::vector<index_t>{2, 3});
    CHECK(file.read("q").bytes == arrays["q"].bytes);
    CHECK(io::numbers<double>(file.read("long name")) == values);
    CHECK(says(refusal([&] { file.read("k"); }), "x.npz, member 'k' has no data; expected one of 'long name', 'q'"));
    io::write_npz(in.path / "none.npz", {});
    CHECK(io::npz_file(in.path / "none.npz").names().empty());
  }

  TEST_CASE("Comments and other files in the archive do not matter") {
    entry other{.name = "readme", .local_name = "readme", .data = of("hello")};
    CHECK(read(zip({entry{}, other}, of("a comment with PK\5\6 in it"))) == std::vector<float>{1, 2, 3});
  }

  TEST_CASE("Sizes of 64 bits, as numpy.savez writes them") {
    entry e{.zip64 = true, .zip64_size = npy_of({1, 2, 3}).size(), .zip64_packed = npy_of({1, 2, 3}).size()};
    e.size = e.packed = 0xffffffff;
    e.lies_size = e.lies_packed = true;
    CHECK(read(zip({e})) == std::vector<float>{1, 2, 3});
    e.zip64_size = std::uint64_t(1) << 63;
    CHECK(says(refused(zip({e})), "expected the data of 9223372036854775808 bytes"));
    e.zip64_packed = std::uint64_t(1) << 63;
    CHECK(says(refused(zip({e})), "expected data that end before byte"));
    e.zip64_packed = e.zip64_size = ~std::uint64_t(0);
    CHECK(says(refused(zip({e})), "expected data that end before byte"));
    e.zip64 = false;
    CHECK(says(refused(zip({e})), "no zip64 field"));
  }

#if __has_include(<zlib.h>)
  TEST_CASE("Compressed members") {
    bytes const plain = npy_of(std::vector<float>(1000, 2.0f));
    bytes packed(plain.size() + 100);
    z_stream z{};
    REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = const_cast<unsigned char*>(plain.data());
    z.avail_in = uInt(plain.size());
    z.next_out = packed.data();
    z.avail_out = uInt(packed.size());
    REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    packed.erase(packed.end() - std::ptrdiff_t(z.avail_out), packed.end());
    deflateEnd(&z);

    entry e{.data = packed, .method = 8, .size = plain.size(), .checksum = io::detail::crc32(plain)};
    e.lies_size = e.lies_checksum = true;
    CHECK(read(zip({e}), io::zlib_inflate) == std::vector<float>(1000, 2.0f));
    CHECK(says(refused(zip({e})), "member 'a' has compressed data; expected stored data (numpy.savez), or zlib"));
    auto const damaged = [&](entry const& x) { return refusal([&] { read(zip({x}), io::zlib_inflate); }); };
    for (std::uint64_t lie : {plain.size() - 1, plain.size() + 1, std::size_t(0)}) {
      entry x = e;
      x.size = lie;
      CHECK(says(damaged(x), "damaged deflate stream"));
    }
    entry bomb = e;
    bomb.size = 2000 * packed.size();
    CHECK(says(damaged(bomb), "expected the data of"));
    for (std::size_t n = 0; n < packed.size(); ++n) {
      entry x = e;
      x.data[n] = static_cast<unsigned char>(x.data[n] ^ 0x55);
      CHECK(damaged(x) != "");
      x.data = bytes(packed.begin(), packed.begin() + std::ptrdiff_t(n));
      CHECK(damaged(x) != "");
    }
    entry longer = e;
    longer.data.push_back(0);
    CHECK(says(damaged(longer), "damaged deflate stream"));
  }
#endif

  TEST_CASE("Lies") {
    CHECK(says(refused_entry([](entry& e) { e.flags = 1; }), "member 'a' has encrypted data"));
    CHECK(says(refused_entry([](entry& e) { e.method = 12; }), "the compression method 12"));
    CHECK(says(refused_entry([](entry& e) { e.local_name = "b.npy"; }), "another name, 'b.npy'"));
    CHECK(says(refused_entry([](entry& e) { e.checksum = 1, e.lies_checksum = true; }), "another checksum"));
    CHECK(says(refused_entry([](entry& e) { e.size = 1, e.lies_size = true; }), "expected the data of 1 bytes"));
    CHECK(says(refused_entry([](entry& e) { e.packed = e.size = 100000, e.lies_packed = e.lies_size = true; }),
               "expected data that end before byte"));
    CHECK(says(refused_entry([](entry& e) { e.header = 5, e.lies_header = true; }), "header has no signature"));
    CHECK(says(refused_entry([](entry& e) { e.header = 0xfffffff0, e.lies_header = true; }), "its end at byte"));
    entry later;
    later.data = npy_of({4});
    CHECK(read(zip({entry{}, later})) == std::vector<float>{4});  // as for Python's zipfile, the last one counts
    entry second{.name = "a.npy", .local_name = "a.npy"};
    second.lies_header = true;  // the place of the first one
    second.name = "b.npy";
    CHECK(says(refused(zip({entry{}, second})), "another name, 'a.npy'"));
    CHECK(says(refused(of("PK\3\4 and nothing else, no directory at all")), "no signature"));
    CHECK(says(refused({}), "at least 22"));
  }

  TEST_CASE("Members that overlap") {
    entry inner{.name = "b.npy", .local_name = "b.npy"};
    bytes const hidden = zip({inner});
    entry outer;  // holds the other member's header and data within its own
    outer.data = bytes(hidden.begin(), hidden.begin() + 30 + 5 + std::ptrdiff_t(inner.data.size()));
    inner.header = 30 + 5;
    inner.lies_header = true;
    CHECK(says(refused(zip({outer, inner})), "expected data that end before byte 35"));
  }

  TEST_CASE("What stands in front of an archive, and behind it, does not matter") {
    bytes const whole = zip({entry{}, entry{.name = "b.npy", .local_name = "b.npy", .data = npy_of({4})}});
    CHECK(read(of("#!/bin/sh") + whole) == std::vector<float>{4});
    CHECK(read(whole + bytes(1000, 0)) == std::vector<float>{4});
  }

  TEST_CASE("A member that cannot be read costs itself alone") {
    entry other{.name = "b.npy", .local_name = "b.npy"};
    for (auto const& [method, name] :
         {std::pair(12u, "12 (bzip2)"), std::pair(14u, "14 (lzma)"), std::pair(93u, "93 (zstd)")}) {
      other.method = method;
      bytes const whole = zip({entry{}, other});
      io::npz_file file(whole, "memory");
      CHECK(io::numbers<float>(file.read("a")) == std::vector<float>{1, 2, 3});
      CHECK(says(refusal([&] { file.read("b"); }), std::string("member 'b' has the compression method ") + name));
    }
  }

  TEST_CASE("A member is found with and without the end of its name") {
    bytes const whole = zip({entry{}, entry{.name = "b", .local_name = "b", .data = npy_of({4})}});
    io::npz_file file(whole, "memory");
    CHECK(file.names() == std::vector<std::string>{"a"});
    CHECK(file.read("a").bytes == file.read("a.npy").bytes);
    CHECK(io::numbers<float>(file.read("b")) == std::vector<float>{4});
  }

  TEST_CASE("Cut anywhere it is refused; with any byte changed it is read or refused") {
    check_damage(zip({entry{}}), [](bytes const& b) { read(b); }, bytes_behind::allowed);
  }
}
