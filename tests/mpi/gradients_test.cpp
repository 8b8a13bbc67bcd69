// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() over ranks: the gradients of vjp(cpu{}), the same on every run.
#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

array as_array(gradient_array<float> const& g) {
  array a(g.extents);
  a.numbers = g.values;
  return a;
}

template <class Op>
void compare(char const* name, Op const& op, index_t lq, index_t lk, double allowed = 2e-5) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  whole_problem<Op> const whole(sizes{lq, lk}, 11);
  auto const in = whole_problem<Op>::views(whole.fields);
  array const d_out = random_array({2, 4, lq, 13}, 5), d_lse = random_array({2, 4, lq, 1}, 6);
  auto const cotangents_of = [](array const& out, array const& lse) {
    cotangents<Op, tensor<float const>> d{.out = out.view()};
    if constexpr (Op::has_lse) d.lse = lse.view();
    if constexpr (Op::has_ground_weight) d.ground_weight = lse.view();
    return d;
  };
  auto const expected = vjp(cpu{1}, op, in, cotangents_of(d_out, d_lse));
  for (sharding const& keys : several_shardings(lk, ranks.size()))
    for (sharding const& queries : several_shardings(lq, ranks.size())) {
      CAPTURE(name);
      CAPTURE(to_string(queries, me));
      CAPTURE(to_string(keys, me));
      auto const fields = whole.part(queries, keys, me);
      auto const mine = whole_problem<Op>::views(fields);
      auto const exec = on_ranks(ranks, cpu{1}, {.queries = queries, .keys = keys});
      array const by_out = part_of(d_out, queries, me), by_lse = part_of(d_lse, queries, me);
      auto const g = vjp(exec, op, mine, cotangents_of(by_out, by_lse));
      array out(by_out.extents);
      auto const saved = forward_and_save(exec, op, mine, {.out = out.view()});
      auto const again = vjp(exec, op, mine, saved, cotangents_of(by_out, by_lse));
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F)) {
          CAPTURE(name_of(F));
          array const& all = whole.fields[std::size_t(F)];
          array want = as_array(expected.of(F));
          if (side_of(F) == input_side::key || all.extents.position != 1 || lq == 1)
            want = part_of(want, side_of(F) == input_side::key ? keys : queries, me);
          CHECK(difference(as_array(g.of(F)), want) < allowed);
          CHECK(same_bits(as_array(g.of(F)), as_array(again.of(F))));
        }
      });
      REQUIRE(g.parameters.size() == expected.parameters.size());
      for (std::size_t n = 0; n < g.parameters.size(); ++n) {
        CAPTURE(g.parameters[n].path);
        CHECK(difference(as_array(g.parameters[n].values), as_array(expected.parameters[n].values)) < allowed);
        CHECK(same_bits(as_array(g.parameters[n].values), as_array(again.parameters[n].values)));
      }
      REQUIRE(g.tables.size() == expected.tables.size());
      for (std::size_t n = 0; n < g.tables.size(); ++n) {
        CAPTURE(g.tables[n].path);
        CHECK(difference(as_array(g.tables[n].values), as_array(expected.tables[n].values)) < allowed);
      }
    }
}

}  // namespace

TEST_CASE("mpi vjp: softmax, causal") {
  compare("softmax", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 150, 150);
}
TEST_CASE("mpi vjp: grounded, margin, a gate, a parameter per query") {
  static std::vector<double> level(70);
  for (std::size_t n = 0; n < level.size(); ++n) level[n] = 0.1 * double(n % 7) - 0.3;
  compare("grounded",
          attention(kernel::dot_product{}, length_scale::margin{.gamma = tensor<double const>(level, {1, 1, 70, 1})},
                    gate::softplus{}, normalizer::grounded{0.3}, mask::causal_window{40}),
          70, 90);
}
TEST_CASE("mpi vjp: self-adjusted") {
  compare("adjusted",
          attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                    mask::causal{}),
          90, 90);
}
TEST_CASE("mpi vjp: uniform share, a gate on values and one on the output") {
  compare("affine",
          attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{},
                    normalizer::affine<>{0.4, 0.7}, mask::none{}),
          70, 130);
}
TEST_CASE("mpi vjp: sparsemax") {
  compare("sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{}), 90, 90);
}
TEST_CASE("mpi vjp: entmax, a gate on the output") {
  compare("entmax",
          attention(kernel::dot_product{}, gate::sigmoid_output{}, normalizer::entmax{1.3}, mask::causal_window{50}),
          60, 90);
}
TEST_CASE("mpi vjp: top-k") {
  compare("top_k", attention(kernel::dot_product{}, gate::sigmoid_value{}, normalizer::top_k{5}, mask::none{}), 50, 90);
}
