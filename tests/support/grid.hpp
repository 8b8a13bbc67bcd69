// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Attention on a two-dimensional grid of positions: a bias by (dy, dx), neighborhoods, and an independent loop.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: grid_bias]
/// The table of a bias by (dy, dx): (2 reach + 1)^2 rows. Positions are row-major on a grid with `columns` columns.
struct grid_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  index_t columns = 1, reach = 0;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &grid_bias::values, table_width::one)}; }

  ATTUNE_HD index_t index(index_t i, index_t j) const {
    index_t const dy = i / columns - j / columns + reach, dx = i % columns - j % columns + reach;
    return dy * (2 * reach + 1) + dx;
  }
  struct bound_score {
    template <class T>
    ATTUNE_HD T score(T const& x, key<T> const&) const {
      return x;
    }
  };
  template <class T>
  ATTUNE_HD bound_score bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

/// <q_i, r_n> with a row r_n of features for each pair: no executor has code for it but for its term.
struct by_pair_dot
    : contraction::sum_of<contraction::of_query<field::q>, contraction::by_pair<contraction::tables::values>> {
  template <class S>
  ATTUNE_HD static S term(S const& q, S const& r, S const&, S const&) {
    return q * r;
  }
};
struct contextual : grid_bias {
  using contraction = by_pair_dot;
  static constexpr auto tables() { return std::tuple{listed("values", &grid_bias::values, table_width::query)}; }
};

/// Neighborhood attention on a grid: the keys of a (2 radius + 1)^2 square around the query, moved into the grid at its
/// edges.
struct neighborhood {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  index_t rows = 1, columns = 1, radius = 0;

  ATTUNE_HD static constexpr index_t first(index_t at, index_t extent, index_t radius) {
    index_t const last = extent - (2 * radius + 1), x = at - radius;
    return x > last ? (last < 0 ? 0 : last) : x < 0 ? 0 : x;
  }
  ATTUNE_HD constexpr bool visible(mask_row const& r, index_t j) const {
    index_t const y = first(r.position / columns, rows, radius), x = first(r.position % columns, columns, radius);
    index_t const dy = j / columns - y, dx = j % columns - x;
    return 0 <= dy && dy <= 2 * radius && 0 <= dx && dx <= 2 * radius;
  }
};

// [snippet: bounds]
/// The same with the intervals that a row may see: 2 radius + 1 keys of each row of the grid.
struct bounded_neighborhood : neighborhood {
  static constexpr bool bounds_keys = true;
  ATTUNE_HD constexpr key_interval may_see(mask_row const& r, index_t from) const {
    index_t const y = first(r.position / columns, rows, radius), x = first(r.position % columns, columns, radius);
    index_t const width = x + 2 * radius < columns ? 2 * radius + 1 : columns - x;
    index_t line = from / columns;
    if (from >= line * columns + x + width) ++line;
    if (line < y) line = y;
    if (line > y + 2 * radius || line >= rows) return {};
    return {line * columns + x, line * columns + x + width};
  }
};
// [/snippet]

/// Numbers in [-1, 1], the same on every machine.
inline std::vector<double> grid_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<double> x(n);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (double& e : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    e = double(state >> 40) * 0x1p-23 - 1;
  }
  return x;
}

/// Tensors (batch, heads, positions, width), and a table for each head.
template <class T>
struct grid_problem {
  index_t batch, heads, positions, width, entries;
  std::vector<T> q, k, v, by_out, values;

  grid_problem(index_t b, index_t h, index_t n, index_t d, index_t r)
      : batch(b), heads(h), positions(n), width(d), entries(r) {
    auto const draw = [](index_t count, std::uint64_t seed) {
      std::vector<double> const x = grid_numbers(std::size_t(count), seed);
      return std::vector<T>(x.begin(), x.end());
    };
    q = draw(b * h * n * d, 1), k = draw(b * h * n * d, 2), v = draw(b * h * n * d, 3);
    by_out = draw(b * h * n * d, 4), values = draw(h * r, 5);
  }
  shape extents() const { return {batch, heads, positions, width}; }
  tensor<T const> of(std::vector<T> const& x) const { return {x.data(), extents()}; }
  attune::table table() const { return tensor<T const>(values.data(), {1, heads, entries, 1}); }
};

