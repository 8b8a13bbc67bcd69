// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   problem p = draw("cap/causal", 0, storage::bf16, seed);   p.sees({b, h, i, j})   p.logit({b, h, i, j}, dot)
//
// Inputs and the operator that the kernels of the held-out grammar are meant to compute. No code of attune computes
// here.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::test::held {

using testing::rounded_to;
using testing::storage;

constexpr double nothing = -std::numeric_limits<double>::infinity();
constexpr double ln2 = 0.693147180559945309417;

/// A pair of a query and a key, and a row.
struct pair_at {
  int b, h, i, j;
};
struct row_at {
  int b, h, i;
};

/// Numbers (batch, head, position, feature).
struct array {
  int batch = 0, heads = 0, length = 0, width = 0;
  std::vector<double> x;
  array() = default;
  array(int b, int h, int l, int d)
      : batch(b), heads(h), length(l), width(d), x(std::size_t(b) * std::size_t(h) * std::size_t(l) * std::size_t(d)) {}
  std::size_t place(int b, int h, int i, int c) const {
    return ((std::size_t(b) * std::size_t(heads) + std::size_t(h)) * std::size_t(length) + std::size_t(i)) *
               std::size_t(width) +
           std::size_t(c);
  }
  double& operator()(int b, int h, int i, int c) { return x[place(b, h, i, c)]; }
  double operator()(int b, int h, int i, int c) const { return x[place(b, h, i, c)]; }
  shape extents() const { return {batch, heads, length, width}; }
  /// Element (b, h, i, c) becomes f(b, h, i, c).
  template <class F>
  void fill(F const& f) {
    for (int b = 0; b < batch; ++b)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < length; ++i)
          for (int c = 0; c < width; ++c) (*this)(b, h, i, c) = f(b, h, i, c);
  }
  /// Element (b, h, i, c) becomes f(old array, b, h, i, c).
  template <class F>
  void change(F const& f) {
    array const old = *this;
    fill([&](int b, int h, int i, int c) { return f(old, b, h, i, c); });
  }
  void round(storage s) {
    for (double& y : x) y = rounded_to(s, y);
  }
};

/// x without the digits of a significand after the first `bits`; truncated, or rounded to nearest.
inline double with_bits(double x, int bits, bool truncate = false) {
  if (x == 0 || !std::isfinite(x)) return x;
  int e = 0;
  double const m = std::ldexp(std::frexp(x, &e), bits);
  return std::ldexp(truncate ? std::trunc(m) : std::nearbyint(m), e - bits);
}
/// The step down to a multiple.
constexpr int down_to(int x, int multiple) { return x / multiple * multiple; }
constexpr int up_to(int x, int multiple) { return (x + multiple - 1) / multiple * multiple; }

struct problem {
  int batch = 2, heads = 4, key_heads = 2, queries = 144, keys = 144, width = 32, value_width = 32, offset = 0;
  std::string term, mask;  ///< of the operator: "cap" and "causal"
  storage stored = storage::fp32;
  double scale = 1, cap = 4;
  int window = 37, before = 24, after = 11, prefix = 20, first = 4, chunk = 48;
  array q, k, v, dout, bias;
  std::vector<float> sink, slope;
  std::vector<index_t> lengths, query_documents, key_documents;

  int group() const { return heads / key_heads; }
  int position(int i) const { return i + offset; }
  bool has(std::string const& what) const { return term.find(what) != std::string::npos; }

  bool sees(pair_at const& a) const {
    int const at = position(a.i), j = a.j;
    bool const causal = j <= at;
    if (mask == "causal" || mask == "start" || mask == "tall") return causal;
    if (mask == "window") return causal && j > at - window;
    if (mask == "band") return j >= at - before && j <= at + after;
    if (mask == "pad") return j < lengths[std::size_t(a.b)];
    if (mask == "padcausal") return causal && j < lengths[std::size_t(a.b)];
    if (mask == "docs" || mask == "chunk") return causal && query_document(a.b, a.i) == key_document(a.b, j);
    if (mask == "prefix") return causal || j < prefix;
    if (mask == "firstwindow") return causal && (j < first || j > at - window);
    return true;
  }
  index_t query_document(int b, int i) const { return query_documents[std::size_t(b * queries + i)]; }
  index_t key_document(int b, int j) const { return key_documents[std::size_t(b * keys + j)]; }

