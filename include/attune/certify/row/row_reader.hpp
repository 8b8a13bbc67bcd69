// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   class row_bounds : row_reader<Op>      read_logits(bound policies), read_values(bound policies)
//
// The logits of a row with the effect of rounding on each, and the values of its keys.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/certify/rounded.hpp>
#include <attune/certify/row/key_products.hpp>
#include <attune/certify/row/row_values.hpp>
#include <attune/certify/row_error.hpp>
#include <attune/certify/underflow.hpp>
#include <attune/exec/reference/contractions/known.hpp>
#include <attune/exec/reference/row.hpp>

namespace attune::certify::detail {

template <class Op>
class row_reader {
  using view = any_tensor;

 protected:
  row_reader(Op const& op, inputs<Op, view> const& in, problem_shape const& p, precision const& how)
      : op_(op), in_(in), p_(p), how_(how), eps_(2 * format_of(how.arithmetic).unit * how.rounding) {}

  template <class Bound>
  void read_logits(Bound const& f) {
    seen_ = {};
    delta_.clear();
    lift<rounded> const numbers{};
    attune::detail::reference_contraction<rounded, Op, view> const contract{op_, in_, p_, numbers};
    auto const add = [&](index_t j, rounded const& score, rounded const& a) {
      seen_.keys.push_back(j);
      seen_.scores.push_back(score.value);
      seen_.logits.push_back(a.value);
      delta_.push_back(eps_ * a.total());
    };
    if constexpr (Op::contractions::has_derived) {
      attune::detail::for_each_visible(contract, f, b_, h_, i_, {0, p_.keys}, add);
    } else {
      mask_row const m = p_.row(b_, h_, i_);
      for (key_interval k = mask::next(op_.mask, m, 0); !k.empty(); k = mask::next(op_.mask, m, k.last)) {
        index_t const last = (std::min)(k.last, p_.keys);
        multiply(typename Op::contractions{}, k.first, last);
        for (index_t j = k.first; j < last; ++j) {
          rounded x[Op::contractions::size + 1];
          attune::detail::contractions_with(contract, x, b_, h_, i_, j, [&](int n) {
            return products_[std::size_t(n)].knows(j) ? &products_[std::size_t(n)].of(j) : nullptr;
          });
          rounded const s = f.score(x, key<rounded>{rounded(double(j))});
          add(j, s, f.logit_of_score(s, x));
        }
      }
    }
  }

 private:
  /// Multiplies the row with keys [first, last) for the contractions that are products.
  template <class... C>
  void multiply(contraction::list<C...>, [[maybe_unused]] index_t first, [[maybe_unused]] index_t last) {
    [[maybe_unused]] std::size_t n = 0;
    [[maybe_unused]] auto const one = [&](auto which) {
      using K = decltype(which);
      key_products& to = products_[n++];
      if constexpr (contraction::PlainProduct<K>)
        to.multiply(member<K::x::of>(in_), member<K::y::of>(in_), b_, h_, p_.group(h_, p_.heads_of(K::y::of)), i_,
                    first, last);
    };
    (one(C{}), ...);
  }

 protected:
  /// v after both gates, and the error of the gates. Values that no row sees may be read, but never count.
  template <class Bound>
  void read_values(Bound const& f) {
    [[maybe_unused]] double const lost = flushed_below(format_of(how_.arithmetic));
    index_t const head = p_.group(h_, p_.value_heads);
    value_errors_.clear();
    if constexpr (Op::has_plain_values) {
      values_.see(in_.v, b_, head, seen_.keys);
    } else {
      lift<rounded> const numbers{};
      attune::detail::reference_contraction<rounded, Op, view> const contract{op_, in_, p_, numbers};
      std::size_t of = std::size_t(-1);
      attune::detail::pair_factor<rounded, Op> gate;
      values_.fill(std::size_t(p_.value_width), seen_.keys.size(), [&](std::size_t n, std::size_t d) {
        index_t const j = seen_.keys[n];
        if (n != of) gate = attune::detail::gate_of_key(contract, f, b_, h_, i_, j), of = n;
        rounded const v = gate(attune::detail::value_of_pair(contract, f, b_, h_, i_, head, j, index_t(d)));
        value_errors_.push_back(eps_ * v.total() +
                                lost * magnitude(in_.v(b_, head, j, index_t(d))) * magnitude(gate.factor.size));
        if constexpr (Op::has_pair_values)  // two sums, whose terms may cancel in v
          value_errors_.back() += eps_ * double(seen_.keys.size()) * (v.size - magnitude(v.value)) + lost * v.size;
        return v.value;
      });
    }
    finite_ = values_.finite();
  }
  double value(std::size_t n, std::size_t d) const { return values_(n, d); }
  double value_error(std::size_t n, std::size_t d) const {
    return value_errors_.empty() ? 0 : value_errors_[n * std::size_t(p_.value_width) + d];
  }
  double ground_value([[maybe_unused]] index_t d) const {
    if constexpr (Op::uses(field::v0)) {
      auto const at = attune::detail::broadcast(in_.v0, b_, h_, i_);
      return in_.v0(at.batch, at.head, at.position, d);
    } else {
      return 0;
    }
  }

  Op const& op_;
  inputs<Op, view> const& in_;
  problem_shape const& p_;
  precision how_;
  double eps_;
  index_t b_ = 0, h_ = 0, i_ = 0;
  attune::detail::visible_keys<double> seen_;
  std::vector<double> delta_, value_errors_;
  row_values values_;
  bool finite_ = true;  ///< no number of the row is infinite or NaN

 private:
  std::array<key_products, std::size_t(Op::contractions::size) + 1> products_;
};

}  // namespace attune::certify::detail
