// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   x_ij = contraction(i, j)      and      d<tensors, tables> += dx_ij  d x_ij / d<tensors, tables>
//
// The built-in contractions, as textbooks write them, with derivatives written by hand. Your own contractions are
// computed from their terms. The scalar may be a dual number; its tangents are then read together with the tensors.
#pragma once

#include <attune/exec/gradients.hpp>
#include <attune/exec/problem.hpp>
#include <attune/exec/reference/contractions/read.hpp>
#include <attune/exec/reference/contractions/rotary.hpp>

namespace attune::detail {

/// Computes the contractions of an operator.
template <class T, class Op, class View>
struct reference_contraction {
  Op const& op;
  inputs<Op, View> const& in;
  problem_shape const& p;
  lift<T> const& numbers;

  /// The values of all contractions of a pair, in the operator's order.
  void all(T* to, index_t b, index_t h, index_t i, index_t j) const {
    each(typename Op::contractions{},
         [&](auto contraction, auto const& owner) { *to++ = value(contraction, owner, b, h, i, j); });
  }
  /// Adds the gradients of every tensor and table. dx: the gradient by the values of the contractions.
  void pull_all(T const* dx, dense_gradients<T>& to, index_t b, index_t h, index_t i, index_t j) const {
    each(typename Op::contractions{}, [&](auto contraction, auto const& owner) {
      if (T const d = *dx++; !scalar<T>::all(scalar<T>::vanishes(d))) pull(contraction, owner, d, to, b, h, i, j);
    });
  }

  /// Calls visit(contraction, its owner) for all of them.
  template <class... C, class Visit>
  void each(contraction::list<C...>, Visit const& visit) const {
    [&]<int... Index>(std::integer_sequence<int, Index...>) {
      (..., visit(C{}, op.template owner<Index>()));
    }(std::make_integer_sequence<int, int(sizeof...(C))>{});
  }

  // ---- values -------------------------------------------------------------------------------------------------------
  template <class Owner>
  T value(contraction::dot, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return product(in.q, in.k, p.group(h, p.key_heads), p.width, b, h, i, j);
  }
  template <class Owner>
  T value(contraction::gate_dot, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return product(in.gate_q, in.gate_k, p.group(h, p.gate_key_heads), p.gate_width, b, h, i, j);
  }
  template <class Owner>
  T value(contraction::position_dot, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return product(in.position_q, in.position_k, p.group(h, p.position_key_heads), p.position_width, b, h, i, j);
  }
  template <class Owner>
  T value(contraction::squared_distance, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return over_features(b, h, i, j, [](T const& q, T const& k, index_t) { return T((q - k) * (q - k)); });
  }
  template <class Owner>
  T value(contraction::metric_dot, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    return over_features(b, h, i, j, [&](T const& q, T const& k, index_t d) {
      return T(numbers.entry(owner.metric, b, h, 0, d) * q * k);
    });
  }
  template <class Owner>
  T value(contraction::metric_distance, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    return over_features(b, h, i, j, [&](T const& q, T const& k, index_t d) {
      return T(numbers.entry(owner.metric, b, h, 0, d) * (q - k) * (q - k));
    });
  }
  template <class Owner>
  T value(contraction::biased_dot, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    return over_features(b, h, i, j, [&](T const& q, T const& k, index_t d) {
      return T((q + numbers.entry(owner.bias, b, h, 0, d)) * k);
    });
  }
  template <class Owner>
  T value(contraction::relative_dot, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    index_t const n = i + p.offset_of(b) - j + owner.relative.rows() / 2;
    T sum(0);
    for (index_t d = 0; d < p.width; ++d)
      sum = sum + (read<T>(in.q, b, h, i, d) + numbers.entry(owner.bias, b, h, 0, d)) *
                      numbers.entry(owner.relative, b, h, n, d);
    return sum;
  }
  template <class Owner>
  T value(contraction::rotary_dot, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    index_t const g = p.group(h, p.key_heads);
    return reference_rotary<T, Owner>{owner, numbers, p, b, i, j}.value(
        [&](index_t d) { return read<T>(in.q, b, h, i, d); }, [&](index_t d) { return read<T>(in.k, b, g, j, d); });
  }
  template <class Owner>
  T value(contraction::scalar_difference, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return read<T>(in.sort_q, b, h, i, 0) - read<T>(in.sort_k, b, p.group(h, p.sort_key_heads), j, 0);
  }
  template <class Owner>
  T value(contraction::spatial_distance, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    T sum(0);
    for (index_t x = 0; x < p.axes; ++x) {
      T const z = distance_on_axis(b, h, i, j, x);
      sum = sum + z * z;
    }
    return sum;
  }
  template <class Owner>
  T value(contraction::gathered, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    return numbers.entry(owner.values, b, h, owner.index(i + p.offset_of(b) - j), 0);
  }
  template <class Owner>
  T value(contraction::gathered_by_pair, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    return numbers.entry(owner.values, b, h, owner.index(i + p.offset_of(b), j), 0);
  }
  template <class Owner>
  T value(contraction::per_key, Owner const& owner, index_t b, index_t h, index_t, index_t j) const {
    return numbers.entry(owner.per_key, b, h, j, 0);
  }
  template <class Owner>
  T value(contraction::fourier, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    T const n(double(i + p.offset_of(b) - j));
    T sum(0);
    for (index_t r = 0; r < owner.frequency.rows(); ++r) {
      T const angle = numbers.entry(owner.frequency, b, h, r, 0) * n;
      sum = sum + numbers.entry(owner.cosine, b, h, r, 0) * math::cos(angle) +
            numbers.entry(owner.sine, b, h, r, 0) * math::sin(angle);
    }
    return sum;
  }
  template <class Owner>
  T value(contraction::given_bias, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return read_shared<T>(in.bias, b, h, i, j);
  }
  template <class Owner>
  T value(contraction::given_key_bias, Owner const&, index_t b, index_t h, index_t, index_t j) const {
    return read<T>(in.key_bias, b, p.group(h, p.key_bias_heads), j, 0);
  }
  template <class Owner>
  T value(contraction::given_scores, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return read_shared<T>(in.scores, b, h, i, j);
  }
  template <class Owner>
  T value(contraction::given_gates, Owner const&, index_t b, index_t h, index_t i, index_t j) const {
    return read_shared<T>(in.gates, b, h, i, j);
  }
  /// Computed once all keys of the row are known: reference/ordered.hpp.
  template <class C, class Owner>
    requires contraction::is_derived<C>
  T value(C, Owner const&, index_t, index_t, index_t, index_t) const {
    return T(0);
  }
  /// Any other contraction.
  template <class C, class Owner>
  T value(C, Owner const& owner, index_t b, index_t h, index_t i, index_t j) const {
    T sum(0);
    for (index_t d = 0; d < term_count<C>(p, owner); ++d)
      sum = sum + C::term(operand<typename C::x>(owner, b, h, i, j, d), operand<typename C::y>(owner, b, h, i, j, d),
                          operand<typename C::z>(owner, b, h, i, j, d), T(double(i + p.offset_of(b) - j)));
    return sum;
  }

