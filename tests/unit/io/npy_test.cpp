// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
// [snippet: includes]
#include <attune/io/npy.hpp>
// [/snippet]

#include "files.hpp"

using namespace attune;
using namespace io_tests;

namespace {

/// A file with this header, padded as NumPy does, and this data.
bytes npy(std::string header, bytes const& data, int version = 1) {
  std::size_t const length_bytes = version == 1 ? 2 : 4;
  header.append(63 - (8 + length_bytes + header.size()) % 64, ' ');
  header += '\n';
  bytes b = of("\x93NUMPY") + bytes{static_cast<unsigned char>(version), 0};
  for (std::size_t n = 0; n < length_bytes; ++n) b.push_back(static_cast<unsigned char>(header.size() >> (8 * n)));
  return b + of(header) + data;
}
std::string header(std::string const& type, std::string const& shape, char const* fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}
bytes const six = raw(std::vector<float>{0, 1, 2, 3, 4, 5});

io::array read(bytes const& b, io::npy_options const& options = {}) { return io::read_npy(b, "memory", options); }
std::string refused(bytes const& b) {
  return refusal([&] { read(b); });
}
std::string refused_header(std::string const& h) { return refused(npy(h, six)); }

}  // namespace

TEST_SUITE("io_npy") {
  TEST_CASE("A file as NumPy 1.24 writes it") {
    // numpy.save(f, numpy.array([[0, 1, 2], [3, 4, 5]], dtype=numpy.float32))
    bytes const file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", six);
    CHECK(file.size() == 128 + 24);
    io::array const x = read(file);
    CHECK(x.type == io::element_type::float32);
    CHECK(x.extents == std::vector<index_t>{2, 3});
    CHECK(io::numbers<float>(x) == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(x.name == "memory");
    for (int version : {2, 3}) CHECK(read(npy(header("<f4", "(2, 3)"), six, version)).bytes == x.bytes);
  }

  TEST_CASE("Types, ranks, other spellings of the dictionary") {
    CHECK(io::numbers<double>(read(npy(header("<f8", "(3,)"), raw(std::vector<double>{1, 2, 3})))) ==
          std::vector<double>{1, 2, 3});
    CHECK(io::numbers<float>(read(npy(header("<f2", "(2,)"), bytes{0, 0x3c, 0, 0xc0}))) == std::vector<float>{1, -2});
    CHECK(io::integers(read(npy(header("|b1", "(2,)"), bytes{1, 0}))) == std::vector<index_t>{1, 0});
    CHECK(io::integers(read(npy(header("<i8", "()"), raw(std::vector<std::int64_t>{-7})))) == std::vector<index_t>{-7});
    CHECK(read(npy(header("<f4", "(0, 3)"), {})).extents == std::vector<index_t>{0, 3});
    CHECK(read(npy(header("<f4", "(1, 1, 1, 1, 6)"), six)).extents.size() == 5);
    CHECK(read(npy("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", six)).extents.size() == 2);
    CHECK(read(npy(header("<f4", "(2L, 3L)"), six)).extents == std::vector<index_t>{2, 3});
    CHECK(read(npy("{u'descr': u'<f4', U'fortran_order': False, u\"shape\": (2L, 3L)}", six)).extents.size() == 2);
    CHECK(says(refused_header("{b'descr': '<f4', 'fortran_order': False, 'shape': (6,)}"), "at byte 1"));
    CHECK(says(refused_header("{'descr': u, 'fortran_order': False, 'shape': (6,)}"), "a structured type"));
    CHECK(says(refused_header("{'descr': u"), "a structured type"));
  }

  TEST_CASE("Words of 16 bits become bfloat16 when the caller says so") {
    bytes const words{0x80, 0x3f, 0, 0xc0};  // 1, -2
    for (char const* type : {"<u2", "|V2"}) {
      CHECK(read(npy(header(type, "(2,)"), words)).type == io::element_type::uint16);
      CHECK(io::numbers<float>(read(npy(header(type, "(2,)"), words), {.words = io::element_type::bfloat16})) ==
            std::vector<float>{1, -2});
    }
    io::array const f = read(npy(header("<f2", "(2,)"), words), {.words = io::element_type::bfloat16});
    CHECK(f.type == io::element_type::float16);  // a type that the file knows stays
    CHECK(says(refusal([&] { read(npy(header("<u2", "(2,)"), words), {.words = io::element_type::float32}); }),
               "float16, bfloat16, float8_e4m3fn or float8_e5m2"));
  }

  TEST_CASE("The order of bytes means nothing for one byte; none, = and ? are this machine's (F7)") {
    for (char const* type : {"|b1", "<b1", ">b1", "=b1", "b1", "?"})
      CHECK(read(npy(header(type, "(2,)"), bytes{1, 0})).type == io::element_type::boolean);
    for (char const* type : {"<u1", ">u1", "|u1", "u1"})
      CHECK(io::integers(read(npy(header(type, "(1,)"), bytes{200}))) == std::vector<index_t>{200});
    for (char const* type : {"<i1", ">i1", "|i1", "=i1"})
      CHECK(io::integers(read(npy(header(type, "(1,)"), bytes{200}))) == std::vector<index_t>{-56});
    for (char const* type : {"=f4", "f4", "<f4"})
      CHECK(io::numbers<float>(read(npy(header(type, "(6,)"), six)))[5] == 5);
    CHECK(io::integers(read(npy(header("<i2", "(1,)"), bytes{0xff, 0xff}))) == std::vector<index_t>{-1});
    CHECK(io::integers(read(npy(header("<u4", "(1,)"), bytes{0xff, 0xff, 0xff, 0xff}))) ==
          std::vector<index_t>{0xffffffff});
    bytes const most(8, 0xff);
    CHECK(says(refusal([&] { io::integers(read(npy(header("<u8", "(1,)"), most))); }),
               "the value 18446744073709551615; expected numbers below 2^63"));
    CHECK(says(refused(npy(header(">f4", "(6,)"), six)), "big-endian"));
    CHECK(says(refused(npy(header("<c8", "(3,)"), six)), "complex numbers"));
    CHECK(says(refused(npy(header("|O", "(3,)"), six)), "Python objects"));
    CHECK(read(npy(header("|V1", "(2,)"), bytes{0x38, 0}), {.words = io::element_type::float8_e4m3fn}).type ==
          io::element_type::float8_e4m3fn);
  }

  TEST_CASE("Fortran order becomes C order") {
    bytes const columns = raw(std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK(io::numbers<float>(read(npy(header("<f4", "(2, 3)", "True"), columns))) ==
          std::vector<float>{0, 1, 2, 3, 4, 5});
    // x[a, b, c] = 12 a + 4 b + c of shape (2, 3, 4), first axis fastest
    std::vector<float> fortran;
    for (int c = 0; c < 4; ++c)
      for (int b = 0; b < 3; ++b)
        for (int a = 0; a < 2; ++a) fortran.push_back(float(12 * a + 4 * b + c));
    auto const x = io::numbers<float>(read(npy(header("<f4", "(2, 3, 4)", "True"), raw(fortran))));
    for (std::size_t n = 0; n < 24; ++n) CHECK(x[n] == float(n));
    CHECK(read(npy(header("<f4", "(0, 3)", "True"), {})).bytes.empty());
  }

  TEST_CASE("What is written is read back") {
    folder const in;
    std::vector<double> const values{1, -2, 0.25, 1024, 0, 3};
    for (auto type : {io::element_type::float64, io::element_type::float32, io::element_type::float16,
                      io::element_type::bfloat16}) {
      io::array const x = io::make_array<double>(values, {2, 1, 3}, type);
      io::write_npy(in.path / "x.npy", x);
      io::array const y = io::read_npy(in.path / "x.npy", {.words = io::element_type::bfloat16});
      CHECK(y.type == type);
      CHECK(y.extents == x.extents);
      CHECK(y.bytes == x.bytes);
      CHECK(file_bytes(in.path / "x.npy").size() == 128 + x.bytes.size());
    }
    io::write_npy(in.path / "one.npy", io::make_array<double>(std::vector<double>{4}, {}));
    CHECK(io::read_npy(in.path / "one.npy").extents.empty());
    CHECK(says(refusal([&] { io::write_npy(in.path / "no" / "x.npy", io::array{}); }), "expected a writable file"));
  }

  TEST_CASE("As docs/reference/command_line.md shows it") {
    folder const in;
    std::filesystem::path const file = in.path / "q.npy", result = in.path / "out.npy";
    io::write_npy(file, io::make_array<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}));
    // [snippet: files]
    io::array const x = io::read_npy(file);              // x.type, x.extents, x.bytes in C order
    std::vector<float> const q = io::numbers<float>(x);  // rounded once where the file has more digits
    tensor const Q(q, io::tensor_shape(x));              // (1, 1, 2, 3) of a file with two axes
    io::write_npy(result, io::make_array<float>(q, {1, 1, 2, 3}, io::element_type::bfloat16));
    // [/snippet]
    CHECK(Q.extents() == shape{1, 1, 2, 3});
    CHECK(Q(0, 0, 1, 2) == 6);
    CHECK(io::numbers<float>(io::read_npy(result, {.words = io::element_type::bfloat16})) == q);
  }

  TEST_CASE("What is no file") {
    folder const in;
    CHECK(says(refusal([&] { io::read_npy(in.path / "missing.npy"); }), "missing.npy has no such path"));
    CHECK(says(refusal([&] { io::read_npy(in.path); }), "another kind than a regular file"));
    CHECK(says(refused({}), "magic number has its end at byte 0"));
    CHECK(says(refused(of("PK\3\4 this is a zip file")), "expected '\\x93NUMPY' of an .npy file"));
  }

  TEST_CASE("Lying sizes are refused before memory is taken") {
    CHECK(
        says(refused(npy(header("<f4", "(2, 4)"), six)), "data has 24 bytes; expected 32 for float32 of shape (2, 4)"));
    CHECK(says(refused(npy(header("<f4", "(2, 2)"), six)), "expected 16"));
    CHECK(says(refused(npy(header("<f8", "(2, 3)"), six)), "expected 48 for float64"));
    CHECK(says(refused_header(header("<f4", "(1099511627776,)")), "expected 4398046511104"));
    CHECK(says(refused_header(header("<f4", "(9223372036854775808,)")), "header field 'shape'"));
    CHECK(says(refused_header(header("<f4", "(99999999999999999999999999999999,)")), "header field 'shape'"));
    CHECK(says(refused_header(header("<f4", "(4294967296, 4294967296)")), "expected a size below 2^63 bytes"));
    CHECK(says(refused_header(header("<f4", "(576460752303423488, 16)")), "expected a size below 2^63 bytes"));
    CHECK(says(refused_header(header("<f4", "(576460752303423488, 16, 0)")), "expected a size below 2^63 bytes"));
    CHECK(says(refused(npy(header("<f4", "(1099511627776, 0)"), {})), "smaller extents"));
    std::string ones = "(";
    for (int n = 0; n < 40; ++n) ones += "1, ";
    CHECK(says(refused_header(header("<f4", ones + "6)")), "41 axes; expected at most 32"));
    bytes const long_header = of("\x93NUMPY") + bytes{2, 0, 0xff, 0xff, 0xff, 0xff};
    CHECK(says(refused(long_header + six), "header length has 4294967295; expected at most 65536"));
    CHECK(says(refused(of("\x93NUMPY") + bytes{1, 0, 0xff, 0xff} + six), "header has its end at byte 34"));
  }

  TEST_CASE("Headers that are none") {
    CHECK(says(refused_header(header("<c8", "(3,)")), "descr' has the type '<c8'"));
    CHECK(says(refused_header(header(">f4", "(2, 3)")), "big-endian"));
    CHECK(says(refused_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }"),
               "a structured type"));
    CHECK(says(refused_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,), }"), "expected True or False"));
    CHECK(says(refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': [6], }"), "expected a tuple"));
    CHECK(says(refused_header(header("<f4", "(-6,)")), "expected an extent >= 0"));
    CHECK(says(refused_header(header("<f4", "(2.0, 3)")), "expected ','"));
    CHECK(says(refused_header("{'descr': '<f4', 'fortran_order': False}"), "no key 'shape'"));
    CHECK(says(refused_header("{'shape': (6,), 'fortran_order': False}"), "no key 'descr'"));
    CHECK(says(refused_header("{'descr': '<f4', 'shape': (6,)}"), "no key 'fortran_order'"));
    CHECK(says(refused_header("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (6,)}"),
               "the key 'descr' twice"));
    CHECK(says(refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'x': 1}"), "the key 'x'"));
    CHECK(says(refused_header(header("<f4", "(6,)") + " x"), "behind the dictionary"));
    CHECK(says(refused_header("{'descr': '<f4"), "a string without an end"));
    CHECK(says(refused_header(""), "expected '{'"));
    CHECK(says(refused_header("{'\xff\xfe': 1}"), "the key '\\xff\\xfe'"));
    CHECK(says(refused(npy(header("<f4", "(2, 3)"), six, 4)), "version has 4; expected 1 to 3"));
  }

  TEST_CASE("Cut anywhere it is refused; with any byte changed it is read or refused") {
    check_damage(npy(header("<f4", "(2, 3)"), six), [](bytes const& b) { read(b); });
    check_damage(npy(header("<f2", "(1, 3)", "True"), bytes{0, 1, 2, 3, 4, 5}, 2), [](bytes const& b) { read(b); });
  }
}
