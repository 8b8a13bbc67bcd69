// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The verdict on what other libraries compute. The scripts of examples/libraries/ made the files of
// tests/verdict/libraries/. A library whose result is not attention as attune defines it gets FAIL with the name.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/io/safetensors.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/verdict.hpp>

namespace {

using namespace attune;
using testing::judgement;

/// The numbers of a tensor of a file.
struct stored_tensor {
  std::vector<float> values;
  shape extents;
  certify::storage stored;
  stored_tensor(io::safetensors_file& file, std::string const& name) {
    io::array const x = file.read(name);
    values = io::numbers<float>(x);
    extents = io::tensor_shape(x);
    stored = x.type == io::element_type::bfloat16  ? certify::storage::bf16
             : x.type == io::element_type::float16 ? certify::storage::fp16
                                                   : certify::storage::fp32;
  }
  tensor<float const> view() const { return tensor<float const>(values, extents); }
  std::vector<double> doubles() const { return {values.begin(), values.end()}; }
};

io::safetensors_file file_of(std::string const& name) {
  return io::safetensors_file(std::string(ATTUNE_LIBRARIES) + "/" + name + ".safetensors");
}

/// A tensor's name is case.details; the case has the inputs and the mask.
template <class Op>
testing::verdict_report judged(Op const& op, std::string const& test, stored_tensor const& out) {
  io::safetensors_file in = file_of("inputs");
  stored_tensor const q(in, test + ".q"), k(in, test + ".k"), v(in, test + ".v");
  std::vector<double> const numbers = out.doubles();
  return testing::verdict(op, {.q = q.view(), .k = k.view(), .v = v.view()},
                          testing::candidate(tensor<double const>(numbers, out.extents), out.stored));
}
bool causal(std::string const& test) { return test == "usual" || test == "late" || test == "no_keys"; }

std::string text_of(testing::verdict_report const& r) {
  std::ostringstream text;
  text << r;
  return text.str();
}

/// PASS, or FAIL with a first reason that contains these words.
void check(std::string const& name, testing::verdict_report const& r,
           std::map<std::string, std::string> const& wrong_ones) {
  INFO(name, "\n", text_of(r));
  auto const found = wrong_ones.find(name);
  if (found == wrong_ones.end()) {
    CHECK(r.decision == judgement::pass);
  } else {
    CHECK(r.decision == judgement::fail);
    CHECK(r.reasons.at(0).find(found->second) != std::string::npos);
  }
}

/// All forward results of a file. Returns how many.
int check_softmax(std::string const& library, std::map<std::string, std::string> const& wrong_ones) {
  io::safetensors_file file = file_of(library);
  int count = 0;
  for (std::string const& name : file.names()) {
    if (name.find(".d") != std::string::npos) continue;
    std::string const test = name.substr(0, name.find('.'));
    stored_tensor const out(file, name);
    check(name,
          causal(test) ? judged(softmax_attention(mask::causal{}), test, out) : judged(softmax_attention(), test, out),
          wrong_ones);
    ++count;
  }
  return count;
}
/// The gradients by q, k and v that a file has under a name.
void check_gradients(std::string const& library, std::string const& name,
                     std::map<std::string, std::string> const& wrong_ones) {
  io::safetensors_file in = file_of("inputs"), file = file_of(library);
  stored_tensor const q(in, "usual.q"), k(in, "usual.k"), v(in, "usual.v"), dout(in, "usual.dout");
  testing::gradient_candidate given;
  for (auto const& [of, letter] : {std::pair{field::q, "q"}, {field::k, "k"}, {field::v, "v"}}) {
    stored_tensor const x(file, name + ".d" + letter);
    std::vector<double> const numbers = x.doubles();
    given.with(of, tensor<double const>(numbers, x.extents), x.stored);
  }
  check(name + ".d",
        testing::gradient_verdict(softmax_attention(mask::causal{}), {.q = q.view(), .k = k.view(), .v = v.view()},
                                  {.out = dout.view()}, given),
        wrong_ones);
}

}  // namespace

TEST_SUITE("libraries") {
  TEST_CASE("PyTorch's scaled_dot_product_attention") {
    std::map<std::string, std::string> const wrong_ones{{"late.is_causal.fp32", "mask aligned top-left"}};
    CHECK(check_softmax("pytorch", wrong_ones) == 37);
    for (char const* form : {"fp32", "bf16", "fp16"})
      check_gradients("pytorch", std::string("usual.math.") + form, wrong_ones);
  }
  TEST_CASE("JAX's dot_product_attention") {
    std::string const mean = "rows without keys are the mean of all values";
    std::map<std::string, std::string> const wrong_ones{{"late.is_causal.fp32", "mask aligned top-left"},
                                                        {"no_keys.fp32", mean},
                                                        {"no_keys.bf16", mean},
                                                        {"no_keys.fp16", mean}};
    CHECK(check_softmax("jax", wrong_ones) == 19);
    for (char const* form : {"fp32", "bf16", "fp16"}) check_gradients("jax", std::string("usual.") + form, wrong_ones);
  }
  TEST_CASE("ONNX Runtime's Attention and MultiHeadAttention") {
    // Attention rounds fp16 logits to fp16. Equal logits, and two rows of 1,024 keys, do not show it.
    std::string const logits = "logits rounded to fp16";
    std::map<std::string, std::string> const wrong_ones{{"usual.attention.fp16", logits},
                                                        {"late.attention.fp16", logits},
                                                        {"no_keys.attention.fp16", logits},
                                                        {"peaked.attention.fp16", logits}};
    CHECK(check_softmax("onnxruntime", wrong_ones) == 14);
  }
  TEST_CASE("sparse weights of the package entmax") {
    io::safetensors_file file = file_of("entmax");
    int count = 0;
    for (std::string const& name : file.names()) {
      std::string const test = name.substr(0, name.find('.'));
      stored_tensor const out(file, name);
      bool const is15 = name.find("entmax15") != std::string::npos,
                 sparsemax = name.find("sparsemax") != std::string::npos;
      check(name,
            sparsemax ? judged(sparsemax_attention(), test, out)
            : is15    ? judged(entmax15_attention(), test, out)
                      : judged(entmax_attention(1.25), test, out),
            {});
      ++count;
    }
    CHECK(count == 9);
  }
}
