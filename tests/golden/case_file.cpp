// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "case_file.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

namespace attune::golden {
namespace {

using nlohmann::json;

/// The place in a file that is being read, for messages.
struct place {
  std::string file;
  std::string name;  ///< of the case, or "case number 7" as long as the name is unknown

  [[noreturn]] void fail(std::string const& field, std::string const& what) const {
    throw bad_file(file + (name.empty() ? "" : ": case " + name) + ": field " + field + ": " + what);
  }

  json const& get(json const& object, std::string const& path, std::string const& key, json::value_t type) const {
    auto const field = path.empty() ? key : path + "." + key;
    if (!object.contains(key)) fail(field, "missing");
    json const& value = object.at(key);
    if (value.type() != type)
      fail(field, std::string("expected ") + json(type).type_name() + ", found " + value.type_name());
    return value;
  }
};

tensor read_tensor(place const& at, std::string const& field, json const& value) {
  if (!value.is_object()) at.fail(field, std::string("expected a tensor {shape, data}, found ") + value.type_name());
  tensor result;
  std::size_t size = 1;
  for (json const& extent : at.get(value, field, "shape", json::value_t::array)) {
    if (!extent.is_number_unsigned()) at.fail(field + ".shape", "extent " + extent.dump() + " is not a count");
    result.shape.push_back(extent.get<index>());
    size *= extent.get<std::size_t>();
  }
  if (result.shape.empty()) at.fail(field + ".shape", "is empty");
  json const& data = at.get(value, field, "data", json::value_t::array);
  if (data.size() != size)
    at.fail(field + ".data", std::to_string(data.size()) + " entries, the shape asks for " + std::to_string(size));
  for (json const& entry : data) {
    auto const x = number(entry);
    if (!x)
      at.fail(field + ".data[" + std::to_string(result.data.size()) + "]",
              entry.dump() + " is not a number, inf, -inf or nan");
    result.data.push_back(*x);
  }
  return result;
}

std::map<std::string, tensor> read_tensors(place const& at, json const& object, std::string const& field) {
  std::map<std::string, tensor> result;
  for (auto const& [key, value] : at.get(object, "", field, json::value_t::object).items())
    result.emplace(key, read_tensor(at, field + "." + key, value));
  return result;
}

/// Gradients are listed, expected, shaped like their input, and have a scale; and none is expected unlisted.
void read_gradients(place const& at, json const& object, golden_case& c) {
  for (json const& entry : at.get(object, "", "grads", json::value_t::array)) {
    if (!entry.is_string() || entry.get<std::string>().rfind("d_", 0) != 0)
      at.fail("grads", entry.dump() + " is not a name d_<input>");
    c.grads.push_back(entry.get<std::string>());
  }
  for (auto const& gradient : c.grads) {
    auto const expected = c.expected.find(gradient);
    if (expected == c.expected.end()) at.fail("expected." + gradient, "missing, but listed in grads");
    auto const input = c.inputs.find(gradient.substr(2));
    if (input == c.inputs.end())
      at.fail("inputs." + gradient.substr(2), "missing, but " + gradient + " is listed in grads");
    if (input->second.shape != expected->second.shape) at.fail("expected." + gradient, "not shaped like its input");
    auto const scale = number(at.get(object, "", "grad_scale", json::value_t::object).value(gradient, json()));
    if (!scale || !(*scale >= 0)) at.fail("grad_scale." + gradient, "missing or not a number >= 0");
    c.grad_scale.emplace(gradient, *scale);
  }
  for (auto const& [key, value] : c.expected)
    if (key.rfind("d_", 0) == 0 && c.inputs.count(key.substr(2)) > 0 && !is_gradient(c, key))
      at.fail("expected." + key, "a gradient that grads does not list");
}

golden_case read_case(place at, json const& object) {
  if (!object.is_object()) at.fail("cases", std::string("expected an object, found ") + object.type_name());
  golden_case c;
  c.file = at.file;
  c.name = at.get(object, "", "name", json::value_t::string).get<std::string>();
  at.name = c.name;
  c.operation = at.get(object, "", "operator", json::value_t::string).get<std::string>();
  c.params = at.get(object, "", "params", json::value_t::object);
  c.inputs = read_tensors(at, object, "inputs");
  c.expected = read_tensors(at, object, "expected");
  if (c.expected.empty()) at.fail("expected", "is empty");
  read_gradients(at, object, c);
  return c;
}

}  // namespace

std::vector<golden_case> load_file(std::filesystem::path const& path) {
  place at{path.string(), ""};
  std::ifstream stream(path);
  if (!stream) throw bad_file(at.file + ": cannot be opened");
  json root;
  try {
    root = json::parse(stream);
  } catch (json::exception const& error) {
    throw bad_file(at.file + ": not valid JSON: " + error.what());
  }
  if (!root.is_object()) throw bad_file(at.file + ": expected an object with the field cases");
  std::vector<golden_case> cases;
  for (json const& object : at.get(root, "", "cases", json::value_t::array)) {
    at.name = "number " + std::to_string(cases.size() + 1);
    cases.push_back(read_case(at, object));
  }
  return cases;
}

std::vector<golden_case> load(std::filesystem::path const& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (auto const& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    if (files.empty()) throw bad_file(path.string() + ": no *.json file in this directory");
  } else {
    files.push_back(path);
  }
  std::vector<golden_case> cases;
  std::set<std::string> names;
  for (auto const& file : files)
    for (auto& c : load_file(file)) {
      if (!names.insert(c.name).second) throw bad_file(c.file + ": case " + c.name + ": field name: used before");
      cases.push_back(std::move(c));
    }
  return cases;
}

bool is_convention(golden_case const& c) { return std::filesystem::path(c.file).filename() == "edge.json"; }

bool is_cache_rule(golden_case const& c) { return std::filesystem::path(c.file).filename() == "sorted.json"; }

bool is_gradient(golden_case const& c, std::string_view tensor_name) {
  return std::find(c.grads.begin(), c.grads.end(), tensor_name) != c.grads.end();
}

std::optional<double> number(json const& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<double> numeric_param(golden_case const& c, std::string const& key) {
  if (!c.params.contains(key)) return std::nullopt;
  auto const value = number(c.params.at(key));
  if (!value) place{c.file, c.name}.fail("params." + key, c.params.at(key).dump() + " is not a number");
  return value;
}

std::optional<std::string> text_param(golden_case const& c, std::string const& key) {
  if (!c.params.contains(key)) return std::nullopt;
  if (!c.params.at(key).is_string())
    place{c.file, c.name}.fail("params." + key, c.params.at(key).dump() + " is not a string");
  return c.params.at(key).get<std::string>();
}

}  // namespace attune::golden
