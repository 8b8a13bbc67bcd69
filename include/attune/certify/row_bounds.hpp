// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A-priori error bounds of any operator from its own source, including your own policies:
//   delta_j    error of logit j: contractions, length scale and gate run on `rounded` (certify/rounded.hpp)
//   de_j, dg_j its effect on the masses: the policy evaluated at a_j +- delta_j; and the rounding of the policy itself
//   out_d      sum_j |d out_d / d e_j| |de_j| + ... : the effect of a key's error after the row was divided by its
//              masses (for softmax w_j |v_jd - out_d|)
//   sums       n(K) eps (A sum e|v| + |dA/dE E S| + ...): a sum of K terms, in any order, n(K) = K
//   weights    probabilities rounded before they multiply the values: unit A sum e|v|;   storage: unit |out|
// Other families: the error of each weight, times |v_jd|; a candidate is evaluated at both ends of its logit's error.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/certify/equal_weights.hpp>
#include <attune/certify/factor_bend.hpp>
#include <attune/certify/number_format.hpp>
#include <attune/certify/rounded.hpp>
#include <attune/certify/row/lse_error.hpp>
#include <attune/certify/row/row_reader.hpp>
#include <attune/certify/row/row_values.hpp>
#include <attune/certify/row_error.hpp>
#include <attune/certify/underflow.hpp>
#include <attune/core/dual.hpp>
#include <attune/exec/reference/row.hpp>

namespace attune::certify::detail {

template <class Op>
class row_bounds : row_reader<Op> {
  using base = row_reader<Op>;
  using view = any_tensor;
  using normalizer = typename Op::normalizer_policy;
  using base::b_, base::delta_, base::eps_, base::finite_, base::ground_value, base::h_, base::how_, base::i_,
      base::in_;
  using base::op_, base::p_, base::seen_, base::value, base::value_error, base::value_errors_, base::values_;
  using D = dual<double, 2>;
  static constexpr normalizer_traits is = normalizer::traits;

 public:
  row_bounds(Op const& op, inputs<Op, view> const& in, problem_shape const& p, precision const& how)
      : base(op, in, p, how) {}

  /// Appends the numbers of a row.
  void operator()(index_t b, index_t h, index_t i, error_bounds& to) {
    b_ = b, h_ = h, i_ = i;
    std::size_t const width = std::size_t(p_.value_width);
    row<rounded> const at = attune::detail::scalar_row<rounded>(p_, op_.mask, b, h, i);
    auto const loose = op_.bind(at);
    row<double> const exact = attune::detail::scalar_row<double>(p_, op_.mask, b, h, i);
    auto const f = op_.bind(exact);
    base::read_logits(loose);
    base::read_values(loose);
    weighed_ = attune::detail::weigh<normalizer>(f.normalizer, seen_, exact.visible);
    out_error_.assign(width, {});
    by_lse_.begin(how_, Op::has_lse ? weighed_.lse : math::infinity<double>());
    lse_error_ = {0, by_lse_.of_row()}, ground_error_ = {};
    per_mass_ = weight_per_mass<normalizer>(f.normalizer, seen_, weighed_, exact.visible);
    spread_.assign(width, 0);
    squares_.assign(width, 0);
    summed_ = false;
    if constexpr (is.family == row_family::masses)
      masses(f, loose, exact.visible);
    else if constexpr (is.family == row_family::range_weighted)
      adjusted(f);
    else
      candidates(f);
    lse_error_.add(eps_ * loose.logit_shift.total());
    finish(loose, f, to);
  }

 private:
  /// Adds the rounding error of a sum over the keys whose terms have the total size `s`.
  void add_sum(row_error& to, double s) const {
    double const n = double(seen_.keys.size());
    to.worst += eps_ * n * s;
    to.walk += eps_ * std::fmin(n, 4 * std::sqrt(n)) * s;
  }

