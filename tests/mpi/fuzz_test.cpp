// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random problems over ranks against one process: extents, grouped heads, offsets, masks, shardings with any number of
// intervals on any rank, plans. A few in the quick tier, 300 with --full.
#include <algorithm>
#include <random>

#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// The same numbers on all ranks.
struct dice {
  std::mt19937 bits;
  explicit dice(unsigned seed) : bits(seed) {}
  index_t below(index_t n) { return index_t(bits() % std::uint32_t(n)); }
  index_t from(index_t a, index_t b) { return a + below(b - a + 1); }
  bool chance(int percent) { return below(100) < percent; }
};

/// Intervals in random places on random ranks; some ranks have none.
sharding random_sharding(index_t positions, int ranks, dice& roll) {
  if (roll.chance(20)) return sharding::contiguous(positions, ranks);
  if (roll.chance(20)) return sharding::zigzag(positions, ranks);
  std::vector<index_t> cuts{0, positions};
  for (index_t n = roll.below(2 * ranks + 1); n > 0; --n) cuts.push_back(roll.from(0, positions));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::vector<key_interval>> shards(static_cast<std::size_t>(ranks));
  for (std::size_t n = 0; n + 1 < cuts.size(); ++n)
    shards[std::size_t(roll.below(ranks))].push_back({cuts[n], cuts[n + 1]});
  return sharding::of(positions, shards);
}

/// Which pairs are visible: one of several kinds of masks, as a table of bytes.
struct random_mask {
  std::vector<unsigned char> visible;
  shape extents;
  random_mask(index_t batch, index_t queries, index_t keys, index_t offset, dice& roll)
      : visible(std::size_t(batch * queries * keys)), extents{batch, 1, queries, keys} {
    index_t const kind = roll.below(7), width = roll.from(1, 40), some = roll.from(1, 5), documents = roll.from(2, 5);
    for (index_t b = 0; b < batch; ++b) {
      index_t const length = roll.from(0, keys);
      for (index_t i = 0; i < queries; ++i)
        for (index_t j = 0; j < keys; ++j) {
          index_t const distance = i + offset - j;
          bool const sees = kind == 0   ? true
                            : kind == 1 ? distance >= 0
                            : kind == 2 ? distance >= 0 && distance < width
                            : kind == 3 ? std::abs(distance) <= width
                            : kind == 4 ? j < length
                            : kind == 5 ? (i * documents / queries == j * documents / keys)
                                        : (roll.below(5) < some && i % 9 != 4);
          visible[std::size_t((b * queries + i) * keys + j)] = sees;
        }
    }
  }
  mask::visible_table mask() const { return {tensor<unsigned char const>(visible.data(), extents)}; }
};

using number = double;  // small bounds, so that sums that cancel do not hide faults
using numbers = basic_array<number>;

numbers as_array(gradient_array<number> const& g) {
  numbers a(g.extents);
  a.numbers = g.values;
  return a;
}

/// Extents of one problem.
struct dimensions {
  index_t batch, heads, key_heads, value_heads, queries, keys, width, value_width;
  explicit dimensions(dice& roll) {
    batch = roll.from(1, 2), key_heads = roll.from(1, 2), value_heads = roll.from(1, 2);
    heads = 2 * roll.from(1, 2), queries = roll.chance(15) ? 1 : roll.from(1, 120), keys = roll.from(1, 200);
    width = roll.from(1, 20), value_width = roll.from(1, 20);
  }
  shape operator()(field f) const {
    switch (side_of(f)) {
      case input_side::query:
        return {batch, heads, queries, f == field::output_gate ? value_width : width};
      case input_side::key:
        return {batch, f == field::v || f == field::value_gate ? value_heads : key_heads, keys,
                f == field::v || f == field::value_gate ? value_width
                : f == field::key_bias                  ? 1
                                                        : width};
      case input_side::pair:
        return {batch, heads, queries, keys};
      case input_side::ground:
        return {1, heads, 1, value_width};
    }
    return {};
  }
};

