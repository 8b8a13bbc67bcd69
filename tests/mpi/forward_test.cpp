// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() over ranks: the bits of accumulate() and merge() in one process, and the numbers of forward(cpu{}).
#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// The states of all rows over the keys of `rank`, then of the rank before it, and so on.
template <class Op>
states_of<float, Op> states_in_one_process(Op const& op, inputs<Op, tensor<float const>> const& in,
                                           sharding const& keys, int rank, bool shard_first) {
  states_of<float, Op> all;
  bool first = true;
  auto const add = [&](states_of<float, Op> part) {
    all = first ? std::move(part) : merge(std::move(all), std::move(part));
    first = false;
  };
  for (int n = 0; n < keys.ranks(); ++n) {
    int const from = (rank + keys.ranks() - n) % keys.ranks();
    if (shard_first && n > 0 && !keys.intervals(from).empty()) {
      states_of<float, Op> shard;
      bool begun = false;
      for (key_interval const& k : keys.intervals(from)) {
        auto part = accumulate(cpu{1}, op, in, k);
        shard = begun ? merge(std::move(shard), std::move(part)) : std::move(part);
        begun = true;
      }
      add(std::move(shard));
      continue;
    }
    for (key_interval const& k : keys.intervals(from)) add(accumulate(cpu{1}, op, in, k));
  }
  return all;
}

template <class Op>
void compare(char const* name, Op const& op, index_t lq, index_t lk) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  whole_problem<Op> const whole(sizes{lq, lk}, 7);
  auto const in = whole_problem<Op>::views(whole.fields);
  array expected({2, 4, lq, 13});
  forward(cpu{1}, op, in, {.out = expected.view()});
  for (sharding const& keys : several_shardings(lk, ranks.size()))
    for (sharding const& queries : several_shardings(lq, ranks.size()))
      for (rank_plan const plan : {rank_plan::ring, rank_plan::states}) {
        if (Op::has_threshold && plan == rank_plan::states) continue;  // refusals_test.cpp
        CAPTURE(std::string(name));
        CAPTURE(to_string(queries, me));
        CAPTURE(to_string(keys, me));
        CAPTURE(int(plan));
        auto const fields = whole.part(queries, keys, me);
        auto const exec = on_ranks(ranks, cpu{1}, {.queries = queries, .keys = keys, .plan = plan});
        array out({2, 4, queries.size(me), 13}), again(out.extents), saving(out.extents);
        auto const mine = whole_problem<Op>::views(fields);
        forward(exec, op, mine, {.out = out.view()});
        forward(exec, op, mine, {.out = again.view()});
        auto const saved = forward_and_save(exec, op, mine, {.out = saving.view()});
        CHECK(same_bits(out, again));
        CHECK(same_bits(out, saving));
        CHECK(saved.windows.size() == queries.intervals(me).size());
        CHECK(difference(out, part_of(expected, queries, me)) < 2e-6);
        if constexpr (!Op::has_threshold) {
          auto const states = states_in_one_process(op, in, keys, me, plan == rank_plan::states);
          array merged(expected.extents);
          finish(cpu{}, op, in, states, {.out = merged.view()});
          CHECK(same_bits(out, part_of(merged, queries, me)));
        }
      }
}

}  // namespace

TEST_CASE("mpi forward: softmax, causal") {
  compare("softmax", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}), 150, 150);
}
TEST_CASE("mpi forward: more keys than queries, a window") {
  compare("window", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal_window{20}), 40, 230);
}
TEST_CASE("mpi forward: self-adjusted") {
  compare("adjusted",
          attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                    mask::causal{}),
          90, 90);
}
TEST_CASE("mpi forward: uniform share") {
  compare("affine", attention(kernel::dot_product{}, normalizer::affine<>{0.4, 0.7}, mask::none{}), 70, 130);
}
TEST_CASE("mpi forward: sparsemax") {
  compare("sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{}), 90, 90);
}
