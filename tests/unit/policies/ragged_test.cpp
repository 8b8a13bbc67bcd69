// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// mask::ragged: its rule, what it refuses, and packed sequences against one call for each of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>
#include <attune/line.hpp>
#include <attune/policies/mask/ragged.hpp>
#include <attune/reference.hpp>

#include "mask/rules.hpp"

namespace attune::test {
namespace {

using offsets = std::vector<index_t>;

// Sequences with as many queries as keys, fewer, more, none of either, and one of each.
offsets const of_queries{0, 5, 5, 75, 79, 79, 88, 89}, of_keys{0, 5, 12, 52, 182, 182, 182, 183};

index_t sequence_of(offsets const& x, index_t i) { return std::upper_bound(x.begin(), x.end(), i) - x.begin() - 1; }

/// rule(query, key, nq, nk), all within the sequence.
template <class Rule>
auto within_sequences(Rule const& rule) {
  return [=](mask_row const& r, index_t j) {
    index_t const s = sequence_of(of_queries, r.query);
    if (sequence_of(of_keys, j) != s) return false;
    auto const n = std::size_t(s);
    return rule(r.query - of_queries[n], j - of_keys[n], of_queries[n + 1] - of_queries[n],
                of_keys[n + 1] - of_keys[n]);
  };
}

TEST_CASE("ragged: the keys of the own sequence") {
  CHECK(call_differs(mask::ragged(of_queries, of_keys),
                     within_sequences([](index_t, index_t, index_t, index_t) { return true; }), {2, 2, 89, 183}) == "");
}

TEST_CASE("ragged: masks within a sequence, ends aligned, whatever the offset of the call") {
  for (std::optional<index_t> const offset : {std::optional<index_t>{}, {0}, {7}}) {
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::causal{}),
                       within_sequences([](index_t i, index_t j, index_t nq, index_t nk) { return j <= i + nk - nq; }),
                       {1, 1, 89, 183}, offset) == "");
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::window{3}),
                       within_sequences(
                           [](index_t i, index_t j, index_t nq, index_t nk) { return std::abs(i + nk - nq - j) <= 3; }),
                       {1, 1, 89, 183}, offset) == "");
    CHECK(call_differs(mask::ragged(of_queries, of_keys, mask::sink_window{2, 3}),
                       within_sequences([](index_t i, index_t j, index_t nq, index_t nk) {
                         return j <= i + nk - nq && (j < 2 || i + nk - nq - j < 3);
                       }),
                       {1, 1, 89, 183}, offset) == "");
  }
  auto const odd = [](mask_row const& r, index_t j) { return (r.query + r.queries + r.keys + j) % 3 != 0; };
  CHECK(call_differs(
            mask::ragged(of_queries, of_keys, mask::predicate(odd)),
            within_sequences([](index_t i, index_t j, index_t nq, index_t nk) { return (i + nq + nk + j) % 3 != 0; }),
            {1, 1, 89, 183}) == "");
}

TEST_CASE("ragged: 32-bit offsets, arrays, self-attention, `&`") {
  std::vector<std::int32_t> const x{0, 3, 3, 10};
  auto const same_causal = [&](mask_row const& r, index_t j) {
    auto const s = [&](index_t i) { return i < 3 ? 0 : 1; };
    return s(r.query) == s(j) && j <= r.query;
  };
  CHECK(call_differs(mask::ragged(x, mask::causal{}), same_causal, {1, 1, 10, 10}) == "");
  CHECK(call_differs(mask::ragged(x.data(), x.data(), 3, mask::causal{}), same_causal, {1, 1, 10, 10}) == "");
  CHECK(call_differs(mask::ragged(x) & mask::causal{}, same_causal, {1, 1, 10, 10}) == "");
}

TEST_CASE("ragged: errors") {
  offsets const q{0, 2, 5}, k{0, 4, 4}, three{0, 4, 4, 4}, late{1, 2, 5}, back{0, 6, 5}, none;
  mask_shape const s{1, 1, 5, 4};
  CHECK(rejects(mask::ragged(q, k), s) == "");
  CHECK(rejects(mask::ragged(q, three), s) ==
        "attune::mask::ragged: cu_seqlens_k has 4 entries; expected 3, as cu_seqlens_q has: one more than there are "
        "sequences");
  CHECK(rejects(mask::ragged(none), s) ==
        "attune::mask::ragged: cu_seqlens_q has 0 entries; expected at least 1: one more than there are sequences");
  CHECK(rejects(mask::ragged<>{}, s) ==
        "attune::mask::ragged: cu_seqlens_q has 0 entries; expected at least 1: one more than there are sequences");
  CHECK(rejects(mask::ragged(late, k), s) ==
        "attune::mask::ragged: cu_seqlens_q[0] has the value 1; expected 0: the first sequence begins at position 0");
  CHECK(rejects(mask::ragged(back, k), s) ==
        "attune::mask::ragged: cu_seqlens_q[2] has the value 5; expected at least 6, the value of cu_seqlens_q[1]");
  CHECK(rejects(mask::ragged(q, k), {1, 1, 6, 4}) ==
        "attune::mask::ragged: cu_seqlens_q[2] has the value 5; expected 6, the number of queries");
  CHECK(rejects(mask::ragged(q, k), {1, 1, 5, 9}) ==
        "attune::mask::ragged: cu_seqlens_k[2] has the value 4; expected 9, the number of keys");
  CHECK(rejects(mask::ragged(q, k, mask::window{-1}), s) ==
        "attune::mask::window: radius has the value -1; expected at least 0");
  mask_shape const on_device{1, 1, 5, 4, memory_kind::device};
  CHECK(rejects(mask::ragged(q, k), on_device) ==
        "attune::mask::ragged: the array of offsets has a std::vector, in memory of the host; expected an array that "
        "the device reads: ragged(cu_seqlens_q, cu_seqlens_k, sequences)");
  index_t const* const unreadable = nullptr;  // arrays of a device are not read here
  CHECK(rejects(mask::ragged(unreadable, unreadable, 2), on_device) == "");
}

