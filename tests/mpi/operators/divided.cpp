// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "divided.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <attune/policies/fields.hpp>

namespace attune::mpi_tests {
namespace {

/// Calls f(first number of a row in `all`, first number in `part`) for each row of a rank.
template <class F>
void each_row(array const& all, array const& part, sharding const& s, int rank, F const& f) {
  index_t const planes = all.shape[0] * all.shape[1], features = all.shape[3];
  for (index_t n = 0; n < planes; ++n)
    for (index_t i = 0; i < part.shape[2]; ++i)
      f(std::size_t((n * all.shape[2] + s.global(rank, i)) * features),
        std::size_t((n * part.shape[2] + i) * features));
}
array with_positions(array const& like, index_t positions) {
  array a{like.shape, {}};
  a.shape[2] = positions;
  a.data.resize(std::size_t(a.shape[0] * a.shape[1] * a.shape[2] * a.shape[3]));
  return a;
}
array part_of(array const& whole, sharding const& s) {
  int const me = ranks().rank();
  array part = with_positions(whole, s.size(me));
  each_row(whole, part, s, me, [&](std::size_t from, std::size_t to) {
    std::copy_n(whole.data.begin() + std::ptrdiff_t(from), whole.shape[3], part.data.begin() + std::ptrdiff_t(to));
  });
  return part;
}
array gathered(array const& part, sharding const& s) {
  if (part.shape.empty()) return part;  // an output that the operator does not have
  std::vector<std::size_t> counts;
  std::size_t size = 0;
  for (int r = 0; r < s.ranks(); ++r) {
    counts.push_back(std::size_t(part.shape[0] * part.shape[1] * s.size(r) * part.shape[3]));
    size += counts.back();
  }
  std::vector<double> received(size);
  ranks().gather_to_all(std::span<double const>(part.data), std::span<std::size_t const>(counts),
                        std::span<double>(received));
  array whole = with_positions(part, s.positions());
  auto next = received.begin();
  for (int r = 0; r < s.ranks(); ++r) {
    each_row(whole, with_positions(part, s.size(r)), s, r, [&](std::size_t to, std::size_t from) {
      std::copy_n(next + std::ptrdiff_t(from), part.shape[3], whole.data.begin() + std::ptrdiff_t(to));
    });
    next += std::ptrdiff_t(counts[std::size_t(r)]);
  }
  return whole;
}

/// The shards of a tensor; null if all ranks have all of it.
sharding const* shards_of(std::string const& name, array const& a) {
  for (int f = 0; f < int(field_count); ++f)
    if (name == name_of(field(f))) {
      if (side_of(field(f)) == input_side::key) return &*division().keys;
      return a.shape[2] == 1 && division().queries->positions() != 1 ? nullptr : &*division().queries;
    }
  return nullptr;
}

}  // namespace

mpi::communicator const& ranks() {
  static mpi::communicator const all(MPI_COMM_WORLD);
  return all;
}
shards& division() {
  static shards now;
  return now;
}

sharding random_sharding(index_t positions, int count, test::rng& random) {
  if (positions != count && random.chance(0.2)) return sharding::contiguous(positions, count);
  if (positions != count && random.chance(0.25)) return sharding::zigzag(positions, count);
  std::vector<std::vector<key_interval>> all(static_cast<std::size_t>(count));
  auto const any_rank = [&] { return std::size_t(random.between(0, count - 1)); };
  if (positions == count || random.chance(0.1)) {
    all[any_rank()] = {{0, positions}};
    return sharding::of(positions, all);
  }
  std::vector<index_t> cuts{0, positions};
  for (index_t n = random.between(1, 2 * count); n > 0; --n) cuts.push_back(random.between(0, positions));
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t n = 0; n + 1 < cuts.size(); ++n) all[any_rank()].push_back({cuts[n], cuts[n + 1]});
  return sharding::of(positions, all);
}
std::string to_string(shards const& where) {
  std::string text = where.plan == rank_plan::ring     ? "ring"
                     : where.plan == rank_plan::states ? "states"
                                                       : "chosen plan";
  for (auto const& [name, s] : {std::pair{"queries", &where.queries}, std::pair{"keys", &where.keys}})
    for (int r = 0; r < (*s)->ranks(); ++r)
      text += std::string(r == 0 ? "; " : ", ") + (r == 0 ? name : "") + " " + attune::to_string(**s, r);
  return text;
}

problem part_of(problem const& whole) {
  problem mine = whole;
  for (auto& [name, a] : mine.tensors)
    if (sharding const* const s = shards_of(name, a)) a = part_of(a, *s);
  return mine;
}
cotangent part_of(cotangent const& whole) {
  cotangent mine = whole;
  for (array* a : {&mine.out, &mine.lse, &mine.ground_weight})
    if (!a->empty()) *a = part_of(*a, *division().queries);
  return mine;
}
result gathered(result const& part) {
  result whole = part;
  for (array* a : {&whole.out, &whole.lse, &whole.ground_weight, &whole.threshold})
    *a = gathered(*a, *division().queries);
  return whole;
}
gradients gathered(gradients const& part, problem const& of) {
  gradients whole = part;
  for (auto const& [name, tensor] :
       of.tensors)  // in the same order on every rank; a rank without positions has no part
    if (sharding const* const s = shards_of(name, tensor)) {
      auto const mine = part.find(name);
      whole[name] = gathered(mine == part.end() ? with_positions(tensor, 0) : mine->second, *s);
    }
  return whole;
}

}  // namespace attune::mpi_tests