template <class MakeOp>
void one_problem(char const* name, unsigned seed, MakeOp const& make) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  int const me = ranks.rank();
  dice roll(seed);
  dimensions const n(roll);
  std::optional<index_t> offset;
  if (roll.chance(40)) offset = roll.from(-20, 60);
  random_mask const table(roll.chance(50) ? n.batch : 1, n.queries, n.keys, offset.value_or(n.keys - n.queries), roll);
  auto const op = make(table.mask());
  using Op = std::remove_cvref_t<decltype(op)>;
  sharding const keys = random_sharding(n.keys, ranks.size(), roll),
                 queries = random_sharding(n.queries, ranks.size(), roll);
  rank_plan plan = roll.chance(50) ? rank_plan::ring : roll.chance(50) ? rank_plan::states : rank_plan::chosen;
  if (Op::has_threshold && plan == rank_plan::states) plan = rank_plan::chosen;
  CAPTURE(std::string(name));
  CAPTURE(seed);
  CAPTURE(to_string(keys, me));
  CAPTURE(to_string(queries, me));
  CAPTURE(int(plan));
  whole_problem<Op, number> const whole(n, seed);
  auto const in = whole_problem<Op, number>::views(whole.fields, offset);
  shape const rows{n.batch, n.heads, n.queries, n.value_width};
  numbers const d_out = random_array<number>(rows, seed + 100);
  numbers expected(rows);
  forward(cpu<number>{1}, op, in, {.out = expected.view()});
  auto const by = vjp(cpu<number>{1}, op, in, {.out = d_out.view()});
  // One query on each rank: an extent of 1 is then the rank's own row, so v0 has no sum over the ranks.
  bool one_each = true;
  for (int r = 0; r < ranks.size(); ++r) one_each = one_each && queries.size(r) == 1;
  std::array<numbers, field_count> fields;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      numbers const& x = whole.fields[std::size_t(F)];
      fields[std::size_t(F)] =
          side_of(F) == input_side::ground ? x : part_of(x, side_of(F) == input_side::key ? keys : queries, me);
    }
  });
  auto const mine = whole_problem<Op, number>::views(fields, offset);
  auto const exec = on_ranks(ranks, cpu<number>{2}, {.queries = queries, .keys = keys, .plan = plan});
  numbers const by_out = part_of(d_out, queries, me);
  numbers out(by_out.extents), again(by_out.extents);
  auto const saved = forward_and_save(exec, op, mine, {.out = out.view()});
  forward(exec, op, mine, {.out = again.view()});
  CHECK(same_bits(out, again));
  CHECK(difference(out, part_of(expected, queries, me)) < 1e-13);
  auto const g = vjp(exec, op, mine, saved, {.out = by_out.view()});
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      if (side_of(F) == input_side::ground && one_each && ranks.size() > 1) return;
      CAPTURE(std::string(name_of(F)));
      numbers want = as_array(by.of(F));
      if (side_of(F) != input_side::ground) want = part_of(want, side_of(F) == input_side::key ? keys : queries, me);
      CHECK(difference(as_array(g.of(F)), want) < 1e-9);
    }
  });
  for (std::size_t p = 0; p < g.parameters.size(); ++p) {
    CAPTURE(g.parameters[p].path);
    CHECK(difference(as_array(g.parameters[p].values), as_array(by.parameters[p].values)) < 1e-7);
  }
}

void problems(unsigned first, unsigned count) {
  for (unsigned n = first; n < first + count; ++n) switch (n % 6) {
      case 0:
        one_problem("softmax", n, [](auto m) { return attention(kernel::dot_product{0.3}, normalizer::softmax{}, m); });
        break;
      case 1:
        one_problem("grounded", n, [](auto m) {
          return attention(kernel::dot_product{0.3} + kernel::alibi{0.05} + kernel::key_bias{},
                           length_scale::margin{0.2, 0.4}, gate::dropout{.rate = 0.2, .seed = 5},
                           normalizer::grounded{0.1}, m);
        });
        break;
      case 2:
        one_problem("adjusted", n, [](auto m) {
          return attention(kernel::dot_product{0.3}, normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{},
                           gate::sigmoid_output{}, m);
        });
        break;
      case 3:
        one_problem("affine", n, [](auto m) {
          return attention(kernel::dot_product{0.3} + kernel::bias{}, normalizer::affine<>{0.4, 0.8},
                           gate::sigmoid_value{}, m);
        });
        break;
      case 4:
        one_problem("entmax", n, [](auto m) { return attention(kernel::dot_product{0.3}, normalizer::entmax15{}, m); });
        break;
      case 5:
        one_problem("top-k", n, [](auto m) { return attention(kernel::rbf{20}, normalizer::top_k{4}, m); });
        break;
    }
}

}  // namespace

TEST_CASE("mpi fuzz: a few problems") { problems(1000, 30); }
TEST_SUITE("full") {
  TEST_CASE("mpi fuzz: 300 problems") { problems(2000, 300); }
}
