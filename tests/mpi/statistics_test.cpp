// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// statistics() over ranks: the numbers of statistics(cpu{}).
#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// The positions of a rank, of numbers (B, H, positions).
template <class N>
array numbers_of(std::vector<N> const& x, index_t positions) {
  array a({2, 4, positions, 1});
  REQUIRE(a.numbers.size() == x.size());
  for (std::size_t n = 0; n < x.size(); ++n) a.numbers[n] = float(x[n]);
  return a;
}

template <class Op>
void compare(char const* name, Op const& op, index_t lq, index_t lk) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  whole_problem<Op> const whole(sizes{lq, lk}, 3);
  auto const in = whole_problem<Op>::views(whole.fields);
  array out({2, 4, lq, 13});
  statistics_request const request{.entropy = true, .columns = true, .above = 0.05};
  auto const all = statistics(cpu{1}, op, in, forward_and_save(cpu{1}, op, in, {.out = out.view()}), request);
  for (sharding const& keys : several_shardings(lk, ranks.size()))
    for (sharding const& queries : several_shardings(lq, ranks.size())) {
      CAPTURE(std::string(name));
      CAPTURE(to_string(queries, me));
      CAPTURE(to_string(keys, me));
      auto const fields = whole.part(queries, keys, me);
      auto const mine = whole_problem<Op>::views(fields);
      auto const exec = on_ranks(ranks, cpu{1}, {.queries = queries, .keys = keys});
      array own({2, 4, queries.size(me), 13});
      auto const saved = forward_and_save(exec, op, mine, {.out = own.view()});
      auto const s = statistics(exec, op, mine, saved, request);
      auto const row = [&](char const* number, auto const& x, auto const& y) {
        CAPTURE(std::string(number));
        CHECK(difference(numbers_of(x, queries.size(me)), part_of(numbers_of(y, lq), queries, me)) < 1e-5);
      };
      row("highest logit", s.highest_logit, all.highest_logit), row("mean logit", s.mean_logit, all.mean_logit);
      row("scored", s.scored, all.scored), row("highest weight", s.highest_weight, all.highest_weight);
      row("mass", s.mass, all.mass), row("first key", s.first_key, all.first_key);
      row("ground weight", s.ground_weight, all.ground_weight), row("entropy", s.entropy, all.entropy);
      row("above", s.above, all.above);
      CHECK(difference(numbers_of(s.columns, keys.size(me)), part_of(numbers_of(all.columns, lk), keys, me)) < 1e-5);
      auto const again = statistics(exec, op, mine, saved, request);
      CHECK(same_bits(numbers_of(s.columns, keys.size(me)), numbers_of(again.columns, keys.size(me))));
      CHECK(same_bits(numbers_of(s.entropy, queries.size(me)), numbers_of(again.entropy, queries.size(me))));
    }
}

}  // namespace

TEST_CASE("mpi statistics: grounded, causal") {
  compare("grounded", attention(kernel::dot_product{}, normalizer::grounded{0.3}, mask::causal{}), 100, 150);
}
TEST_CASE("mpi statistics: sparsemax") {
  compare("sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::none{}), 40, 90);
}
