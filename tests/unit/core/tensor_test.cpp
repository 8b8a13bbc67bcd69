// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <attune/core/tensor.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("shape: size, comparison, words; every axis is 1 unless said") {
  CHECK(shape{2, 3, 4, 5}.size() == 120);
  CHECK(shape{}.size() == 1);
  CHECK(shape{2, 3, 0, 5}.size() == 0);
  CHECK(shape{2, 3, 4, 5} == shape{2, 3, 4, 5});
  CHECK_FALSE(shape{2, 3, 4, 5} == shape{2, 3, 5, 4});
  CHECK(to_string(shape{2, 3, 4, 5}) == "(2, 3, 4, 5)");
}

TEST_CASE("strides: dense is row-major") {
  strides const s = strides::dense({2, 3, 4, 5});
  CHECK(s.batch == 60);  // 3 * 4 * 5
  CHECK(s.head == 20);   // 4 * 5
  CHECK(s.position == 5);
  CHECK(s.feature == 1);
}

TEST_CASE("tensor: dense views of a pointer and of a vector") {
  std::vector<int> memory(24);
  for (std::size_t n = 0; n < 24; ++n) memory[n] = int(n);
  tensor<int> const of_pointer(memory.data(), {2, 1, 3, 4});
  tensor const of_vector(memory, shape{2, 1, 3, 4});
  CHECK(of_pointer(0, 0, 0, 0) == 0);
  CHECK(of_pointer(0, 0, 2, 3) == 11);  // 2 * 4 + 3
  CHECK(of_pointer(1, 0, 1, 2) == 18);  // 12 + 4 + 2
  CHECK(of_vector(1, 0, 1, 2) == 18);
  CHECK(of_vector.row(1, 0, 1) == memory.data() + 16);
  of_vector(1, 0, 1, 2) = -5;  // a view writes through
  CHECK(memory[18] == -5);
  std::vector<int> const constant = memory;
  CHECK(tensor(constant, shape{24, 1, 1, 1})(18, 0, 0, 0) == -5);
}

TEST_CASE("tensor: strides reorder, skip, repeat and reverse without copies") {
  int const memory[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  // (position, head, feature) in memory: 3 positions, 2 heads, 2 features
  tensor<int const> const position_major(memory, {1, 2, 3, 2}, {12, 2, 4, 1});
  CHECK(position_major(0, 1, 2, 0) == 10);  // 2 + 8
  tensor<int const> const every_other(memory, {1, 1, 3, 2}, {0, 0, 4, 2});
  CHECK(every_other(0, 0, 1, 1) == 6);  // 4 + 2
  tensor<int const> const shared(memory, {5, 5, 2, 2}, {0, 0, 2, 1});
  CHECK(shared(4, 3, 1, 1) == 3);
  tensor<int const> const reversed(memory + 8, {1, 1, 3, 4}, {0, 0, -4, 1});
  CHECK(reversed(0, 0, 0, 1) == 9);
  CHECK(reversed(0, 0, 2, 3) == 3);
  tensor<int const> const backwards(memory + 3, {1, 1, 1, 4}, {0, 0, 0, -1});
  CHECK(backwards(0, 0, 0, 0) == 3);
  CHECK(backwards(0, 0, 0, 3) == 0);
}

TEST_CASE("tensor: a mutable view converts to a read-only one of the same memory") {
  float memory[4] = {1, 2, 3, 4};
  tensor<float const> const x = tensor<float>(memory, {1, 1, 2, 2}, {0, 0, 1, 2});
  CHECK(x.data() == memory);
  CHECK(x(0, 0, 1, 0) == 2);
  CHECK(x(0, 0, 0, 1) == 3);
}

TEST_CASE("tensor: absent is the default-made one, and no other") {
  float memory[1] = {};
  CHECK(tensor<float>{}.absent());
  CHECK_FALSE(tensor<float>(memory, {1, 1, 1, 1}).absent());
  CHECK_FALSE(tensor<float>(nullptr, {2, 3, 0, 4}).absent());  // empty, but given
}

TEST_CASE("tensor: errors name the shape and what it needs") {
  float memory[1] = {};
  CHECK(
      error_of([&] { tensor<float>(memory, {1, -2, 3, 4}); }) ==
      "attune::tensor: shape has the value (1, -2, 3, 4); expected extents >= 0 for (batch, head, position, feature)");
  CHECK(error_of([] { tensor<float>(nullptr, {1, 2, 3, 4}); }) ==
        "attune::tensor: data has a null pointer; expected memory for the shape (1, 2, 3, 4)");
  std::vector<float> seven(7);
  std::string const wrong_size =
      "attune::tensor: the vector has 7 elements; expected 8, the size of the shape (1, 2, 2, 2)";
  CHECK(error_of([&] { tensor<float>(seven, {1, 2, 2, 2}); }) == wrong_size);
  std::vector<float> const constant(7);
  CHECK(error_of([&] { tensor<float const>(constant, {1, 2, 2, 2}); }) == wrong_size);
  CHECK(error_of([] { tensor<float>(nullptr, {1, 2, 0, 4}); }) == "");  // nothing to point at
}

TEST_CASE("zeros: a row of any width without memory") {
  tensor<double const> const z = zeros<double>(1000000);
  CHECK(z.extents() == shape{1, 1, 1, 1000000});
  CHECK(z(0, 0, 0, 0) == 0);
  CHECK(z(0, 0, 0, 999999) == 0);
}

}  // namespace
}  // namespace attune::test
