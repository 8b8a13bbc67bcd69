// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A small random problem as named blocks of numbers, any of which can be moved: what derivatives are checked against.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <attune/core/parameter.hpp>
#include <attune/core/table.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/policies/mask/runtime.hpp>

#include "support/random.hpp"

namespace attune::test {

/// What a block of numbers is to the operator, and so where its gradient is found.
enum class kind {
  input,   ///< named like the field
  number,  ///< a parameter as a view, named by its path, or by its name where several policies read it
  table,   ///< named by its path
  value,   ///< what a projection or an average comes to: no memory of its own, but a direction to move in
  x,       ///< sources of a projection: named by the path and ".x", ".weight", ".bias"
  weight,
  bias,
  stopped,  ///< moves the output, but no gradient passes to it
};

struct block {
  kind is = kind::input;
  shape extents;
  std::vector<double> values;

  tensor<double const> view() const { return {values, extents}; }
};

/// Whose gradient a block of sources belongs to: its name without the last part.
inline std::string owner_of(std::string const& name) { return name.substr(0, name.rfind('.')); }

using blocks = std::map<std::string, block>;

struct problem {
  index_t batch = 1, heads = 2, queries = 3, keys = 5, width = 3, value_width = 2;
  blocks numbers;
  std::vector<unsigned char> visible;  ///< (batch, head, query, key)
  block out, lse, ground_weight;       ///< cotangents

  block const& at(std::string const& name) const { return numbers.at(name); }
  parameter number(std::string const& name) const { return at(name).view(); }
  attune::table tensor_of(std::string const& name) const { return at(name).view(); }
  projection projected(std::string const& name, activation f = activation::identity) const {
    projection p{.x = at(name + ".x").view(), .weight = {}, .bias = {}, .activation = f};
    if (numbers.count(name + ".weight")) p.weight = at(name + ".weight").view();
    if (numbers.count(name + ".bias")) p.bias = at(name + ".bias").view();
    return p;
  }
  mask::runtime mask() const { return {.visible = visible.data(), .visible_shape = {batch, heads, queries, keys}}; }
  /// The block a parameter of this path reads; "" if it is a plain number of the operator.
  std::string block_of(std::string const& path) const {
    if (numbers.count(path)) return path;
    std::string const name = path.substr(path.rfind('.') + 1);
    return numbers.count(name) && at(name).is == kind::number ? name : std::string();
  }
};

/// Draws problems. Numbers are multiples of 2^-12, so that 2^-30 and a few more bits can be added to them exactly.
class problem_maker {
 public:
  explicit problem_maker(std::uint64_t seed, index_t batch = 1) : random_(seed) {
    p_.batch = batch;
    hide(0.25);
    cotangents();
  }

  problem_maker& add(kind is, std::string const& name, shape const& e, double low = -1.5, double high = 1.5) {
    block& b = p_.numbers[name];
    b = {is, e, {}};
    for (index_t n = 0; n < e.size(); ++n) b.values.push_back(draw(low, high));
    return *this;
  }
  problem_maker& number(std::string const& name, double low = -1.5, double high = 1.5) {
    return add(kind::number, name, {1, p_.heads, 1, 1}, low, high);
  }
  problem_maker& per_query(std::string const& name, double low = -1.5, double high = 1.5) {
    return add(kind::number, name, {p_.batch, p_.heads, p_.queries, 1}, low, high);
  }
  problem_maker& shared(std::string const& name, double low = -1.5, double high = 1.5) {
    return add(kind::number, name, {1, 1, 1, 1}, low, high);
  }
  problem_maker& table(std::string const& path, index_t rows, index_t columns, double low = -1, double high = 1) {
    return add(kind::table, path, {1, p_.heads, rows, columns}, low, high);
  }
  /// One number per (query, key), per query (heads = H) or per key (one key head: queries of both heads read it).
  problem_maker& pairs(std::string const& name, double low = -1.5, double high = 1.5) {
    return add(kind::input, name, {p_.batch, p_.heads, p_.queries, p_.keys}, low, high);
  }
  problem_maker& by_query(std::string const& name, index_t width, double low = -1.5, double high = 1.5) {
    return add(kind::input, name, {p_.batch, p_.heads, p_.queries, width}, low, high);
  }
  problem_maker& by_key(std::string const& name, index_t width, double low = -1.5, double high = 1.5) {
    return add(kind::input, name, {p_.batch, 1, p_.keys, width}, low, high);
  }
  problem_maker& projected(std::string const& path, index_t channels, double low = -1.5, double high = 1.5) {
    add(kind::value, path, {p_.batch, p_.heads, p_.queries, 1});
    add(kind::x, path + ".x", {p_.batch, 1, p_.queries, channels}, low, high);
    add(kind::weight, path + ".weight", {1, p_.heads, 1, channels}, low, high);
    return add(kind::bias, path + ".bias", {1, p_.heads, 1, 1}, low, high);
  }

