// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e = enclose(op, {.q = Q, .k = K, .v = V}, {.format = storage::bf16});    e.at_out(b, h, i, d).rounded
//
// The correctly rounded result of an operator. The reference executor runs on intervals, with more and more bits, until
// both ends of every number round to the same number of the format, or until a limit is reached. The result says which.
#pragma once

#include <string>
#include <vector>

#include <attune/certify/call_numbers.hpp>
#include <attune/certify/enclosure/rounding.hpp>
#include <attune/certify/enclosure/threshold.hpp>
#include <attune/core/error.hpp>
#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/forward.hpp>

namespace attune {

namespace detail {

/// Intervals know the rounding error of a sum themselves.
template <>
class compensated<certify::interval> {
 public:
  void add(certify::interval const& x) { sum_ = sum_ + x; }
  certify::interval const& value() const { return sum_; }

 private:
  certify::interval sum_;
};

}  // namespace detail

namespace certify {

/// Limits and format of an enclosure.
struct enclosure_options {
  storage format = storage::fp64;  ///< results are rounded to this format
  long first_bits = 128;           ///< bits of the first attempt; each attempt doubles them
  long most_bits =
      4096;  ///< bits of the last attempt. Gradients that cancel completely need about 1,100 to round to 0 as fp64
};

/// Encloses the numbers that evaluate() returns as intervals, always the same number of them, with as many bits as
/// needed to round each.
/// Complexity: less than twice the last evaluation.
template <class Evaluate>
std::vector<enclosed_number> enclosed_by(enclosure_options const& how, Evaluate const& evaluate) {
  if (how.first_bits < 64 || how.most_bits < how.first_bits || how.most_bits > (1L << 24))
    throw error("enclosure", "enclosure_options",
                "first_bits " + std::to_string(how.first_bits) + ", most_bits " + std::to_string(how.most_bits),
                "64 <= first_bits <= most_bits <= 2^24");
  std::vector<enclosed_number> numbers;
  for (long bits = how.first_bits;; bits = (std::min)(2 * bits, how.most_bits)) {
    working_precision const working(bits);
    std::vector<interval> const ends = evaluate();
    numbers.resize(ends.size(), {0, 0, 0, false, false});
    bool decided = true;
    for (std::size_t n = 0; n < ends.size(); ++n) {
      if (!numbers[n].decided) numbers[n] = enclosed(ends[n], how.format);
      decided = decided && numbers[n].decided;
    }
    if (decided || bits == how.most_bits) return numbers;
  }
}

/// Enclosures of all results of a call.
struct enclosures : call_numbers<enclosed_number> {
  std::vector<enclosed_number> threshold;  ///< (B, H, Lq, 1); empty where the operator has none
  std::vector<enclosed_number> weights;    ///< (B, H, Lq, Lk), 0 where not visible; empty unless requested

