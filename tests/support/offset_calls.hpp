// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A call with an offset for each batch element, and the same as one call for each of them.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/operators/inputs.hpp>

#include "grid.hpp"

namespace attune::test {

/// Three batch elements. The offsets that are not given: fewer keys than positions, more, and a query before every key.
template <class T>
struct offset_calls {
  static constexpr index_t batch = 3, heads = 2, queries = 37, keys = 90, width = 5;
  std::vector<index_t> const offsets;
  std::vector<T> q, k, v, by_out;

  explicit offset_calls(std::vector<index_t> given = {53, 20, -4}) : offsets(std::move(given)) {
    auto const draw = [](index_t count, std::uint64_t seed) {
      std::vector<double> const x = grid_numbers(std::size_t(count), seed);
      return std::vector<T>(x.begin(), x.end());
    };
    q = draw(rows().size(), 1), by_out = draw(rows().size(), 2);
    k = draw(batch * heads * keys * width, 3), v = draw(batch * heads * keys * width, 4);
  }
  static shape rows(index_t of_batch = batch) { return {of_batch, heads, queries, width}; }

  /// Elements [b, b + n) of the batch.
  template <class E>
  static tensor<E> part(E* x, index_t b, index_t n, index_t positions) {
    return {x + b * heads * positions * width, {n, heads, positions, width}};
  }
  template <class Op, class View>
  inputs<Op, View> all() const {
    inputs<Op, View> in = of_part<Op, View>(0, batch);
    in.offsets = offsets;
    return in;
  }
  template <class Op, class View>
  inputs<Op, View> one(index_t b) const {
    inputs<Op, View> in = of_part<Op, View>(b, 1);
    in.offset = offsets[std::size_t(b)];
    return in;
  }

 private:
  template <class Op, class View>
  inputs<Op, View> of_part(index_t b, index_t n) const {
    return make_inputs<Op, View>([&]<field F>() {
      return F == field::q   ? part(q.data(), b, n, queries)
             : F == field::k ? part(k.data(), b, n, keys)
                             : part(v.data(), b, n, keys);
    });
  }
};

/// Compares run(inputs, output) for the whole batch with a call for each element: the bits.
template <class T, class View, class Op, class Run>
bool same_output(offset_calls<T> const& c, Op const&, Run const& run) {
  std::vector<T> together(c.q.size(), T(7)), apart(c.q.size(), T(8));
  run(c.template all<Op, View>(), tensor<T>(together.data(), c.rows()));
  for (index_t b = 0; b < c.batch; ++b) run(c.template one<Op, View>(b), c.part(apart.data(), b, 1, c.queries));
  return together == apart;
}

/// The same for the gradients by q, k and v; of tables and parameters, the sum over the batch to a tolerance.
template <class T, class View, class Exec, class Op>
void check_gradients_of_parts(Exec const& exec, offset_calls<T> const& c, Op const& op, double tolerance) {
  auto const g = vjp(exec, op, c.template all<Op, View>(), {.out = c.part(c.by_out.data(), 0, c.batch, c.queries)});
  std::vector<T> parts[3];  // empty where the operator has no such input
  std::vector<std::vector<double>> tables(g.tables.size());
  for (index_t b = 0; b < c.batch; ++b) {
    auto const one = vjp(exec, op, c.template one<Op, View>(b), {.out = c.part(c.by_out.data(), b, 1, c.queries)});
    int n = 0;
    for (field const f : {field::q, field::k, field::v})
      parts[n].insert(parts[n].end(), one.of(f).values.begin(), one.of(f).values.end()), ++n;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      tables[t].resize(one.tables[t].values.values.size());
      for (std::size_t e = 0; e < tables[t].size(); ++e) tables[t][e] += double(one.tables[t].values.values[e]);
    }
  }
  int n = 0;
  for (field const f : {field::q, field::k, field::v}) {
    CHECK(std::vector<T>(g.of(f).values.begin(), g.of(f).values.end()) == parts[n]);
    ++n;
  }
  for (std::size_t t = 0; t < tables.size(); ++t) CHECK(grid_error(g.tables[t].values.values, tables[t]) < tolerance);
}

/// A bias by the pair, in a table of 31 rows.
struct hashed_bias : grid_bias {
  static constexpr auto tables() { return std::array{listed("values", &grid_bias::values, table_width::one)}; }
  ATTUNE_HD index_t index(index_t i, index_t j) const { return ((3 * i + 5 * j) % 31 + 31) % 31; }
};

/// Everything that reads positions: a bias by distance, by the pair, and by the positions of kernel and mask.
template <class Mask = mask::causal>
auto positional(std::vector<double> const& by_distance, std::vector<double> const& by_pair, Mask m = {}) {
  hashed_bias pairs;
  pairs.values = tensor<double const>(by_pair.data(), {1, 1, 31, 1});
  return attention(kernel::dot_product{} +
                       kernel::relative_bias{tensor<double const>(by_distance.data(), {1, 2, 21, 1})} + pairs +
                       kernel::alibi{0.01},
                   normalizer::softmax{}, m);
}

}  // namespace attune::test
