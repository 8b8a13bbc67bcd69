// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound = gradient_error_bound(op, inputs, {.out = dO}, precision)  |computed - exact| <= bound.of(field::q)[n].bound
//
// A-priori error bounds of the gradients of any operator. The dense backward pass runs on `rounded`
// (certify/rounded.hpp), so that every term of a gradient is charged for its parts. The bounds are twice that, because
// kernels recompute weights from a saved lse.
//   16 bits   probabilities and dS are rounded to the 16 bits of the output: a unit of sum |terms|. The row term
//             R = <do, out> uses an `out` that is off by its own bound; this enters the gradients like a cotangent of
//             the lse. It is common to a row, so `scatter` leaves it out.
//   underflow certify/gradient_underflow.hpp
//   kinks     where the derivative by a logit jumps within the logit's own error, either side is right: there is no
//             bound for the query and the key
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <attune/certify/error_bound.hpp>
#include <attune/certify/gradient_underflow.hpp>
#include <attune/certify/term_squares.hpp>
#include <attune/exec/reference/dense_vjp.hpp>

/// Sums of `rounded` are plain sums: nothing is compensated.
template <>
class attune::detail::compensated<attune::certify::rounded> {
 public:
  void add(certify::rounded const& x) { sum_ = sum_ + x; }
  certify::rounded value() const { return sum_; }

 private:
  certify::rounded sum_;
};

namespace attune::certify {

/// The bounds of the gradient by one parameter or table of a policy, row-major.
struct named_gradient_bounds {
  std::string path;                     ///< "normalizer.logit"
  shape extents;                        ///< of the parameter or table
  std::vector<bounded_number> numbers;  ///< kept in the format of the arithmetic, whatever `how.out` says
  std::vector<double> spreads;          ///< as gradient_bounds::spreads
};

/// The bounds of the gradients by the inputs, row-major; empty where the operator does not use a field.
struct gradient_bounds {
  problem_shape extents;                                        ///< of the call
  std::array<std::vector<bounded_number>, field_count> fields;  ///< one array per input, row-major
  std::array<shape, field_count> shapes;                        ///< the shape of each array of `fields`
  /// The root of the sum of the squares of each number's terms (certify/term_squares.hpp).
  std::array<std::vector<double>, field_count> spreads;
  std::array<std::vector<double>, field_count> counts;  ///< how many terms of equal size would have these spreads
  std::vector<named_gradient_bounds> parameters,        ///< in the order of listed_parameters
      tables;                                           ///< in the order of listed_tables

  /// The bounds of the gradient by one input.
  std::vector<bounded_number> const& of(field f) const { return fields[std::size_t(f)]; }
};

namespace detail {

/// Calls visit(b, h, i, j) for every pair where a derivative jumps within the error of rounding.
template <class Op, class Visit>
void for_each_kink(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p, double eps,
                   Visit const& visit) {
  using normalizer = typename Op::normalizer_policy;
  constexpr int pairs = Op::contractions::size;
  using D = dual<double, pairs + 1>;
  if constexpr (normalizer::traits.family == row_family::masses) {
    lift<rounded> const loose{};
    attune::detail::reference_contraction<rounded, Op, any_tensor> const contract{op, in, p, loose};
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          row<rounded> const loose_row = attune::detail::scalar_row<rounded>(p, op.mask, b, h, i);
          row<D> const moving_row = attune::detail::scalar_row<D>(p, op.mask, b, h, i);
          auto const bound = op.bind(loose_row);
          auto const f = op.bind(moving_row);
          D reference = initial_reference<normalizer, decltype(f.normalizer), D>(f.normalizer);
          struct pair {
            index_t j;
            rounded const* x;
            double a, delta;
          };
          std::vector<pair> seen;
          std::vector<index_t> keys;
          auto const all = attune::detail::contractions_of_row(contract, bound, b, h, i, {0, p.keys}, keys);
          for (index_t j : keys) {
            rounded const *const x = all.of(seen.size()), a = bound.logit(x, key<rounded>{rounded(double(j))});
            seen.push_back({j, x, a.value, eps * a.total()});
            if constexpr (normalizer::traits.reference == mass_reference::running_maximum)
              reference = math::larger(reference, D(a.value));
          }
          for (int n = 0; n < pairs + 1; ++n) reference.tangent[n] = 0;
          for (pair const& s : seen) {
            // Derivatives of the masses by the contractions, with contractions and logit shifted to either end of their
            // errors.
            auto const slopes = [&](double side) {
              D x[pairs + 1];
              for (int c = 0; c < pairs; ++c) x[c] = D::variable(s.x[c].value + side * eps * s.x[c].total(), c);
              D a = f.logit(x, key<D>{D(double(s.j))});
              a.value = s.a + side * s.delta;
              D const e = f.normalizer.earned(a, reference);
              std::array<double, 2 * pairs> t{};
              for (int c = 0; c < pairs; ++c) t[std::size_t(c)] = e.tangent[c];
              if constexpr (normalizer::traits.ground_mass) {
                D const g = f.normalizer.ground(a, reference);
                for (int c = 0; c < pairs; ++c) t[std::size_t(pairs + c)] = g.tangent[c];
              }
              return t;
            };
            auto const low = slopes(-1), high = slopes(1);
            bool jumps = false;
            for (std::size_t n = 0; n < low.size(); ++n)
              jumps = jumps || std::fabs(high[n] - low[n]) > 0.01 * std::fmax(std::fabs(high[n]), std::fabs(low[n]));
            // A smooth derivative changes as much where the error itself is that large. Then the bound covers it.
            if (jumps && s.delta < 1e-3) visit(b, h, i, s.j);
          }
        }
  }
}

/// The effect of a row term that is off by <|do|, bound of out>. The sums of |terms| are its worst case.
template <class Op>
dense_gradients<rounded> through_row_term(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p,
                                          cotangents<Op, any_tensor> const& d, precision const& how) {
  dense_gradients<rounded> none;
  if constexpr (Op::has_lse) {
    if (d.out.absent()) return none;
    auto const bounds = error_bound(op, in, how);
    std::vector<double> off;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          double sum = 0;
          for (index_t c = 0; c < p.value_width; ++c)
            sum += weighed(d.out(b, h, i, c), bounds.at_out(b, h, i, c).bound);
          off.push_back(sum);
        }
    cotangents<Op, any_tensor> by_lse;
    by_lse.lse = tensor<double const>(off, {p.batch, p.heads, p.queries, 1});
    return attune::detail::dense_vjp<rounded>(op, in, p, by_lse);
  }
  return none;
}

