// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   drawn_call c(seed, reads, grid);      c.fields[f].view<tensor<float const>>(), c.has("offsets")
//
// A random call: extents, heads of each input, offsets, shared axes, memory layouts and numbers. It knows nothing of the
// operator but the inputs that it reads. What it drew has names; the table of pairs counts them.
#pragma once

#include <array>
#include <bitset>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/core/float8.hpp>
#include <attune/core/rotary_angles.hpp>
#include <attune/core/table.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::pairs {

/// The numbers that a storage holds: tensors of all types hold the same ones.
enum class number_grid { floats, bfloat16, float16, float8 };

/// One input in memory of any layout.
struct drawn_input {
  shape extents{0, 0, 0, 0};
  strides steps{0, 0, 0, 0};
  index_t origin = 0;           ///< where element (0, 0, 0, 0) is
  std::vector<double> doubles;  ///< NaN between the elements
  std::vector<float> floats;
  std::vector<bfloat16> brains;
  std::vector<float16> halves;
  std::vector<float8_e4m3fn> codes;

  template <class E>
  tensor<E const> of(std::vector<E> const& memory) const {
    return {memory.data() + origin, extents, steps};
  }
  double at(index_t b, index_t h, index_t i, index_t d) const {
    return doubles[std::size_t(origin + b * steps.batch + h * steps.head + i * steps.position + d * steps.feature)];
  }
  /// A view of the type that an executor wants.
  template <class View>
  View view() const {
    if constexpr (std::is_same_v<View, tensor<bfloat16 const>>)
      return of(brains);
    else if constexpr (std::is_same_v<View, tensor<float16 const>>)
      return of(halves);
    else if constexpr (std::is_same_v<View, tensor<float const>>)
      return of(floats);
    else
      return of(doubles);
  }
};

/// Whether an operator reads each field.
using fields_read = std::bitset<field_count>;

/// What an operator asks of the call.
struct wishes {
  fields_read reads;
  bool rotary = false;  ///< pairs of features, and a row of angles for every position
};

class drawn_call {
 public:
  drawn_call(std::uint64_t seed, wishes const& wanted, number_grid grid);
  drawn_call(drawn_call const&) = delete;  // views point into this object
  drawn_call& operator=(drawn_call const&) = delete;

  testing::detail::normal_numbers random;
  wishes wanted;
  index_t batch = 1, heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  std::optional<index_t> offset;
  std::vector<index_t> each_offset;  ///< empty: one offset for all
  std::array<drawn_input, field_count> fields;
  std::set<std::string> drawn;  ///< names of what was drawn

  bool chance(double p) { return random.uniform() < p; }
  index_t between(index_t low, index_t high) { return low + random.below(high - low + 1); }
  /// 1 or n: whether an axis is complete. Names what is drawn if it is.
  index_t axis(index_t n, std::string const& name);
  index_t offset_of(index_t b) const {
    return each_offset.empty() ? offset.value_or(keys - queries) : each_offset[std::size_t(b)];
  }
  shape out() const { return {batch, heads, queries, value_width}; }
  std::optional<std::span<index_t const>> offsets() const {
    if (each_offset.empty()) return std::nullopt;
    return std::span<index_t const>(each_offset);
  }

  /// Numbers that live as long as the call.
  std::vector<double>& numbers(index_t n, double size = 0.7);
  std::vector<index_t>& integers(index_t n, index_t low, index_t high);
  tensor<double const> view(shape const& e, double size = 0.7) { return {numbers(e.size(), size), e}; }

  /// A parameter of any granularity, or a projection, or a moving average.
  parameter drawn_parameter(domain values);
  /// A table of these rows and columns, shared or not.
  table drawn_table(index_t rows, index_t columns);
  rotary_rows angles();
  rotary_layout layout();
  rotary_keys stored_keys();
  std::vector<unsigned char>& blocks(index_t n);

 private:
  void draw_extents();
  void draw_offsets();
  void draw_input(field f, number_grid grid);
  void lay_out(drawn_input& x, bool of_rows);

  std::deque<std::vector<double>> kept_;
  std::deque<std::vector<index_t>> kept_integers_;
  std::deque<std::vector<unsigned char>> kept_blocks_;
  std::deque<rotary_angles<double>> kept_angles_;
};

/// What calls are named after, apart from the operator.
struct call_fact {
  std::string name;
  std::string axis;             ///< facts of one axis exclude each other
  std::string needs;            ///< the feature of an operator without which it cannot be drawn; empty: none
  std::string never_with = {};  ///< another fact or feature; empty: none
};
/// Every name that a call may draw, from the table of fields.
std::vector<call_fact> const& call_facts();

}  // namespace attune::pairs