TEST_CASE("cumulative_lengths: 0, n0, n0 + n1, ...") {
  CHECK(mask::cumulative_lengths(offsets{5, 0, 7}) == offsets{0, 5, 5, 12});
  CHECK(mask::cumulative_lengths(offsets{}) == offsets{0});
  CHECK(error_of([] { mask::cumulative_lengths(offsets{5, -1}); }) ==
        "attune::mask::cumulative_lengths: lengths[1] has the value -1; expected at least 0");
  std::vector<std::int32_t> const too_many{1, std::numeric_limits<std::int32_t>::max()};
  CHECK(error_of([&] { mask::cumulative_lengths(too_many); }) ==
        "attune::mask::cumulative_lengths: lengths[1] has the value 2147483647; expected at most 2147483646: the "
        "offsets have 32 bits");
}

// --- calls -----------------------------------------------------------------------------------------------------------

constexpr index_t heads = 4, key_heads = 2, width = 8;

/// Tensors of packed sequences, (position, head, feature) as FlashAttention has them.
struct packed {
  offsets q_at, k_at;
  std::vector<float> q, k, v, by_out, sort_q, sort_k;

  packed(offsets of_q, offsets of_k) : q_at(std::move(of_q)), k_at(std::move(of_k)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto const fill = [&](std::vector<float>& x, index_t positions, index_t numbers) {
      x.resize(std::size_t(positions * numbers));
      for (float& e : x) e = normal(random);
    };
    for (auto* x : {&q, &by_out}) fill(*x, q_at.back(), heads * width);
    for (auto* x : {&k, &v}) fill(*x, k_at.back(), key_heads * width);
    fill(sort_q, q_at.back(), heads);
    fill(sort_k, k_at.back(), key_heads);
  }
  index_t sequences() const { return index_t(q_at.size()) - 1; }
};

/// Positions [first, last) of a packed tensor.
template <class E>
tensor<E> part(E* x, index_t first, index_t last, index_t of_heads, index_t features = width) {
  return {
      x + first * of_heads * features, {1, of_heads, last - first, features}, {0, features, of_heads * features, 1}};
}

struct results {
  std::vector<float> out, lse, q, k, v;
};

/// out, lse and gradients of the queries [q0, q1) and keys [k0, k1), in one call, appended to r.
template <class Op>
void call(Op const& op, packed const& x, index_t q0, index_t q1, index_t k0, index_t k1, results& r) {
  inputs<Op, tensor<float const>> const in{.q = part(x.q.data(), q0, q1, heads),
                                           .k = part(x.k.data(), k0, k1, key_heads),
                                           .v = part(x.v.data(), k0, k1, key_heads)};
  std::vector<float> out(std::size_t((q1 - q0) * heads * width)), lse(std::size_t((q1 - q0) * heads));
  forward(cpu{serial{}}, op, in,
          {.out = part(out.data(), 0, q1 - q0, heads), .lse = natural_lse(part(lse.data(), 0, q1 - q0, heads, 1))});
  auto const g = vjp(cpu{serial{}}, op, in, {.out = part(x.by_out.data(), q0, q1, heads)});
  r.out.insert(r.out.end(), out.begin(), out.end());
  r.lse.insert(r.lse.end(), lse.begin(), lse.end());
  for (auto [to, f, of_heads] :
       {std::tuple{&r.q, field::q, heads}, {&r.k, field::k, key_heads}, {&r.v, field::v, key_heads}}) {
    auto const& d = g.of(f);  // (1, head, position, feature): put in the order of the packed tensors
    index_t const n = f == field::q ? q1 - q0 : k1 - k0;
    for (index_t i = 0; i < n; ++i)
      for (index_t h = 0; h < of_heads; ++h)
        for (index_t c = 0; c < width; ++c) to->push_back(d(0, h, i, c));
  }
}

