// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <support/own_contractions.hpp>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::test {
namespace {

constexpr index_t batch = 2, heads = 4, key_heads = 2, queries = 37, keys = 83, width = 5, value_width = 3;

/// Random numbers that stay where they are.
struct memory {
  std::deque<std::vector<double>> kept;
  std::mt19937_64 random{20261121};

  tensor<double const> draw(shape const& s) {
    std::normal_distribution<double> normal;
    auto& x = kept.emplace_back(static_cast<std::size_t>(s.size()));
    for (double& y : x) y = normal(random);
    return {x.data(), s};
  }
};

shape shape_of(field f) {
  return testing::extents_of(f, {batch, heads, queries, keys, width, value_width, 0, 0, 2, key_heads, heads});
}

template <class Op, class View, class Make>
inputs<Op, View> inputs_from(Make const& make) {
  auto const take = [&]<field F>() {
    using type = std::remove_cvref_t<decltype(member<F>(std::declval<inputs<Op, View>&>()))>;
    if constexpr (Op::uses(F))
      return type(make(F));
    else
      return type{};
  };
  return [&]<int... F>(std::integer_sequence<int, F...>) {
    return inputs<Op, View> { take.template operator()<static_cast<field>(F)>()..., {} };
  }(std::make_integer_sequence<int, int(field_count)>{});
}

bool same_bits(directional_result<double> const& a, directional_result<double> const& b) {
  return a.out.values == b.out.values && a.out_along.values == b.out_along.values &&
         a.lse_along.values == b.lse_along.values && a.ground_weight_along.values == b.ground_weight_along.values;
}

/// How many outputs have other bits than those of forward().
template <class Op>
index_t differing_values(Op const& op, inputs<Op, moving_tensor<double>> const& moving,
                         directional_result<double> const& got) {
  auto const in = inputs_from<Op, tensor<double const>>([&](field f) {
    tensor<double const> x;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (F == f) x = member<F>(moving).value;
    });
    return x;
  });
  auto const rows = [](index_t features) { return gradient_array<double>({batch, heads, queries, features}); };
  auto out = rows(value_width), lse = rows(1), ground = rows(1);
  outputs<Op, double> to{.out = {out.values.data(), out.extents}};
  if constexpr (Op::has_lse) to.lse.values = {lse.values.data(), lse.extents};
  if constexpr (Op::has_ground_weight) to.ground_weight = {ground.values.data(), ground.extents};
  forward(cpu<double>(1), op, in, to);
  index_t n = 0;
  auto const count = [&](std::vector<double> const& a, std::vector<double> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i) n += std::memcmp(&a[i], &b[i], sizeof(double)) != 0;
  };
  count(out.values, got.out.values);
  if constexpr (Op::has_lse) count(lse.values, got.lse.values);
  if constexpr (Op::has_ground_weight) count(ground.values, got.ground_weight.values);
  return n;
}

/// Everything moves, then every other tensor stands still.
template <class Op>
void compare(Op const& op) {
  for (bool const some : {false, true}) {
    memory m;
    auto const moving = inputs_from<Op, moving_tensor<double>>([&](field f) {
      shape const s = shape_of(f);
      tensor<double const> value = m.draw(s);
      if (f == field::spread)
        for (double& x : m.kept.back()) x = 1 + std::abs(x);
      return some && static_cast<int>(f) % 2 == 1 ? moving_tensor<double>(value)
                                                  : moving_tensor<double>(value, m.draw(s));
    });
    auto const dense = inputs_from<Op, tangent_tensor>([&](field f) {
      moving_tensor<double> x;
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F))
          if (F == f) x = member<F>(moving);
      });
      return x.along.absent() ? tangent_tensor(any_tensor(x.value))
                              : tangent_tensor(any_tensor(x.value), any_tensor(x.along));
    });
    policy_direction direction;
    for (operator_parameter const& p : listed_parameters(op))
      direction.parameters.push_back({p.path(), 0.5 - 0.2 * static_cast<double>(direction.parameters.size())});
    for (operator_table const& x : listed_tables(op))
      if (!some) direction.tables.push_back({x.path(), table(m.draw(x.at->extents()))});
    auto const got = jvp(cpu<double>(1), op, moving, direction);
    CHECK(same_bits(got, jvp(cpu<double>(3), op, moving, direction)));
    CHECK(differing_values(op, moving, got) == 0);
    auto const expected = jvp(reference<double>{}, op, dense, direction);
    double largest = 0, worst = 0, worst_value = 0;
    auto const note = [&](dual<double, 1> const& x, double value, double along) {
      largest = std::max(largest, std::abs(x.tangent[0]));
      worst = std::max(worst, std::isnan(along) ? INFINITY : std::abs(along - x.tangent[0]));
      worst_value = std::max(worst_value, std::isnan(value) ? INFINITY : std::abs(value - x.value));
    };
    for (index_t b = 0; b < batch; ++b)
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < queries; ++i) {
          auto const& head = expected.at(b, h);
          for (index_t d = 0; d < value_width; ++d)
            note(head.out(i, d), got.out(b, h, i, d), got.out_along(b, h, i, d));
          if constexpr (Op::has_lse) note(head.lse(i), got.lse(b, h, i, 0), got.lse_along(b, h, i, 0));
          if constexpr (Op::has_ground_weight)
            note(head.ground_weight(i), got.ground_weight(b, h, i, 0), got.ground_weight_along(b, h, i, 0));
        }
    CHECK(largest > 1e-3);
    CHECK(worst <= 1e-11 * (1 + largest));
    CHECK(worst_value <= 1e-12);
  }
}