  // ---- gradients ----------------------------------------------------------------------------------------------------
  template <class Owner>
  void pull(contraction::dot, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h, index_t i,
            index_t j) const {
    pull_product<field::q, field::k>(in.q, in.k, p.group(h, p.key_heads), p.width, dx, to, b, h, i, j);
  }
  template <class Owner>
  void pull(contraction::gate_dot, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h, index_t i,
            index_t j) const {
    pull_product<field::gate_q, field::gate_k>(in.gate_q, in.gate_k, p.group(h, p.gate_key_heads), p.gate_width, dx, to,
                                               b, h, i, j);
  }
  template <class Owner>
  void pull(contraction::position_dot, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    pull_product<field::position_q, field::position_k>(in.position_q, in.position_k, p.group(h, p.position_key_heads),
                                                       p.position_width, dx, to, b, h, i, j);
  }
  template <class Owner>
  void pull(contraction::squared_distance, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    pull_features(to, b, h, i, j, [&](T const& q, T const& k, index_t, T& dq, T& dk) {
      T const move = dx * (T(2) * (q - k));
      dq = dq + move;
      dk = dk - move;
    });
  }
  template <class Owner>
  void pull(contraction::metric_dot, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    pull_features(to, b, h, i, j, [&](T const& q, T const& k, index_t d, T& dq, T& dk) {
      T const m = numbers.entry(owner.metric, b, h, 0, d);
      dq = dq + dx * m * k;
      dk = dk + dx * m * q;
      to.add(owner.metric, b, h, 0, d, T(dx * q * k));
    });
  }
  template <class Owner>
  void pull(contraction::metric_distance, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    pull_features(to, b, h, i, j, [&](T const& q, T const& k, index_t d, T& dq, T& dk) {
      T const difference = q - k, move = dx * (T(2) * numbers.entry(owner.metric, b, h, 0, d) * difference);
      dq = dq + move;
      dk = dk - move;
      to.add(owner.metric, b, h, 0, d, T(dx * difference * difference));
    });
  }
  template <class Owner>
  void pull(contraction::biased_dot, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    pull_features(to, b, h, i, j, [&](T const& q, T const& k, index_t d, T& dq, T& dk) {
      dq = dq + dx * k;
      dk = dk + dx * (q + numbers.entry(owner.bias, b, h, 0, d));
      to.add(owner.bias, b, h, 0, d, T(dx * k));
    });
  }
  template <class Owner>
  void pull(contraction::relative_dot, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    index_t const n = i + p.offset_of(b) - j + owner.relative.rows() / 2;
    for (index_t d = 0; d < p.width; ++d) {
      T const r = numbers.entry(owner.relative, b, h, n, d);
      T const q = read<T>(in.q, b, h, i, d) + numbers.entry(owner.bias, b, h, 0, d);
      to.add(field::q, b, h, i, d, T(dx * r));
      to.add(owner.bias, b, h, 0, d, T(dx * r));
      to.add(owner.relative, b, h, n, d, T(dx * q));
    }
  }
  template <class Owner>
  void pull(contraction::rotary_dot, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    index_t const g = p.group(h, p.key_heads);
    reference_rotary<T, Owner>{owner, numbers, p, b, i, j}.pull(
        [&](index_t d) { return read<T>(in.q, b, h, i, d); }, [&](index_t d) { return read<T>(in.k, b, g, j, d); },
        [&](index_t d, T const& x) { to.add(field::q, b, h, i, d, T(dx * x)); },
        [&](index_t d, T const& x) { to.add(field::k, b, g, j, d, T(dx * x)); });
  }
  template <class Owner>
  void pull(contraction::scalar_difference, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    to.add(field::sort_q, b, h, i, 0, dx);
    to.add(field::sort_k, b, p.group(h, p.sort_key_heads), j, 0, T(-dx));
  }
  template <class Owner>
  void pull(contraction::spatial_distance, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    for (index_t x = 0; x < p.axes; ++x) {
      T const spread = read<T>(in.spread, b, h, i, x), z = distance_on_axis(b, h, i, j, x);
      T const move = dx * (T(2) * z / spread);
      to.add(field::place, b, p.group(h, p.place_heads), j, x, move);
      to.add(field::center, b, h, i, x, T(-move));
      to.add(field::spread, b, h, i, x, T(-(move * z)));
    }
  }
  template <class Owner>
  void pull(contraction::gathered, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    to.add(owner.values, b, h, owner.index(i + p.offset_of(b) - j), 0, dx);
  }
  template <class Owner>
  void pull(contraction::gathered_by_pair, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b,
            index_t h, index_t i, index_t j) const {
    to.add(owner.values, b, h, owner.index(i + p.offset_of(b), j), 0, dx);
  }
  template <class Owner>
  void pull(contraction::per_key, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t, index_t j) const {
    to.add(owner.per_key, b, h, j, 0, dx);
  }
  template <class Owner>
  void pull(contraction::fourier, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    T const n(double(i + p.offset_of(b) - j));
    for (index_t r = 0; r < owner.frequency.rows(); ++r) {
      T const angle = numbers.entry(owner.frequency, b, h, r, 0) * n, c = math::cos(angle), s = math::sin(angle);
      to.add(owner.cosine, b, h, r, 0, T(dx * c));
      to.add(owner.sine, b, h, r, 0, T(dx * s));
      to.add(owner.frequency, b, h, r, 0,
             T(dx * n * (numbers.entry(owner.sine, b, h, r, 0) * c - numbers.entry(owner.cosine, b, h, r, 0) * s)));
    }
  }
  template <class Owner>
  void pull(contraction::given_bias, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h, index_t i,
            index_t j) const {
    to.add(field::bias, b, h, i, j, dx);
  }
  template <class Owner>
  void pull(contraction::given_key_bias, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t, index_t j) const {
    to.add(field::key_bias, b, p.group(h, p.key_bias_heads), j, 0, dx);
  }
  template <class Owner>
  void pull(contraction::given_scores, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    to.add(field::scores, b, h, i, j, dx);
  }
  template <class Owner>
  void pull(contraction::given_gates, Owner const&, T const& dx, dense_gradients<T>& to, index_t b, index_t h,
            index_t i, index_t j) const {
    to.add(field::gates, b, h, i, j, dx);
  }
  template <class C, class Owner>
    requires contraction::is_derived<C>
  void pull(C, Owner const&, T const&, dense_gradients<T>&, index_t, index_t, index_t, index_t) const {}
  template <class C, class Owner>
  void pull(C, Owner const& owner, T const& dx, dense_gradients<T>& to, index_t b, index_t h, index_t i,
            index_t j) const {
    using D = dual<T, C::operands>;
    for (index_t d = 0; d < term_count<C>(p, owner); ++d) {
      D x[] = {operand<typename C::x>(owner, b, h, i, j, d), operand<typename C::y>(owner, b, h, i, j, d),
               operand<typename C::z>(owner, b, h, i, j, d)};
      for (int n = 0; n < C::operands; ++n) x[n].tangent[n] = T(1);
      D const term = C::term(x[0], x[1], x[2], D(T(double(i + p.offset_of(b) - j))));
      for_each_operand<C>([&]<int N, class Operand>() {
        T const move = dx * term.tangent[N];
        if constexpr (Operand::side == operand_side::query)
          to.add(Operand::of, b, h, i, d, move);
        else if constexpr (Operand::side == operand_side::key)
          to.add(Operand::of, b, p.group(h, p.heads_of(Operand::of)), j, d, move);
        else if constexpr (Operand::side == operand_side::pair)
          to.add(Operand::of, b, h, i, j, move);
        else if constexpr (contraction::is_by_pair<Operand>)
          to.add(Operand::table_of::of(owner), b, h, Operand::table_of::row(owner, i + p.offset_of(b), j), d, move);
        else
          to.add(Operand::table_of::of(owner), b, h, table_row<Operand>(owner, i + p.offset_of(b) - j, d, j),
                 table_column<Operand>(d), move);
      });
    }
  }

