// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contracted<C, S>(...)    sum_d term(x_d, y_d, z_d, i + offset - j) of one pair, in scalar S
//
// Contractions computed from their terms, one pair at a time. The Thrust executor computes all contractions this way;
// the CPU executor those for which it has no faster code.
#pragma once

#include <type_traits>

#include <attune/core/dual.hpp>
#include <attune/exec/pair_rows.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/exec/rotary.hpp>

namespace attune::detail {

using contraction::operand_of;
using contraction::operand_side;
using contraction::table_place;

/// The operand whose features are the terms of a contraction: the first one that is a query or a key.
template <class Operand>
inline constexpr bool has_features = Operand::side == operand_side::query || Operand::side == operand_side::key;
template <class C>
using widest_operand =
    std::conditional_t<has_features<typename C::x>, typename C::x,
                       std::conditional_t<has_features<typename C::y>, typename C::y, typename C::z>>;

/// The number of terms of a contraction that reads tensors.
template <class C>
ATTUNE_HD index_t term_count(problem_shape const& p) {
  static_assert(!contraction::of_distance_alone<C>);
  using widest = widest_operand<C>;
  if constexpr (has_features<widest>)
    return p.width_of(widest::of);
  else
    return 1;
}
/// The number of terms of any contraction.
template <class C, class Owner>
ATTUNE_HD index_t term_count(problem_shape const& p, [[maybe_unused]] Owner const& owner) {
  using x = typename C::x;
  if constexpr (!contraction::of_distance_alone<C>)
    return detail::term_count<C>(p);
  else if constexpr (x::place == table_place::row)
    return x::table_of::of(owner).rows();
  else
    return x::table_of::of(owner).columns();
}

/// The features of one row of a tensor, from `first` on. The address is computed once. Otherwise each copy of an
/// unrolled loop would compute it, which would be most of the compiled program.
template <class E>
class features {
 public:
  ATTUNE_HD features(tensor<E> const& x, index_t b, index_t h, index_t i, index_t first)
      : first_(x.row(b, h, i) + first * x.steps().feature), step_(x.steps().feature) {}
  ATTUNE_HD E& operator[](index_t d) const { return first_[d * step_]; }