  // ---- families -----------------------------------------------------------------------------------------------------
  template <class Bound, class Loose>
  void masses(Bound const& f, Loose const& loose, double visible) {
    std::size_t const n_keys = seen_.keys.size(), width = std::size_t(p_.value_width);
    double const m = weighed_.reference, E = weighed_.earned, G = weighed_.ground;
    D earned(E), ground(G);
    double const earned_unit = E == 0 ? 1 : E, ground_unit = G == 0 ? 1 : G;
    earned.tangent[0] = earned_unit;
    ground.tangent[1] = ground_unit;
    row<D> const moving = attune::detail::scalar_row<D>(p_, op_.mask, b_, h_, i_);
    auto const by = finish_masses<normalizer>(op_.bind(moving).normalizer, D(m), earned, ground, D(visible));
    auto const done = finish_masses<normalizer>(loose.normalizer, rounded(m), rounded(E), rounded(G), rounded(visible));
    double const A = done.value_factor.value;
    double const times = terms_of_sum<normalizer>(f.normalizer, seen_.logits, m, E) / std::fabs(earned_unit);
    // The effect of the sums of masses. An empty sum has no error.
    auto const by_sums = [&](double by_e, double by_g) {
      return (E == 0 && !(times > 0) ? 0 : times * std::fabs(by_e)) + (G == 0 ? 0 : std::fabs(by_g));
    };
    std::vector<mass_change>& changes = changes_;
    changes.clear();
    bool finite_changes = true;
    double relative = 0;
    for (std::size_t n = 0; n < n_keys; ++n) {
      double const a = seen_.logits[n], x = std::isfinite(a) ? delta_[n] : 0;
      mass_change c{};
      auto const e = [&](double y) { return f.normalizer.earned(y, m); };
      rounded const own = loose.normalizer.earned(rounded(a), rounded(m));
      double const here = own.value;  // e(a)
      // Exponentials may be relative to another reference and then rescaled: the distance counts.
      double const shift = is.reference == mass_reference::none ? 0 : magnitude(a - m);
      c.own_e = eps_ * (own.total() + shift * magnitude(here));
      if (x > 0) c.up_e = e(a + x) - here, c.down_e = e(a - x) - here;
      if constexpr (is.ground_mass) {
        auto const g = [&](double y) { return f.normalizer.ground(y, m); };
        c.own_g = eps_ * loose.normalizer.ground(rounded(a), rounded(m)).total();
        if (x > 0) c.up_g = g(a + x) - g(a), c.down_g = g(a - x) - g(a);
      }
      if (is.divided_by == divisor::sum)
        relative += weighed(1 / (E + G == 0 ? 1 : E + G),
                            larger(std::fabs(c.up_e) + std::fabs(c.up_g), std::fabs(c.down_e) + std::fabs(c.down_g)));
      changes.push_back(c);
      double const all = c.up_e + c.up_g + c.down_e + c.down_g + c.own_e + c.own_g;
      finite_changes = finite_changes && std::isfinite(all);
    }
    double const beyond = grown(relative);
    double off = eps_ * double(n_keys) * times * std::fabs(earned_unit);
    for (mass_change const& c : changes) off += larger(std::fabs(c.up_e), std::fabs(c.down_e)) + c.own_e;
    double const bent =
        bend_of_factor<normalizer>(f.normalizer, E, G, by.value_factor.tangent[0] / earned_unit, visible, off);

    /// The effect of the keys' errors on a function of the row, whose derivative by e_n is x(n) and by g_n is y.
    auto const add_keys = [&](row_error& to, auto const& x, double y) {
      double sum = 0;
      for (std::size_t n = 0; n < n_keys; ++n) {
        mass_change const& c = changes[n];
        double const by_e = x(n), up = (c.up_e == 0 ? 0 : by_e * c.up_e) + (c.up_g == 0 ? 0 : y * c.up_g),
                     down = (c.down_e == 0 ? 0 : by_e * c.down_e) + (c.down_g == 0 ? 0 : y * c.down_g);
        sum += larger(std::fabs(up), std::fabs(down)) + weighed(by_e, c.own_e) + weighed(y, c.own_g);
      }
      to.add(beyond * sum);
    };
    // `finite_` also says that weights and changes are: then sums need no tests.
    finite_ = finite_ && std::isfinite(A) && std::isfinite(done.share.value) && finite_changes;
    for (double w : weighed_.weights) finite_ = finite_ && std::isfinite(w);
    summed_ = finite_ && !is.uniform_share && A != 0;
    if (summed_)
      sums_.add_terms_and_out(values_, weighed_.weights);
    else if (finite_)
      sums_.add_terms<true>(values_, weighed_.weights, done.share.value, A == 0);
    else
      sums_.add_terms<false>(values_, weighed_.weights, done.share.value, A == 0);
    by_lse_.see(values_, weighed_.weights, sums_.terms);
    std::vector<double> by_e(values_.stride(), 0), by_g(values_.stride(), 0), slopes(2 * width);
    for (std::size_t d = 0; d < width; ++d) {
      auto const moved = [&](int k) {  // S is A sum e v: the derivative of A relative to A
        double sum = A == 0 || by.value_factor.tangent[k] == 0 ? 0 : by.value_factor.tangent[k] / A * sums_.terms[d];
        if constexpr (is.uniform_share) sum += by.share.tangent[k] == 0 ? 0 : by.share.tangent[k] * sums_.values[d];
        if constexpr (Op::uses(field::v0))
          sum += by.ground_weight.tangent[k] == 0 ? 0 : by.ground_weight.tangent[k] * ground_value(index_t(d));
        return sum;
      };
      slopes[2 * d] = moved(0), slopes[2 * d + 1] = moved(1);
      by_e[d] = slopes[2 * d] / earned_unit, by_g[d] = slopes[2 * d + 1] / ground_unit;
      finite_ = finite_ && std::isfinite(by_e[d]) && std::isfinite(by_g[d]);
    }
    if (finite_)
      sums_.add_errors<true, is.ground_mass>(values_, changes, A, by_e, by_g);
    else
      sums_.add_errors<false, is.ground_mass>(values_, changes, A, by_e, by_g);
    for (std::size_t d = 0; d < width; ++d) {
      double const S = sums_.terms[d], P = sums_.values[d], size = sums_.sizes[d], plain = sums_.plain[d];
      double gates = 0;
      for (std::size_t n = 0; n < n_keys && !value_errors_.empty(); ++n)
        gates += weighed(weighed_.weights[n], value_error(n, d));
      squares_[d] += sums_.squares[d];
      spread_[d] = size;
      [[maybe_unused]] double const v0 = ground_value(index_t(d));
      row_error& to = out_error_[d];
      to.add(beyond * sums_.errors[d]);
      add_sum(to, size + by_sums(slopes[2 * d], slopes[2 * d + 1]) +
                      (is.uniform_share ? weighed(done.share.value, plain) : 0));
      to.add(gates + eps_ * (weighed(S, A == 0 ? 0 : done.value_factor.total() / std::fabs(A)) + 2 * size +
                             weighed(P, done.share.total()) + weighed(plain, 2 * done.share.value)));
      to.worst += by_lse_.worst(d, magnitude(S) + weighed(v0, done.ground_weight.value));
      if (bent != 0) to.add(weighed(bent, A == 0 ? 0 : S / A));
      if constexpr (Op::uses(field::v0))
        to.add(eps_ * (weighed(v0, done.ground_weight.total()) + 2 * weighed(v0, done.ground_weight.value)));
    }
    if constexpr (Op::has_lse) {
      auto const lse = [&](row_error& to, D const& x, rounded const& own) {
        add_keys(to, [&](std::size_t) { return x.tangent[0] / earned_unit; }, x.tangent[1] / ground_unit);
        add_sum(to, by_sums(x.tangent[0], x.tangent[1]));
        to.add(eps_ * own.total());
      };
      if (std::isfinite(done.lse.value)) {
        lse(lse_error_, by.lse, done.lse);
        lse_error_.add(eps_ * (magnitude(m) + magnitude(done.lse.value)));
      }
      if constexpr (Op::has_ground_weight) lse(ground_error_, by.ground_weight, done.ground_weight);
    }
  }

