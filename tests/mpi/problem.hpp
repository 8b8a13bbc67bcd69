// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A whole problem that every rank knows, and the part of this rank.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/mpi.hpp>

namespace attune::test {

/// A dense tensor with its own memory.
template <class T>
struct basic_array {
  shape extents{0, 0, 0, 0};
  std::vector<T> numbers;
  basic_array() = default;
  explicit basic_array(shape const& e) : extents(e), numbers(std::size_t(e.size()), T(0)) {}
  tensor<T> view() { return numbers.empty() ? tensor<T>(&nothing, extents, strides{}) : tensor<T>(numbers, extents); }
  tensor<T const> view() const {
    return numbers.empty() ? tensor<T const>(&nothing, extents, strides{}) : tensor<T const>(numbers, extents);
  }
  T operator()(index_t b, index_t h, index_t i, index_t d) const { return view()(b, h, i, d); }
  static inline T nothing = 0;
};
using array = basic_array<float>;
template <class T = float>
basic_array<T> random_array(shape const& e, unsigned seed) {
  basic_array<T> a(e);
  std::mt19937 bits(seed);
  std::normal_distribution<T> normal;
  for (T& x : a.numbers) x = normal(bits);
  return a;
}
/// The positions of a rank.
template <class T>
basic_array<T> part_of(basic_array<T> const& whole, sharding const& s, int rank) {
  shape e = whole.extents;
  e.position = s.size(rank);
  basic_array<T> part(e);
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) part.view()(b, h, i, d) = whole(b, h, s.global(rank, i), d);
  return part;
}
template <class T>
bool same_bits(basic_array<T> const& a, basic_array<T> const& b) {
  return a.extents == b.extents &&
         (a.numbers.empty() || std::memcmp(a.numbers.data(), b.numbers.data(), a.numbers.size() * sizeof(T)) == 0);
}
/// The largest difference, relative to the largest finite number of both, be it equal or not.
template <class T>
double difference(basic_array<T> const& a, basic_array<T> const& b) {
  REQUIRE(a.extents == b.extents);
  double worst = 0, largest = 1e-30;
  for (std::size_t n = 0; n < a.numbers.size(); ++n) {
    double const x = double(a.numbers[n]), y = double(b.numbers[n]);
    for (double const size : {std::abs(x), std::abs(y)})
      if (std::isfinite(size)) largest = std::max(largest, size);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return 1e30;
    worst = std::max(worst, std::abs(x - y));
  }
  return worst / largest;
}

/// All tensors of a whole problem with these extents.
template <class Op, class T = float>
struct whole_problem {
  problem_shape extents;
  std::array<basic_array<T>, field_count> fields;

  template <class Shapes>
  whole_problem(Shapes const& shapes, unsigned seed) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) fields[std::size_t(F)] = random_array<T>(shapes(F), seed + unsigned(F));
    });
  }
  static inputs<Op, tensor<T const>> views(std::array<basic_array<T>, field_count> const& fields,
                                           std::optional<index_t> offset = {}) {
    return make_inputs<Op, tensor<T const>>([&]<field F>() { return fields[std::size_t(F)].view(); }, offset);
  }
  /// The tensors of a rank.
  std::array<basic_array<T>, field_count> part(sharding const& queries, sharding const& keys, int rank) const {
    std::array<basic_array<T>, field_count> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        basic_array<T> const& x = fields[std::size_t(F)];
        bool const by_key = side_of(F) == input_side::key;
        to[std::size_t(F)] = !by_key && x.extents.position == 1 && queries.positions() != 1
                                 ? x
                                 : part_of(x, by_key ? keys : queries, rank);
      }
    });
    return to;
  }
};

/// The extents of a field in a problem with B 2, H 4, two key heads.
struct sizes {
  index_t queries, keys, width = 17, value_width = 13;
  shape operator()(field f) const {
    bool const value = f == field::v || f == field::value_gate;
    switch (side_of(f)) {
      case input_side::query:
        return {2, 4, queries, f == field::output_gate ? value_width : features(f)};
      case input_side::key:
        return {2, value ? 4 : 2, keys, value ? value_width : features(f)};
      case input_side::pair:
        return {1, 4, queries, keys};
      case input_side::ground:
        return {1, 4, 1, value_width};
    }
    return {};
  }

 private:
  index_t features(field f) const {
    if (f == field::q || f == field::k) return width;
    if (f == field::gate_q || f == field::gate_k) return 5;
    return f == field::sort_q || f == field::sort_k || f == field::key_bias ? 1 : 3;
  }
};

/// Shardings of a number of positions that tests try.
inline std::vector<sharding> several_shardings(index_t n, int ranks) {
  std::vector<sharding> all{sharding::contiguous(n, ranks), sharding::zigzag(n, ranks)};
  if (ranks == 1) return all;
  std::vector<std::vector<key_interval>> uneven(
      static_cast<std::size_t>(ranks));  // rank 0 has none, the last has two pieces
  uneven[std::size_t(ranks - 1)] = {{0, n / 5}, {n / 3, n}};
  uneven[1] = ranks > 2 ? std::vector<key_interval>{{n / 5, n / 3}} : uneven[1];
  if (ranks == 2) uneven[1] = {{0, n}};
  all.push_back(sharding::of(n, uneven));
  return all;
}

}  // namespace attune::test