  /// The weight of key j in row (b, h, i); not checked.
  enclosed_number const& at_weight(index_t b, index_t h, index_t i, index_t j) const {
    return weights[std::size_t(row_number(b, h, i) * extents.keys + j)];
  }
  /// How many numbers are undecided at the limit of bits.
  index_t undecided() const {
    index_t n = 0;
    for (auto const* list : {&out, &lse, &ground_weight, &threshold, &weights})
      for (enclosed_number const& x : *list) n += x.decided ? 0 : 1;
    return n;
  }
};

/// Whether enclose() also returns the weights of all pairs.
enum class enclosed_weights { none, all };

/// Enclosures of out, lse, ground weight and threshold, and of the weights if requested, row by row.
/// Guarantee:  the result of exact arithmetic on the given inputs lies in [lower, upper]. Where `decided`, `rounded` is
///             this result, correctly rounded. Policies are evaluated from their own source, so that your own operators
///             have enclosures too. Kinks within rounding of an argument give the hull of both sides.
/// Undecided:  exact values half-way between two numbers of the format, unless the arithmetic is exact; and logits that
///             are equal, or on a kink where the result jumps, if `most_bits` bits do not show this exactly.
/// Errors:     attune::error names argument, value and expectation.
/// Complexity: with 128 bits a few hundred times reference<double>; memory for one row and the result.
template <class Op>
enclosures enclose(Op const& op, inputs<Op, any_tensor> const& in, enclosure_options const& how = {},
                   enclosed_weights weights = enclosed_weights::none) {
  enclosures to;
  to.extents = attune::detail::checked_inputs("enclose", op, in);
  problem_shape const& p = to.extents;
  bool const all = weights == enclosed_weights::all;
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        auto const numbers = enclosed_by(how, [&] {
          dense_head<interval> head = attune::detail::blank_head<interval, Op>(p, 1);
          attune::detail::dense_row(op, in, p, b, h, i, head, 0);
          std::vector<interval> row;
          for (index_t d = 0; d < p.value_width; ++d) row.push_back(head.out(0, d));
          if constexpr (Op::has_lse) row.push_back(head.lse(0));
          if constexpr (Op::has_ground_weight) row.push_back(head.ground_weight(0));
          if constexpr (Op::has_threshold) row.push_back(head.threshold(0));
          for (index_t j = 0; j < p.keys && all; ++j) row.push_back(head.weights(0, j));
          return row;
        });
        auto at = numbers.begin();
        auto const take = [&](std::vector<enclosed_number>& list, index_t n) {
          list.insert(list.end(), at, at + n);
          at += n;
        };
        take(to.out, p.value_width);
        take(to.lse, Op::has_lse ? 1 : 0);
        take(to.ground_weight, Op::has_ground_weight ? 1 : 0);
        take(to.threshold, Op::has_threshold ? 1 : 0);
        take(to.weights, all ? p.keys : 0);
      }
  return to;
}

namespace detail {

/// Calls visit(array of `to`, array of `from`) for all arrays in the gradients of one call.
template <class To, class From, class Visit>
void for_each_gradient(To& to, From& from, Visit const& visit) {
  for (std::size_t n = 0; n < from.fields.size(); ++n) visit(to.fields[n], from.fields[n]);
  for (std::size_t n = 0; n < from.parameters.size(); ++n) {
    to.parameters[n].path = from.parameters[n].path;
    visit(to.parameters[n].values, from.parameters[n].values);
    visit(to.parameters[n].x, from.parameters[n].x);
    visit(to.parameters[n].weight, from.parameters[n].weight);
    visit(to.parameters[n].bias, from.parameters[n].bias);
  }
  for (std::size_t n = 0; n < from.tables.size(); ++n) {
    to.tables[n].path = from.tables[n].path;
    visit(to.tables[n].values, from.tables[n].values);
  }
}

}  // namespace detail

/// Enclosures of the gradients that vjp computes. At kinks: the conventions of vjp if a tie is exact in the inputs,
/// else the hull of the one-sided derivatives. A parameter that several policies read has one enclosure per policy:
/// find them in `parameters` by their paths. Guarantee, errors: as enclose. Complexity: vjp on intervals, over all rows
/// at once.
template <class Op>
dense_gradients<enclosed_number> enclose_vjp(Op const& op, inputs<Op, any_tensor> const& in,
                                             cotangents<Op, any_tensor> const& d, enclosure_options const& how = {}) {
  dense_gradients<enclosed_number> to;
  auto const numbers = enclosed_by(how, [&] {
    auto g = vjp(reference<interval>{}, op, in, d);
    std::vector<interval> all;
    to.parameters.resize(g.parameters.size());
    to.tables.resize(g.tables.size());
    detail::for_each_gradient(to, g, [&](auto& shaped, auto const& x) {
      shaped.extents = x.extents;
      shaped.values.resize(x.values.size());
      all.insert(all.end(), x.values.begin(), x.values.end());
    });
    return all;
  });
  auto at = numbers.begin();
  auto const& shaped = to;
  detail::for_each_gradient(to, shaped, [&](auto& list, auto const& sized) {
    std::copy(at, at + index_t(sized.values.size()), list.values.begin());
    at += index_t(sized.values.size());
  });
  return to;
}

}  // namespace certify
}  // namespace attune
