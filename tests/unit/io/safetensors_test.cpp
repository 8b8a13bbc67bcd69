// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/io/safetensors.hpp>

#include "files.hpp"

using namespace attune;
using namespace io_tests;

namespace {

bytes with_length(std::uint64_t length, std::string const& json, bytes const& data) {
  return raw(std::vector<std::uint64_t>{length}) + of(json) + data;
}
bytes file(std::string const& json, bytes const& data = {}) { return with_length(json.size(), json, data); }
bytes const two = raw(std::vector<float>{1, 2});

/// A file whose one tensor, two numbers, says this.
bytes saying(std::string const& inside) { return file("{\"t\":{" + inside + "}}", two); }

std::string refused(bytes const& b) {
  return refusal([&] {
    io::safetensors_file f(b, "memory");
    for (auto const& name : f.names()) f.read(name);
  });
}

}  // namespace

TEST_SUITE("io_safetensors") {
  TEST_CASE("A file as the format's page shows it") {
    bytes const b = file(
        R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},"n":{"dtype":"F32","shape":[0,3],"data_offsets":[10,10]}}  )",
        two + bytes{0x80, 0x3f});
    io::safetensors_file f(b, "memory");
    CHECK(f.names() == std::vector<std::string>{"b", "n", "w"});
    CHECK(f.metadata().at("format") == "pt");
    CHECK(f.read("w").extents == std::vector<index_t>{1, 2});
    CHECK(io::numbers<float>(f.read("w")) == std::vector<float>{1, 2});
    CHECK(f.read("b").type == io::element_type::bfloat16);
    CHECK(io::numbers<double>(f.read("b")) == std::vector<double>{1});
    CHECK(f.read("n").extents == std::vector<index_t>{0, 3});
    CHECK(f.read("w").name == "memory, tensor 'w'");
    CHECK(says(refusal([&] { f.read("x"); }), "memory, tensor 'x' has no data; expected one of 'b', 'n', 'w'"));
  }

  TEST_CASE("What is written is read back") {
    folder const in;
    std::vector<double> const values{1, -2, 0.25, 1024, 0, 3};
    std::map<std::string, io::array> tensors;
    for (auto type :
         {io::element_type::float64, io::element_type::float32, io::element_type::float16, io::element_type::bfloat16})
      tensors[io::name_of(type)] = io::make_array<double>(values, {2, 3}, type);
    tensors["ü \"quoted\""] = io::make_array<double>(values, {6, 1});
    io::write_safetensors(in.path / "x.safetensors", tensors, {{"made by", "a test"}});
    io::safetensors_file f(in.path / "x.safetensors");
    CHECK(f.names().size() == 5);
    CHECK(f.metadata().at("made by") == "a test");
    for (auto const& [name, x] : tensors) {
      CHECK(f.read(name).type == x.type);
      CHECK(f.read(name).extents == x.extents);
      CHECK(f.read(name).bytes == x.bytes);
    }
    CHECK(says(refusal([&] { io::write_safetensors(in.path / "y", {{"__metadata__", tensors["float32"]}}); }),
               "another name"));
    CHECK(
        says(refusal([&] { io::write_safetensors(in.path / "y", {{"\xff", tensors["float32"]}}); }), "expected UTF-8"));
  }

  TEST_CASE("Offsets that lie") {
    auto const offsets = [](std::string const& o) {
      return refused(saying(R"("dtype":"F32","shape":[2],"data_offsets":)" + o));
    };
    CHECK(offsets("[0,8]") == "");
    CHECK(says(offsets("[0,16]"), "tensor 't', 'data_offsets' has [0, 16]; expected begin <= end <= 8"));
    CHECK(says(offsets("[8,0]"), "expected begin <= end"));
    CHECK(says(offsets("[0,4]"), "4 bytes; expected 64 bits for F32 of shape (2)"));
    CHECK(says(offsets("[0,9223372036854775808]"), "expected begin <= end <= 8"));
    CHECK(says(offsets("[18446744073709551615,18446744073709551615]"), "expected begin <= end <= 8"));
    CHECK(says(offsets("[0,18446744073709551616]"), "the number '18446744073709551616'"));
    CHECK(says(offsets("[-8,0]"), "has -8; expected [begin, end]"));
    CHECK(says(offsets("[0,8.0]"), "the number '8.0'"));
    CHECK(says(offsets("[0]"), "1 numbers; expected [begin, end]"));
    CHECK(says(offsets("[0,8,8]"), "more than two numbers"));
    CHECK(says(offsets("8"), "expected [begin, end]"));
    CHECK(says(offsets("[[0,8]]"), "a list"));
    CHECK(says(offsets("null"), "null"));
  }

  TEST_CASE("Tensors that overlap or leave gaps") {
    auto const pair = [](std::string const& a, std::string const& b) {
      return refused(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                              R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                          two));
    };
    CHECK(pair("[0,4]", "[4,8]") == "");
    CHECK(pair("[4,8]", "[0,4]") == "");
    CHECK(says(pair("[0,4]", "[3,7]"), "tensor 'b', 'data_offsets' has a begin of 3, which overlaps"));
    CHECK(says(pair("[0,4]", "[0,4]"), "which overlaps"));
    CHECK(says(refused(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", two)), "which leaves a gap"));
    CHECK(says(refused(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", two)),
               "data has 8 bytes; expected 4, those of the tensors"));
    CHECK(says(refused(file("{}", two)), "expected 0"));
    CHECK(refused(file("{}")) == "");
  }

  TEST_CASE("Shapes and types that lie") {
    auto const shaped = [](std::string const& s) {
      return refused(saying(R"("dtype":"F32","shape":)" + s + R"(,"data_offsets":[0,8])"));
    };
    CHECK(says(shaped("[9223372036854775807]"), "expected a size below 2^64 bits"));
    CHECK(says(shaped("[9223372036854775808]"), "expected a size below 2^64 bits"));
    CHECK(says(shaped("[4294967296,4294967296,0]"), "expected a size below 2^64 bits"));
    CHECK(says(shaped("[-2]"), "expected a list of extents >= 0"));
    CHECK(says(shaped("[-0]"), "has -0; expected a list of extents >= 0"));
    CHECK(says(shaped("[\"2\"]"), "the string '2'"));
    CHECK(says(shaped("2"), "expected a list of extents"));
    CHECK(says(shaped("[[2]]"), "a list"));
    CHECK(says(shaped("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]"),
               "33 axes; expected at most 32"));
    auto const typed = [](std::string const& t) {
      return refused(saying(R"("dtype":)" + t + R"(,"shape":[2],"data_offsets":[0,8])"));
    };
    CHECK(says(typed("\"C64\""), "8 bytes; expected 128 bits for C64"));
    CHECK(says(typed("\"F9\""), "tensor 't', 'dtype' has 'F9'; expected one of F64, F32"));
    CHECK(says(typed("\"F64\""), "expected 128 bits for F64"));
    CHECK(says(typed("7"), "expected the name of a type"));
    CHECK(says(typed("{}"), "an object"));
  }

  TEST_CASE("Names and keys") {
    std::string const t = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    CHECK(refused(file("{\"t\":" + t + ",\"t\":" + t + "}", two)) == "");  // the last one counts
    CHECK(says(refused(saying(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])")),
               "the key 'dtype' twice"));
    for (char const* const other :
         {"1", "null", "[1,{\"shape\":[[]]}]", "{\"dtype\":{\"a\":[\"b\",1.5,true]}}"})  // a key that means nothing
      CHECK(refused(saying(R"("dtype":"F32","x":)" + std::string(other) +
                           R"(,"shape":[2],"data_offsets":[0,8],"x":2)")) == "");
    auto const deep = [](std::size_t levels) {  // the format's own reader takes 127 levels
      std::string const x = std::string(levels - 2, '[') + std::string(levels - 2, ']');
      return refused(saying(R"("dtype":"F32","x":)" + x + R"(,"shape":[2],"data_offsets":[0,8])"));
    };
    CHECK(deep(127) == "");
    CHECK(says(deep(128), "tensor 't', 'x' has more than 127 levels of lists and objects"));
    CHECK(says(deep(100000), "more than 127 levels"));
    CHECK(says(refused(saying(R"("dtype":"F32","shape":[2])")), "tensor 't' has no data_offsets"));
    CHECK(says(refused(saying(R"("dtype":"F32","data_offsets":[0,8])")), "no shape"));
    CHECK(says(refused(saying(R"("shape":[2],"data_offsets":[0,8])")), "no dtype"));
    bytes const again = file(R"({"__metadata__":{"a":"1","a":"2"}})");
    CHECK(io::safetensors_file(again, "memory").metadata().at("a") == "2");
    CHECK(refused(file(R"({"__metadata__":null})")) == "");
    CHECK(says(refused(file(R"({"__metadata__":{},"__metadata__":{}})")), "'__metadata__' twice"));
    CHECK(says(refused(file(R"({"__metadata__":{"a":1}})")), "expected strings"));
    CHECK(says(refused(file(R"({"__metadata__":{"a":{}}})")), "an object"));
    CHECK(says(refused(file(R"({"__metadata__":[]})")), "a list"));
    CHECK(says(refused(file(R"({"__metadata__":"text"})")), "expected an object"));
    CHECK(says(refused(file(R"({"t":7})")), "tensor 't' has 7; expected an object with dtype"));
    CHECK(says(refused(file("{\"\xff\xfe\":" + t + "}", two)), "UTF-8"));
    CHECK(says(refused(file("{\"t\xc3\":" + t + "}", two)), "UTF-8"));
  }

  TEST_CASE("Headers that are none") {
    CHECK(says(refused({}), "header length has its end at byte 0"));
    CHECK(says(refused(of("1234567")), "header length"));
    CHECK(says(refused(with_length(~std::uint64_t(0), "{}", {})), "expected at most 100000000"));
    CHECK(says(refused(with_length(std::uint64_t(1) << 63, "{}", {})), "expected at most 100000000"));
    CHECK(says(refused(with_length(3, "{}", {})), "header has its end at byte 10; expected 3 bytes from byte 8 on"));
    CHECK(says(refused(file("")), "expected a JSON object"));
    CHECK(says(refused(file("[]")), "expected a JSON object"));
    CHECK(refused(file(" {}")) == "");
    CHECK(says(refused(file("{")), "no valid JSON at byte"));
    CHECK(says(refused(file("{} x")), "no valid JSON"));
    CHECK(says(refused(file("{\"t\":" + std::string(10000, '['))), "a list"));
    CHECK(says(refused(file("{\"t\":{\"shape\":" + std::string(10000, '{'))), "an object"));
  }

  TEST_CASE("Cut anywhere it is refused; with any byte changed it is read or refused") {
    check_damage(saying(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), [](bytes const& b) {
      io::safetensors_file f(b, "memory");
      for (auto const& name : f.names()) f.read(name);
    });
  }
}
