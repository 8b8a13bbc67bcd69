// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Keys and values of 8 bits give what their numbers give as floats, bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/float8_cache.hpp>
#include <attune/reference.hpp>

namespace attune::test {
namespace {

TEST_CASE_TEMPLATE("all 256 codes, in SIMD as one by one", E, float8_e4m3fn, float8_e5m2) {
  std::vector<E> codes(256 + 32);
  for (std::size_t n = 0; n < codes.size(); ++n) codes[n].bits = std::uint8_t(n);
  for (index_t const shift : {0, 1, 7, 31}) {
    std::vector<float> got(256);
    exec_cpu::widen_codes(codes.data() + shift, 0.5f, got.data(), 256);
    for (std::size_t n = 0; n < 256; ++n) {
      float const want = float(codes[n + std::size_t(shift)]) * 0.5f;
      CAPTURE(n);
      CHECK((std::isnan(want) ? std::isnan(got[n])
                              : std::bit_cast<std::uint32_t>(got[n]) == std::bit_cast<std::uint32_t>(want)));
    }
  }
}

/// A problem with keys and values as codes, and as the floats that these stand for.
template <class E, class T>
struct cached {
  static constexpr index_t batch = 2, heads = 4, key_heads = 2, width = 24;
  index_t queries, keys;
  std::vector<T> q, gate_q, gate_k;
  std::vector<E> k, v;
  std::vector<float> wide_q, wide_gate_q, wide_gate_k, wide_k, wide_v, scales{0.75f, -0.03f};

