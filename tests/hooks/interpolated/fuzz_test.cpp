// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random problems of rows that are read at an ordered sum: forward, vjp and jvp of the CPU executor against the
// reference. The derivative by an index jumps at integers: the gradients of floats are not compared where an index is
// next to one.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../support/cope.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

/// c <q, k> + z_i at a sum over gates of other projections.
struct gated_cope {
  static constexpr auto role = policy_role::kernel;
  using index = contraction::earlier_sum_with_own<contraction::gate_dot, counted_gate>;
  using contractions =
      contraction::list<contraction::gate_dot, contraction::dot, index, contraction::interpolated<index>>;
  parameter rate = 0.6;
  static constexpr auto parameters() { return std::array{listed("rate", &gated_cope::rate)}; }
  template <class T>
  struct bound {
    T rate, c;
    ATTUNE_HD T score(T const&, T const& x, T const&, T const& z, key<T> const&) const { return c * x + math::tanh(z); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r.inverse_sqrt_width};
  }
};

/// The largest difference, in units of the largest number.
template <class T>
double worst(std::vector<T> const& x, std::vector<double> const& y) {
  double size = 1e-2, error = x.size() == y.size() ? 0 : inf;
  for (double n : y) size = std::fmax(size, std::fabs(n));
  for (std::size_t n = 0; n < y.size() && std::isfinite(error); ++n)
    error =
        std::isnan(double(x[n])) != std::isnan(y[n]) ? inf : std::fmax(error, std::fabs(double(x[n]) - y[n]) / size);
  return error;
}

template <class T, class Op, class Problem>
void compare(Op const& op, Problem const& p, shape const& out_shape, bool gradients_too, double tolerance) {
  CAPTURE(sizeof(T));
  using view = tensor<T const>;
  auto const in = p.template inputs<view>();
  auto const exact_in = p.template inputs<any_tensor>();
  std::vector<T> out(std::size_t(out_shape.size()));
  auto const saved = forward_and_save(cpu<T>{2}, op, in, {.out = tensor<T>(out, out_shape)});
  std::vector<double> expected;
  for (auto const& head : forward(reference<double>{}, op, exact_in).heads)
    for (index_t i = 0; i < out_shape.position; ++i)
      for (index_t d = 0; d < out_shape.feature; ++d) expected.push_back(head.out(i, d));
  CHECK(worst(out, expected) < tolerance);
  if (!gradients_too) return;
  auto const got = vjp(cpu<T>{2}, op, in, saved, p.template cotangents<view>());
  auto const right = vjp(reference<double>{}, op, exact_in, p.template cotangents<any_tensor>());
  for (std::size_t f = 0; f < right.fields.size(); ++f) {
    CAPTURE(std::string(name_of(field(f))));
    CHECK(worst(got.fields[f].values, right.fields[f].values) < 20 * tolerance);
  }
  for (std::size_t n = 0; n < right.parameters.size(); ++n)
    CHECK(worst(got.parameters[n].values.values, right.parameters[n].values.values) < 20 * tolerance);
  // Every input moves in the direction of its own numbers.
  policy_direction const direction{.parameters = {{"rate", 0.3}}};
  auto const moving = make_inputs<Op, moving_tensor<T>>(
      [&]<field F>() { return moving_tensor<T>{member<F>(in), member<F>(in)}; }, in.offset);
  auto const exact_moving = make_inputs<Op, tangent_tensor>(
      [&]<field F>() { return tangent_tensor{member<F>(exact_in), member<F>(exact_in)}; }, in.offset);
  auto const along = jvp(cpu<T>{2}, op, moving, direction);
  auto const right_along = jvp(reference<double>{}, op, exact_moving, direction);
  std::vector<double> tangents;
  for (index_t b = 0; b < out_shape.batch; ++b)
    for (index_t h = 0; h < out_shape.head; ++h)
      for (index_t i = 0; i < out_shape.position; ++i)
        for (index_t d = 0; d < out_shape.feature; ++d) tangents.push_back(right_along.at(b, h).out(i, d).tangent[0]);
  CHECK(worst(along.out_along.values, tangents) < 20 * tolerance);
}

