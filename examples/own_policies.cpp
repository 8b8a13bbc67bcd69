// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One policy of every kind, written outside the library: each runs on the CPU executor and on the reference, and both
// agree.
#include <iostream>
#include <random>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/forward_check.hpp>
// [/snippet]

namespace mine {

using namespace attune;

// [snippet: normalizer]
/// Weights 1 / (1 + e^-a): no competition between keys.
struct sigmoid {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  template <class T>
  struct bound {
    T bias;
    T earned(T const& logit, T const&) const { return math::sigmoid(T(logit + bias)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {-r.log_visible};
  }
};
// [/snippet]

// [snippet: kernel]
/// An additive term: -rate log(1 + |i - j|), a slower decay than ALiBi's.
struct log_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter rate = 1;
  static constexpr auto parameters() { return std::array{listed("rate", &log_distance::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    T score(key<T> const& k) const { return -rate * math::log1p(math::abs(T(position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};
// [/snippet]

// [snippet: contraction]
/// sum_d m_d |q_d - k_d|: operands, and a term. `metric` is a table of the policy that names the contraction.
struct weighted_l1 : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::k>,
                                         contraction::by_feature<contraction::tables::metric>> {
  template <class S>
  static S term(S const& q, S const& k, S const& m, S const&) {
    return m * math::abs(S(q - k));
  }
};
struct l1_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = weighted_l1;
  table metric;
  parameter rate = 0.1;
  static constexpr auto parameters() { return std::array{listed("rate", &l1_distance::rate)}; }
  static constexpr auto tables() { return std::array{listed("metric", &l1_distance::metric, table_width::query_row)}; }
  template <class T>
  struct bound {
    T rate;
    T score(T const& distance, key<T> const&) const { return -rate * distance; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate)};
  }
};
// [/snippet]

// [snippet: gate]
/// A two-sided gate: promotes and suppresses by up to `strength`.
struct tanh_gate {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::gate_dot;
  parameter strength = 1;
  static constexpr auto parameters() { return std::array{listed("strength", &tanh_gate::strength)}; }
  template <class T>
  struct bound {
    T strength;
    T gate(T const& score, T const& g) const { return score + strength * math::tanh(g); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(strength)};
  }
};
// [/snippet]

// [snippet: length_scale]
/// Scores grow with the square root of log K.
struct root_log {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  template <class T>
  struct bound {
    T factor;
    T scale(T const& score) const { return math::scale_keeping_off(factor, score); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {math::sqrt(r.log_visible)};
  }
};
// [/snippet]

// [snippet: mask]
/// Every second key up to the query, and the query's own position.
struct dilated {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  bool visible(mask_row const& row, index_t key) const { return key <= row.position && (row.position - key) % 2 == 0; }
};
// [/snippet]

}  // namespace mine

int main() {
  using namespace attune;
  constexpr index_t heads = 2, length = 75, width = 24, gate_width = 8;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  auto const make = [&](index_t features) {
    std::vector<float> x(std::size_t(heads * length * features));
    for (float& e : x) e = normal(random);
    return x;
  };
  auto q = make(width), k = make(width), v = make(width), gq = make(gate_width), gk = make(gate_width),
       out = make(width);
  shape const wide{1, heads, length, width}, narrow{1, heads, length, gate_width};
  tensor const Q(q, wide), K(k, wide), V(v, wide), GQ(gq, narrow), GK(gk, narrow), O(out, wide);

  std::vector<float> const metric(std::size_t(width), 0.5f);
  auto const op = attention(
      kernel::dot_product{} + mine::log_distance{0.5} + mine::l1_distance{tensor(metric, shape{1, 1, 1, width})},
      mine::root_log{}, mine::tanh_gate{2.0}, mine::sigmoid{}, mine::dilated{} & mask::causal_window{40});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V, .gate_q = GQ, .gate_k = GK}, {.out = O});

  // [snippet: check]
  auto const report =
      testing::check_forward(op, {.heads = 2, .queries = 5, .keys = 75, .width = 24, .gate_width = 8}, 1);
  std::cout << report;
  if (!report.passed()) return 1;
  // [/snippet]
}
