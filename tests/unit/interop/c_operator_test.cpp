// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The C interface, called as another language calls it.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#define ATTUNE_C_TYPES 1
#include <attune/interop/c_operator.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

ATTUNE_C_OPERATOR(softmax, softmax_attention(m))
ATTUNE_C_OPERATOR(top, attention(kernel::dot_product{}, normalizer::top_k{index_t(c("k", 2))}, m))
ATTUNE_C_OPERATOR(sink, attention(kernel::dot_product{} + kernel::alibi{open}, normalizer::sink{open}, m))
ATTUNE_C_OPERATOR(differential, fold(softmax_attention(m), {1.0, open}))
ATTUNE_C_OPERATOR(rotary, attention(kernel::rotary{c.angles("angles")}, m))

namespace attune::test {
namespace {

attune_tensor dense(std::vector<float>& x, shape const& e) {
  strides const s = strides::dense(e);
  return {
      x.data(), {e.batch, e.head, e.position, e.feature}, {s.batch, s.head, s.position, s.feature}, attune_float32, 1};
}

/// A call of self-attention with the same numbers for q, k and v.
struct c_call {
  static constexpr shape rows{1, 2, 3, 4};
  std::vector<float> x, out = std::vector<float>(24), lse = std::vector<float>(6);
  std::array<attune_tensor, 3> fields{};
  std::array<attune_parameter, 3> parameters{};
  std::array<attune_mask_node, 3> mask{};
  attune_constant constant{"k", 1};
  std::array<char, 300> text{};
  attune_call c{};