struct minus_distance {
  template <class T>
  static T pair(T const& q, T const& k) {
    return -math::sqrt(T(T(1) + (q - k) * (q - k)));
  }
};

TEST_CASE("directional: the same derivatives as the reference, and the bits of forward()") {
  memory m;
  auto const tables = [&](index_t rows, index_t columns) { return table(m.draw({1, heads, rows, columns})); };
  compare(attention(kernel::dot_product{0.7}, normalizer::sink{0.3}, mask::causal{}));
  compare(principled_attention({0.3, -0.2, 0.4}, mask::causal_window{20}));
  compare(attention(kernel::tempered_dot{1.5}, normalizer::affine<>{0.7, 0.6}, gate::sigmoid_output{},
                    gate::sigmoid_value{}));
  compare(attention(kernel::dot_product{4.0}, gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{}));
  compare(attention(kernel::bilinear{tables(1, width), 0.4}, normalizer::sigmoid{}));
  compare(
      attention(kernel::elliptical{tables(1, width), 0.01} + kernel::l2{} + kernel::elementwise<minus_distance>{0.3}));
  compare(attention(kernel::transformer_xl(tables(1, width), tables(1, width), tables(2 * keys + 1, width))));
  compare(attention(kernel::tupe() + kernel::scalar_sort{0.8} + kernel::spatial_prior{2.0} + kernel::bias{} +
                    kernel::key_bias{}));
  compare(attention(kernel::dot_product{} + kernel::relative_bias{tables(21, 1)} + kernel::t5_bias{tables(32, 1)} +
                    kernel::fourier_prior{tables(4, 1), tables(4, 1), tables(4, 1)}));
  compare(attention(kernel::given_scores{}, gate::given_softplus{0.4}, normalizer::valued_sink{0.2}));
  compare(attention(tableless_kernel<own::fading>{} + tableless_kernel<own::agreement>{}));
  compare(attention(warped_kernel{tables(9, width)} + weighted_bias_kernel{tables(1, 1)} +
                    cauchy_kernel{tables(3, 1), tables(3, 1)}));
}

TEST_CASE("directional: empty rows do not move") {
  memory m;
  auto const op = attention(kernel::dot_product{}, mask::causal{});
  auto const q = m.draw({1, 1, 5, 2}), dq = m.draw({1, 1, 5, 2}), k = m.draw({1, 1, 3, 2});
  auto const r = jvp(cpu<double>(1), op, {.q = {q, dq}, .k = k, .v = k});
  for (index_t i = 0; i < 2; ++i)  // causal, aligned at the end: two queries see nothing
    for (index_t d = 0; d < 2; ++d) CHECK((r.out(0, 0, i, d) == 0 && r.out_along(0, 0, i, d) == 0));
  CHECK(r.lse(0, 0, 0, 0) == -INFINITY);
  CHECK(r.lse_along(0, 0, 0, 0) == 0);
  CHECK(r.out_along(0, 0, 4, 0) != 0);
}

TEST_CASE("directional: what is wrong is named") {
  memory m;
  auto const op = attention(kernel::dot_product{});
  auto const q = m.draw({1, 1, 5, 2}), k = m.draw({1, 1, 3, 2});
  try {
    jvp(cpu<double>(1), op, {.q = {q, k}, .k = k, .v = k});
    FAIL("accepted");
  } catch (error const& e) {
    CHECK(std::string(e.what()) ==
          "attune::jvp: the direction of q has shape (1, 1, 3, 2); expected (1, 1, 5, 2), the shape of the tensor");
  }
}

}  // namespace
}  // namespace attune::test