/// Whether many weights of a head are equal: a kernel that rounds weights makes one error for all of them.
template <class Op>
bool weights_repeat(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p, index_t b, index_t h) {
  constexpr index_t rows = 4;
  lift<double> const numbers{};
  attune::detail::reference_contraction<double, Op, any_tensor> const contract{op, in, p, numbers};
  double repeated = 0, all = 0;
  for (index_t n = 0; n < (std::min)(rows, p.queries); ++n) {
    index_t const i = p.queries - 1 - n * p.queries / rows;
    row<double> const at = attune::detail::scalar_row<double>(p, op.mask, b, h, i);
    auto const f = op.bind(at);
    attune::detail::visible_keys<double> seen;
    attune::detail::for_each_visible(contract, f, b, h, i, {0, p.keys},
                                     [&](index_t j, double const& score, double const& logit) {
                                       seen.keys.push_back(j);
                                       seen.scores.push_back(score);
                                       seen.logits.push_back(logit);
                                     });
    auto const w = attune::detail::weigh<typename Op::normalizer_policy>(f.normalizer, seen, at.visible);
    equal_weights equals;
    equals.find(w.weights);
    repeated += equals.square([](std::size_t) { return 1.; });
    double sum = 0;
    for (double x : w.weights) sum += x;
    all += sum * sum;
  }
  return repeated > 0.1 * all;
}

}  // namespace detail

