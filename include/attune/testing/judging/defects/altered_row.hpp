// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   altered_rows rows(op, inputs, shape);    rows.evaluate<T>(row_change{.position = 1}, b, h, i).out
//
// A row of outputs as a kernel with a defect computes it, for any operator. The steps of a row, in their order:
// keys, contractions, logits, weights, lse, output.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/certify/row/row_values.hpp>
#include <attune/exec/reference/executor.hpp>
#include <attune/exec/reference/row.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/testing/judging/defects/altered_pairs.hpp>
#include <attune/testing/judging/defects/defect.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// A row of outputs in the scalar T.
template <class T>
struct altered_row {
  std::vector<T> out;
  T lse = T(0), ground_weight = T(0);
  std::vector<index_t> keys;  ///< the keys that took part
  std::vector<T> weights;
};

/// The rows of an operator with one change.
template <class Op>
class altered_rows {
  using view = any_tensor;
  using normalizer = typename Op::normalizer_policy;

 public:
  altered_rows(Op const& op, inputs<Op, view> const& in, problem_shape const& p) : op_(op), pairs_(op, in, p), p_(p) {}
  altered_rows(altered_rows const&) = delete;  // it refers to its arguments

  /// Facts of the operator and the problem that decide which defects apply.
  call_facts facts() const {
    using is = Op;
    call_facts f;
    f.masked = !std::is_same_v<typename is::mask_policy, mask::none>;
    f.only_causal = std::is_same_v<typename is::mask_policy, mask::causal>;
    f.ground = is::has_ground_weight, f.v0 = is::uses(field::v0), f.lse = is::has_lse;
    f.gate = gate::evaluation<typename is::gate_policy>::contractions::size != 0;
    f.output_gate = is::has_output_gate, f.value_gate = is::has_value_gate;
    f.length_scale = !std::is_same_v<typename is::length_scale_policy, length_scale::none>;
    f.keys = is::uses(field::k);
    f.scores = is::contractions::size > 0, f.derived = is::contractions::has_derived;
    f.positions = f.scores && !only_products(typename is::contractions{});
    f.rotary = has_rotary_layout<typename is::kernel_policy>;
    for (operator_parameter const& x : listed_parameters(op_)) f.capped = f.capped || x.path().ends_with("cap");
    f.batch = p_.batch, f.heads = p_.heads, f.key_heads = p_.key_heads, f.value_heads = p_.value_heads;
    return f;
  }
  /// Where the rows read keys and values: the keys of `marked`.
  altered_pairs<Op>& pairs() { return pairs_; }
  altered_pairs<Op> const& pairs() const { return pairs_; }

  template <class T>
  altered_row<T> evaluate(row_change const& c, index_t b, index_t h, index_t i, lift<T> const& numbers = {}) const {
    row<T> const r = counted_row<T>(c, b, h, i, numbers);
    auto const f = op_.bind(r);
    attune::detail::visible_keys<T> seen;
    seen.keys = pairs_.keys_of(c, b, h, i);
    pair_reader<T, Op> read(pairs_, c, b, h, i, numbers);
    attune::detail::row_contractions<T> all{Op::contractions::size, {}};
    for (index_t j : seen.keys) read.contractions(all.add_key(), j);
    attune::detail::sum_in_order(read.contract(), f, all, b, h, i);
    for (std::size_t n = 0; n < seen.keys.size(); ++n)
      seen.logits.push_back(logit_of<Op, T>(c, f, all.of(n), key<T>{T(double(seen.keys[n]))}));
    auto done = attune::detail::weigh<normalizer>(f.normalizer, seen, r.visible);
    altered_row<T> to;
    to.lse = done.lse == -math::infinity<T>() ? done.lse : T(done.lse + f.logit_shift);
    reweigh(c, done, to.lse);
    if constexpr (std::is_same_v<T, double>) visit_in_parts(c, seen, done.weights, to.lse);
    if (c.lse_factor != 1) to.lse = to.lse * T(c.lse_factor);
    if (c.lse_without_scale && !seen.keys.empty()) to.lse = lse_of_first(all, seen.keys.size());
    to.out = out_of(c, read, f, seen.keys, done);
    to.ground_weight = done.ground_weight;
    to.keys = std::move(seen.keys);
    to.weights = std::move(done.weights);
    return to;
  }