  double capped(double s) const { return cap * std::tanh(s / cap); }
  double distance(pair_at const& a) const { return std::fabs(double(position(a.i) - a.j)); }
  double added(pair_at const& a) const {
    return (has("alibi") ? -double(slope[std::size_t(a.h)]) * distance(a) : 0) +
           (has("bias") ? bias(0, a.h, a.i, a.j) : 0);
  }
  double logit(pair_at const& a, double dot) const {
    double const s = dot * scale + added(a);
    return has("cap") ? capped(s) : s;
  }
  /// The derivative of the logit by dot * scale.
  double slope_of_logit(pair_at const& a, double dot) const {
    double const t = std::tanh((dot * scale + added(a)) / cap);
    return has("cap") ? 1 - t * t : 1;
  }
  /// Keys or values as the heads of queries read them; head h reads of(h).
  template <class F>
  array expanded(array const& x, F const& of) const {
    array to(batch, heads, x.length, x.width);
    to.fill([&](int b, int h, int i, int c) { return x(b, of(h), i, c); });
    return to;
  }
  array expanded(array const& x) const {
    return expanded(x, [&](int h) { return h / group(); });
  }
};

/// Problem of a setting "term/mask" or "mask". Shape 0: as many queries as keys. 1, 2: fewer queries.
inline problem draw(std::string const& setting, int number, storage stored, std::uint64_t seed, bool small) {
  problem p;
  std::size_t const slash = setting.find('/');
  p.term = slash == std::string::npos ? "" : setting.substr(0, slash);
  p.mask = slash == std::string::npos ? setting : setting.substr(slash + 1);
  p.stored = stored;
  if (number == 1) p.queries = 72, p.keys = 152, p.heads = 8, p.width = 48, p.value_width = 40;
  if (number == 2) p.queries = 88, p.keys = 136, p.width = 64, p.value_width = 48, p.heads = 6, p.key_heads = 3;
  if (small) {
    p.queries = number == 0 ? 48 : number == 1 ? 36 : 40, p.keys = number == 0 ? 48 : number == 1 ? 56 : 52;
    p.heads = 4, p.key_heads = 2, p.width = number == 0 ? 16 : 24, p.value_width = 16;
    p.window = 17, p.before = 14, p.after = 7, p.prefix = 12, p.chunk = 24;
  }
  if (p.mask == "tall") std::swap(p.queries, p.keys), p.keys = std::min(p.keys, p.queries - 24);
  p.offset = p.mask == "start" ? 0 : p.keys - p.queries;
  p.scale = 1 / std::sqrt(double(p.width));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto const drawn = [&](int b, int h, int l, int d, double size) {
    array x(b, h, l, d);
    for (double& y : x.x) y = rounded_to(stored, size * normal(random));
    return x;
  };
  p.q = drawn(p.batch, p.heads, p.queries, p.width, 1.5);
  p.k = drawn(p.batch, p.key_heads, p.keys, p.width, 1);
  p.v = drawn(p.batch, p.key_heads, p.keys, p.value_width, 1);
  p.dout = drawn(p.batch, p.heads, p.queries, p.value_width, 1);
  if (p.has("bias")) p.bias = drawn(1, p.heads, p.queries, p.keys, 1);
  for (int h = 0; h < p.heads; ++h) {
    p.sink.push_back(float(1 + 0.5 * normal(random)));
    p.slope.push_back(std::exp2(-8.0f * float(h + 1) / float(p.heads)));
  }
  for (int b = 0; b < p.batch; ++b) p.lengths.push_back(b == 0 ? p.keys - 29 : p.keys - 10);
  for (int b = 0; b < p.batch; ++b) {
    // Documents of 40, 25, ... positions; chunks of `chunk`.
    auto const of = [&](int at) {
      return p.mask == "chunk" ? at / p.chunk : at < p.keys / 4 ? 0 : at < p.keys / 2 + 5 - 3 * b ? 1 : 2;
    };
    for (int i = 0; i < p.queries; ++i) p.query_documents.push_back(of(std::max(0, p.position(i))));
    for (int j = 0; j < p.keys; ++j) p.key_documents.push_back(of(j));
  }
  return p;
}

}  // namespace attune::test::held
