// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every hook over ranks, forward and backward: tables by distance and by entry, numbers per pair and per key, rotary
// angles, weight gates, value terms, offsets, masks over arrays, keys with the same extreme logit, a user's normalizer.
#include "compare.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// Weights 1 / (1 + e^-a), of a user.
struct own_sigmoid {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  parameter bias = 0.0;
  static constexpr auto parameters() { return std::array{listed("bias", &own_sigmoid::bias)}; }
  template <class T>
  struct bound {
    T bias;
    T earned(T const& logit, T const&) const { return math::sigmoid(T(logit + bias)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(bias) - r.log_visible};
  }
};

std::vector<double> ramp(std::size_t n, double first, double step) {
  std::vector<double> x(n);
  for (std::size_t k = 0; k < n; ++k) x[k] = first + step * double(k % 11);
  return x;
}

}  // namespace

TEST_CASE("mpi hooks: ALiBi, a bias table by distance, dropout") {
  static auto const values = ramp(2 * 9 + 1, -0.4, 0.13), slopes = ramp(4, 0.02, 0.05);
  compare_with_one_process("alibi",
                           attention(kernel::dot_product{} + kernel::alibi{tensor<double const>(slopes, {1, 4, 1, 1})} +
                                         kernel::relative_bias{tensor<double const>(values, {1, 1, 19, 1})},
                                     gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{}),
                           70, 100);
}
TEST_CASE("mpi hooks: vectors of the distance, added to values") {
  static auto const vectors = ramp(4 * 9 * 13, -0.6, 0.17);
  compare_with_one_process("value_term",
                           attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{},
                                     value_term::relative{tensor<double const>(vectors, {1, 4, 9, 13})}),
                           70, 100);
}
TEST_CASE("mpi hooks: rotary angles, keys turned by the ranks that compute") {
  rotary_angles<float> const angles(rotary_frequencies::plain(16), 120);
  compare_with_one_process("rotary", attention(kernel::rotary{.angles = angles}, normalizer::sink{0.2}, mask::causal{}),
                           60, 120);
}
TEST_CASE("mpi hooks: scores and gates for each pair, a bias per key") {
  compare_with_one_process(
      "given", attention(kernel::given_scores{} + kernel::key_bias{}, gate::given_softplus{}, mask::causal{}), 50, 90);
}
TEST_CASE("mpi hooks: a bias for each pair that all queries share") {
  sizes_of_problem sizes{{50, 90}};
  sizes.bias = {1, 4, 1, 90};
  compare_with_one_process("bias", attention(kernel::dot_product{} + kernel::bias{}, normalizer::grounded{0.1}), sizes);
}
TEST_CASE("mpi hooks: a user's normalizer, an offset") {
  sizes_of_problem sizes{{40, 110}};
  sizes.offset = 30;
  compare_with_one_process("own", attention(kernel::dot_product{}, own_sigmoid{0.3}, mask::causal{}), sizes);
}
TEST_CASE("mpi hooks: a mask over an array, rows and ranks without keys") {
  static std::vector<unsigned char> visible(60 * 90);
  for (std::size_t n = 0; n < visible.size(); ++n) {
    std::size_t const i = n / 90, j = n % 90;
    visible[n] = i % 7 != 3 && (i * 31 + j * 17) % 5 < 2 && j < 60;
  }
  compare_with_one_process("visible",
                           attention(kernel::dot_product{}, normalizer::softmax{},
                                     mask::visible_table{tensor<unsigned char const>(visible.data(), {1, 1, 60, 90})}),
                           60, 90);
}
TEST_CASE("mpi hooks: a metric table, a window of both sides") {
  static auto const metric = ramp(17, 0.1, 0.07);
  compare_with_one_process("metric",
                           attention(kernel::elliptical{tensor<double const>(metric, {1, 1, 1, 17})},
                                     normalizer::off_by_one{}, mask::window{25}),
                           80, 80);
}
TEST_CASE("mpi hooks: widths of whole vectors: gradients by gated values are added in place") {
  sizes_of_problem sizes{{70, 130}};
  sizes.width = sizes.value_width = 32;
  compare_with_one_process(
      "in place", attention(kernel::dot_product{}, gate::sigmoid_value{}, normalizer::softmax{}, mask::causal{}),
      sizes);
}
TEST_CASE("mpi hooks: a rank with single rows, a parameter per query") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  index_t const queries = 2 * ranks.size();
  std::vector<double> level(std::size_t(queries), 0.1);
  for (std::size_t n = 0; n < level.size(); ++n) level[n] -= 0.07 * double(n);
  compare_with_one_process(
      "single rows",
      attention(kernel::dot_product{}, normalizer::grounded{tensor<double const>(level.data(), {1, 1, queries, 1})}),
      queries, 60);
}
TEST_CASE("mpi hooks: one query") {
  compare_with_one_process("one query", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 1, 50);
}
TEST_CASE("mpi hooks: several keys with the same extreme logit: the gradient goes through one of them") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  auto const op = attention(kernel::given_scores{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                            mask::none{});
  index_t const keys = 6 * ranks.size();
  array scores({1, 1, 2, keys}), v = random_array({1, 1, keys, 3}, 4), d_out = random_array({1, 1, 2, 3}, 5);
  for (std::size_t n = 0; n < scores.numbers.size(); ++n) scores.numbers[n] = float(int(n) % 3) - 1;  // on every rank
  auto const rows = sharding::contiguous(2, ranks.size()), columns = sharding::contiguous(keys, ranks.size());
  int const me = ranks.rank();
  array const mine = part_of(scores, rows, me), values = part_of(v, columns, me), by = part_of(d_out, rows, me);
  auto const one = vjp(cpu{1}, op, {.v = v.view(), .scores = scores.view()}, {.out = d_out.view()});
  auto const g = vjp(on_ranks(ranks, cpu{1}, {.queries = rows, .keys = columns}), op,
                     {.v = values.view(), .scores = mine.view()}, {.out = by.view()});
  // Keys with an extreme logit: the sum of their gradients is that of one process.
  for (index_t i = 0; i < rows.size(me); ++i)
    for (float const extreme : {-1.0f, 1.0f}) {
      double sum = 0, expected = 0;
      for (index_t j = 0; j < keys; ++j) {
        if (mine(0, 0, i, j) != extreme) continue;
        sum += g.of(field::scores)(0, 0, i, j);
        expected += one.of(field::scores)(0, 0, rows.global(me, i), j);
      }
      CHECK(std::abs(sum - expected) < 1e-5);
    }
}
