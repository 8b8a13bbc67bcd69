// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal form of what views.hpp is included for.
#include "../views.hpp"

struct city_block {
  template <class T>
  static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
struct shared {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.weight_factor = true, .uniform_share = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
    T weight_factor() const { return T(2); }
    T uniform_share(T const& earned, T const& visible) const { return earned / visible; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct factor_of_sums {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none, .weight_factor = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return a; }
    T weight_factor(T const& earned, T const& visible) const { return earned / visible; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct first_key {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support,
                                            .threshold = threshold_rule::selection};
  template <class T>
  struct bound {
    template <class Column>
    candidate_threshold<T> solve(Column&) const {
      return {};
    }
    T weight(candidate_threshold<T> const&, T const&, key<T> const& k) const {
      return math::select(k.position < T(1), T(1), T(0));
    }
    T reported(candidate_threshold<T> const& at) const { return at.level; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct ranged {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::range_weighted};
  template <class T>
  struct bound {
    adjustment<T> ends(T const& lowest, T const& highest) const { return {lowest, highest}; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

struct two_contractions {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::scalar_difference>;
  template <class T>
  struct bound {
    T score(T const& x, T const& y, key<T> const&) const { return math::larger(x, y); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
struct entries_in_length_scale {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  table w;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() {
    return std::array{listed("w", &entries_in_length_scale::w, table_width::one, table_use::bind)};
  }
  template <class T>
  struct bound {
    table_entries<T> w;
    T scale(T const& s) const { return s * w[0]; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.entries(w)};
  }
};
struct gate_of_two {
  static constexpr auto role = policy_role::gate;
  using contractions = contraction::list<contraction::dot, contraction::scalar_difference>;
  template <class T>
  struct bound {
    T gate(T const& s, T const& x, T const& y) const { return s + x + y; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

template <class Op>
void legal(Op const&, in<Op> const&, to<Op> const&) {}

int main() {
  legal(scalar_sort_attention(1), {.v = x, .sort_q = x, .sort_k = x}, {.out = y});
  legal(smca_attention(1), {.q = x, .k = x, .v = x, .center = x, .spread = x, .place = x}, {.out = y});
  legal(tupe_attention(), {.q = x, .k = x, .v = x, .position_q = x, .position_k = x}, {.out = y});
  legal(biased_attention(), {.q = x, .k = x, .v = x, .bias = x}, {.out = y, .lse = natural_lse(y)});
  legal(attention(kernel::dot_product{} + kernel::key_bias{}), {.q = x, .k = x, .v = x, .key_bias = x}, {.out = y});
  legal(value_gated_attention(), {.q = x, .k = x, .v = x, .value_gate = x}, {.out = y});
  legal(gated_attention(), {.q = x, .k = x, .v = x, .output_gate = x}, {.out = y});
  legal(sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y, .threshold = y});
  (void)attention(kernel::elementwise<city_block>{}, gate::sigmoid_value{}, gate::sigmoid_output{}, shared{});
  (void)attention(kernel::dot_product{}, factor_of_sums{});
  (void)attention(kernel::dot_product{}, first_key{});
  (void)attention(kernel::dot_product{} + two_contractions{}, gate_of_two{}, entries_in_length_scale{});
  (void)attention(kernel::dot_product{}, ranged{});
}
