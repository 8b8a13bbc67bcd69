// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() and vjp() over ranks against one process, for several shardings of queries and keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem.hpp"

namespace attune::test {

/// The gradient as an array.
inline array as_array(gradient_array<float> const& g) {
  array a(g.extents);
  a.numbers = g.values;
  return a;
}

/// Extents of a problem, and an offset.
struct sizes_of_problem : sizes {
  shape bias = {0, 0, 0, 0};  ///< of the input bias, if it has other extents than one number for each pair
  std::optional<index_t> offset = {};
  shape operator()(field f) const { return f == field::bias && bias.size() != 0 ? bias : sizes::operator()(f); }
};

/// Compares outputs, gradients by every input, parameter and table, and a second run.
template <class Op>
void compare_with_one_process(char const* name, Op const& op, sizes_of_problem const& extents, double allowed = 3e-5) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  index_t const lq = extents.queries, lk = extents.keys;
  whole_problem<Op> const whole(extents, 11);
  auto const in = whole_problem<Op>::views(whole.fields, extents.offset);
  array const d_out = random_array({2, 4, lq, extents.value_width}, 5), d_row = random_array({2, 4, lq, 1}, 6);
  auto const cotangents_of = [](array const& out, array const& row) {
    cotangents<Op, tensor<float const>> d{.out = out.view()};
    if constexpr (Op::has_lse) d.lse = row.view();
    if constexpr (Op::has_ground_weight) d.ground_weight = row.view();
    return d;
  };
  auto const outputs_in = [](array& out, array& row) {
    outputs<Op, float> to{.out = out.view()};
    if constexpr (Op::has_lse) to.lse.values = row.view();
    if constexpr (Op::has_threshold) to.threshold = row.view();
    return to;
  };
  array expected(d_out.extents), expected_row(d_row.extents);
  forward(cpu{1}, op, in, outputs_in(expected, expected_row));
  auto const by = vjp(cpu{1}, op, in, cotangents_of(d_out, d_row));
  for (sharding const& keys : several_shardings(lk, ranks.size()))
    for (sharding const& queries : several_shardings(lq, ranks.size())) {
      CAPTURE(std::string(name));
      CAPTURE(to_string(queries, me));
      CAPTURE(to_string(keys, me));
      auto const fields = whole.part(queries, keys, me);
      auto const mine = whole_problem<Op>::views(fields, extents.offset);
      auto const exec = on_ranks(ranks, cpu{1}, {.queries = queries, .keys = keys});
      array const by_out = part_of(d_out, queries, me), by_row = part_of(d_row, queries, me);
      array out(by_out.extents), row(by_row.extents);
      auto const saved = forward_and_save(exec, op, mine, outputs_in(out, row));
      CHECK(difference(out, part_of(expected, queries, me)) < 5e-6);
      if constexpr (Op::has_lse || Op::has_threshold) CHECK(difference(row, part_of(expected_row, queries, me)) < 5e-6);
      auto const g = vjp(exec, op, mine, saved, cotangents_of(by_out, by_row));
      auto const again = vjp(exec, op, mine, cotangents_of(by_out, by_row));
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F)) {
          CAPTURE(std::string(name_of(F)));
          array want = as_array(by.of(F));
          if (side_of(F) == input_side::key || want.extents.position != 1 || lq == 1)
            want = part_of(want, side_of(F) == input_side::key ? keys : queries, me);
          CHECK(difference(as_array(g.of(F)), want) < allowed);
          CHECK(same_bits(as_array(g.of(F)), as_array(again.of(F))));
        }
      });
      REQUIRE(g.parameters.size() == by.parameters.size());
      for (std::size_t n = 0; n < g.parameters.size(); ++n) {
        CAPTURE(g.parameters[n].path);
        CHECK(difference(as_array(g.parameters[n].values), as_array(by.parameters[n].values)) < allowed);
        CHECK(same_bits(as_array(g.parameters[n].values), as_array(again.parameters[n].values)));
      }
      REQUIRE(g.tables.size() == by.tables.size());
      for (std::size_t n = 0; n < g.tables.size(); ++n) {
        CAPTURE(g.tables[n].path);
        CHECK(difference(as_array(g.tables[n].values), as_array(by.tables[n].values)) < allowed);
        CHECK(same_bits(as_array(g.tables[n].values), as_array(again.tables[n].values)));
      }
    }
}
template <class Op>
void compare_with_one_process(char const* name, Op const& op, index_t queries, index_t keys) {
  compare_with_one_process(name, op, sizes_of_problem{{queries, keys}});
}

}  // namespace attune::test
