// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Malformed golden files and what the message about each must contain (besides the name of the file).
#pragma once

#include <string>
#include <vector>

namespace attune::golden {

struct malformed_file {
  std::string text;
  std::string message;
};

/// A well-formed file of one case with the part `from` replaced.
inline std::string spoil(std::string const& from, std::string const& to) {
  std::string text =
      R"({"cases":[{"name":"one","operator":"softmax","params":{"normalizer":"softmax","score":"given"},)"
      R"("inputs":{"s":{"shape":[1,2],"data":[0,1]},"v":{"shape":[2,1],"data":[1,"-inf"]}},)"
      R"("expected":{"o":{"shape":[1,1],"data":[0.5]},"d_v":{"shape":[2,1],"data":[1,1]}},)"
      R"("grads":["d_v"],"grad_scale":{"d_v":1}}]})";
  return text.replace(text.find(from), from.size(), to);
}

inline std::vector<malformed_file> malformed_files() {
  return {
      {R"({"cases":[)", "not valid JSON"},
      {"", "not valid JSON"},
      {"[]", "expected an object with the field cases"},
      {R"({"set":"open"})", "field cases: missing"},
      {R"({"cases":[1]})", "case number 1: field cases: expected an object, found number"},
      {spoil(R"("name":"one",)", ""), "case number 1: field name: missing"},
      {spoil(R"("operator":"softmax")", R"("operator":3)"), "case one: field operator: expected string, found number"},
      {spoil(R"({"normalizer":"softmax","score":"given"})", "[]"),
       "case one: field params: expected object, found array"},
      {spoil(R"("shape":[1,2],)", ""), "case one: field inputs.s.shape: missing"},
      {spoil("[1,2]", "[1,-2]"), "case one: field inputs.s.shape: extent -2 is not a count"},
      {spoil("[1,2]", "[]"), "case one: field inputs.s.shape: is empty"},
      {spoil("[0,1]", "[0,1,2]"), "case one: field inputs.s.data: 3 entries, the shape asks for 2"},
      {spoil(R"("-inf")", R"("minus infinity")"),
       R"(case one: field inputs.v.data[1]: "minus infinity" is not a number)"},
      {spoil(R"("-inf")", "null"), "case one: field inputs.v.data[1]: null is not a number"},
      {spoil(R"("-inf")", "1e999"), "not valid JSON"},
      {spoil(R"({"shape":[1,1],"data":[0.5]})", "0.5"),
       "case one: field expected.o: expected a tensor {shape, data}, found number"},
      {spoil(R"("grads":["d_v"])", R"("grads":["d_v","d_s"])"),
       "case one: field expected.d_s: missing, but listed in grads"},
      {spoil(R"("grads":["d_v"])", R"("grads":[])"),
       "case one: field expected.d_v: a gradient that grads does not list"},
      {spoil(R"({"d_v":1})", "{}"), "case one: field grad_scale.d_v: missing"},
      {spoil(R"("d_v":{"shape":[2,1])", R"("d_v":{"shape":[1,2])"),
       "case one: field expected.d_v: not shaped like its input"},
      {spoil(R"("grad_scale":{"d_v":1}}])",
             R"("grad_scale":{"d_v":1}},{"name":"one","operator":"x","params":{},"inputs":{},)"
             R"("expected":{"o":{"shape":[1],"data":[1]}},"grads":[]}])"),
       "case one: field name: used before"},
  };
}

}  // namespace attune::golden
