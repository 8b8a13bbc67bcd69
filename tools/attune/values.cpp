// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "values.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <set>

#include <attune/core/parameter.hpp>

#include "files.hpp"

namespace attune::tool {
namespace {

std::vector<std::string> split(std::string const& list) {
  std::vector<std::string> parts(1);
  for (char c : list)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// The whole text as a number; false if it is none, or NaN.
bool is_number(std::string const& text, double& x) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  char* end = nullptr;
  x = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && x == x;
}

/// (H), (H, Lq), (B, H, Lq).
numbers parameter_file(std::string const& argument, std::string const& value, std::string const& own_name) {
  io::array const x = read_array(argument, value, own_name, std::nullopt);
  shape e = naming(argument, [&] { return io::row_shape(x); });
  if (x.extents.size() == 1) e = {1, e.position, 1, 1};
  return {e, naming(argument, [&] { return io::numbers<double>(x); }), {}};
}

/// "0.5", or "0.5,-1" with one for each head.
numbers numbers_in_words(std::string const& argument, std::string const& value, std::string const& expected) {
  numbers n;
  for (auto const& part : split(value)) {
    double x = 0;
    if (!is_number(part, x))
      throw usage_error(argument, value, expected + ", a list with one for each head, or a file");
    n.doubles.push_back(x);
  }
  n.extents = {1, index_t(n.doubles.size()), 1, 1};
  return n;
}
numbers parameter_value(std::string const& argument, std::string const& value, parameter_entry const& p) {
  if (parse_file(value)) return parameter_file(argument, value, p.name);
  return numbers_in_words(argument, value, p.expected);
}

numbers table_value(std::string const& argument, std::string const& value, table_entry const& t) {
  if (!parse_file(value)) throw usage_error(argument, value, "a file with a table");
  io::array x = read_array(argument, value, t.name, std::nullopt);
  if (x.extents.size() == 1 && t.width == table_width::one) x.extents.push_back(1);  // a bias per row
  return naming(argument, [&] { return numbers{io::tensor_shape(x), io::numbers<double>(x), {}}; });
}

std::string names_of(preset const& p) {
  std::string all;
  auto const add = [&](std::string const& name) { all += (all.empty() ? "" : ", ") + name; };
  for (auto const& e : p.parameters) add(e.name);
  for (auto const& e : p.tables) add(e.name);
  for (auto const& e : p.constants) add(e.name);
  for (auto const& name : p.arrays) add(name);
  return all.empty() ? "none: " + p.name + " has no parameters" : "one of " + all;
}

template <class Entries>
auto find_entry(Entries const& entries, std::string const& name) {
  return std::find_if(entries.begin(), entries.end(), [&](auto const& e) { return e.name == name; });
}

/// Sets one; says what it has set.
std::string set_one(preset const& of, std::string const& assignment, problem& to) {
  auto const equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) throw usage_error("--parameter", assignment, "NAME=VALUE");
  std::string const name = assignment.substr(0, equals), value = assignment.substr(equals + 1),
                    argument = "--parameter " + name;
  if (auto const p = find_entry(of.parameters, name); p != of.parameters.end()) {
    numbers const x = parameter_value(argument, value, *p);
    for (auto const& path : p->paths) to.parameters[path] = x;
    return name;
  }
  for (auto const& p : of.parameters)  // a path: of one policy's parameter alone
    if (std::find(p.paths.begin(), p.paths.end(), name) != p.paths.end()) {
      to.parameters[name] = parameter_value(argument, value, p);
      return p.paths.size() == 1 ? p.name : name;
    }
  if (auto const t = find_entry(of.tables, name); t != of.tables.end()) {
    to.tables[t->path] = table_value(argument, value, *t);
    return name;
  }
  if (std::find(of.arrays.begin(), of.arrays.end(), name) != of.arrays.end()) {
    if (!parse_file(value)) throw usage_error(argument, value, "a file with an array, (rows, width)");
    io::array const x = read_array(argument, value, name, std::nullopt);
    to.arrays[name] = naming(argument, [&] { return numbers{io::tensor_shape(x), io::numbers<double>(x), {}}; });
    return name;
  }
  if (auto const c = find_entry(of.constants, name); c != of.constants.end()) {
    index_t const x = integer(argument, value);
    if (x < 0 || x > 1000000000) throw usage_error(argument, value, "a number in [0, 1000000000]");
    to.constants[name] = long(x);
    return name;
  }
  throw usage_error("--parameter", name, names_of(of));
}

}  // namespace

index_t integer(std::string const& argument, std::string const& value) {
  index_t x = 0;
  auto const [end, problem] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (problem != std::errc{} || end != value.data() + value.size())
    throw usage_error(argument, value, "a whole number");
  return x;
}

std::vector<index_t> integer_list(std::string const& argument, std::string const& value, std::string const& own_name) {
  if (parse_file(value)) {
    io::array const x = read_array(argument, value, own_name, std::nullopt);
    if (x.extents.size() > 1)
      throw usage_error(argument + ": shape " + io::to_string(x.extents) + "; expected one axis");
    return naming(argument, [&] { return io::integers(x); });
  }
  std::vector<index_t> all;
  for (auto const& part : split(value)) all.push_back(integer(argument, part));
  return all;
}

numbers number_list(std::string const& argument, std::string const& value, std::string const& own_name) {
  if (!parse_file(value)) return numbers_in_words(argument, value, "a number");
  io::array const x = read_array(argument, value, own_name, std::nullopt);
  shape e = naming(argument, [&] { return io::tensor_shape(x); });
  if (x.extents.size() == 1) e = {1, e.feature, 1, 1};
  return {e, naming(argument, [&] { return io::numbers<double>(x); }), {}};
}

void set_parameters(preset const& of, std::vector<std::string> const& assignments, problem& to) {
  std::set<std::string> done;
  for (auto const& a : assignments)
    if (std::string const name = set_one(of, a, to); !done.insert(name).second)
      throw usage_error("--parameter", a, "each parameter once");
  for (auto const& p : of.parameters)
    for (auto const& path : p.paths)
      if (p.fallback.empty() && to.parameters.count(path) == 0)
        throw usage_error("--parameter " + p.name + " is missing: " + of.name + " needs " + p.name + "=VALUE, " +
                          p.expected);
  for (auto const& t : of.tables)
    if (to.tables.count(t.path) == 0)
      throw usage_error("--parameter " + t.name + " is missing: " + of.name + " needs " + t.name + "=FILE, a table");
  for (auto const& name : of.arrays)
    if (to.arrays.count(name) == 0)
      throw usage_error("--parameter " + name + " is missing: " + of.name + " needs " + name + "=FILE, an array");
}

}  // namespace attune::tool