  /// w = p f, f = (a - low) / (high - low). Kernels in one pass sum p (a - max a) v and p v, since the ends come last:
  /// both lengths of a - low = (a - max a) + (max a - low) count.
  template <class Bound>
  void adjusted(Bound const& f) {
    std::size_t const n_keys = seen_.keys.size();
    if (weighed_.earned == 0) return;
    auto const ends = f.normalizer.ends(weighed_.lowest, weighed_.highest);
    double const range = std::fabs(ends.high - ends.low), n = double(n_keys);
    double largest = 0, mean = 0;
    std::vector<double> p(n_keys);
    for (std::size_t k = 0; k < n_keys; ++k) {
      if (!std::isfinite(seen_.logits[k])) continue;
      p[k] = std::exp(seen_.logits[k] - weighed_.reference) / weighed_.earned;
      largest = std::fmax(largest, delta_[k]);
      mean += p[k] * (delta_[k] + eps_ * (3 + magnitude(seen_.logits[k] - weighed_.reference)));
    }
    double const sums = eps_ * (n + 8), size = magnitude(ends.low) + magnitude(ends.high);
    std::vector<double> bound(n_keys, 0), terms(n_keys, 0);
    for (std::size_t k = 0; k < n_keys; ++k) {
      if (p[k] == 0) continue;
      double const a = seen_.logits[k], own = delta_[k] + eps_ * (3 + magnitude(a - weighed_.reference));
      double const place = range == 0 ? 0 : 1 / range;
      double const places = 2 * place * (delta_[k] + 2 * largest + eps_ * (magnitude(a) + size + range));
      bound[k] = magnitude(weighed_.weights[k]) * grown(own + mean) * (own + mean + sums) + p[k] * places;
      terms[k] = p[k] * place * (magnitude(weighed_.highest - a) + magnitude(weighed_.highest - ends.low));
    }
    add_weights(bound, terms);
    if constexpr (Op::has_lse)
      if (std::isfinite(weighed_.lse))
        lse_error_.add(mean + sums + eps_ * (2 * magnitude(weighed_.lse) + magnitude(weighed_.reference)));
  }

