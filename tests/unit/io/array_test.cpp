// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>

#include "files.hpp"

using namespace attune;
using namespace io_tests;

namespace {

io::array ones(std::vector<index_t> extents) {
  index_t n = 1;
  for (index_t e : extents) n *= e;
  std::vector<float> const values(std::size_t(n), 1.0f);
  return io::make_array<float>(values, extents);
}

}  // namespace

TEST_CASE("Missing leading axes of a tensor are 1") {
  CHECK(io::tensor_shape(ones({})) == shape{1, 1, 1, 1});
  CHECK(io::tensor_shape(ones({5})) == shape{1, 1, 1, 5});
  CHECK(io::tensor_shape(ones({4, 5})) == shape{1, 1, 4, 5});
  CHECK(io::tensor_shape(ones({3, 4, 5})) == shape{1, 3, 4, 5});
  CHECK(io::tensor_shape(ones({2, 3, 4, 5})) == shape{2, 3, 4, 5});
  CHECK(
      says(refusal([] { io::tensor_shape(ones({1, 1, 2, 3, 4})); }), "shape (1, 1, 2, 3, 4); expected at most 4 axes"));
}

TEST_CASE("One number per row: (batch, head, position), a last axis of 1 allowed") {
  CHECK(io::row_shape(ones({})) == shape{1, 1, 1, 1});
  CHECK(io::row_shape(ones({4})) == shape{1, 1, 4, 1});
  CHECK(io::row_shape(ones({3, 4})) == shape{1, 3, 4, 1});
  CHECK(io::row_shape(ones({2, 3, 4})) == shape{2, 3, 4, 1});
  CHECK(io::row_shape(ones({2, 3, 4, 1})) == shape{2, 3, 4, 1});
  CHECK(says(refusal([] { io::row_shape(ones({2, 3, 4, 5})); }), "(batch, head, position, 1)"));
}

TEST_CASE("Each type keeps its numbers") {
  std::vector<double> const values{1.0, -0.5, 65504.0, 0x1p-14, 0.0};
  for (auto type :
       {io::element_type::float64, io::element_type::float32, io::element_type::float16, io::element_type::bfloat16}) {
    std::vector<double> const small{values[0], values[1], 0x1p10, values[3], values[4]};
    io::array const x = io::make_array<double>(small, {5}, type);
    CHECK(x.bytes.size() == 5 * io::size_of(type));
    CHECK(io::numbers<double>(x) == small);
    CHECK(io::numbers<float>(x) == std::vector<float>(small.begin(), small.end()));
  }
  CHECK(io::numbers<double>(io::make_array<double>(values, {5}, io::element_type::float16)) == values);
}

TEST_CASE("A double is rounded to 16 bits once") {
  // Just above a tie of bfloat16: 1 + 2^-8 lies between 1 and 1 + 2^-7, and float forgets the 2^-40 that decides.
  double const above = 1 + 0x1p-8 + 0x1p-40, below = 1 + 3 * 0x1p-8 - 0x1p-40;
  std::vector<double> const values{above, below, 1 + 0x1p-8, -above, 1e300, 0x1p-149, 1e-300};
  auto const b = io::numbers<double>(io::make_array<double>(values, {7}, io::element_type::bfloat16));
  CHECK(b[0] == 1 + 0x1p-7);
  CHECK(b[1] == 1 + 0x1p-7);
  CHECK(b[2] == 1);  // a tie goes to the even one
  CHECK(b[3] == -(1 + 0x1p-7));
  CHECK(std::isinf(b[4]));
  CHECK(b[5] == 0);
  CHECK(b[6] == 0);
  // The same for float16, between 1 and 1 + 2^-10.
  std::vector<double> const halves{1 + 0x1p-11 + 0x1p-40, 65519.999999999, 65520.0, 0x1p-25 + 0x1p-60};
  auto const h = io::numbers<double>(io::make_array<double>(halves, {4}, io::element_type::float16));
  CHECK(h[0] == 1 + 0x1p-10);
  CHECK(h[1] == 65504);
  CHECK(std::isinf(h[2]));
  CHECK(h[3] == 0x1p-24);
  std::vector<double> const nothing{std::nan("")};
  CHECK(std::isnan(io::numbers<double>(io::make_array<double>(nothing, {1}, io::element_type::bfloat16))[0]));
}