/// The result of the loop, in double.
struct grid_result {
  std::vector<double> out, q, k, v, values;
};

/// softmax(<q, k> / sqrt(D) + values[row(i, j)]) v over the keys that see(i, j) shows, and the gradients of
/// <by_out, out>: written without attune.
template <class T, class Row, class See>
grid_result grid_loop(grid_problem<T> const& p, Row const& row, See const& see) {
  std::size_t const d = std::size_t(p.width), n = std::size_t(p.positions);
  grid_result r;
  for (auto* x : {&r.out, &r.q, &r.k, &r.v}) x->assign(p.q.size(), 0.0);
  r.values.assign(p.values.size(), 0.0);
  double const scale = 1 / std::sqrt(double(p.width));
  for (std::size_t head = 0; head < std::size_t(p.batch * p.heads); ++head) {
    std::size_t const at = head * n * d, table = head % std::size_t(p.heads) * std::size_t(p.entries);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<std::size_t> keys;
      std::vector<double> weight, gain;
      double sum = 0, mean = 0;
      for (std::size_t j = 0; j < n; ++j) {
        if (!see(index_t(i), index_t(j))) continue;
        double dot = 0, by = 0;
        for (std::size_t c = 0; c < d; ++c) {
          dot += double(p.q[at + i * d + c]) * double(p.k[at + j * d + c]);
          by += double(p.by_out[at + i * d + c]) * double(p.v[at + j * d + c]);
        }
        double const w = std::exp(dot * scale + double(p.values[table + std::size_t(row(index_t(i), index_t(j)))]));
        keys.push_back(j), weight.push_back(w), gain.push_back(by);
        sum += w, mean += w * by;
      }
      for (std::size_t m = 0; m < keys.size(); ++m) {
        std::size_t const j = keys[m];
        double const w = weight[m] / sum, ds = w * (gain[m] - mean / sum);
        r.values[table + std::size_t(row(index_t(i), index_t(j)))] += ds;
        for (std::size_t c = 0; c < d; ++c) {
          r.out[at + i * d + c] += w * double(p.v[at + j * d + c]);
          r.v[at + j * d + c] += w * double(p.by_out[at + i * d + c]);
          r.q[at + i * d + c] += ds * scale * double(p.k[at + j * d + c]);
          r.k[at + j * d + c] += ds * scale * double(p.q[at + i * d + c]);
        }
      }
    }
  }
  return r;
}

/// The largest distance of two arrays; infinity if they have different sizes or a NaN.
template <class A, class B>
double grid_error(std::vector<A> const& x, std::vector<B> const& y) {
  double worst = x.size() == y.size() ? 0 : INFINITY;
  for (std::size_t n = 0; n < x.size() && n < y.size(); ++n) {
    double const e = std::fabs(double(x[n]) - double(y[n]));
    worst = e <= worst ? worst : std::isnan(e) ? INFINITY : e;
  }
  return worst;
}

/// The results of an executor: out, and the gradients of <by_out, out>.
template <class T, class Exec, class Op>
grid_result grid_results(Exec const& exec, Op const& op, grid_problem<T> const& p) {
  std::vector<T> out(p.q.size());
  forward(exec, op, {.q = p.of(p.q), .k = p.of(p.k), .v = p.of(p.v)}, {.out = tensor<T>(out.data(), p.extents())});
  auto const g = vjp(exec, op, {.q = p.of(p.q), .k = p.of(p.k), .v = p.of(p.v)}, {.out = p.of(p.by_out)});
  auto const doubles = [](std::vector<T> const& x) { return std::vector<double>(x.begin(), x.end()); };
  return {doubles(out), doubles(g.of(field::q).values), doubles(g.of(field::k).values), doubles(g.of(field::v).values),
          doubles(g.table("values").values)};
}

inline void check_grid(grid_result const& got, grid_result const& right, double tolerance) {
  CHECK(grid_error(got.out, right.out) < tolerance);
  CHECK(grid_error(got.q, right.q) < tolerance);
  CHECK(grid_error(got.k, right.k) < tolerance);
  CHECK(grid_error(got.v, right.v) < tolerance);
  CHECK(grid_error(got.values, right.values) < tolerance);
}

}  // namespace attune::test
