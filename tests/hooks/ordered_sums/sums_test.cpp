// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over later keys: stick-breaking attention against two loops, under every kind of mask; bits, NaN, empty rows.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/one_call.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;
constexpr double scale = 0.4;
auto stick_of(mask::runtime const& m) { return attention(stick_breaking{scale}, normalizer::exponential{}, m); }
using stick = decltype(stick_of({}));

/// A rule as a table, and as intervals where it has one interval per row.
struct masked {
  std::vector<unsigned char> table;
  std::vector<key_interval> hulls;
  index_t queries, keys;
  masked(index_t lq, index_t lk, std::function<bool(index_t, index_t)> const& sees) : queries(lq), keys(lk) {
    for (index_t i = 0; i < lq; ++i) {
      key_interval hull{lk, 0};
      for (index_t j = 0; j < lk; ++j) {
        table.push_back(sees(i, j));
        if (sees(i, j)) hull = {(std::min)(hull.first, j), j + 1};
      }
      hulls.push_back(hull);
    }
  }
  bool operator()(index_t i, index_t j) const { return table[std::size_t(i * keys + j)] != 0; }
  mask::runtime by_table() const {
    mask::runtime m;
    m.visible = table.data();
    m.visible_shape = {1, 1, queries, keys};
    return m;
  }
  mask::runtime by_intervals() const {
    mask::runtime m;
    m.hulls = hulls.data();
    m.hull_shape = {1, 1, queries, 1};
    return m;
  }
};

double worst(std::vector<double> const& x, double const* y, double size) {
  double error = 0;
  for (std::size_t n = 0; n < x.size(); ++n)
    error = std::isnan(y[n]) ? inf : std::fmax(error, std::fabs(x[n] - y[n]) / size);
  return error;
}
double largest(std::vector<double> const& x) {
  double size = 1e-3;
  for (double y : x) size = std::fmax(size, std::fabs(y));
  return size;
}

/// Two heads against the loops: CPU and reference.
void check(std::string const& name, index_t lq, index_t lk, std::function<bool(index_t, index_t)> const& sees,
           bool intervals) {
  one_call const call{.heads = 2, .queries = lq, .keys = lk, .width = 5, .value_width = 3};
  masked const m(lq, lk, sees);
  shape const rows{1, 2, lq, 3};
  INFO(name);
  for (mask::runtime const& mask : {m.by_table(), intervals ? m.by_intervals() : m.by_table()}) {
    auto const op = stick_of(mask);
    std::vector<double> out(std::size_t(rows.size()));
    auto const saved = forward_and_save(cpu<double>{2}, op, call.of<view>(op), {.out = tensor<double>(out, rows)});
    auto const g = vjp(cpu<double>{2}, op, call.of<view>(op), saved, {.out = view(call.by_out, rows)});
    auto const exact = forward(reference<double>{}, op, call.of<any_tensor>(op));
    auto const exact_g = vjp(reference<double>{}, op, call.of<any_tensor>(op), {.out = call.cotangent()});
    double d_scale = 0;
    for (index_t h = 0; h < 2; ++h) {
      two_loops loops{lq,
                      lk,
                      5,
                      3,
                      scale,
                      &call.q[std::size_t(h * lq * 5)],
                      &call.k[std::size_t(h * lk * 5)],
                      &call.v[std::size_t(h * lk * 3)],
                      &call.by_out[std::size_t(h * lq * 3)],
                      {},
                      {},
                      {},
                      {},
                      {}};
      loops([&](index_t i, index_t j) { return m(i, j); });
      CHECK(worst(loops.out, &out[std::size_t(h * lq * 3)], 1) < 1e-13);
      for (index_t i = 0; i < lq; ++i) {
        double sum = 0;
        for (index_t j = 0; j < lk; ++j) sum += exact.at(0, h).weights(i, j);
        CHECK(sum <= 1 + 1e-14);
        CHECK(std::fabs(sum + loops.rest[std::size_t(i)] - 1) < 1e-13);
        for (index_t d = 0; d < 3; ++d)
          CHECK(std::fabs(exact.at(0, h).out(i, d) - loops.out[std::size_t(i * 3 + d)]) < 1e-13);
      }
      for (auto const* from : {&g, &exact_g}) {
        CHECK(worst(loops.dq, &from->of(field::q).values[std::size_t(h * lq * 5)], largest(loops.dq)) < 1e-13);
        CHECK(worst(loops.dk, &from->of(field::k).values[std::size_t(h * lk * 5)], largest(loops.dk)) < 1e-13);
        CHECK(worst(loops.dv, &from->of(field::v).values[std::size_t(h * lk * 3)], largest(loops.dv)) < 1e-13);
      }
      d_scale += loops.d_scale;
    }
    CHECK(g.parameter("scale")(0, 0, 0, 0) == doctest::Approx(d_scale).epsilon(1e-11));
    CHECK(exact_g.parameter("scale")(0, 0, 0, 0) == doctest::Approx(d_scale).epsilon(1e-11));
  }
}