  // ---- parts --------------------------------------------------------------------------------------------------------
  /// One operand of a term.
  template <class Operand, class Owner>
  T operand([[maybe_unused]] Owner const& owner, index_t b, index_t h, [[maybe_unused]] index_t i,
            [[maybe_unused]] index_t j, [[maybe_unused]] index_t d) const {
    if constexpr (Operand::side == operand_side::query)
      return read<T>(member<Operand::of>(in), b, h, i, d);
    else if constexpr (Operand::side == operand_side::key)
      return read<T>(member<Operand::of>(in), b, p.group(h, p.heads_of(Operand::of)), j, d);
    else if constexpr (Operand::side == operand_side::pair)
      return read_shared<T>(member<Operand::of>(in), b, h, i, j);
    else if constexpr (contraction::is_by_pair<Operand>)
      return numbers.entry(Operand::table_of::of(owner), b, h, Operand::table_of::row(owner, i + p.offset_of(b), j), d);
    else if constexpr (Operand::side == operand_side::table)
      return numbers.entry(Operand::table_of::of(owner), b, h, table_row<Operand>(owner, i + p.offset_of(b) - j, d, j),
                           table_column<Operand>(d));
    else
      return T(0);
  }
  T distance_on_axis(index_t b, index_t h, index_t i, index_t j, index_t x) const {
    return (read<T>(in.place, b, p.group(h, p.place_heads), j, x) - read<T>(in.center, b, h, i, x)) /
           read<T>(in.spread, b, h, i, x);
  }

