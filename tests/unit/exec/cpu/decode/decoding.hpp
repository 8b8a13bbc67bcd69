// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Problems with masks of every kind for the tests of decode(), and comparisons with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/decode/decode.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::test {

using attune::testing::problem_extents;

/// What a mask of each kind shows: the visible keys of a row that stands at `position`.
enum class sees { all, causal, window, padding, sink_and_window, some, nothing };
constexpr sees every_mask[] = {sees::all,  sees::causal, sees::window, sees::padding, sees::sink_and_window,
                               sees::some, sees::nothing};

inline bool visible(sees kind, index_t h, index_t position, index_t keys, index_t j) {
  switch (kind) {
    case sees::all:
      return true;
    case sees::causal:
      return j <= position;
    case sees::window:
      return j <= position && j > position - 70;
    case sees::padding:
      return j < keys - keys / 3;
    case sees::sink_and_window:
      return j <= position && (j < 3 || j > position - 9);
    case sees::some:  // the last row of a head, each head its own keys; other rows are empty
      return position > keys - 2 && (j * 7 + position * 3 + h) % 5 < 2 + h % 3;
    case sees::nothing:
      return false;
  }
  return false;
}

/// The dense table behind mask::runtime, and what it says.
struct table_mask {
  problem_extents e;
  std::vector<unsigned char> table;
  table_mask(sees kind, problem_extents const& extents) : e(extents) {
    for (index_t h = 0; h < e.heads; ++h)
      for (index_t i = 0; i < e.queries; ++i)
        for (index_t j = 0; j < e.keys; ++j)
          table.push_back(visible(kind, h, i + e.offset.value_or(e.keys - e.queries), e.keys, j));
  }
  bool operator()(index_t h, index_t i, index_t j) const {
    return table[std::size_t((h * e.queries + i) * e.keys + j)] != 0;
  }
  mask::runtime mask() const { return {.visible = table.data(), .visible_shape = {1, e.heads, e.queries, e.keys}}; }
};

/// What a call writes, `out` as it is stored.
template <class T, class Stored = T>
struct written {
  std::vector<Stored> out;
  std::vector<T> lse, ground_weight;
  friend bool operator==(written const& a, written const& b) {  // NaN is as good as NaN
    auto const same = [](auto const& x, auto const& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](auto const& u, auto const& v) {
        T const left = T(u), right = T(v);
        return left == right || (left != left && right != right);
      });
    };
    return same(a.out, b.out) && same(a.lse, b.lse) && same(a.ground_weight, b.ground_weight);
  }
};

/// `call` runs the operator and writes to the outputs it is given.
template <class T, class Op, class Call>
written<arithmetic_t<T>, T> written_by(Op const&, shape const& extents, Call const& call) {
  shape const rows{extents.batch, extents.head, extents.position, 1};
  written<arithmetic_t<T>, T> to;
  to.out.resize(std::size_t(extents.size()));
  to.lse.resize(std::size_t(rows.size()));
  to.ground_weight = to.lse;
  outputs<Op, T> views{.out = tensor<T>(to.out, extents)};
  if constexpr (Op::has_lse) views.lse = natural_lse(tensor(to.lse, rows));
  if constexpr (Op::has_ground_weight) views.ground_weight = tensor(to.ground_weight, rows);
  call(views);
  return to;
}
template <class T, class Op>
written<T> decoded(Op const& op, inputs<Op, tensor<T const>> const& in, shape const& extents, int threads = 1) {
  static_assert(offers_call<cpu<>, call_kind::decode, Op>);
  return written_by<T>(op, extents, [&](auto const& to) { decode(cpu<T>(threads), op, in, to); });
}

/// Where the two differ by more than `tolerance`, relative to 1 or to the value; "" nowhere.
template <class T, class Op>
std::string differs(written<T> const& got, dense_result<double> const& exact, shape const& s, Op const&,
                    double tolerance) {
  auto const off = [&](T x, double y) {
    double const d = std::fabs(double(x) - y);
    return !(double(x) == y || (std::isnan(double(x)) && std::isnan(y)) || d <= tolerance * std::fmax(1, std::fabs(y)));
  };
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.head; ++h)
      for (index_t i = 0; i < s.position; ++i) {
        auto const& head = exact.at(b, h);
        auto const row = std::size_t((b * s.head + h) * s.position + i);
        auto const where = [&](char const* what, double x, double y) {
          return attune::detail::text(what, " of row (", b, ", ", h, ", ", i, "): ", x, ", not ", y);
        };
        for (index_t d = 0; d < s.feature; ++d)
          if (T const x = got.out[row * std::size_t(s.feature) + std::size_t(d)]; off(x, head.out(i, d)))
            return where("out", double(x), head.out(i, d));
        if constexpr (Op::has_lse)
          if (off(got.lse[row], head.lse(i))) return where("lse", double(got.lse[row]), head.lse(i));
        if constexpr (Op::has_ground_weight)
          if (off(got.ground_weight[row], head.ground_weight(i)))
            return where("w0", double(got.ground_weight[row]), head.ground_weight(i));
      }
  return "";
}

/// A random problem of an operator whose mask is mask::runtime.
template <class Op>
struct problem : attune::testing::drawn_problem<Op> {
  problem_extents e;
  problem(problem_extents const& extents, attune::testing::detail::normal_numbers& random)
      : attune::testing::drawn_problem<Op>(extents, random), e(extents) {}
  shape extents() const { return {e.batch, e.heads, e.queries, e.value_width == 0 ? e.width : e.value_width}; }

  /// Changes slots of a tensor in both storages.
  template <class Change>
  void change(field f, Change const& by) {
    if (!Op::uses(f)) return;
    auto& x = this->of(f);
    for (index_t b = 0, n = 0; b < x.extents.batch; ++b)
      for (index_t h = 0; h < x.extents.head; ++h)
        for (index_t i = 0; i < x.extents.position; ++i)
          for (index_t d = 0; d < x.extents.feature; ++d, ++n) {
            double const y = by(x.doubles[std::size_t(n)], h, i, d);
            x.doubles[std::size_t(n)] = y;
            x.floats[std::size_t(n)] = float(y);
          }
  }
  /// NaN and infinities wherever no row looks.
  void poison(table_mask const& sees) {
    auto const garbage = [](index_t n) { return n % 3 == 0 ? nan : n % 3 == 1 ? inf : -inf; };
    for (field f :
         {field::k, field::v, field::gate_k, field::position_k, field::sort_k, field::place, field::key_bias}) {
      index_t const group = e.heads / (Op::uses(f) ? this->of(f).extents.head : 1);
      change(f, [&](double x, index_t h, index_t j, index_t d) {
        for (index_t own = h * group; own < (h + 1) * group; ++own)
          for (index_t i = 0; i < e.queries; ++i)
            if (sees(own, i, j)) return x;
        return garbage(j + d);
      });
    }
    for (field f : {field::scores, field::gates, field::bias})
      change(f, [&](double x, index_t h, index_t i, index_t j) { return sees(h, i, j) ? x : garbage(i + j); });
  }
};

}  // namespace attune::test
