// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   add_other_inputs(suspicions, call)    "k in place of v", "q and k rounded to bf16", "k of the next key"
//
// Inputs that a kernel reads otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/testing/judging/forward/suspicion.hpp>
#include <attune/testing/judging/place_maps.hpp>

namespace attune::testing::detail {

/// q, k or v that are read otherwise: turned, rounded, of other features, or one for the other.
template <class Op>
void add_other_inputs(suspicions<Op>& all, sampled_call<Op> const& call) {
  if constexpr (Op::uses(field::q) && Op::uses(field::k)) {
    problem_shape const& p = call.p;
    inputs<Op, any_tensor> const& in = call.in;
    constexpr double most = 4e6;  // numbers: 32 MB
    if (double(in.q.extents().size()) > most || double(in.k.extents().size()) > most) return;
    index_t const D = p.width;
    using numbers = std::function<double(index_t, index_t, index_t, index_t)>;
    auto const read = [](any_tensor const& x) -> numbers {
      return [x](index_t b, index_t h, index_t i, index_t d) { return x(b, h, i, d); };
    };
    auto const filled = [](other_call<Op>& to, shape const& e, numbers const& x) {
      std::vector<double> all_numbers;
      all_numbers.reserve(std::size_t(e.size()));
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t d = 0; d < e.feature; ++d) all_numbers.push_back(x(b, h, i, d));
      to.numbers.push_back(std::move(all_numbers));
      return any_tensor(tensor<double const>(to.numbers.back(), e));
    };
    /// An empty function: as it is.
    auto const with = [&](std::string name, std::string_view look_at, numbers q, numbers k, numbers v) {
      all.add_call(std::move(name), look_at, [=, &call](other_call<Op>& to) {
        if (q) to.in.q = filled(to, call.in.q.extents(), q);
        if (k) to.in.k = filled(to, call.in.k.extents(), k);
        if (v) to.in.v = filled(to, call.in.v.extents(), v);
      });
    };
    // Rotary angles of base 10,000: of the positions, or of one position more or less.
    constexpr std::string_view turns = "whether the inputs are turned already, and by which position";
    auto const turned = [=](any_tensor const& x, bool halves, std::function<double(index_t, index_t)> position) {
      index_t const width = x.extents().feature, pairs = width / 2;
      return [=](index_t b, index_t h, index_t i, index_t d) {
        index_t const pair = halves ? d % pairs : d / 2, other = halves ? (d + pairs) % width : d ^ 1;
        bool const first = halves ? d < pairs : d % 2 == 0;
        double const angle = position(b, i) * std::pow(10000., -double(pair) / double(pairs));
        return x(b, h, i, d) * std::cos(angle) + (first ? -1 : 1) * x(b, h, i, other) * std::sin(angle);
      };
    };
    for (bool halves : {true, false}) {
      if (D % 2 != 0) break;
      std::string const pairs = halves ? "" : ", pairs of neighbors";
      std::vector<index_t> offsets;
      for (index_t b = 0; b < p.batch; ++b) offsets.push_back(p.offset_of(b));
      auto const of_query = [offsets](double by) {
        return [offsets, by](index_t b, index_t i) { return by * double(i + offsets[std::size_t(b)]); };
      };
      auto const of_key = [](double by) { return [by](index_t, index_t i) { return by * double(i); }; };
      with("q and k turned by rotary angles twice" + pairs, turns, turned(in.q, halves, of_query(1)),
           turned(in.k, halves, of_key(1)), {});
      with("q turned by rotary angles twice" + pairs, turns, turned(in.q, halves, of_query(1)), {}, {});
      with("k turned by rotary angles twice" + pairs, turns, {}, turned(in.k, halves, of_key(1)), {});
      with("q and k not turned by rotary angles" + pairs, turns, turned(in.q, halves, of_query(-1)),
           turned(in.k, halves, of_key(-1)), {});
      with("rotary position of q one too late" + pairs, turns,
           turned(in.q, halves, [](index_t, index_t) { return 1.; }), {}, {});
      with("rotary position of q one too early" + pairs, turns,
           turned(in.q, halves, [](index_t, index_t) { return -1.; }), {}, {});
      with("rotary position of q without the offset" + pairs, turns,
           turned(in.q, halves, [offsets](index_t b, index_t) { return -double(offsets[std::size_t(b)]); }), {}, {});
      // Turned back by the right pairs and turned by the others.
      auto const other_pairs = [=](any_tensor const& x, auto const& forward, auto const& back) {
        auto const plain = turned(x, halves, back);
        index_t const width = D, n = D / 2;
        return [=](index_t b, index_t h, index_t i, index_t d) {
          index_t const pair = halves ? d / 2 : d % n, other = halves ? d ^ 1 : (d + n) % width;
          bool const first = halves ? d % 2 == 0 : d < n;
          double const angle = forward(b, i) * std::pow(10000., -double(pair) / double(n));
          return plain(b, h, i, d) * std::cos(angle) + (first ? -1 : 1) * plain(b, h, i, other) * std::sin(angle);
        };
      };
      with(std::string("rotary pairs of the other layout, of ") + (halves ? "neighbors" : "halves"),
           "which features form a pair: (r, r + R) or (2 r, 2 r + 1)", other_pairs(in.q, of_query(1), of_query(-1)),
           other_pairs(in.k, of_key(1), of_key(-1)), {});
    }
    // Rounded inputs.
    double const scale = 1 / std::sqrt(double((std::max<index_t>)(D, 1)));
    auto const rounded = [](any_tensor const& x, auto const& round) {
      return [x, round](index_t b, index_t h, index_t i, index_t d) { return round(x(b, h, i, d)); };
    };
    for (storage s : {storage::bf16, storage::fp16}) {
      auto const round = [s](double x) { return rounded_to(s, x); };
      auto const scaled = [s, scale](double x) { return rounded_to(s, x * scale) / scale; };
      std::string const format = std::string(" rounded to ") + name_of(s);
      with("q times the scale" + format, look::precision, rounded(in.q, scaled), {}, {});
      with("q and k" + format, look::precision, rounded(in.q, round), rounded(in.k, round), {});
      with("q, k and v" + format, look::precision, rounded(in.q, round), rounded(in.k, round), rounded(in.v, round));
      with("v" + format, look::precision, {}, {}, rounded(in.v, round));
    }
    auto const tf32 = [](double x) { return rounded_to_bits(11, x); };
    with("q and k rounded to tf32", look::precision, rounded(in.q, tf32), rounded(in.k, tf32), {});
    with("q, k and v rounded to tf32", look::precision, rounded(in.q, tf32), rounded(in.k, tf32), rounded(in.v, tf32));
    auto const chopped = [](double x) {
      return rounded_to_bits(11, x - std::copysign(std::ldexp(std::fabs(x), -12), x));
    };
    with("q and k truncated to tf32", look::precision, rounded(in.q, chopped), rounded(in.k, chopped), {});
    // Features that the product of q and k lacks.
    for (index_t n : {1, 2, 4, 8, 16, 32, 64})
      if (n < D) {
        auto const without = [](any_tensor const& x, index_t first, index_t last) {
          return [=](index_t b, index_t h, index_t i, index_t d) { return d >= first && d < last ? 0 : x(b, h, i, d); };
        };
        constexpr std::string_view width = "the loop over features of q k, and the masked last part";
        with(attune::detail::text("last ", n, " features missing from the product q k"), width, {},
             without(in.k, D - n, D), {});
        with(attune::detail::text("first ", n, " features missing from the product q k"), width, {},
             without(in.k, 0, n), {});
      }
    // One for the other.
    if (in.k.extents() == in.v.extents()) {
      constexpr std::string_view pointers = "the pointers of k and v";
      with("k and v exchanged", pointers, {}, read(in.v), read(in.k));
      with("k in place of v", pointers, {}, {}, read(in.k));
      with("v in place of k", pointers, {}, read(in.v), {});
    }
    if (in.k.extents() == in.q.extents()) with("q and k exchanged", look::layout, read(in.k), read(in.q), {});
    // Rows and features in another order.
    auto const moved = [](any_tensor const& x, place_map const& m) {
      return [x, from = m.from](index_t b, index_t h, index_t i, index_t d) {
        element_place const at = from({b, h, i, d});
        return x(at.batch, at.head, at.row, at.feature);
      };
    };
    for (place_map const& m : place_maps(in.v.extents(), "value head", "key"))
      if (!m.features) with("v " + m.name, look::layout, {}, {}, moved(in.v, m));
    for (place_map const& m : place_maps(in.k.extents(), "key head", "key"))
      with("k " + m.name, look::layout, {}, moved(in.k, m), {});
    for (place_map const& m : place_maps(in.q.extents(), "head", "query"))
      if (!m.features) with("q " + m.name, look::layout, moved(in.q, m), {}, {});
  }
}

}  // namespace attune::testing::detail