  template <class Bound>
  void candidates(Bound const& f) {
    std::size_t const n_keys = seen_.keys.size();
    auto const& level = weighed_.level;
    double largest = 0;
    for (std::size_t n = 0; n < n_keys; ++n)
      if (weighed_.weights[n] > 0) largest = std::fmax(largest, delta_[n]);
    auto const reach = [&](std::size_t n) {
      return delta_[n] + largest +
             eps_ * (4 + magnitude(seen_.logits[n]) + magnitude(level.reference) + magnitude(level.level));
    };
    // At a cut, keys may change places. If no other key is within reach, the last kept key stays.
    bool const cuts = std::isfinite(level.cut);
    double lowest_kept = math::infinity<double>(), highest_left = -lowest_kept;
    for (std::size_t n = 0; n < n_keys && cuts; ++n) {
      double const a = seen_.logits[n];
      if (weighed_.weights[n] > 0)
        lowest_kept = std::fmin(lowest_kept, a - reach(n));
      else
        highest_left = std::fmax(highest_left, a + reach(n));
    }
    std::vector<double> bound(n_keys, 0);
    double total = 0;
    for (std::size_t n = 0; n < n_keys; ++n) {
      double const a = seen_.logits[n];
      if (!std::isfinite(a)) continue;
      double const x = reach(n), earned = weighed_.earned == 0 ? 1 : weighed_.earned;
      auto const weight = [&](double y) { return f.normalizer.weight(level, y, key<double>{double(seen_.keys[n])}); };
      double const here = weight(a);
      bool const kept = here > 0, crosses = cuts && (kept ? a - x <= highest_left : a + x >= lowest_kept);
      double change = 0;
      if (!cuts)
        change = std::fmax(std::fabs(weight(a + x) - here), std::fabs(weight(a - x) - here));
      else if (crosses)
        change = weight(std::fmax(a, level.cut) + x);
      else if (kept)
        change = weight(a + x) - here;
      bound[n] = (change + 8 * eps_ * here) / earned;
      total += bound[n];
    }
    for (std::size_t n = 0; n < n_keys; ++n)
      bound[n] += weighed_.weights[n] * grown(total) * (total + eps_ * (double(n_keys) + 4));
    add_weights(bound, weighed_.weights);
  }

