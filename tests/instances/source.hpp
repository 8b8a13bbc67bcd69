// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The data of a problem in memory, and what policies are made of: everything here is independent of the operator.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <attune/policies.hpp>

#include "registry.hpp"

namespace attune::instances {

/// The parameters and tables of a problem, as views. A recording source makes up each number that is asked for instead,
/// all
/// different: what a policy reads follows from what its maker asks for.
class parameter_source {
 public:
  explicit parameter_source(problem const& p) : problem_(&p) {}
  static parameter_source recording(problem& to) {
    parameter_source s(to);
    s.record_ = &to;
    return s;
  }
  /// The parameter if the problem has it, else `fallback`.
  parameter operator()(char const* name, parameter fallback = {}) const {
    array const* const a = find(name);
    if (a == nullptr) return fallback;
    return view(*a, name);
  }
  /// A parameter that is computed from pre-activations, if the problem has them.
  parameter activated(char const* name, activation f, parameter fallback) const {
    array const* const a = find(name);
    if (a == nullptr) return fallback;
    return projection{.x = view(*a, name), .weight = {}, .bias = {}, .activation = f};
  }
  /// A constant that is no parameter.
  double number(char const* name, double fallback) const {
    array const* const a = find(name);
    return a == nullptr ? fallback : a->data.at(0);
  }
  attune::table table(char const* name) const {
    if (record_ != nullptr) record(record_->tables, {1, 1, 1, 1}, name);
    auto const found = problem_->tables.find(name);
    if (found == problem_->tables.end()) return {};
    auto const& s = found->second.shape;
    if (s.size() != 4) throw std::invalid_argument(std::string("table ") + name + " needs 4 axes");
    return tensor<double const>(found->second.data, shape{s[0], s[1], s[2], s[3]});
  }

 private:
  array const* find(char const* name) const {
    if (record_ != nullptr) record(record_->parameters, {1, 1, 1}, name);
    auto const found = problem_->parameters.find(name);
    return found == problem_->parameters.end() ? nullptr : &found->second;
  }
  /// Numbers in (0, 1), where every parameter may be.
  static void record(std::map<std::string, array>& to, std::vector<index> shape, char const* name) {
    to.emplace(name, array{std::move(shape), {double(to.size() + 1) / 64}});
  }
  static tensor<double const> view(array const& a, char const* name) {
    if (a.shape.size() != 3)
      throw std::invalid_argument(std::string("parameter ") + name + " needs shape (batch, head, query)");
    return {a.data, shape{a.shape[0], a.shape[1], a.shape[2], 1}};
  }

  problem const* problem_;
  problem* record_ = nullptr;
};

namespace detail {

inline shape shape4(array const& a, char const* name) {
  if (a.shape.size() != 4) throw std::invalid_argument(std::string("tensor ") + name + " needs 4 axes");
  return {a.shape[0], a.shape[1], a.shape[2], a.shape[3]};
}

/// A tensor in memory of its own, dense or scattered with NaN between the elements.
template <class T>
struct storage {
  std::vector<T> memory;
  shape extents;
  strides steps;

  storage() = default;
  storage(shape const& s, bool odd, int salt) : extents(s) {
    if (!odd) {
      steps = strides::dense(s);
      memory.assign(std::size_t(std::max<index_t>(s.size(), 1)), T(0));
      return;
    }
    index_t const feature = salt % 3 == 2 ? 2 : 1;  // some tensors have gaps between features
    steps.feature = feature;
    steps.head = s.feature * feature + 3;
    steps.position = s.head * steps.head + 5;  // head and position change places
    steps.batch = s.position * steps.position + 7;
    memory.assign(std::size_t(std::max<index_t>(s.batch * steps.batch, 1)), std::numeric_limits<T>::quiet_NaN());
  }
  storage(array const& a, char const* name, bool odd, int salt) : storage(shape4(a, name), odd, salt) {
    if (index_t(a.data.size()) != extents.size())
      throw std::invalid_argument(std::string("tensor ") + name + ": data and shape disagree");
    std::size_t n = 0;
    for_each([&](index_t at) { memory[std::size_t(at)] = T(a.data[n++]); });
  }
  template <class Visit>
  void for_each(Visit const& visit) const {
    for (index_t b = 0; b < extents.batch; ++b)
      for (index_t h = 0; h < extents.head; ++h)
        for (index_t i = 0; i < extents.position; ++i)
          for (index_t d = 0; d < extents.feature; ++d)
            visit(b * steps.batch + h * steps.head + i * steps.position + d * steps.feature);
  }
  tensor<T const> view() const { return {memory.data(), extents, steps}; }
  tensor<T> view() { return {memory.data(), extents, steps}; }
  array dense() const {
    array a{{extents.batch, extents.head, extents.position, extents.feature}, {}};
    for_each([&](index_t at) { a.data.push_back(double(memory[std::size_t(at)])); });
    return a;
  }
};

/// All tensors of a problem in memory, and the inputs that view them.
template <class T>
struct loaded {
  std::map<std::string, storage<T>> tensors;
  loaded(problem const& p, bool odd) {
    int salt = 0;
    for (auto const& [name, a] : p.tensors) tensors.emplace(name, storage<T>(a, name.c_str(), odd, salt++));
  }
  tensor<T const> at(char const* name) const { return tensors.at(name).view(); }
};

inline mask::runtime mask_of(problem const& p) {
  if (p.visible.empty()) return {};
  if (p.visible_shape.size() != 4) throw std::invalid_argument("visible needs 4 axes");
  auto const& s = p.visible_shape;
  mask::runtime m;
  m.visible = p.visible.data();
  m.visible_shape = {s[0], s[1], s[2], s[3]};
  if (index_t(p.visible.size()) != m.visible_shape.size())
    throw std::invalid_argument("visible: data and shape disagree");
  return m;
}

inline void check_names(problem const& p, entry const& e) {
  auto const known = [](std::vector<std::string> const& names, std::string const& x) {
    return std::find(names.begin(), names.end(), x) != names.end();
  };
  for (auto const& name : e.tensors)
    if (p.tensors.find(name) == p.tensors.end())
      throw std::invalid_argument(e.name + ": tensor " + name + " is missing");
  for (auto const& t : p.tensors)
    if (!known(e.tensors, t.first)) throw std::invalid_argument(e.name + ": tensor " + t.first + " is superfluous");
  for (auto const& t : p.parameters)
    if (!known(e.parameters, t.first))
      throw std::invalid_argument(e.name + ": parameter " + t.first + " is superfluous");
  for (auto const& name : e.tables)
    if (p.tables.find(name) == p.tables.end()) throw std::invalid_argument(e.name + ": table " + name + " is missing");
  for (auto const& t : p.tables)
    if (!known(e.tables, t.first)) throw std::invalid_argument(e.name + ": table " + t.first + " is superfluous");
}

}  // namespace detail
}  // namespace attune::instances
