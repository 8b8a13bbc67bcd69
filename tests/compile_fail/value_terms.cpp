// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Value terms: vectors of the distance, added to values.
#include "operators.hpp"

struct vectors_alone {
  static constexpr auto role = policy_role::value_term;
  table vectors;
  static constexpr auto parameters() { return std::tuple<>{}; }
};

// expect-error value_term_without_vectors: a value term: give it the member attune::table vectors
struct mine {
  static constexpr auto role = policy_role::value_term;
  index_t index(index_t distance) const { return distance; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error value_term_without_index: a value term: write attune::index_t index\(attune::index_t distance\) const
struct mine : vectors_alone {
  static constexpr auto tables() { return std::array{listed("vectors", &mine::vectors, table_width::any)}; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error value_term_by_pair: a value term: index\(position, key\) is not supported
struct mine : vectors_alone {
  static constexpr auto tables() { return std::array{listed("vectors", &mine::vectors, table_width::any)}; }
  index_t index(index_t position, index_t key) const { return position + key; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error value_term_unlisted: a value term: list its table, and no other
struct mine : vectors_alone {
  index_t index(index_t distance) const { return distance; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error value_term_with_parameter: a value term has no parameters
struct mine {
  static constexpr auto role = policy_role::value_term;
  table vectors;
  parameter scale = 1;
  static constexpr auto parameters() { return std::array{listed("scale", &mine::scale)}; }
  static constexpr auto tables() { return std::array{listed("vectors", &mine::vectors, table_width::any)}; }
  index_t index(index_t distance) const { return distance; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error value_term_without_parameters: write static constexpr auto parameters\(\)
struct mine {
  static constexpr auto role = policy_role::value_term;
  table vectors;
  static constexpr auto tables() { return std::array{listed("vectors", &mine::vectors, table_width::any)}; }
  index_t index(index_t distance) const { return distance; }
};
auto op = attention(kernel::dot_product{}, mine{});

// expect-error two_value_terms: attention\(\) takes one value term, two were given
auto op = attention(kernel::dot_product{}, value_term::relative{}, value_term::relative{});

// expect-error value_term_not_offered: takes no value terms, which add a vector of the distance to each value
struct tiles {
  using instead = cpu<>;
  static constexpr call_table offers{.forward = without(every_operator, &offer::pair_values)};
};
using op = decltype(attention(kernel::dot_product{}, value_term::relative{}));
constexpr bool there = attune::detail::offered<call_kind::forward, tiles, op>();

// expect-no-error value_terms
// In any order, next to the other gates.
struct mine : vectors_alone {
  static constexpr auto tables() { return std::array{listed("vectors", &mine::vectors, table_width::any)}; }
  index_t index(index_t distance) const { return distance < 0 ? 0 : 1; }
};
auto a = attention(mine{}, kernel::dot_product{}, gate::sigmoid_value{}, gate::dropout{.rate = 0.2, .seed = 3});
auto b = attention(kernel::alibi{0.5}, normalizer::sparsemax{}, value_term::relative{});
static_assert(decltype(a)::has_value_term && decltype(b)::has_pair_values && !decltype(a)::has_plain_values);
