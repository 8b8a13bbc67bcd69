// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// gate::dropout drops the same keys, however a call is split; values are rows of the identity, so that the output shows
// the weight of every key.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cpu/decode.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t batch = 2, heads = 2, queries = 37, keys = 150, width = 4;
constexpr shape rows{batch, heads, queries, keys};

struct problem {
  std::vector<float> q, k, v = std::vector<float>(std::size_t(batch * heads * keys * keys), 0.f);
  problem() {
    testing::detail::normal_numbers random{3};
    for (index_t n = 0; n < batch * heads * queries * width; ++n) q.push_back(float(random()));
    for (index_t n = 0; n < batch * heads * keys * width; ++n) k.push_back(float(random()));
    for (index_t n = 0; n < batch * heads * keys; ++n) v[std::size_t(n * keys + n % keys)] = 1;
  }
  tensor<float const> Q() const { return {q, {batch, heads, queries, width}}; }
  tensor<float const> K() const { return {k, {batch, heads, keys, width}}; }
  tensor<float const> V() const { return {v, {batch, heads, keys, keys}}; }
};

auto dropping(double rate, std::uint64_t seed = 5) {
  return attention(kernel::dot_product{}, gate::dropout{.rate = rate, .seed = seed}, mask::causal{});
}
using dropping_operator = decltype(dropping(0));

std::vector<float> weights(dropping_operator const& op, problem const& p, int threads = 1) {
  std::vector<float> out(std::size_t(rows.size()));
  forward(cpu<float>{threads}, op, {.q = p.Q(), .k = p.K(), .v = p.V()}, {.out = tensor<float>(out, rows)});
  return out;
}
/// Which keys have weight 0.
std::vector<bool> dropped(std::vector<float> const& w) {
  std::vector<bool> is;
  for (float const x : w) is.push_back(x == 0);
  return is;
}
/// Visible pairs, with their places in the output.
template <class Visit>
void for_each_pair(Visit const& visit) {
  std::size_t n = 0;
  for (index_t b = 0; b < batch; ++b)
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < queries; ++i)
        for (index_t j = 0; j < keys; ++j, ++n)
          if (j <= i + keys - queries) visit(b, h, i, j, n);
}

TEST_CASE("dropout: the factor is 0 below the rate, else 1 / (1 - rate); the lse does not change") {
  problem const p;
  double const rate = 0.3;
  std::vector<float> plain(std::size_t(rows.size())), lse(std::size_t(batch * heads * queries)), kept(lse.size());
  auto const op = attention(kernel::dot_product{}, mask::causal{});
  shape const numbers{batch, heads, queries, 1};
  forward(cpu<float>{1}, op, {.q = p.Q(), .k = p.K(), .v = p.V()},
          {.out = tensor<float>(plain, rows), .lse = natural_lse(tensor<float>(lse, numbers))});
  std::vector<float> w(plain.size());
  forward(cpu<float>{1}, dropping(rate), {.q = p.Q(), .k = p.K(), .v = p.V()},
          {.out = tensor<float>(w, rows), .lse = natural_lse(tensor<float>(kept, numbers))});
  CHECK(lse == kept);
  int wrong = 0;
  for_each_pair([&](index_t b, index_t h, index_t i, index_t j, std::size_t n) {
    bool const out = double(detail::pair_number(5, b, h, i + keys - queries, j)) < rate;
    wrong += out ? w[n] != 0 : !near(double(w[n]), double(plain[n]) / (1 - rate), 1e-6);
  });
  CHECK(wrong == 0);
  CHECK(weights(dropping(0), p) == plain);  // the same bits
}

