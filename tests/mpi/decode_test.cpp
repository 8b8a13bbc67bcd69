// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() over ranks: the numbers of forward(cpu{}); the same bits on every rank that answers.
#include <cstdint>

#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// The numbers of rank 0, on all ranks.
array of_rank_0(mpi::communicator const& ranks, array x) {
  ranks.broadcast(std::span<float>(x.numbers), 0);
  return x;
}

/// `heads`: of the output.
template <class Op>
void compare(char const* name, Op const& op, index_t lq, index_t lk, index_t heads = 4) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank(), last = ranks.size() - 1;
  whole_problem<Op> const whole(sizes{lq, lk}, 9);
  auto const in = whole_problem<Op>::views(whole.fields);
  array expected({2, heads, lq, 13});
  forward(cpu{1}, op, in, {.out = expected.view()});
  for (sharding const& keys : several_shardings(lk, ranks.size())) {
    CAPTURE(std::string(name));
    CAPTURE(to_string(keys, me));
    auto fields = whole.fields;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (side_of(F) == input_side::key) fields[std::size_t(F)] = part_of(fields[std::size_t(F)], keys, me);
    });
    auto const mine = whole_problem<Op>::views(fields);
    auto const exec = on_ranks(ranks, cpu{1}, {.keys = keys});
    array out(expected.extents), again(expected.extents), one(expected.extents);
    decode(exec, op, mine, {.out = out.view()});
    CHECK(difference(out, expected) < 2e-6);
    CHECK(same_bits(out, of_rank_0(ranks, out)));
    decode(exec, op, mine, {.out = again.view()});
    CHECK(same_bits(out, again));
    decode(exec, op, mine, {.out = one.view()}, answer_on::rank(last));
    CHECK(same_bits(one, me == last ? out : array(expected.extents)));
  }
}

/// `heads`: of the output. Queries have 4, keys 2.
template <class Op>
void compare_pages(Op const& op, index_t heads) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  constexpr index_t size = 16, batch = 2, own = 5;  // keys per page, pages per sequence and rank
  index_t const lk = own * size * ranks.size();
  array const q = random_array({batch, 4, 2, 17}, 1), k = random_array({batch, 2, lk, 17}, 2),
              v = random_array({batch, 2, lk, 13}, 3);
  auto const views = [](array const& queries, array const& keys, array const& values) {
    std::array<array, field_count> fields;
    fields[std::size_t(field::q)] = queries;
    fields[std::size_t(field::k)] = keys;
    fields[std::size_t(field::v)] = values;
    return fields;
  };
  array expected({batch, heads, 2, 13}), out(expected.extents);
  auto const all = views(q, k, v);
  forward(cpu{1}, op, whole_problem<Op>::views(all), {.out = expected.view()});
  // Pages of this rank, in an order of no meaning.
  array k_pages({batch * own, 2, size, 17}), v_pages({batch * own, 2, size, 13});
  std::vector<std::int32_t> numbers;
  for (index_t b = 0; b < batch; ++b)
    for (index_t n = 0; n < own; ++n) {
      index_t const page = (b * own + n) * 7 % (batch * own);
      numbers.push_back(std::int32_t(page));
      for (index_t h = 0; h < 2; ++h)
        for (index_t j = 0; j < size; ++j) {
          index_t const key = (me * own + n) * size + j;
          for (index_t d = 0; d < 17; ++d) k_pages.view()(page, h, j, d) = k(b, h, key, d);
          for (index_t d = 0; d < 13; ++d) v_pages.view()(page, h, j, d) = v(b, h, key, d);
        }
    }
  auto const mine = views(q, k_pages, v_pages);
  decode(on_ranks(ranks, cpu{1}), op, whole_problem<Op>::views(mine), page_table(numbers, batch), {.out = out.view()});
  CHECK(difference(out, expected) < 2e-6);
}

}  // namespace

TEST_CASE("mpi decode: softmax, causal") {
  compare("softmax", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 3, 200);
}
TEST_CASE("mpi decode: grounded") {
  compare("grounded", attention(kernel::dot_product{}, normalizer::grounded{0.3}, mask::causal{}), 1, 150);
}
TEST_CASE("mpi decode: self-adjusted") {
  compare("adjusted",
          attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                    mask::causal_window{70}),
          2, 130);
}
TEST_CASE("mpi decode: a fold of heads, a coefficient per query") {
  static std::vector<double> const minus{-0.2, -0.9, 0.4};
  compare("fold",
          fold(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}),
               {1.0, tensor<double const>(minus, {1, 1, 3, 1})}),
          3, 160, 2);
}
TEST_CASE("mpi decode: a fold of two operators") {
  compare("fold of two",
          fold({0.7, -0.4}, attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}),
               attention(kernel::dot_product{}, normalizer::grounded{0.3}, mask::causal_window{40})),
          2, 120);
}
TEST_CASE("mpi decode: pages") {
  compare_pages(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 4);
}
TEST_CASE("mpi decode: pages, a fold") {
  compare_pages(fold(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), {1.0, -0.6}), 2);
}
TEST_CASE("mpi decode: ranks with other coefficients of a fold are refused") {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  if (ranks.size() == 1) return;
  array const q = random_array({1, 2, 1, 8}, 1), k = random_array({1, 2, 4, 8}, 2), v = random_array({1, 1, 4, 8}, 3);
  array out({1, 1, 1, 8});
  auto const op = fold(attention(kernel::dot_product{}, normalizer::softmax{}), {1.0, 0.1 * ranks.rank()});
  CHECK_THROWS_AS(
      decode(on_ranks(ranks, cpu{1}), op, {.q = q.view(), .k = k.view(), .v = v.view()}, {.out = out.view()}), error);
}
TEST_CASE("mpi decode: an answer on a rank that cannot be is refused") {
  CHECK_THROWS_WITH_AS(answer_on::rank(-1),
                       "attune::decode: the answer has the rank -1; expected a rank >= 0, or answer_on::every_rank()",
                       error);
}
