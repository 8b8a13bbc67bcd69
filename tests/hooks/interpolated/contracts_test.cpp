// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows that are read at an index: integers, indices outside the row or not finite, one entry, none, rows without keys,
// -inf and NaN. On the reference and on the CPU executor.
#include <algorithm>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/cope.hpp"
#include "../../support/one_call.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;

/// One query and its gates: the logit of key j is the row at the sum of the gates from j on. Gates and logits by key.
struct one_row {
  std::vector<double> gates, row, values = std::vector<double>(gates.size(), 1.0);

  template <class View>
  inputs<decltype(attention(row_at_given_index{})), View> in() const {
    auto const keys = index_t(gates.size());
    return {.v = view(values, {1, 1, keys, 1}),
            .bias = view(gates, {1, 1, 1, keys}),
            .position_scores = view(row, {1, 1, 1, index_t(row.size())})};
  }
  /// The logits on the reference.
  std::vector<double> logits() const {
    auto const f = forward(reference<double>{}, attention(row_at_given_index{}), in<any_tensor>());
    std::vector<double> to;
    for (std::size_t j = 0; j < gates.size(); ++j) to.push_back(f.at(0, 0).logits(0, index_t(j)));
    return to;
  }
};
/// The sum of w_j v_j, and its gradients by the gates and by the row, of either executor.
struct slopes {
  double out;
  std::vector<double> by_gates, by_row;
};
template <class Exec>
slopes slopes_on(Exec const& exec, one_row const& r) {
  auto const op = attention(row_at_given_index{}, normalizer::exponential{});
  std::vector<double> out(1);
  std::vector<double> const one{1.0};
  using op_type = std::remove_const_t<decltype(op)>;
  inputs<op_type, typename Exec::view> const in{
      .v = r.in<view>().v, .bias = r.in<view>().bias, .position_scores = r.in<view>().position_scores};
  forward(exec, op, in, {.out = tensor<double>(out, {1, 1, 1, 1})});
  cotangents<op_type, typename Exec::view> d;
  d.out = view(one, {1, 1, 1, 1});
  auto const g = vjp(exec, op, in, d);
  return {out[0], g.of(field::bias).values, g.of(field::position_scores).values};
}
template <class Check>
void on_both(one_row const& r, Check const& check) {
  SUBCASE("reference") { check(slopes_on(reference<double>{}, r)); }
  SUBCASE("cpu") { check(slopes_on(cpu<double>{1}, r)); }
}

TEST_CASE("interpolated rows: the value lies between two entries; outside the row the nearest entry counts") {
  CHECK(one_row{{0.5, 0.75, -1.0, 3.0, -2.5}, {1, 3, -1}}.logits() == std::vector<double>{2.5, 1.5, 1.0, 2.0, 1.0});
  CHECK(one_row{{7.0, 2.0, 1.0}, {1, 3, -1}}.logits() == std::vector<double>{-1, -1, 3});
  CHECK(one_row{{7.0, -2.0, 0.5}, {4}}.logits() == std::vector<double>{4, 4, 4});
  CHECK(one_row{{0.0, inf}, {1, 3, -1}}.logits() == std::vector<double>{-1, -1});
  CHECK(one_row{{0.0, -inf}, {1, 3, -1}}.logits() == std::vector<double>{1, 1});
  auto const bad = one_row{{1.0, nan, 0.5}, {1, 3, -1}}.logits();
  CHECK(std::isnan(bad[0]));
  CHECK(std::isnan(bad[1]));
  CHECK(bad[2] == 2);
}

TEST_CASE("interpolated rows: the derivative by the index is the one on the right") {
  // exp(row(y)) with y = 0, 1, 1.5, 2 and beyond, of the row 0, 1, 3.
  struct point {
    double y, slope;
  };
  for (point const at : {point{-0.5, 0}, {0, 1}, {0.5, 1}, {1, 2}, {1.5, 2}, {2, 0}, {2.5, 0}, {inf, 0}, {-inf, 0}}) {
    CAPTURE(at.y);
    for (auto const& g :
         {slopes_on(reference<double>{}, {{at.y}, {0, 1, 3}}), slopes_on(cpu<double>{1}, {{at.y}, {0, 1, 3}})}) {
      CHECK(near(g.by_gates[0], at.slope * g.out));
      double const f = std::clamp(at.y, 0.0, 2.0);
      CHECK(near(g.by_row[0], std::max(0.0, 1 - f) * g.out));
      CHECK(near(g.by_row[1], std::max(0.0, 1 - std::fabs(f - 1)) * g.out));
      CHECK(near(g.by_row[2], std::max(0.0, f - 1) * g.out));
    }
  }
}

TEST_CASE("interpolated rows: an infinite entry counts only where it is read") {
  // Indices 0.5, 2 and 1.5: the entry -inf at 2 switches the last two keys off, and nothing of theirs is NaN.
  on_both({{-1.5, 0.5, 1.5}, {0, 1, -inf}}, [](slopes const& s) {
    double const w = std::exp(0.5);
    CHECK(near(s.out, w));
    CHECK(near(s.by_row[0], w / 2));
    CHECK(near(s.by_row[1], w / 2));
    CHECK(s.by_row[2] == 0);
    for (double x : s.by_gates) CHECK(near(x, w));
  });
}

