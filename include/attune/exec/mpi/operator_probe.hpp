// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   agree_on_numbers(all, all.agreed([&] { return operator_probe(op, whole, extents); }));
//
// Compares what the operators of all ranks compute. A policy may have members that are neither parameters nor tables:
// the seed of a dropout, the k of top-k, angles. So a few pairs are computed on every rank, from made-up inputs, in
// double.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/mpi/collective.hpp>
#include <attune/exec/terms.hpp>
#include <attune/exec/weight_gate.hpp>
#include <attune/policies/candidates.hpp>

namespace attune::exec_mpi {

/// The numbers of a few pairs of the problem p: contractions, logits, masses or weights, factors of gates. extents(F):
/// of an input of the whole problem.
template <class Op, class Extents>
std::vector<double> operator_probe(Op const& op, problem_shape const& p, Extents const& extents) {
  std::vector<double> numbers;
  if (p.batch * p.heads * p.queries * p.keys == 0) return numbers;
  static constexpr double pattern[] = {0.3, -0.6, 0.9, 0.0, -0.3, 0.6, -0.9};
  std::vector<double> features;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F))
      while (index_t(features.size()) < extents.template operator()<F>().feature)
        features.push_back(pattern[features.size() % 7]);
  });
  auto const in = make_inputs<Op, tensor<double const>>(
      [&]<field F>() { return tensor<double const>(features.data(), extents.template operator()<F>(), {0, 0, 0, 1}); });
  auto const pair = [&](index_t b, index_t h, index_t i, index_t j) {
    row<double> const r = attune::detail::row_of_count<double>(p, (std::min)(p.keys, index_t(1) + i), b, h, i);
    auto const f = op.bind(r);
    double x[std::size_t(Op::contractions::size) + 1] = {};
    [&]<class... C, int... N>(contraction::list<C...>, std::integer_sequence<int, N...>) {
      auto const one = [&](auto c, auto const& owner, int n) {
        if constexpr (!contraction::is_derived<decltype(c)>)
          x[n] = attune::detail::contracted<decltype(c), double>(in, p, owner, {b, h, i, j});
        numbers.push_back(x[n]);
      };
      (..., one(C{}, op.template owner<N>(), N));
    }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
    double const a = f.logit(x, key<double>{double(j)});
    numbers.push_back(a);
    if constexpr (Op::has_weight_gate) numbers.push_back(attune::detail::factor_of_pair(op, f, x, p, b, h, i, j));
    if constexpr (Op::has_output_gate) numbers.push_back(f.output_gate.factor(0.4));
    auto const& n = f.normalizer;
    if constexpr (Op::normalizer_is.family == row_family::masses) {
      double const m = Op::normalizer_is.reference == mass_reference::none ? 0.0 : a + 0.5;
      numbers.push_back(n.earned(a, m));
      if constexpr (Op::normalizer_is.ground_mass) numbers.push_back(n.ground(a, m));
      if constexpr (Op::normalizer_is.constant_mass) numbers.push_back(n.constant(m));
    } else if constexpr (Op::normalizer_is.family == row_family::range_weighted) {
      auto const ends = n.ends(a - 1, a + 2);
      numbers.insert(numbers.end(), {ends.low, ends.high});
    } else {
      std::vector<double> logits;
      std::vector<index_t> keys;
      for (index_t k = 0; k < 64; ++k) logits.push_back(a + 0.05 * double(k * 37 % 64)), keys.push_back(k);
      candidate_column<double> column(logits, keys);
      auto const level = n.solve(column);
      for (index_t k = 0; k < 64; k += 3)
        numbers.push_back(n.weight(level, logits[std::size_t(k)], key<double>{double(k)}));
    }
  };
  for (index_t const b : {index_t(0), p.batch - 1})
    for (index_t const h : {index_t(0), p.heads - 1})
      for (index_t const i : {index_t(0), p.queries / 3, p.queries - 1})
        for (index_t const j : {index_t(0), p.keys / 2, p.keys - 1}) pair(b, h, i, j);
  return numbers;
}

/// Throws the same attune::error on all ranks unless all ranks have the numbers of rank 0, up to 1e-9 of each.
inline void agree_on_numbers(collective& all, std::vector<double> const& mine) {
  std::vector<double> first = mine;
  all.broadcast(std::span<double>(first), 0);
  std::optional<mpi::detail::error_texts> difference;
  auto const same = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * (std::abs(a) + std::abs(b));
  };
  for (std::size_t n = 0; n < mine.size() && !difference; ++n)
    if (!same(mine[n], first[n]))
      difference = {all.function(), attune::detail::text("the operator on rank ", all.rank()),
                    attune::detail::text("the number ", mine[n], " for a pair"),
                    attune::detail::text(first[n],
                                         ", as on rank 0: a member of a policy differs, such as a seed, a count or "
                                         "angles")};
  all.agree(difference);
}

}  // namespace attune::exec_mpi
