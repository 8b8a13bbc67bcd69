// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_decode, called as another language calls it.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#define ATTUNE_C_TYPES 1
#include <attune/interop/c_decode.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

ATTUNE_C_MAKE(plain, attention(kernel::dot_product{}, m))

namespace attune::test {
namespace {

constexpr shape one{2, 2, 1, 4}, pages{3, 1, 8, 4};

template <class T>
attune_tensor dense(std::vector<T>& x, shape const& e) {
  strides const s = strides::dense(e);
  return {x.data(),
          {e.batch, e.head, e.position, e.feature},
          {s.batch, s.head, s.position, s.feature},
          interop::type_code<T>,
          1};
}

/// A call with two queries of two sequences: 11 and 8 keys in three pages of 8.
struct c_call {
  std::vector<float> q, k, v, out = std::vector<float>(16), scale{0.5f};
  std::vector<float8_e5m2> k8, v8;
  std::vector<std::int32_t> table{2, 0, 1, -1};
  std::vector<std::int64_t> lengths{11, 8};
  std::array<attune_tensor, 3> fields{};
  std::array<attune_parameter, 1> parameters{};
  attune_mask_node mask{};
  std::array<char, 300> text{};
  attune_call c{};
  attune_decode more{};

  c_call() {
    auto const number = [](int n) { return float((n * 37) % 11) / 4 - 1; };
    for (int n = 0; n < 16; ++n) q.push_back(number(n));
    for (int n = 0; n < 96; ++n) {
      k8.emplace_back(number(n + 5)), v8.emplace_back(number(n + 7));
      k.push_back(float(k8.back()) * scale[0]), v.push_back(float(v8.back()));
    }
    fields = {dense(q, one), dense(k, pages), dense(v, pages)};
    mask.kind = attune_mask_padding;
    mask.x = dense(lengths, {1, 1, 1, 2});
    more.pages = dense(table, {1, 1, 2, 2});
    c.fields = fields.data();
    c.parameters = parameters.data();
    c.mask = &mask;
    c.mask_count = 1;
    c.outputs[0] = dense(out, one);
    c.type = attune_float32;
    c.threads = 1;
  }
  template <class Codes = void>
  int run() {
    return interop::run_decode<interop::make_plain, float, Codes>(&c, &more, {text.data(), index_t(text.size())});
  }
  template <class Codes = void>
  std::string refused() {
    CHECK(run<Codes>() == attune_refused);
    return text.data();
  }
};

TEST_CASE("decode through the C interface: the bits of C++, with pages, without, and from 8 bits") {
  c_call x;
  REQUIRE(x.run() == attune_done);
  std::vector<index_t> const lengths{11, 8};
  auto const op = attention(kernel::dot_product{}, mask::padding(lengths));
  std::vector<float> want(16);
  tensor<float const> const q(x.q, one), k(x.k, pages), v(x.v, pages);
  decode(cpu{1}, op, {.q = q, .k = k, .v = v}, page_table(x.table, 2), {.out = tensor(want, one)});
  CHECK(x.out == want);

  x.fields[1] = dense(x.k8, pages), x.fields[2] = dense(x.v8, pages);
  x.more.k_scale = dense(x.scale, {1, 1, 1, 1});
  x.out.assign(16, 0);
  REQUIRE(x.run<float8_e5m2>() == attune_done);
  CHECK(x.out == want);

  shape const whole{2, 1, 8, 4};
  c_call y;
  y.fields[1] = dense(y.k, whole), y.fields[2] = dense(y.v, whole);
  y.lengths = {7, 8};
  y.mask.x = dense(y.lengths, {1, 1, 1, 2});
  y.more.pages = {};
  REQUIRE(y.run() == attune_done);
  std::vector<index_t> const shorter{7, 8};
  decode(cpu{1}, attention(kernel::dot_product{}, mask::padding(shorter)),
         {.q = q, .k = tensor<float const>(x.k.data(), whole), .v = tensor<float const>(x.v.data(), whole)},
         {.out = tensor(want, one)});
  CHECK(y.out == want);
}

TEST_CASE("decode through the C interface: wrong arguments") {
  c_call x;
  x.table[1] = 3;
  CHECK(x.refused() ==
        "attune::decode: pages(0, 1) has the value 3; expected a page in [0, 3): query 0 of head 0 sees key 8");
  x.table[1] = 0;
  x.more.pages.type = attune_int64;
  CHECK(x.refused() == "attune::call: the type of page_table has int64; expected int32");
  x.more.pages.type = attune_int32;
  x.more.v_scale = dense(x.scale, {1, 1, 1, 1});
  CHECK(x.refused() == "attune::decode: v_scale has a tensor; expected none: keys and values do not have 8 bits");
  CHECK(x.refused<float8_e5m2>() == "attune::decode: v_scale has a tensor; expected none: v has no 8-bit numbers");
  x.c.type = attune_float64;
  CHECK(x.refused() == "attune::decode: the element type has float64; expected float32");
  CHECK(x.out == std::vector<float>(16));  // nothing was written
}

}  // namespace
}  // namespace attune::test