 private:
  template <class T>
  row<T> counted_row(row_change const& c, index_t b, index_t h, index_t i, lift<T> const& numbers) const {
    row<T> r = attune::detail::scalar_row<T>(p_, op_.mask, b, h, i, numbers);
    index_t const k = mask::count(op_.mask, p_.row(b, h, i));
    index_t const taken = c.count_all ? p_.keys : c.count < 0 ? (std::max<index_t>)(k + c.count, 1) : k + c.count;
    if (taken != k && k != 0) {
      r.visible = T(double(taken));
      r.log_visible = math::log(r.visible);
    }
    if (auto const position = pairs_.moved_position(c, b, i)) r.position = T(double(*position));
    return r;
  }

  /// Changes of the normalizer.
  template <class T>
  static void reweigh(row_change const& c, attune::detail::weighed_row<T>& row, T& lse) {
    auto const divide = [&](T const& by) {
      for (T& w : row.weights) w = w / by;
    };
    if constexpr (Op::has_ground_weight) {
      T earned(0);
      for (T const& w : row.weights) earned = earned + w;
      if (c.ground != ground_mass::right && earned > T(0)) {
        if (c.ground != ground_mass::not_in_lse) divide(earned);
        if (c.ground != ground_mass::not_in_sum) lse = lse + math::log(earned);
      }
      if (c.ground == ground_mass::ignored) row.ground_weight = T(0);
      if (c.ground_times > 1) {
        T const times(double(c.ground_times)), total = T(1) + (times - T(1)) * row.ground_weight;
        divide(total);
        row.ground_weight = times * row.ground_weight / total;
        lse = lse + math::log(total);
      }
    }
    if (c.not_in_sum != end_key::none && row.weights.size() > 1) {
      T const rest = T(1) - (c.not_in_sum == end_key::first ? row.weights.front() : row.weights.back());
      divide(rest);
      row.ground_weight = row.ground_weight / rest;
      lse = lse + math::log(rest);
    }
    if (c.sink_added && !row.weights.empty()) {
      for (T& w : row.weights) w = w * math::sigmoid(lse);
      lse = math::softplus(lse);
    }
    if constexpr (std::is_same_v<T, double>)
      if (c.weights_stored || c.weight_bits > 0) {
        double largest = 0;
        for (double x : row.weights) largest = std::fmax(largest, x);
        if (largest > 0)
          for (double& x : row.weights)
            x = largest * (c.weights_stored ? rounded_to(*c.weights_stored, x / largest)
                                            : rounded_to_bits(c.weight_bits, x / largest));
      }
  }

  /// A kernel that visits the keys in tiles or splits, and keeps a stale maximum or merges by other factors.
  void visit_in_parts(row_change const& c, attune::detail::visible_keys<double> const& seen,
                      std::vector<double>& weights, double& lse) const {
    std::size_t const n = weights.size();
    if (c.not_rescaled != stale::none) {
      double most = -math::infinity<double>(), sum = 0;
      for (double a : seen.logits) most = std::fmax(most, a);
      std::vector<double> factors(n);
      double running = -math::infinity<double>();
      for (std::size_t first = 0, last; first < n; first = last) {
        for (last = first; last < n && seen.keys[last] / c.tile == seen.keys[first] / c.tile; ++last)
          running = std::fmax(running, seen.logits[last]);
        for (std::size_t k = first; k < last; ++k) factors[k] = std::exp(most - running);
      }
      for (std::size_t k = 0; k < n; ++k) {
        double const stale_weight = weights[k] == 0 ? 0 : weights[k] * factors[k];
        sum += c.not_rescaled == stale::out ? weights[k] : stale_weight;
        if (c.not_rescaled != stale::sum) weights[k] = stale_weight;
      }
      for (double& w : weights) w /= sum;
      lse += std::log(sum);
    }
    if (c.splits > 1 && p_.keys > 0) {
      std::vector<double> mass(std::size_t(c.splits), 0);
      auto const split = [&](std::size_t k) { return std::size_t(seen.keys[k] * c.splits / p_.keys); };
      for (std::size_t k = 0; k < n; ++k) mass[split(k)] += weights[k];
      double sum = 0;
      for (double m : mass) sum += m > 0 ? std::pow(m, c.merge_power) : 0;
      for (std::size_t k = 0; k < n; ++k)
        if (weights[k] != 0) weights[k] *= std::pow(mass[split(k)], c.merge_power - 1) / sum;
    }
  }