TEST_CASE("Integers are integers, and no numbers") {
  io::array const x{io::element_type::int32, {3}, raw(std::vector<std::int32_t>{-1, 0, 7}), "file x"};
  CHECK(io::integers(x) == std::vector<index_t>{-1, 0, 7});
  CHECK(says(refusal([&] { io::numbers<float>(x); }),
             "file x has elements of type int32; expected floating-point numbers"));
  io::array const words{io::element_type::uint16, {1}, {0, 0}, "file w"};
  CHECK(says(refusal([&] { io::numbers<float>(words); }), "bfloat16, say so"));
  CHECK(says(refusal([] { io::integers(ones({2})); }), "expected integers or booleans"));
}

TEST_CASE("float8: every code is a number and back, rounding is to nearest, ties to even") {
  for (auto const type : {io::element_type::float8_e4m3fn, io::element_type::float8_e5m2}) {
    CAPTURE(std::string(io::name_of(type)));
    io::array all{type, {256}, {}, "codes"};
    for (int n = 0; n < 256; ++n) all.bytes.push_back(static_cast<unsigned char>(n));
    auto const values = io::numbers<float>(all);
    bool const e4m3 = type == io::element_type::float8_e4m3fn;
    for (int n = 0; n < 256; ++n) {
      int const code = n & 127, fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, exponent = code >> fraction,
                rest = code & ((1 << fraction) - 1);
      double want = exponent == 0 ? std::ldexp(rest, 1 - bias - fraction)
                                  : std::ldexp((1 << fraction) + rest, exponent - bias - fraction);
      if (!e4m3 && code == 0x7c) want = std::numeric_limits<double>::infinity();
      CAPTURE(n);
      if (e4m3 ? code == 0x7f : code > 0x7c) {
        CHECK(std::isnan(values[std::size_t(n)]));
      } else {
        CHECK(double(values[std::size_t(n)]) == (n < 128 ? want : -want));
        CHECK(io::make_array<float>(std::vector<float>{values[std::size_t(n)]}, {1}, type).bytes[0] == n);
      }
      if (code == 0 || (e4m3 ? code > 0x7e : code > 0x7b))
        continue;  // halfway to the neighbour below, and a little more
      float const below = values[std::size_t(n - 1)], here = values[std::size_t(n)], middle = (below + here) / 2;
      auto const code_of = [&](float x) {
        return int(io::make_array<float>(std::vector<float>{x}, {1}, type).bytes[0]);
      };
      CHECK(code_of(middle) == (n % 2 == 0 ? n : n - 1));
      CHECK(code_of(std::nextafter(middle, here)) == n);
      CHECK(code_of(std::nextafter(middle, below)) == n - 1);
    }
  }
  auto const far = io::numbers<float>(
      io::make_array<float>(std::vector<float>{464, 465, -1e9f}, {3}, io::element_type::float8_e4m3fn));
  CHECK(far[0] == 448);
  CHECK(std::isnan(far[1]));
  CHECK(std::isnan(far[2]));
  auto const beyond = io::numbers<float>(
      io::make_array<float>(std::vector<float>{61439, 61440, -1e9f}, {3}, io::element_type::float8_e5m2));
  CHECK(beyond[0] == 57344);
  CHECK(beyond[1] == std::numeric_limits<float>::infinity());
  CHECK(beyond[2] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("make_array wants as many numbers as the extents say") {
  std::vector<float> const three{1, 2, 3};
  CHECK(says(refusal([&] { io::make_array<float>(three, {2, 2}); }),
             "extents has the value (2, 2); expected 3 elements"));
}