  /// Hides keys at random; the first query of head 0 sees none, the last sees all.
  problem_maker& hide(double share) {
    p_.visible.assign(std::size_t(p_.batch * p_.heads * p_.queries * p_.keys), 1);
    for (unsigned char& v : p_.visible) v = random_.chance(share) ? 0 : 1;
    for (index_t j = 0; j < p_.keys; ++j) {
      see(0, 0, 0, j, false);
      see(0, 0, p_.queries - 1, j, true);
    }
    return *this;
  }
  /// Keys up to the query's position, offset -1: the first query sees none.
  problem_maker& causal() {
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t h = 0; h < p_.heads; ++h)
        for (index_t i = 0; i < p_.queries; ++i)
          for (index_t j = 0; j < p_.keys; ++j) see(b, h, i, j, j < 2 * i);
    return *this;
  }
  problem make() const { return p_; }
  problem const& so_far() const { return p_; }

 private:
  double draw(double low, double high) { return std::round(random_.uniform(low, high) * 0x1p12) * 0x1p-12; }
  void see(index_t b, index_t h, index_t i, index_t j, bool yes) {
    p_.visible[std::size_t(((b * p_.heads + h) * p_.queries + i) * p_.keys + j)] = yes;
  }
  void cotangents() {
    p_.out = cotangent(p_.value_width);
    p_.lse = cotangent(1);
    p_.ground_weight = cotangent(1);
  }
  block cotangent(index_t width) {
    block c{kind::input, {p_.batch, p_.heads, p_.queries, width}, {}};
    for (index_t n = 0; n < c.extents.size(); ++n) c.values.push_back(draw(-1.5, 1.5));
    return c;
  }

  rng random_;
  problem p_;
};

/// A direction: one number of {-1, -7/8, ..., 1} for each number of the problem, cotangents included.
struct direction {
  blocks numbers;
  block out, lse, ground_weight;
};
inline direction random_direction(problem const& p, std::uint64_t seed, bool move_cotangents) {
  rng random(seed);
  direction t;
  auto const drawn = [&](block const& like, bool moves) {
    block b{like.is, like.extents, {}};
    for (index_t n = 0; n < like.extents.size(); ++n)
      b.values.push_back(moves ? double(random.between(-8, 8)) / 8 : 0.0);
    return b;
  };
  for (auto const& [name, b] : p.numbers) t.numbers[name] = drawn(b, true);
  t.out = drawn(p.out, move_cotangents);
  t.lse = drawn(p.lse, move_cotangents);
  t.ground_weight = drawn(p.ground_weight, move_cotangents);
  return t;
}
/// The problem `steps` 2^-30 further along t: exact.
inline problem moved(problem p, direction const& t, double steps) {
  auto const move = [&](block& b, block const& along) {
    for (std::size_t n = 0; n < b.values.size(); ++n) b.values[n] += steps * 0x1p-30 * along.values[n];
  };
  for (auto& [name, b] : p.numbers) move(b, t.numbers.at(name));
  move(p.out, t.out);
  move(p.lse, t.lse);
  move(p.ground_weight, t.ground_weight);
  return p;
}

}  // namespace attune::test
