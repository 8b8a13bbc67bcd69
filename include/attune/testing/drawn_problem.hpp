// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_problem<Op> p({.heads = 2, .queries = 5, .keys = 7, .width = 4}, random);
//       forward(exec, op, p.inputs<View>())
//
// A small random problem for any operator: numbers for its inputs, and cotangents for its outputs. Every number is a
// float, so that all executors read the same numbers. Equal seeds give equal problems on every machine.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/operators/fold.hpp>
#include <attune/operators/inputs.hpp>

namespace attune::testing {

/// Extents of a random problem. A width of 0 means the width of the queries.
struct problem_extents {
  index_t batch = 1,        ///< B
      heads = 2,            ///< H: heads of out. The query inputs of a fold have as many for each of its terms
      queries = 5,          ///< Lq
      keys = 7,             ///< Lk
      width = 4;            ///< D: features of q and k
  index_t value_width = 0,  ///< Dv: features of v and out
      gate_width = 0,       ///< features of gate_q and gate_k
      position_width = 0,   ///< features of position_q and position_k
      axes = 2;             ///< features of center, spread and place
  index_t key_heads = 1,    ///< heads of inputs with a row per key, but for v and value_gate; divides the query heads
      value_heads = 1;      ///< heads of v and value_gate; divides the query heads
  std::optional<index_t> offset = std::nullopt;                    ///< as in inputs
  std::optional<std::span<index_t const>> offsets = std::nullopt;  ///< as in inputs; must outlive the problem
};

/// The shape of field f in a problem of these extents. Only the ground value is shared.
inline shape extents_of(field f, problem_extents const& e) {
  auto const features = [&](field of) {
    auto const or_width = [&](index_t width) { return width == 0 ? e.width : width; };
    if (fields[std::size_t(of)].features[0] == '1') return index_t(1);
    switch (width_source(of)) {
      case field::v:
      case field::output_gate:
        return or_width(e.value_width);
      case field::gate_q:
        return or_width(e.gate_width);
      case field::position_q:
        return or_width(e.position_width);
      case field::center:
        return e.axes;
      default:
        return e.width;
    }
  };
  switch (side_of(f)) {
    case input_side::query:
      return {e.batch, e.heads, e.queries, features(f)};
    case input_side::key:
      return {e.batch, f == field::v || f == field::value_gate ? e.value_heads : e.key_heads, e.keys, features(f)};
    case input_side::pair:
      return {e.batch, e.heads, e.queries, e.keys};
    case input_side::ground:
      return {1, e.heads, 1, features(f)};
  }
  return {};
}

/// Maps a standard normal number to an entry of an input. The default keeps the number, except for `bias`, which may
/// hold probabilities, and `spread`, which is a divisor: their entries lie in (1/2, 2).
using draw_rule = std::function<double(field, double)>;

namespace detail {

/// Standard normal numbers, the same on every machine (std::normal_distribution differs between libraries).
class normal_numbers {
 public:
  explicit normal_numbers(std::uint64_t seed) : bits_(seed) {}
  double operator()() { return std::sqrt(-2 * std::log1p(-uniform())) * std::cos(6.283185307179586 * uniform()); }
  /// In [0, 1).
  double uniform() { return double(bits_() >> 11) * 0x1p-53; }
  /// In [0, n).
  index_t below(index_t n) { return index_t(bits_() % std::uint64_t(n)); }

 private:
  std::mt19937_64 bits_;
};

/// One tensor in both storage types. Finite differences change `doubles`.
struct drawn_tensor {
  shape extents{0, 0, 0, 0};
  std::vector<double> doubles;
  std::vector<float> floats;