  /// Adds the errors of the weights, and of sums whose terms are `terms` times the values.
  void add_weights(std::vector<double> const& bound, std::vector<double> const& terms) {
    for (std::size_t d = 0; d < out_error_.size(); ++d) {
      double size = 0, sum = 0, summed = 0;
      for (std::size_t n = 0; n < bound.size(); ++n) {
        double const w = weighed_.weights[n];
        if (Op::has_threshold && w == 0 && bound[n] == 0) continue;
        sum += weighed(bound[n], value(n, d)) + weighed(w, value_error(n, d));
        size += weighed(w, value(n, d));
        summed += weighed(terms[n], value(n, d));
        squares_[d] += weighed(w, value(n, d)) * weighed(w, value(n, d));
      }
      spread_[d] = size;
      out_error_[d].add(sum + 2 * eps_ * summed);
      add_sum(out_error_[d], summed);
    }
  }

  // ---- storage ------------------------------------------------------------------------------------------------------
  struct small_loss {
    double one_way, random;
  };
  /// The loss of feature d by weights that are rounded to multiples of `step`. Many steps round at random; a few of
  /// them, or less than one, may all be rounded down.
  small_loss loss_of_small_weights(double step, std::size_t d) const {
    double one_way = 0, square = 0;
    for (std::size_t k = 0; k < weighed_.weights.size(); ++k) {
      double const w = magnitude(weighed_.weights[k]), v = w == 0 ? 0 : magnitude(value(k, d));
      if (w < 4 * step)
        one_way += std::fmin(w, step / 2) * v;
      else
        square += v * v;
    }
    return {one_way, step / 2 * std::sqrt(square)};
  }
  template <class Loose, class Bound>
  void finish(Loose const& loose, [[maybe_unused]] Bound const& f, error_bounds& to) {
    number_format const out_format = format_of(how_.out), weights = format_of(how_.weights),
                        number = format_of(how_.arithmetic);
    bool const coarse = weights.unit > number.unit;
    // A double reference judges doubles: its own error counts as much as theirs.
    double const own = how_.arithmetic == storage::fp64 ? 2 : 1, n = double(seen_.keys.size());
    if (coarse) equals_.find(weighed_.weights);
    for (double w : weighed_.weights) finite_ = finite_ && std::isfinite(w);
    if (!summed_ && finite_)
      sums_.add_out<true>(values_, weighed_.weights, Op::has_threshold);
    else if (!summed_)
      sums_.add_out<false>(values_, weighed_.weights, Op::has_threshold);
    weight_loss const loss(flushed_below(number), per_mass_, n);
    for (index_t d = 0; d < p_.value_width; ++d) {
      std::size_t const x = std::size_t(d);
      double const plain = sums_.used[x];
      bounded_number r;
      r.value = sums_.out[x];
      double const sum = r.value, ground = ground_value(d);
      if constexpr (Op::uses(field::v0)) r.value += weighed_.ground_weight * ground;
      double const lost = weighed(plain, loss.of_mass) + weighed(magnitude(sum) + 3 * magnitude(ground), loss.of_sum);
      double worst = own * out_error_[x].worst + lost, walk = own * out_error_[x].walk + lost, rough = 0, scatter = 0,
             shared = 0, of_lse = by_lse_.scatter(x);
      if (coarse) {
        // Rounded before or after the division, in the numerator alone or in the sum. Equal weights round alike.
        double const tiny = weights.step / 2 * plain;
        shared = weights.unit * std::sqrt(equals_.square([&](std::size_t k) { return value(k, x); }));
        rough = weights.unit * (spread_[x] + magnitude(r.value)) + tiny;
        double const each = std::sqrt(squares_[x]) + magnitude(r.value) / std::sqrt(std::fmax(n, 1));
        small_loss const small_weights =
            tiny > 0.01 * rough ? loss_of_small_weights(weights.step, x) : small_loss{0, tiny};
        shared += small_weights.one_way;
        scatter = std::hypot(weights.unit * each + small_weights.random, shared);
      }
      if constexpr (Op::has_output_gate) {
        rounded const gate = attune::detail::output_factor<rounded>(in_, p_, loose, b_, h_, i_, d);
        double const factor = magnitude(gate.value),
                     extra = own * weighed(r.value, eps_ * (gate.total() + 2 * factor) + flushed_below(number));
        worst = worst * factor + extra;
        walk = walk * factor + extra;
        for (double* part : {&rough, &scatter, &shared, &of_lse}) *part *= factor;
        r.value *= attune::detail::output_factor<double>(in_, p_, f, b_, h_, i_, d);
      }
      double const all = worst + rough + 16 * number.least;
      double const stored = out_format.unit * (magnitude(r.value) + all) + out_format.step / 2;
      // fp64 and fp32 outputs are rounded by the last operation, which is counted already.
      bool const narrow = out_format.unit > number.unit;
      r.bound = all + (narrow ? stored : 0);
      r.drift = walk + shared + 16 * number.least;
      // Over a binade the spacing halves: a rounding error has a standard deviation of at most unit |x| / sqrt 3.
      r.scatter = std::hypot(std::hypot(scatter, narrow ? stored : 0) / std::sqrt(3.), of_lse);
      if (!std::isfinite(r.value)) r.bound = r.drift = r.scatter = 0;
      if (magnitude(r.value) + r.bound > out_format.largest) r.bound = math::infinity<double>();
      to.out.push_back(r);
    }
    auto const number_of_row = [&](double x, row_error const& e, double deviation) {
      double const tiny = 16 * number.least + 2 * loss.of_sum;
      return std::isfinite(x) ? bounded_number{x, own * e.worst + tiny, own * e.walk + tiny, deviation}
                              : bounded_number{x, 0, 0, 0};
    };
    if constexpr (Op::has_lse) {
      double const lse =
          weighed_.lse == -math::infinity<double>() ? weighed_.lse : weighed_.lse + loose.logit_shift.value;
      to.lse.push_back(number_of_row(lse, lse_error_, by_lse_.deviation()));
    }
    if constexpr (Op::has_ground_weight)
      to.ground_weight.push_back(number_of_row(weighed_.ground_weight, ground_error_, 0));
  }

  attune::detail::weighed_row<double> weighed_;
  feature_sums sums_;
  bool summed_ = false;  ///< whether sums_ has out and used
  std::vector<mass_change> changes_;
  std::vector<row_error> out_error_;
  row_error lse_error_, ground_error_;
  double per_mass_ = 1;          ///< the factor of a mass's underflow
  std::vector<double> spread_;   ///< sum |w v|
  std::vector<double> squares_;  ///< sum (w v)^2
  equal_weights equals_;
  lse_errors by_lse_;
};

}  // namespace attune::certify::detail