TEST_CASE("dropout: the same keys for any threads, splits, decode, pages and the reference") {
  problem const p;
  auto const op = dropping(0.4);
  auto const w = weights(op, p);
  auto const mask = dropped(w);
  CHECK(weights(op, p, 2) == w);
  CHECK(weights(op, p, 3) == w);

  inputs<dropping_operator, tensor<float const>> const in{.q = p.Q(), .k = p.K(), .v = p.V()};
  cpu<float> const exec{1};
  auto whole = accumulate(exec, op, in, {0, 50});
  whole = merge(whole, accumulate(exec, op, in, {50, 51}));
  whole = merge(whole, accumulate(exec, op, in, {51, keys}));
  std::vector<float> out(w.size());
  finish(exec, op, in, whole, {.out = tensor<float>(out, rows)});
  CHECK(dropped(out) == mask);

  decode(exec, op, in, {.out = tensor<float>(out, rows)});
  CHECK(dropped(out) == mask);

  index_t const size = 10, pages = keys / size;  // a page is (page, head, key, feature)
  std::vector<float> k(p.k.size()), v(p.v.size());
  std::vector<std::int32_t> numbers(std::size_t(batch * pages));
  for (index_t b = 0; b < batch; ++b)
    for (index_t n = 0; n < pages; ++n) {
      index_t const page = (b * pages + n) * 7 % (batch * pages);
      numbers[std::size_t(b * pages + n)] = std::int32_t(page);
      for (index_t h = 0; h < heads; ++h)
        for (index_t j = 0; j < size; ++j) {
          std::size_t const from = std::size_t((b * heads + h) * keys + n * size + j),
                            to = std::size_t((page * heads + h) * size + j);
          std::copy_n(p.k.begin() + index_t(from) * width, width, k.begin() + index_t(to) * width);
          std::copy_n(p.v.begin() + index_t(from) * keys, keys, v.begin() + index_t(to) * keys);
        }
    }
  inputs<dropping_operator, tensor<float const>> const paged{
      .q = p.Q(),
      .k = tensor<float const>(k, {batch * pages, heads, size, width}),
      .v = tensor<float const>(v, {batch * pages, heads, size, keys})};
  decode(exec, op, paged, page_table(numbers, batch), {.out = tensor<float>(out, rows)});
  CHECK(dropped(out) == mask);

  auto const exact = forward(reference<double>{}, op, {.q = p.Q(), .k = p.K(), .v = p.V()});
  int different = 0;
  for_each_pair([&](index_t b, index_t h, index_t i, index_t j, std::size_t n) {
    different += (exact.at(b, h).out(i, j) == 0) != mask[n];
    different += exact.at(b, h).weights(i, j) == 0;  // the weight before the gate
  });
  CHECK(different == 0);
}

TEST_CASE("dropout: batches, heads and seeds differ") {
  problem const p;
  auto const mask = dropped(weights(dropping(0.5), p)), other = dropped(weights(dropping(0.5, 6), p));
  index_t const head = queries * keys;
  int by_head = 0, by_batch = 0, by_seed = 0, pairs = 0;
  for_each_pair([&](index_t b, index_t h, index_t, index_t, std::size_t n) {
    ++pairs;
    by_seed += mask[n] != other[n];
    if (h == 0) by_head += mask[n] != mask[n + std::size_t(head)];
    if (b == 0) by_batch += mask[n] != mask[n + std::size_t(heads * head)];
  });
  double const deviation = std::sqrt(pairs / 4.);
  CHECK(std::fabs(by_seed - pairs / 2.) < 5 * deviation);
  CHECK(std::fabs(by_head - pairs / 4.) < 5 * deviation);
  CHECK(std::fabs(by_batch - pairs / 4.) < 5 * deviation);
}

TEST_CASE("dropout: a dropped key does not hide a value that is not finite") {
  problem p;
  auto const op = dropping(0.5);
  auto const mask = dropped(weights(op, p));
  p.v[0] = std::numeric_limits<float>::infinity();  // key 0 of head 0
  auto const w = weights(op, p);
  auto const exact = forward(reference<double>{}, op, {.q = p.Q(), .k = p.K(), .v = p.V()});
  std::vector<float> decoded(w.size());
  decode(cpu<float>{1}, op, {.q = p.Q(), .k = p.K(), .v = p.V()}, {.out = tensor<float>(decoded, rows)});
  for (index_t i = 0; i < queries; ++i) {
    auto const n = std::size_t(i * keys);
    CHECK(std::isnan(w[n]) == mask[n]);
    CHECK(std::isnan(decoded[n]) == mask[n]);
    CHECK(std::isnan(exact.at(0, 0).out(i, 0)) == mask[n]);
  }
}

TEST_CASE("dropout: a rate outside [0, 1) is an error") {
  problem const p;
  for (double rate : {1., -0.1, nan})
    CHECK(error_of([&] { weights(dropping(rate), p); }).find("rate of gate::dropout") != std::string::npos);
}

}  // namespace
}  // namespace attune::test