/// Whether an index of a pair is next to an integer, in float.
template <class Op, class Problem>
bool near_integer(Op const& op, Problem const& p) {
  using T = double;
  auto const in = p.template inputs<any_tensor>();
  auto const shape_of_rows = detail::checked_problem("fuzz", op, in, detail::output_shape(in));
  lift<T> const numbers;
  detail::reference_contraction<T, Op, any_tensor> const contract{op, in, shape_of_rows, numbers};
  bool found = false;
  for (index_t b = 0; b < shape_of_rows.batch; ++b)
    for (index_t h = 0; h < shape_of_rows.heads; ++h)
      for (index_t i = 0; i < shape_of_rows.queries; ++i) {
        auto const f = op.bind(detail::scalar_row<T>(shape_of_rows, op.mask, b, h, i, numbers));
        detail::row_contractions<T> all{Op::contractions::size, {}};
        for (index_t j = 0; j < shape_of_rows.keys; ++j)
          if (mask::sees(op.mask, shape_of_rows.row(b, h, i), j)) contract.all(all.add_key(), b, h, i, j);
        detail::sum_in_order(contract, f, all, b, h, i);
        contraction::each_ordered<typename Op::contractions>([&](auto, auto index, auto) {
          for (std::size_t n = 0; n < all.keys(); ++n) {
            double const y = all.at(n, decltype(index)::value);
            found = found || (y != 0 && std::fabs(y - std::round(y)) < 2e-5);
          }
        });
      }
  return found;
}

template <class Op>
void fuzz(Op const& op, std::uint64_t seed) {
  CAPTURE(seed);
  testing::detail::normal_numbers random(seed);
  index_t const heads = 2 * (1 + random.below(2)), queries = 1 + random.below(50), entries = 1 + random.below(12);
  testing::problem_extents const e{.batch = 1 + random.below(2),
                                   .heads = heads,
                                   .queries = queries,
                                   .keys = 1 + random.below(150),
                                   .width = 1 + random.below(9),
                                   .value_width = 1 + random.below(5),
                                   .gate_width = 3,
                                   .key_heads = 2};
  testing::drawn_problem<Op> p(e, random);
  auto& rows = p.of(field::position_scores);
  rows.extents = {random.below(2) == 0 ? 1 : e.batch, random.below(2) == 0 ? 1 : heads,
                  random.below(3) == 0 ? 1 : queries, entries};
  rows.doubles.clear(), rows.floats.clear();
  for (index_t n = 0; n < rows.extents.size(); ++n) {
    rows.floats.push_back(float(random()));
    rows.doubles.push_back(double(rows.floats.back()));
  }
  CAPTURE(to_string(rows.extents));
  shape const out{e.batch, heads, queries, e.value_width};
  compare<double>(op, p, out, true, 1e-13);
  compare<float>(op, p, out, !near_integer(op, p), 2e-5);
}

/// The seeds of a run: the same ones, and one that is new.
template <class Op>
void fuzz_all(Op const& op) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) fuzz(op, seed);
  std::random_device fresh;
  for (int n = 0; n < 4; ++n) {
    std::uint64_t const seed = fresh();
    MESSAGE("fresh seed ", seed);
    fuzz(op, seed);
  }
}

TEST_CASE("interpolated rows: random problems agree with the reference") {
  std::vector<double> const rate{0.9};
  fuzz_all(attention(cope{per_head(rate)}, mask::causal{}));
}
TEST_CASE("interpolated rows: two that read one row, in a sum of kernels") {
  fuzz_all(attention(cope_before{1.0, 0.2} + gated_cope{}, normalizer::off_by_one{},
                     mask::predicate([](mask_row const& r, index_t j) { return (r.query * 7 + j * 5) % 3 != 0; })));
}

}  // namespace
}  // namespace attune::test