 private:
  E* first_;
  index_t step_;
};

/// A pair. Features are counted from `first`.
struct pair_place {
  index_t b, h, i, j, first = 0;
};

/// The row and the column of a table that feature d of a pair at this distance, with key j, reads.
template <class Operand, class Owner>
ATTUNE_HD index_t table_row([[maybe_unused]] Owner const& owner, [[maybe_unused]] index_t distance,
                            [[maybe_unused]] index_t d, [[maybe_unused]] index_t j = 0) {
  if constexpr (Operand::place == table_place::of_distance)
    return Operand::table_of::row(owner, distance);
  else if constexpr (Operand::place == table_place::of_key)
    return j;
  else
    return Operand::place == table_place::row ? d : 0;
}
template <class Operand>
ATTUNE_HD constexpr index_t table_column(index_t d) {
  return Operand::place == table_place::row ? 0 : d;
}

/// One operand of a pair as a function of the feature, counted from `first`. `owner`: the policy that names the
/// contraction.
template <class Operand, class S, class In, class Owner>
ATTUNE_HD auto operand_at([[maybe_unused]] In const& in, [[maybe_unused]] problem_shape const& p,
                          [[maybe_unused]] Owner const& owner, [[maybe_unused]] pair_place const& at) {
  if constexpr (Operand::side == operand_side::query) {
    return [x = features(member<Operand::of>(in), at.b, at.h, at.i, at.first)](index_t d) { return S(x[d]); };
  } else if constexpr (Operand::side == operand_side::key) {
    index_t const head = p.group(at.h, p.heads_of(Operand::of));
    return [x = features(member<Operand::of>(in), at.b, head, at.j, at.first)](index_t d) { return S(x[d]); };
  } else if constexpr (Operand::side == operand_side::pair) {
    return [x = detail::shared_element<S>(member<Operand::of>(in), at.b, at.h, at.i, at.j)](index_t) { return x; };
  } else if constexpr (contraction::is_by_pair<Operand>) {
    return [&owner, at, row = detail::pair_row<Operand>(owner, at.i + p.offset_of(at.b), at.j)](index_t d) {
      return row < 0 ? S(0) : S(lift<S>{}.entry(Operand::table_of::of(owner), at.b, at.h, row, at.first + d));
    };
  } else if constexpr (Operand::side == operand_side::table) {
    return [&owner, at, distance = at.i + p.offset_of(at.b) - at.j](index_t d) {
      return lift<S>{}.entry(Operand::table_of::of(owner), at.b, at.h,
                             detail::table_row<Operand>(owner, distance, at.first + d, at.j),
                             detail::table_column<Operand>(at.first + d));
    };
  } else {
    return [](index_t) { return S(0); };
  }
}

/// The value of a contraction for one pair.
template <class C, class S, class In, class Owner>
ATTUNE_HD S contracted(In const& in, problem_shape const& p, Owner const& owner, pair_place const& at) {
  index_t const width = detail::term_count<C>(p, owner);
  auto const x = detail::operand_at<typename C::x, S>(in, p, owner, at);
  auto const y = detail::operand_at<typename C::y, S>(in, p, owner, at);
  if constexpr (contraction::Rotary<C>) {
    return detail::rotary_product(detail::turns_of<S>(owner, at.b, at.i, p.offset_of(at.b), at.j), width, x, y);
  } else {
    S const n = S(double(at.i + p.offset_of(at.b) - at.j));
    auto const z = detail::operand_at<typename C::z, S>(in, p, owner, at);
    S sum(0);
    for (index_t d = 0; d < width; ++d) sum = sum + C::term(x(d), y(d), z(d), n);
    return sum;
  }
}
/// d term / d operand N as a function of the feature, counted from `first`.
template <class C, int N, class S, class In, class Owner>
ATTUNE_HD auto slopes(In const& in, problem_shape const& p, Owner const& owner, pair_place const& at) {
  if constexpr (contraction::Rotary<C>) {
    using other = std::conditional_t<N == 0, typename C::y, typename C::x>;
    pair_place const whole{at.b, at.h, at.i, at.j};
    return [x = detail::operand_at<other, S>(in, p, owner, whole), first = at.first,
            turns = detail::turns_of<S>(owner, at.b, at.i, p.offset_of(at.b), at.j)](index_t d) {
      auto const query = [&](index_t r) { return turns.of_query(r); };
      auto const key = [&](index_t r) { return turns.of_key(r); };
      if constexpr (N == 0)
        return detail::turned_across(turns, first + d, x, key, query);
      else
        return detail::turned_across(turns, first + d, x, query, key);
    };
  } else {
    return [x = detail::operand_at<typename C::x, S>(in, p, owner, at),
            y = detail::operand_at<typename C::y, S>(in, p, owner, at),
            z = detail::operand_at<typename C::z, S>(in, p, owner, at),
            n = S(double(at.i + p.offset_of(at.b) - at.j))](index_t d) {
      using D = dual<S, 1>;
      D of[3] = {x(d), y(d), z(d)};
      of[N].tangent[0] = S(1);
      return C::term(of[0], of[1], of[2], D(n)).tangent[0];
    };
  }
}

/// Empty inputs, for contractions of a distance alone.
struct no_inputs {};

/// The value of a contraction for a distance, in double.
template <class C, class Owner>
double of_distance(problem_shape const& p, Owner const& owner, index_t b, index_t h, index_t distance) {
  return detail::contracted<C, double>(no_inputs{}, p, owner, {b, h, distance - p.offset_of(b), 0});
}

/// Calls visit.template operator()<N, Operand>() for the operands of C.
template <class C, class Visit>
constexpr void for_each_operand(Visit const& visit) {
  auto const one = [&]<int N>(std::integral_constant<int, N>) {
    using x = operand_of<C, N>;
    if constexpr (x::side != operand_side::none) visit.template operator()<N, x>();
  };
  one(std::integral_constant<int, 0>{});
  one(std::integral_constant<int, 1>{});
  one(std::integral_constant<int, 2>{});
}

}  // namespace attune::detail