  c_call() {
    for (int n = 0; n < 24; ++n) x.push_back(float((n * 37) % 11) / 5 - 1);
    fields.fill(dense(x, rows));
    c.fields = fields.data();
    c.parameters = parameters.data();
    c.outputs[0] = dense(out, rows);
    c.outputs[1] = dense(lse, {1, 2, 3, 1});
    c.type = attune_float32;
    c.threads = 1;
  }
  attune_text error() { return {text.data(), index_t(text.size())}; }
  std::string refused(attune_operator const* op) {
    text.fill(0);
    CHECK(op->forward(&c, nullptr, 0, error()) == attune_refused);
    return text.data();
  }
};

TEST_CASE("the C interface: values and gradients of the same operator in C++") {
  c_call x;
  x.mask[0].kind = attune_mask_causal;
  x.mask[1].kind = attune_mask_band;
  x.mask[1].a = 1, x.mask[1].b = -1;
  x.mask[2].kind = attune_mask_both;
  x.mask[2].a = 0, x.mask[2].b = 1;
  x.c.mask = x.mask.data();
  x.c.mask_count = 3;
  attune_operator const* const op = interop::operator_softmax();
  int64_t count = 0;
  REQUIRE(op->saved_size(&x.c, &count, x.error()) == attune_done);
  std::vector<float> saved(static_cast<std::size_t>(count)), by_k(24), by_scale(1);
  REQUIRE(op->forward(&x.c, saved.data(), count, x.error()) == attune_done);
  std::array<attune_tensor, 3> to{};
  to[1] = dense(by_k, c_call::rows);
  attune_tensor const scale = dense(by_scale, {1, 1, 1, 1});
  attune_gradients g{{x.fields[0], {}, {}}, to.data(), &scale, nullptr};
  REQUIRE(op->vjp(&x.c, saved.data(), count, &g, x.error()) == attune_done);

  auto const same = softmax_attention(mask::causal_window{2});
  std::vector<float> out(24);
  tensor<float const> const view(x.x, c_call::rows);
  forward(cpu{1}, same, {.q = view, .k = view, .v = view}, {.out = tensor(out, c_call::rows)});
  CHECK(out == x.out);
  auto const all = vjp(cpu{1}, same, {.q = view, .k = view, .v = view}, {.out = view});
  CHECK(by_k == all.of(field::k).values);
  CHECK(by_scale == all.parameter("scale").values);
}

TEST_CASE("the C interface: few queries are decoded, and have the bits of forward() where rows are saved") {
  constexpr index_t keys = 4500;
  std::vector<float> numbers(2 * keys * 4);
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = float((n * 37) % 101) / 50 - 1;
  for (index_t queries : {4, 5}) {
    CAPTURE(queries);
    c_call x;
    shape const rows{1, 2, queries, 4}, all{1, 2, keys, 4};
    auto const saves = [&](bool any) {
      std::vector<float> out(std::size_t(rows.size()));
      x.fields = {dense(numbers, rows), dense(numbers, all), dense(numbers, all)};
      x.c.outputs[0] = dense(out, rows);
      x.c.outputs[1] = {};
      int64_t count = 0;
      attune_operator const* const op = interop::operator_softmax();
      REQUIRE(op->saved_size(&x.c, &count, x.error()) == attune_done);
      std::vector<float> saved(static_cast<std::size_t>(count));
      REQUIRE(op->forward(&x.c, any ? saved.data() : nullptr, any ? count : 0, x.error()) == attune_done);
      return out;
    };
    auto const op = softmax_attention();
    inputs<decltype(softmax_attention()), tensor<float const>> const in{
        .q = {numbers.data(), rows}, .k = {numbers.data(), all}, .v = {numbers.data(), all}};
    std::vector<float> decoded(std::size_t(rows.size())), forwarded(decoded);
    decode(cpu{1}, op, in, {.out = tensor(decoded, rows)});
    forward(cpu{1}, op, in, {.out = tensor(forwarded, rows)});
    REQUIRE(decoded != forwarded);
    CHECK(saves(true) == forwarded);
    CHECK(saves(false) == (queries == 4 ? decoded : forwarded));
  }
}

TEST_CASE("the C interface: a mask of each sequence of a pack") {
  c_call x;
  attune_operator const* const op = interop::operator_softmax();
  std::vector<index_t> const of_queries{0, 1, 3}, of_keys{0, 3, 3};
  auto const offsets = [](std::vector<index_t> const& of) {
    return attune_tensor{const_cast<index_t*>(of.data()), {1, 1, 1, 3}, {0, 0, 0, 1}, attune_int64, 1};
  };
  x.mask[0].kind = attune_mask_causal;
  x.mask[1] = {offsets(of_queries), offsets(of_keys), 0, 0, attune_mask_ragged_within};
  x.c.mask = x.mask.data();
  x.c.mask_count = 2;
  REQUIRE(op->forward(&x.c, nullptr, 0, x.error()) == attune_done);
  std::vector<float> out(24);
  tensor<float const> const rows(x.x, c_call::rows);
  forward(cpu{1}, softmax_attention(mask::ragged(of_queries, of_keys, mask::causal{})),
          {.q = rows, .k = rows, .v = rows}, {.out = tensor(out, c_call::rows)});
  CHECK(x.out == out);
  x.mask[1].a = 1;
  CHECK(x.refused(op) ==
        "attune::call: mask node 1 has the index 1; expected an earlier node that is a mask without arrays");
  x.mask[0] = {offsets(of_queries), offsets(of_keys), 0, 0, attune_mask_ragged};
  x.mask[1].a = 0;
  CHECK(x.refused(op).find("attune::call: mask node 1 has the index 0") == 0);
}

TEST_CASE("the C interface: constants") {
  c_call x;
  x.c.outputs[1] = {};
  std::vector<float> two(24);
  attune_operator const* const op = interop::operator_top();
  REQUIRE(op->forward(&x.c, nullptr, 0, x.error()) == attune_done);
  two = x.out;
  x.c.constants = &x.constant;
  x.c.constant_count = 1;
  REQUIRE(op->forward(&x.c, nullptr, 0, x.error()) == attune_done);
  CHECK(x.out != two);
  x.constant.value = 1.5;
  CHECK(x.refused(op) == "attune::call: the constant k has the value 1.5; expected a whole number, as its default is");
  x.constant.value = -1e300;
  CHECK(x.refused(op) ==
        "attune::call: the constant k has the value -1e+300; expected a number between -2^53 and 2^53");
  CHECK(std::strstr(op->description, "\"constants\": [[\"k\", 2]]") != nullptr);
}

TEST_CASE("the C interface: a fold has the values and gradients of the same fold in C++") {
  c_call x;
  shape const of_out{1, 1, 3, 4}, of_keys{1, 1, 3, 4};
  std::vector<float> out(12), by_q(24), by_lambda(1);
  x.c.outputs[0] = dense(out, of_out);
  x.c.outputs[1] = {};
  x.fields[2] = dense(x.x, of_keys);
  attune_operator const* const op = interop::operator_differential();
  CHECK(std::strstr(op->description, "\"path\": \"fold.1\"") != nullptr);
  CHECK(std::strstr(op->description, "\"heads_each\": 2") != nullptr);
  std::array<attune_parameter, 3> parameters{};  // fold.0, fold.1, kernel.scale
  x.c.parameters = parameters.data();
  CHECK(x.refused(op) == "attune::call: fold.1 has no value; expected a number or a tensor: it has no default");
  parameters[1].how = 1;
  parameters[1].number = -0.75;
  int64_t count = 0;
  REQUIRE(op->saved_size(&x.c, &count, x.error()) == attune_done);
  std::vector<float> saved(static_cast<std::size_t>(count));
  REQUIRE(op->forward(&x.c, saved.data(), count, x.error()) == attune_done);
  CHECK(op->forward(&x.c, saved.data(), count - 1, x.error()) == attune_refused);

  auto const same = fold(softmax_attention(), {1.0, -0.75});
  tensor<float const> const rows(x.x, c_call::rows), v(x.x.data(), of_keys);
  std::vector<float> expected(12);
  forward(cpu{1}, same, {.q = rows, .k = rows, .v = v}, {.out = tensor(expected, of_out)});
  CHECK(out == expected);
  auto const all = vjp(cpu{1}, same, {.q = rows, .k = rows, .v = v}, {.out = v});
  std::array<attune_tensor, 3> to{dense(by_q, c_call::rows), {}, {}};
  std::array<attune_tensor, 3> by{{{}, dense(by_lambda, {1, 1, 1, 1}), {}}};
  attune_gradients g{{dense(x.x, of_out), {}, {}}, to.data(), by.data(), nullptr};
  for (void const* const from : {static_cast<void const*>(saved.data()), static_cast<void const*>(nullptr)}) {
    std::fill(by_q.begin(), by_q.end(), 9.0F);
    REQUIRE(op->vjp(&x.c, from, from ? count : 0, &g, x.error()) == attune_done);
    CHECK(by_q == all.of(field::q).values);
    CHECK(by_lambda == all.parameter("fold.1").values);
  }
}

TEST_CASE("the C interface: an array is read as the angles of rotary positions") {
  c_call x;
  x.c.outputs[1] = {};
  attune_operator const* const op = interop::operator_rotary();
  CHECK(std::strstr(op->description, "\"path\": \"angles\", \"columns\": \"any\", \"gradient\": false") != nullptr);
  attune_tensor absent{};
  x.c.tables = &absent;
  CHECK(x.refused(op) == "attune::call: angles has no tensor; expected an array of numbers");
  rotary_angles<float> const angles(rotary_frequencies::plain(4), 3);
  std::vector<float> numbers(angles.values().data(), angles.values().data() + 12), out(24);
  attune_tensor const table = dense(numbers, {1, 1, 3, 4});
  x.c.tables = &table;
  REQUIRE(op->forward(&x.c, nullptr, 0, x.error()) == attune_done);
  tensor<float const> const rows(x.x, c_call::rows);
  decode(cpu{1}, attention(kernel::rotary{angles}), {.q = rows, .k = rows, .v = rows},
         {.out = tensor(out, c_call::rows)});
  CHECK(x.out == out);
}

TEST_CASE("the C interface: wrong arguments") {
  attune_operator const* const op = interop::operator_softmax();
  c_call x;
  x.c.type = attune_bfloat16;
  CHECK(x.refused(op) == "attune::call: the element type has bfloat16; expected float32");
  x.c.type = attune_float32;
  x.fields[1].type = attune_float64;
  CHECK(x.refused(op) == "attune::call: the type of k has float64; expected float32");
  x.fields[1].type = 77;
  CHECK(x.refused(op) == "attune::call: the type of k has an unknown type; expected float32");
  x.fields[1].type = attune_float32;
  x.fields[1].data = static_cast<char*>(x.fields[1].data) + 1;
  CHECK(x.refused(op).find("attune::call: k has an address that is not aligned") == 0);
  x.fields[1].data = nullptr;
  CHECK(x.refused(op) == "attune::tensor: data has a null pointer; expected memory for the shape (1, 2, 3, 4)");
  x.fields[1].given = 0;
  CHECK(x.refused(op).find("attune::call: k has no tensor; expected (batch, key head, key, D)") == 0);
  x.fields[1] = x.fields[0];
  x.fields[1].extents[2] = -5;
  CHECK(x.refused(op).find("attune::tensor: shape has the value (1, 2, -5, 4)") == 0);
  x.fields[1] = x.fields[0];
  x.c.mask = x.mask.data();
  x.c.mask_count = 1;
  x.mask[0].kind = 50;
  CHECK(x.refused(op) == "attune::call: mask node 0 has the kind 50; expected one of attune_mask_kind");
  x.mask[0].kind = attune_mask_either;
  CHECK(x.refused(op).find("attune::mask::composed: node 0 has the indices 0 and 0") == 0);
  x.c.mask_count = 0;
  x.c.outputs[2] = x.c.outputs[1];
  CHECK(x.refused(op) == "attune::call: ground_weight has a tensor; expected none: this operator has no such output");
  attune_operator const* const sink = interop::operator_sink();
  for (char const* path : {"kernel.1.slope", "normalizer.logit"}) {  // in a sum of kernels, too
    CHECK(x.refused(sink) ==
          std::string("attune::call: ") + path + " has no value; expected a number or a tensor: it has no default");
    CHECK(std::strstr(sink->description, (std::string(path) + "\", \"domain\"").c_str()) != nullptr);
    x.parameters[path[0] == 'k' ? 1 : 2].how = 1;
  }
  CHECK(x.out == std::vector<float>(24));  // nothing was written
  x.c.outputs[2] = {};
  CHECK(op->forward(&x.c, x.x.data(), 3, x.error()) == attune_refused);  // memory for 3 saved numbers
  attune_text const none{nullptr, 0};
  x.c.type = 9;
  CHECK(op->forward(&x.c, nullptr, 0, none) == attune_refused);
}

}  // namespace
}  // namespace attune::test