TEST_CASE("interpolated rows: a hidden key adds nothing, and a row without keys is empty") {
  one_call call{.heads = 1, .queries = 3, .keys = 4, .width = 2, .value_width = 2};
  for (index_t d = 0; d < 2; ++d) call.k[std::size_t(3 * 2 + d)] = nan, call.v[std::size_t(3 * 2 + d)] = nan;
  std::vector<double> rows{0.5, -1, 2, 0.25, 1, -2, 3, 0, 1};
  auto const op = attention(cope{}, mask::causal{});
  auto const plain = call.of<view>(attention(kernel::dot_product{}));
  inputs<std::remove_const_t<decltype(op)>, view> const in{
      .q = plain.q, .k = plain.k, .v = plain.v, .position_scores = view(rows, {1, 1, 3, 3}), .offset = -1};
  std::vector<double> out(6), lse(3);
  shape const all{1, 1, 3, 2};
  forward(cpu<double>{1}, op, in,
          {.out = tensor<double>(out, all), .lse = natural_lse(tensor<double>(lse, {1, 1, 3, 1}))});
  CHECK(out[0] == 0);
  CHECK(lse[0] == -inf);
  auto const exact =
      forward(reference<double>{}, op,
              {.q = plain.q, .k = plain.k, .v = plain.v, .position_scores = in.position_scores, .offset = -1});
  for (index_t i = 0; i < 3; ++i)
    for (index_t d = 0; d < 2; ++d) CHECK(std::fabs(out[std::size_t(2 * i + d)] - exact.at(0, 0).out(i, d)) < 1e-14);
  auto const g = vjp(cpu<double>{1}, op, in, {.out = view(call.by_out, all)});
  for (index_t n = 0; n < 3; ++n) CHECK(g.of(field::position_scores).values[std::size_t(n)] == 0);
  for (double x : g.of(field::q).values) CHECK(std::isfinite(x));
  for (double x : g.of(field::position_scores).values) CHECK(std::isfinite(x));
}

TEST_CASE("interpolated rows: a row of no entries and rows of other extents are refused") {
  one_row const r{{1.0, 2.0}, {1, 2}};
  auto const op = attention(row_at_given_index{});
  std::vector<double> out(1);
  auto in = r.in<view>();
  auto const call = [&] { forward(cpu<double>{1}, op, in, {.out = tensor<double>(out, {1, 1, 1, 1})}); };
  in.position_scores = view(r.row.data(), {1, 1, 1, 0});
  CHECK(error_of(call) == "attune::forward: position_scores has feature extent 0; expected at least 1");
  in.position_scores = view(r.row, {1, 2, 1, 1});
  CHECK(error_of(call) ==
        "attune::forward: position_scores has shape (1, 2, 1, 1); expected (1 or 1, 1 or 1, 1 or 1, 1)");
}

TEST_CASE("interpolated rows: 16-bit tensors are float's, rounded once; rows may be shared") {
  one_call const call{.heads = 2, .queries = 80, .keys = 80, .width = 5, .value_width = 3};
  shape const rows{1, 2, 80, 5}, values{1, 2, 80, 3}, shared{1, 1, 80, 4};
  std::vector<double> numbers = one_call::numbers(shared.size(), 7);
  auto const narrow = [](std::vector<double> const& x) {
    std::vector<bfloat16> to;
    for (double y : x) to.push_back(bfloat16(float(y)));
    return to;
  };
  auto const wide = [](std::vector<bfloat16> const& x) {
    std::vector<float> to;
    for (bfloat16 y : x) to.push_back(float(y));
    return to;
  };
  auto const op = attention(cope{}, mask::causal{});
  auto const q = narrow(call.q), k = narrow(call.k), v = narrow(call.v), z = narrow(numbers);
  auto const wide_q = wide(q), wide_k = wide(k), wide_v = wide(v), wide_z = wide(z);
  std::vector<bfloat16> out(std::size_t(values.size()));
  std::vector<float> wide_out(out.size());
  using narrow_view = tensor<bfloat16 const>;
  using wide_view = tensor<float const>;
  forward(cpu<bfloat16>{2}, op,
          {.q = narrow_view(q, rows),
           .k = narrow_view(k, rows),
           .v = narrow_view(v, values),
           .position_scores = narrow_view(z, shared)},
          {.out = tensor<bfloat16>(out, values)});
  forward(cpu<float>{2}, op,
          {.q = wide_view(wide_q, rows),
           .k = wide_view(wide_k, rows),
           .v = wide_view(wide_v, values),
           .position_scores = wide_view(wide_z, shared)},
          {.out = tensor<float>(wide_out, values)});
  for (std::size_t n = 0; n < out.size(); ++n) CHECK(float(out[n]) == float(bfloat16(wide_out[n])));
}

}  // namespace
}  // namespace attune::test
