// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Mixtures and folds over ranks: the numbers of cpu{}.
#include "compare.hpp"

using namespace attune;
using namespace attune::test;

namespace {

template <class Op>
void compare(char const* name, Op const& op, index_t lq, index_t lk, index_t heads) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  whole_problem<Op> const whole(sizes{lq, lk}, 21);
  auto const in = whole_problem<Op>::views(whole.fields);
  array const d_out = random_array({2, heads, lq, 13}, 5);
  array expected(d_out.extents);
  forward(cpu{1}, op, in, {.out = expected.view()});
  auto const by = vjp(cpu{1}, op, in, {.out = d_out.view()});
  for (sharding const& keys : several_shardings(lk, ranks.size()))
    for (sharding const& queries : several_shardings(lq, ranks.size())) {
      CAPTURE(std::string(name));
      CAPTURE(to_string(queries, me));
      CAPTURE(to_string(keys, me));
      auto const fields = whole.part(queries, keys, me);
      auto const mine = whole_problem<Op>::views(fields);
      auto const exec = on_ranks(ranks, cpu{1}, {.queries = queries, .keys = keys});
      array const by_out = part_of(d_out, queries, me);
      array out(by_out.extents);
      forward(exec, op, mine, {.out = out.view()});
      CHECK(difference(out, part_of(expected, queries, me)) < 5e-6);
      auto const g = vjp(exec, op, mine, {.out = by_out.view()});
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F)) {
          CAPTURE(std::string(name_of(F)));
          array want = as_array(by.of(F));
          if (side_of(F) == input_side::key || want.extents.position != 1)
            want = part_of(want, side_of(F) == input_side::key ? keys : queries, me);
          CHECK(difference(as_array(g.of(F)), want) < 3e-5);
        }
      });
      REQUIRE(g.parameters.size() == by.parameters.size());
      for (std::size_t n = 0; n < g.parameters.size(); ++n) {
        CAPTURE(g.parameters[n].path);
        CHECK(g.parameters[n].path == by.parameters[n].path);
        CHECK(difference(as_array(g.parameters[n].values), as_array(by.parameters[n].values)) < 3e-5);
      }
    }
}

}  // namespace

TEST_CASE("mpi mixture: softmax, grounded and sparsemax") {
  static std::vector<index_t> const which{1, 0, 2, 1};
  compare("mixture",
          mixture(which, attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}),
                  attention(kernel::dot_product{}, normalizer::grounded{0.2}, mask::causal_window{30}),
                  attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{})),
          70, 90, 4);
}
TEST_CASE("mpi fold: a difference of heads, a coefficient per query") {
  static std::vector<double> minus(60);
  for (std::size_t n = 0; n < minus.size(); ++n) minus[n] = -0.2 - 0.01 * double(n);
  compare("fold",
          fold(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}),
               {1.0, tensor<double const>(minus, {1, 1, 60, 1})}),
          60, 80, 2);
}