  cached(index_t query_count, index_t key_count) : queries(query_count), keys(key_count) {
    index_t seed = 0;
    auto const number = [&](index_t n) { return float(std::sin(1.7 * double(n) + double(seed))); };
    auto const plain = [&](std::vector<T>& to, std::vector<float>& wide, index_t count) {
      ++seed;
      for (index_t n = 0; n < count; ++n) to.push_back(T(number(n))), wide.push_back(float(to.back()));
    };
    plain(q, wide_q, batch * heads * queries * width);
    plain(gate_q, wide_gate_q, batch * heads * queries * 3);
    plain(gate_k, wide_gate_k, batch * key_heads * keys * 3);
    for (index_t n = 0; n < batch * key_heads * keys * width; ++n) {
      k.push_back(E(40 * number(n)));
      wide_k.push_back(float(k.back()) * 0.02f);
      v.push_back(E(number(n + 3)));
      wide_v.push_back(float(v.back()) * scales[std::size_t(n / (keys * width) % key_heads)]);
    }
  }
  shape by_query(index_t features) const { return {batch, heads, queries, features}; }
  shape by_key(index_t features) const { return {batch, key_heads, keys, features}; }
  shape out() const { return by_query(width); }
  tensor<float const> scale_view() const { return {scales, {1, key_heads, 1, 1}}; }
};

/// The ground value.
template <class View, class E, class T>
View v0(cached<E, T> const& p) {
  shape const e{1, 1, 1, p.width};
  if constexpr (std::is_same_v<View, tensor<float const>>)
    return tensor<float const>(p.wide_q.data(), e);
  else
    return tensor<T const>(p.q.data(), e);
}

/// forward and decode of codes, against cpu<float> on floats.
template <class E, class T, class Op, class With>
void check(Op const& op, index_t queries, index_t keys, With const& with) {
  cached<E, T> const p(queries, keys);
  CAPTURE(queries);
  CAPTURE(keys);
  using codes = cpu_float8_cache<E, T>;
  auto const narrow = with.template operator()<typename codes::view>(
      p, tensor(p.q, p.out()), float8_view<T, E>(tensor<E const>(p.k, p.by_key(p.width)), 0.02f),
      float8_view<T, E>(tensor<E const>(p.v, p.by_key(p.width)), p.scale_view()), tensor(p.gate_q, p.by_query(3)),
      tensor(p.gate_k, p.by_key(3)));
  auto const wide = with.template operator()<tensor<float const>>(
      p, tensor(p.wide_q, p.out()), tensor(p.wide_k, p.by_key(p.width)), tensor(p.wide_v, p.by_key(p.width)),
      tensor(p.wide_gate_q, p.by_query(3)), tensor(p.wide_gate_k, p.by_key(3)));
  std::vector<T> got(std::size_t(p.out().size()));
  std::vector<float> want(got.size());
  auto const same = [&] {
    for (std::size_t n = 0; n < got.size(); ++n)
      if (!(float(got[n]) == float(T(want[n])))) return false;
    return true;
  };
  forward(codes{1}, op, narrow, {.out = tensor(got, p.out())});
  forward(cpu<float>{1}, op, wide, {.out = tensor(want, p.out())});
  CHECK(same());
  forward(codes{3}, op, narrow, {.out = tensor(got, p.out())});
  CHECK(same());
  if constexpr (offers_call<cpu<>, call_kind::decode, Op>) {
    decode(codes{2}, op, narrow, {.out = tensor(got, p.out())});
    decode(cpu<float>{1}, op, wide, {.out = tensor(want, p.out())});
    CHECK(same());
  }
}

template <class E, class T>
void check_operators() {
  for (auto const& lengths : {std::pair<index_t, index_t>{1, 300}, {3, 65}, {37, 141}}) {
    index_t const queries = lengths.first, keys = lengths.second;
    auto const plain = [&](auto const& op) {
      using Op = std::remove_cvref_t<decltype(op)>;
      check<E, T>(op, queries, keys, [&]<class View>(auto const&, View q, View k, View v, View, View) {
        return inputs<Op, View>{.q = q, .k = k, .v = v};
      });
    };
    plain(attention(kernel::dot_product{}, mask::causal{}));
    plain(attention(kernel::rbf{4.0}));
    plain(attention(kernel::dot_product{}, normalizer::sparsemax{}));
    plain(fold({1.0, -0.25}, attention(kernel::dot_product{}, mask::causal{}), attention(kernel::rbf{4.0})));
    auto const gated = principled_attention({-1.0, 0.2, 0.3}, mask::causal{});
    check<E, T>(gated, queries, keys, [&]<class View>(auto const& p, View q, View k, View v, View gate_q, View gate_k) {
      return inputs<std::remove_const_t<decltype(gated)>, View>{
          .q = q, .k = k, .v = v, .gate_q = gate_q, .gate_k = gate_k, .v0 = v0<View>(p)};
    });
  }
}

TEST_CASE("forward and decode give what the floats give") {
  check_operators<float8_e4m3fn, float>();
  check_operators<float8_e5m2, bfloat16>();
}

TEST_CASE("against the reference, and with features apart in memory") {
  using E = float8_e4m3fn;
  cached<E, float> const p(2, 50);
  auto const op = attention(kernel::dot_product{});
  std::vector<float> out(std::size_t(p.out().size()));
  std::vector<E> apart(p.k.size() * 2);
  for (std::size_t n = 0; n < p.k.size(); ++n) apart[2 * n] = p.k[n];
  strides steps = strides::dense(p.by_key(p.width));
  steps = {2 * steps.batch, 2 * steps.head, 2 * steps.position, 2};
  forward(cpu_float8_cache<E>{}, op,
          {.q = tensor(p.q, p.out()),
           .k = {tensor<E const>(apart.data(), p.by_key(p.width), steps), 0.02f},
           .v = {tensor<E const>(p.v, p.by_key(p.width)), p.scale_view()}},
          {.out = tensor(out, p.out())});
  auto const exact = forward(reference<double>{}, op,
                             {.q = tensor(p.wide_q, p.out()),
                              .k = tensor(p.wide_k, p.by_key(p.width)),
                              .v = tensor(p.wide_v, p.by_key(p.width))});
  for (index_t n = 0; n < p.out().size(); ++n) {
    index_t const row = n / p.width;
    CHECK(std::fabs(double(out[std::size_t(n)]) -
                    exact.at(row / p.queries / p.heads, row / p.queries % p.heads).out(row % p.queries, n % p.width)) <
          1e-5);
  }
}

/// The codes of a problem in pages of `size` keys, the last page of each sequence first.
template <class E, class T>
std::vector<E> in_pages(cached<E, T> const& p, std::vector<E> const& codes, index_t size) {
  std::vector<E> pages(codes.size());
  index_t const per_sequence = p.keys / size, page = p.key_heads * size * p.width;
  tensor<E const> const from(codes, p.by_key(p.width));
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t n = 0; n < per_sequence; ++n)
      for (index_t h = 0; h < p.key_heads; ++h)
        std::copy_n(from.row(b, h, n * size), size * p.width,
                    pages.begin() + (b * per_sequence + per_sequence - 1 - n) * page + h * size * p.width);
  return pages;
}

TEST_CASE_TEMPLATE("pages give what one piece gives, bit for bit; other pages are near", T, float, bfloat16) {
  using E = float8_e4m3fn;
  using view = float8_view<T, E>;
  cached<E, T> const p(2, 192);
  auto const op = attention(kernel::dot_product{}, mask::causal{});
  tensor<T const> const q(p.q, p.out());
  std::vector<T> want(std::size_t(p.out().size())), got(want.size());
  decode(cpu_float8_cache<E, T>{2}, op,
         {.q = q,
          .k = view(tensor<E const>(p.k, p.by_key(p.width)), 0.02f),
          .v = view(tensor<E const>(p.v, p.by_key(p.width)), p.scale_view())},
         {.out = tensor(want, p.out())});
  for (index_t const size : {64, 48, 1}) {
    CAPTURE(size);
    index_t const per_sequence = 192 / size;
    std::vector<std::int32_t> numbers;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t n = 0; n < per_sequence; ++n) numbers.push_back(std::int32_t((b + 1) * per_sequence - 1 - n));
    std::vector<E> const k = in_pages(p, p.k, size), v = in_pages(p, p.v, size);
    shape const pages{p.batch * per_sequence, p.key_heads, size, p.width};
    auto const run = [&](page_table const& table) {
      decode(
          cpu_float8_cache<E, T>{3}, op,
          {.q = q, .k = view(tensor<E const>(k, pages), 0.02f), .v = view(tensor<E const>(v, pages), p.scale_view())},
          table, {.out = tensor(got, p.out())});
    };
    run(page_table(numbers, p.batch));
    float off = 0;
    for (std::size_t n = 0; n < got.size(); ++n) off = std::max(off, std::fabs(float(got[n]) - float(want[n])));
    CHECK(off <= (size == 64 ? 0 : std::is_same_v<T, float> ? 1e-6f : 4e-3f));
    numbers[0] = std::int32_t(pages.batch);
    CHECK(error_of([&] { run(page_table(numbers, p.batch)); }).find("pages(0, 0) has the value") != std::string::npos);
  }
}

TEST_CASE("misuse names the scale") {
  using E = float8_e4m3fn;
  cached<E, float> const p(1, 5);
  std::vector<float> out(std::size_t(p.out().size())), three { 1, 1, 1 };
  auto const op = attention(kernel::dot_product{});
  tensor<E const> const K(p.k, p.by_key(p.width)), V(p.v, p.by_key(p.width));
  auto const call = [&](float8_view<float, E> k, float8_view<float, E> v) {
    return error_of([&] {
      decode(cpu_float8_cache<E>{}, op, {.q = tensor(p.q, p.out()), .k = k, .v = v}, {.out = tensor(out, p.out())});
    });
  };
  CHECK(call({K, 1.f}, {V, 1.f}).empty());
  CHECK(call({K, 1.f}, {V, tensor<float const>(three, {1, 3, 1, 1})}) ==
        "attune::decode: the scales of v has shape (1, 3, 1, 1); expected (1, 2, 1, 1): one per head of the tensor");
  CHECK(call({K, std::nanf("")}, {V, 1.f}).find("the scale of k") != std::string::npos);
}

}  // namespace
}  // namespace attune::test