  template <class Term>
  T over_features(index_t b, index_t h, index_t i, index_t j, Term const& term) const {
    index_t const key_head = p.group(h, p.key_heads);
    T sum(0);
    for (index_t d = 0; d < p.width; ++d)
      sum = sum + term(read<T>(in.q, b, h, i, d), read<T>(in.k, b, key_head, j, d), d);
    return sum;
  }

  static T product(View const& x, View const& y, index_t y_head, index_t width, index_t b, index_t h, index_t i,
                   index_t j) {
    T sum(0);
    if constexpr (std::is_same_v<View, any_tensor>)
      x.row(b, h, i, [&](auto const* left, index_t left_step) {
        y.row(b, y_head, j, [&](auto const* right, index_t right_step) {
          for (index_t d = 0; d < width; ++d) sum = sum + T(left[d * left_step]) * T(right[d * right_step]);
        });
      });
    else
      for (index_t d = 0; d < width; ++d) sum = sum + read<T>(x, b, h, i, d) * read<T>(y, b, y_head, j, d);
    return sum;
  }

  template <class Step>
  void pull_features(dense_gradients<T>& to, index_t b, index_t h, index_t i, index_t j, Step const& step) const {
    index_t const key_head = p.group(h, p.key_heads);
    for (index_t d = 0; d < p.width; ++d) {
      T dq(0), dk(0);
      step(read<T>(in.q, b, h, i, d), read<T>(in.k, b, key_head, j, d), d, dq, dk);
      to.add(field::q, b, h, i, d, dq);
      to.add(field::k, b, key_head, j, d, dk);
    }
  }
  template <field X, field Y>
  static void pull_product(View const& x, View const& y, index_t y_head, index_t width, T const& dx,
                           dense_gradients<T>& to, index_t b, index_t h, index_t i, index_t j) {
    for (index_t d = 0; d < width; ++d) {
      to.add(X, b, h, i, d, T(dx * read<T>(y, b, y_head, j, d)));
      to.add(Y, b, y_head, j, d, T(dx * read<T>(x, b, h, i, d)));
    }
  }
};

}  // namespace attune::detail