TEST_CASE("ordered sums: stick-breaking equals two loops under every mask") {
  check("causal", 70, 150, [](index_t i, index_t j) { return j <= i + 80; }, true);
  check("all keys", 3, 130, [](index_t, index_t) { return true; }, true);
  check("sliding window", 140, 140, [](index_t i, index_t j) { return j <= i && j > i - 20; }, true);
  check("documents", 90, 90, [](index_t i, index_t j) { return i / 37 == j / 37; }, true);
  check("documents that return", 66, 66, [](index_t i, index_t j) { return i / 11 % 2 == j / 11 % 2; }, false);
  check("random", 40, 200, [](index_t i, index_t j) { return (i * 7919 + j * 104729 + i * j) % 97 < 40; }, false);
  check("no key for some queries", 40, 20, [](index_t i, index_t j) { return j + 20 <= i; }, true);
  check("one key", 5, 1, [](index_t, index_t) { return true; }, true);
}

struct run {
  std::vector<double> out, dq, dk, dv;
  friend bool operator==(run const&, run const&) = default;
};
run run_of(one_call const& call, mask::runtime const& m, int threads) {
  auto const op = stick_of(m);
  shape const rows{1, call.heads, call.queries, call.value_width};
  run r{std::vector<double>(std::size_t(rows.size())), {}, {}, {}};
  auto const saved =
      forward_and_save(cpu<double>{threads}, op, call.of<view>(op), {.out = tensor<double>(r.out, rows)});
  auto const g = vjp(cpu<double>{threads}, op, call.of<view>(op), saved, {.out = view(call.by_out, rows)});
  r.dq = g.of(field::q).values;
  r.dk = g.of(field::k).values;
  r.dv = g.of(field::v).values;
  return r;
}

TEST_CASE("ordered sums: bits depend neither on threads nor on the other heads of a call") {
  masked const m(150, 150, [](index_t i, index_t j) { return j <= i; });
  one_call const one{.heads = 1, .queries = 150, .keys = 150, .width = 4, .value_width = 2};
  one_call many{.heads = 40, .queries = 150, .keys = 150, .width = 4, .value_width = 2};
  for (auto const& [from, to] : {std::pair{&one.q, &many.q}, {&one.k, &many.k}, {&one.v, &many.v}})
    std::copy(from->begin(), from->end(), to->begin() + 39 * std::ptrdiff_t(from->size()));
  run const alone = run_of(one, m.by_intervals(), 1), together = run_of(many, m.by_intervals(), 1);
  CHECK(alone == run_of(one, m.by_intervals(), 3));
  CHECK(together == run_of(many, m.by_intervals(), 2));
  CHECK(std::equal(alone.out.begin(), alone.out.end(), together.out.end() - std::ptrdiff_t(alone.out.size())));
}

TEST_CASE("ordered sums: a key that a row does not see never reaches it") {
  masked const m(100, 100, [](index_t i, index_t j) { return j <= i; });
  one_call call{.heads = 1, .queries = 100, .keys = 100, .width = 4, .value_width = 2};
  run const before = run_of(call, m.by_intervals(), 1);
  for (index_t d = 0; d < 4; ++d) call.k[std::size_t(70 * 4 + d)] = nan;
  for (mask::runtime const& mask : {m.by_intervals(), m.by_table()}) {
    run const after = run_of(call, mask, 1);
    for (std::size_t i = 0; i < 100; ++i)
      for (std::size_t d = 0; d < 2; ++d) {
        CHECK(std::isnan(after.out[i * 2 + d]) == (i >= 70));
        if (i < 70) CHECK(after.out[i * 2 + d] == before.out[i * 2 + d]);
        if (i < 70) CHECK(after.dq[i * 4 + d] == before.dq[i * 4 + d]);
        if (i >= 70) CHECK(std::isnan(after.dq[i * 4 + d]));
        CHECK(std::isnan(after.dk[i * 4 + d]));  // every key has a row that sees key 70
      }
  }
}

}  // namespace
}  // namespace attune::test