/// One call for each sequence.
template <class Op>
results separate(Op const& op, packed const& x) {
  results r;
  for (std::size_t s = 0; s + 1 < x.q_at.size(); ++s)
    call(op, x, x.q_at[s], x.q_at[s + 1], x.k_at[s], x.k_at[s + 1], r);
  return r;
}
template <class Op>
results together(Op const& op, packed const& x) {
  results r;
  call(op, x, 0, x.q_at.back(), 0, x.k_at.back(), r);
  return r;
}

double distance(std::vector<float> const& x, std::vector<float> const& y) {
  double worst = x.size() == y.size() ? 0 : inf;
  for (std::size_t n = 0; n < x.size() && n < y.size(); ++n)
    if (x[n] != y[n]) worst = std::fmax(worst, std::fabs(double(x[n]) - double(y[n])));
  return worst;
}

/// log_n: the number of visible keys matters.
template <class Mask>
auto scaled(Mask const& m) {
  return attention(kernel::dot_product{}, length_scale::log_n{}, m);
}

/// Packed, with 32-bit offsets, against one call for each sequence.
auto ragged_causal(std::vector<std::int32_t> const& q, std::vector<std::int32_t> const& k) {
  return scaled(mask::ragged(q, k, mask::causal{}));
}
std::vector<std::int32_t> in_32_bits(offsets const& x) { return {x.begin(), x.end()}; }

TEST_CASE("ragged: outputs and gradients are those of a call for each sequence") {
  packed const x(of_queries, of_keys);
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  results const a = together(ragged_causal(q, k), x), b = separate(scaled(mask::causal{}), x);
  CHECK(distance(a.out, b.out) <= 1e-6);
  CHECK(distance(a.lse, b.lse) <= 2e-6);
  CHECK(distance(a.q, b.q) <= 4e-6);
  CHECK(distance(a.k, b.k) <= 4e-6);
  CHECK(distance(a.v, b.v) <= 4e-6);
}

TEST_CASE("ragged: outputs have the same bits where sequences begin at multiples of 64") {
  packed const x({0, 64, 128, 180}, {0, 128, 192, 250});
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  results const a = together(ragged_causal(q, k), x), b = separate(scaled(mask::causal{}), x);
  CHECK(a.out == b.out);
  CHECK(a.lse == b.lse);
}

TEST_CASE("ragged: decode, one query per sequence") {
  packed const x({0, 1, 2, 3}, {0, 100, 101, 350});
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  std::vector<float> out(x.q.size());
  decode(cpu{2}, ragged_causal(q, k),
         {.q = part(x.q.data(), 0, 3, heads),
          .k = part(x.k.data(), 0, 350, key_heads),
          .v = part(x.v.data(), 0, 350, key_heads)},
         {.out = part(out.data(), 0, 3, heads)});
  CHECK(distance(out, separate(scaled(mask::causal{}), x).out) <= 1e-6);
}

TEST_CASE("ragged: the reference executor") {
  packed const x(of_queries, of_keys);
  auto const q = in_32_bits(x.q_at), k = in_32_bits(x.k_at);
  auto const op = ragged_causal(q, k);
  auto const exact = forward(reference<double>{}, op,
                             {.q = part(x.q.data(), 0, x.q_at.back(), heads),
                              .k = part(x.k.data(), 0, x.k_at.back(), key_heads),
                              .v = part(x.v.data(), 0, x.k_at.back(), key_heads)});
  auto const fused = together(op, x).out;
  double worst = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < x.q_at.back(); ++i)
      for (index_t c = 0; c < width; ++c)
        worst = std::fmax(
            worst, std::fabs(exact.at(0, h).out(i, c) - double(fused[std::size_t((i * heads + h) * width + c)])));
  CHECK(worst <= 1e-6);
}

TEST_CASE("ragged: operators on a line") {
  packed const x(of_queries, of_keys);
  auto const run = [&](auto const& op, index_t q0, index_t q1, index_t k0, index_t k1, std::vector<float>& r) {
    std::vector<float> out(std::size_t((q1 - q0) * heads * width));
    forward(cpu{serial{}}, op,
            {.v = part(x.v.data(), k0, k1, key_heads),
             .sort_q = part(x.sort_q.data(), q0, q1, heads, 1),
             .sort_k = part(x.sort_k.data(), k0, k1, key_heads, 1)},
            {.out = part(out.data(), 0, q1 - q0, heads)});
    r.insert(r.end(), out.begin(), out.end());
  };
  std::vector<float> whole, parts;
  run(line::laplacian{0.5, mask::ragged(x.q_at, x.k_at, mask::causal{})}, 0, x.q_at.back(), 0, x.k_at.back(), whole);
  for (std::size_t s = 0; s + 1 < x.q_at.size(); ++s)
    run(line::laplacian{0.5, mask::causal{}}, x.q_at[s], x.q_at[s + 1], x.k_at[s], x.k_at[s + 1], parts);
  CHECK(distance(whole, parts) <= 1e-6);
}

}  // namespace
}  // namespace attune::test