  /// log sum e^x of the first contraction.
  template <class T>
  static T lse_of_first(attune::detail::row_contractions<T> const& all, std::size_t keys) {
    T largest = -math::infinity<T>(), sum(0);
    for (std::size_t n = 0; n < keys; ++n) largest = math::larger(largest, all.of(n)[0]);
    for (std::size_t n = 0; n < keys; ++n) sum = sum + math::exp_nonpositive(T(all.of(n)[0] - largest));
    return largest + math::log(sum);
  }

  template <class T, class Bound>
  std::vector<T> out_of(row_change const& c, pair_reader<T, Op>& read, Bound const& f, std::vector<index_t> const& keys,
                        attune::detail::weighed_row<T> const& row) const {
    auto const [b, h, i] = read.place();
    inputs<Op, view> const& in = pairs_.in();
    std::vector<T> to(std::size_t(p_.value_width), T(0)), weights = row.weights;
    for (std::size_t n = 0; n < keys.size(); ++n)
      weights[n] = attune::detail::gate_of_key(read.contract(), f, b, h, i, keys[n])(weights[n]);
    if (!add_plain_values(c, b, h, keys, weights, to))
      for (std::size_t n = 0; n < keys.size(); ++n) {
        if (Op::has_threshold && row.weights[n] == T(0)) continue;
        for (index_t d = 0; d < p_.value_width; ++d)
          to[std::size_t(d)] = to[std::size_t(d)] + weights[n] * read.value(f, keys[n], d);
      }
    if constexpr (Op::uses(field::v0))
      if (!c.without_v0) {
        auto const at = attune::detail::broadcast(in.v0, b, h, i);
        for (index_t d = 0; d < p_.value_width; ++d)
          to[std::size_t(d)] = to[std::size_t(d)] +
                               row.ground_weight * attune::detail::read<T>(in.v0, at.batch, at.head, at.position, d);
      }
    if constexpr (Op::has_output_gate)
      if (!c.without_output_gate)
        for (index_t d = 0; d < p_.value_width; ++d)
          to[std::size_t(d)] = to[std::size_t(d)] * attune::detail::output_factor<T>(in, p_, f, b, h, i, d);
    return to;
  }
  /// The value sum of values without gates, a pack of features at a time; false: not these.
  template <class T>
  bool add_plain_values([[maybe_unused]] row_change const& c, [[maybe_unused]] index_t b, [[maybe_unused]] index_t h,
                        [[maybe_unused]] std::vector<index_t> const& keys,
                        [[maybe_unused]] std::vector<T> const& weights, [[maybe_unused]] std::vector<T>& out) const {
    if constexpr (std::is_same_v<T, double> && !Op::has_value_gate && !Op::has_pair_values) {
      if (reads_elsewhere(c) || c.value_rows != matrix::right) return false;
      values_.see(pairs_.in().v, b, p_.group(h, p_.value_heads), keys);
      if (!values_.finite()) return false;
      for (double w : weights)
        if (!std::isfinite(w)) return false;
      sums_.template add_out<true>(values_, weights, false);
      std::copy_n(sums_.out.begin(), out.size(), out.begin());
      return true;
    } else {
      return false;
    }
  }

  Op const& op_;
  altered_pairs<Op> pairs_;
  problem_shape const& p_;
  mutable certify::detail::row_values values_;
  mutable certify::detail::feature_sums sums_;
};

}  // namespace attune::testing::detail