/// Bounds of the gradients by every input, parameter and table, and their values in double.
/// Errors:     attune::error as vjp; operators with a candidate set are not supported, because their supports jump, nor
///             is weight_factor(earned, visible), whose kinks belong to a whole row.
/// Complexity: about 50 times vjp(reference<double>).
template <class Op>
gradient_bounds gradient_error_bound(Op const& op, inputs<Op, any_tensor> const& in,
                                     cotangents<Op, any_tensor> const& d, precision const& how = {}) {
  static_assert(!Op::contractions::has_derived,
                "attune: gradient_error_bound(): there is no bound of the gradients of an ordered sum. Compare them "
                "with testing::check_gradients()");
  gradient_bounds to;
  problem_shape const p = to.extents = attune::detail::checked_inputs("gradient_error_bound", op, in);
  if constexpr (Op::normalizer_policy::traits.family == row_family::sparse_support) {
    throw error("gradient_error_bound", "the operator", "a candidate set",
                "weights that are continuous in the logits, with slopes");
  } else if constexpr (OffersWeightFactorOfSums<typename Op::normalizer_policy>) {
    throw error("gradient_error_bound", "the normalizer", "a weight_factor of the sum of the masses",
                "weight_factor() without arguments: the bound knows no kinks of a whole row");
  } else {
    number_format const out = format_of(how.out), weights = format_of(how.weights), number = format_of(how.arithmetic);
    double const eps = 2 * number.unit * how.rounding, own = how.arithmetic == storage::fp64 ? 2 : 1;
    bool const coarse = weights.unit > number.unit, narrow = out.unit > number.unit;
    auto const g = attune::detail::dense_vjp<rounded>(op, in, p, d);
    auto const by_underflow =
        detail::through_underflow(op, in, p, d, detail::flushed_below(number), coarse ? weights.step / 2 : 0);
    auto const by_row_term =
        coarse || narrow ? detail::through_row_term(op, in, p, d, how) : dense_gradients<rounded>();
    auto const terms = attune::detail::dense_vjp<term_squares>(op, in, p, d);
    std::vector<bool> repeats;
    for (index_t n = 0; n < p.batch * p.heads && coarse; ++n)
      repeats.push_back(detail::weights_repeat(op, in, p, n / p.heads, n % p.heads));
    bool const some_repeat = std::find(repeats.begin(), repeats.end(), true) != repeats.end();
    // The bounds of one number: x with its sum of |terms|, the spread of its terms, losses, and how it is stored.
    auto const bounded = [&](rounded const& x, double spread, double least, double row_term, bool alike, bool stores) {
      bounded_number r;
      r.value = x.value;
      double const exact = 2 * own * eps * x.total(), rough = least + (coarse ? weights.unit * x.size : 0),
                   all = exact + rough + row_term + 16 * number.least;
      double const stored = stores ? out.unit * (detail::magnitude(x.value) + all) + out.step / 2 : 0;
      r.bound = all + stored;
      // Equal weights have equal errors: as large as if the whole sum were rounded.
      double const each = coarse ? weights.unit * (spread + (alike ? 2 * detail::magnitude(x.value) : 0)) : 0;
      r.drift = exact / 4 + 16 * number.least + (alike ? each : 0);
      r.scatter =
          std::hypot(least + each, stores ? out.unit * detail::magnitude(x.value) + out.step / 2 : 0) / std::sqrt(3.);
      if (!std::isfinite(r.value)) r.bound = r.drift = r.scatter = 0;
      if (!std::isfinite(r.bound) || detail::magnitude(r.value) + r.bound > (stores ? out : number).largest)
        r.bound = math::infinity<double>();
      return r;
    };
    for (std::size_t f = 0; f < to.fields.size(); ++f) {
      to.shapes[f] = g.fields[f].extents;
      bool const alike = some_repeat && field(f) == field::v;
      for (std::size_t n = 0; n < g.fields[f].values.size(); ++n) {
        to.spreads[f].push_back(std::sqrt(terms.fields[f].values[n].square));
        to.counts[f].push_back(terms.fields[f].values[n].count());
        to.fields[f].push_back(
            bounded(g.fields[f].values[n], to.spreads[f].back(), by_underflow.fields[f].values[n].size,
                    by_row_term.fields[f].values.empty() ? 0 : by_row_term.fields[f].values[n].size, alike, narrow));
      }
    }
    // Parameters and tables sum over all pairs, in the format of the arithmetic.
    double const lost = number.least * double(p.batch * p.heads * p.queries) * double(p.keys);
    auto const named = [&](auto const& from, auto const& squares, auto const& by_rows, auto& list) {
      for (std::size_t n = 0; n < from.size(); ++n) {
        named_gradient_bounds& one = list.emplace_back();
        one.path = from[n].path;
        one.extents = from[n].values.extents;
        for (std::size_t k = 0; k < from[n].values.values.size(); ++k) {
          one.spreads.push_back(std::sqrt(squares[n].values.values[k].square));
          one.numbers.push_back(bounded(from[n].values.values[k], one.spreads.back(), lost,
                                        by_rows.empty() ? 0 : by_rows[n].values.values[k].size, false, false));
        }
      }
    };
    named(g.parameters, terms.parameters, by_row_term.parameters, to.parameters);
    named(g.tables, terms.tables, by_row_term.tables, to.tables);
    bool kinks = false;
    detail::for_each_kink(op, in, p, eps, [&](index_t b, index_t h, index_t i, index_t j) {
      kinks = true;
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F) && F != field::v && F != field::value_gate && F != field::output_gate &&
                      F != field::v0) {
          shape const& e = to.shapes[std::size_t(F)];
          bool const by_key = side_of(F) == input_side::key;
          index_t const head = by_key ? p.group(h, e.head) : h, position = by_key ? j : i;
          for (index_t c = 0; c < e.feature; ++c)
            to.fields[std::size_t(F)][std::size_t(((b * e.head + head) * e.position + position) * e.feature + c)]
                .bound = math::infinity<double>();
        }
      });
    });
    for (auto* list : {&to.parameters, &to.tables})
      for (named_gradient_bounds& one : *list)
        for (bounded_number& x : one.numbers)
          if (kinks) x.bound = math::infinity<double>();
    return to;
  }
}

}  // namespace attune::certify