  template <class View>
  View view() const {
    if constexpr (std::is_constructible_v<View, tensor<double const>> && !std::is_same_v<View, tensor<float const>>)
      return tensor<double const>(doubles, extents);
    else
      return tensor<float const>(floats, extents);
  }
};

inline double drawn_by_default(field f, double normal) {
  return f == field::bias || f == field::spread ? std::exp2(std::tanh(normal)) : normal;
}

inline void check_extents(char const* caller, problem_extents const& e) {
  auto const at_least_one = [=](char const* name, index_t n) {
    if (n < 1) throw error(caller, std::string("extents.") + name, attune::detail::text("the value ", n), "at least 1");
  };
  at_least_one("batch", e.batch);
  at_least_one("heads", e.heads);
  at_least_one("queries", e.queries);
  at_least_one("keys", e.keys);
  at_least_one("width", e.width);
}

}  // namespace detail

/// The memory of one random problem of an operator.
template <class Op>
class drawn_problem {
 public:
  /// Errors name `caller`.
  drawn_problem(problem_extents const& e, detail::normal_numbers& random, draw_rule const& rule = {},
                char const* caller = "drawn_problem")
      : drawn_problem(e, shapes_of(e), random, rule, caller) {}
  /// The same with the shapes of the inputs.
  drawn_problem(problem_extents const& e, std::array<shape, field_count> const& shapes, detail::normal_numbers& random,
                draw_rule const& rule = {}, char const* caller = "drawn_problem")
      : offset_(e.offset), offsets_(e.offsets) {
    detail::check_extents(caller, e);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        draw(fields_[std::size_t(F)], shapes[std::size_t(F)],
             [&] { return rule ? rule(F, random()) : detail::drawn_by_default(F, random()); });
    });
    shape const rows{e.batch, e.heads, e.queries, 1};
    draw(out_, extents_of(field::output_gate, e), random);
    draw(lse_, rows, random);
    draw(ground_weight_, rows, random);
  }
  drawn_problem(drawn_problem const&) = delete;  // views point into this object
  drawn_problem& operator=(drawn_problem const&) = delete;

  /// The shapes of the inputs that a problem of these extents has.
  static std::array<shape, field_count> shapes_of(problem_extents e) {
    std::array<shape, field_count> to{};
    e.heads *= attune::detail::heads_of_inputs<Op>;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) to[std::size_t(F)] = extents_of(F, e);
    });
    return to;
  }

  /// The numbers of an input; empty if the operator does not read it.
  detail::drawn_tensor& of(field f) { return fields_[std::size_t(f)]; }
  /// The numbers of an input; empty if the operator does not read it.
  detail::drawn_tensor const& of(field f) const { return fields_[std::size_t(f)]; }
  /// The cotangent of out, (B, H, Lq, Dv).
  detail::drawn_tensor const& by_out() const { return out_; }
  /// The cotangent of lse, (B, H, Lq, 1).
  detail::drawn_tensor const& by_lse() const { return lse_; }
  /// The cotangent of the ground weight, (B, H, Lq, 1).
  detail::drawn_tensor const& by_ground_weight() const { return ground_weight_; }

  /// The inputs as views of this problem, which must outlive them.
  template <class View>
  attune::inputs<Op, View> inputs() const {
    using all = attune::inputs<Op, View>;
    auto const take = [&]<field F>() {
      using type = std::remove_cvref_t<decltype(member<F>(std::declval<all&>()))>;
      if constexpr (Op::uses(F))
        return type(of(F).template view<View>());
      else
        return type{};
    };
    return [&]<int... F>(std::integer_sequence<int, F...>) {
      return all { take.template operator()<static_cast<field>(F)>()..., offset_, offsets_ };
    }(std::make_integer_sequence<int, int(field_count)>{});
  }
  /// The cotangents of the outputs that the operator has, as views of this problem.
  template <class View>
  attune::cotangents<Op, View> cotangents() const {
    attune::cotangents<Op, View> d;
    d.out = out_.view<View>();
    if constexpr (Op::has_lse) d.lse = lse_.view<View>();
    if constexpr (Op::has_ground_weight) d.ground_weight = ground_weight_.view<View>();
    return d;
  }

 private:
  template <class Draw>
  static void draw(detail::drawn_tensor& x, shape const& e, Draw&& one) {
    x.extents = e;
    for (index_t n = 0; n < e.size(); ++n) {
      x.floats.push_back(float(one()));
      x.doubles.push_back(double(x.floats.back()));
    }
  }

  std::array<detail::drawn_tensor, field_count> fields_;
  detail::drawn_tensor out_, lse_, ground_weight_;
  std::optional<index_t> offset_;
  std::optional<std::span<index_t const>> offsets_;
};

}  // namespace attune::testing
