// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   altered_rows(op, inputs, shape).evaluate<T>(defect, b, h, i)       the row as a kernel with that defect computes it
//
// Known mistakes of attention kernels, for any operator. Each is a change of one step of the pipeline.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <attune/certify/row/row_values.hpp>
#include <attune/exec/reference/contractions/known.hpp>
#include <attune/exec/reference/executor.hpp>
#include <attune/exec/reference/row.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/testing/judging/defect_kind.hpp>
#include <attune/testing/judging/kernel_parts.hpp>
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
  altered_rows(Op const& op, inputs<Op, view> const& in, problem_shape const& p) : op_(op), in_(in), p_(p) {}
  altered_rows(altered_rows const&) = delete;  // it refers to its arguments

  /// Whether a defect changes anything in this problem.
  bool applies(defect d) const {
    switch (d) {
      case defect::none:
        return false;
      case defect::ground_ignored:
      case defect::ground_twice:
      case defect::ground_four_times:
      case defect::ground_eight_times:
      case defect::ground_not_in_sum:
      case defect::lse_without_ground:
        return Op::has_ground_weight;
      case defect::ground_value_ignored:
        return Op::uses(field::v0);
      case defect::gate_ignored:
        return has_gate;
      case defect::output_gate_ignored:
        return Op::has_output_gate;
      case defect::value_gate_ignored:
        return Op::has_value_gate;
      case defect::length_scale_ignored:
        return !std::is_same_v<typename Op::length_scale_policy, length_scale::none>;
      case defect::heads_interleaved:
        return (p_.value_heads > 1 && p_.value_heads < p_.heads) || (p_.key_heads > 1 && p_.key_heads < p_.heads);
      case defect::key_head_plus_one:
        return Op::uses(field::k) && (p_.key_heads > 1 || p_.value_heads > 1);
      case defect::batch_plus_one:
        return Op::uses(field::k) && p_.batch > 1;
      case defect::mask_ignored:
        return !std::is_same_v<typename Op::mask_policy, mask::none>;
      case defect::window_starts_late:
      case defect::window_ends_early:
      case defect::window_wider:
      case defect::window_narrower:
        return !std::is_same_v<typename Op::mask_policy, mask::none> &&
               !std::is_same_v<typename Op::mask_policy, mask::causal>;
      case defect::cap_after_mask:
        return !std::is_same_v<typename Op::mask_policy, mask::none> && Op::contractions::size > 0 &&
               !Op::contractions::has_derived;
      case defect::query_one_later:
      case defect::query_one_earlier:
      case defect::other_rotary_layout:
        return has_rotary_layout<typename Op::kernel_policy>;
      case defect::positions_ignored:
        return !Op::contractions::has_derived &&
               !(Op::contractions::size == 0 || only_products(typename Op::contractions{}));
      case defect::values_by_position:
        return p_.value_heads > 1;
      case defect::out_by_position:
        return p_.heads > 1;
      case defect::lse_in_base_two:
      case defect::lse_in_base_e:
        return Op::has_lse;
      case defect::lse_without_scale:
        return Op::has_lse && Op::contractions::size > 0;
      case defect::first_key_not_in_sum:
      case defect::last_key_not_in_sum:
        return Op::has_lse;
      case defect::sink_added:
        return Op::has_lse && !Op::has_ground_weight;
      default:
        return true;
    }
  }
  /// Sets the keys for `marked_keys_missing` and `marked_keys_doubled`.
  void mark(std::vector<bool> keys) { marked_ = std::move(keys); }
  /// Where `marked_keys_elsewhere` reads them: `by` keys later, in another batch element.
  void read_from(index_t batch, index_t by) { from_batch_ = batch, from_by_ = by; }

  template <class T>
  altered_row<T> evaluate(defect d, index_t b, index_t h, index_t i, lift<T> const& numbers = {}) const {
    row<T> r = attune::detail::scalar_row<T>(p_, op_.mask, b, h, i, numbers);
    altered_row<T> to;
    attune::detail::visible_keys<T> seen;
    see(d, b, h, i, seen.keys);
    count(d, b, h, i, r);
    problem_shape p = p_;  // with the positions that the score sees
    index_t const moved = d == defect::query_one_later ? 1 : d == defect::query_one_earlier ? -1 : 0;
    index_t const position = i + p_.offset_of(b) + moved;
    if ((moved != 0 && position >= 0 && position < p_.keys) || d == defect::positions_ignored) {
      p.set_offset(position - i);
      r.position = T(double(position));
    }
    Op other = op_;
    if (d == defect::other_rotary_layout) turn_layout(other.kernel);
    auto const f = op_.bind(r);
    bool const some_elsewhere = d == defect::marked_keys_elsewhere;
    inputs<Op, view> const in = some_elsewhere ? in_ : with_other_keys(d, b, h), moved_in = with_other_keys(d, b, h);
    attune::detail::reference_contraction<T, Op, view> const contract{other, in, p, numbers},
        contract_elsewhere{op_, moved_in, p, numbers};
    std::vector<index_t> visible;
    if (d == defect::cap_after_mask) see(defect::none, b, h, i, visible);
    known_contractions const known = contractions_of(d, b, h, i);
    auto const contract_pair = [&](T* x, index_t j) {
      if (d == defect::positions_ignored) p.set_offset(j - i);
      if (d == defect::cap_after_mask && !std::binary_search(visible.begin(), visible.end(), j))
        return void(std::fill_n(x, Op::contractions::size, T(-math::infinity<T>())));
      if (is_elsewhere(d, j)) return contract_elsewhere.all(x, b, h, i, j + from_by_);
      if (known.numbers == nullptr) return contract.all(x, b, h, i, j);
      T copies[Op::contractions::size + 1];
      attune::detail::contractions_with(contract, x, b, h, i, j, [&](int n) -> T const* {
        if (!std::is_same_v<T, double> && !is_product(typename Op::contractions{}, n)) return nullptr;
        return &(copies[n] = T(known.numbers[std::size_t(j) * std::size_t(Op::contractions::size) + std::size_t(n)]));
      });
    };
    T raw_largest = -math::infinity<T>();
    std::vector<T> raw;
    attune::detail::row_contractions<T> all{Op::contractions::size, {}};
    for (index_t j : seen.keys) contract_pair(all.add_key(), j);
    attune::detail::sum_in_order(contract, f, all, b, h, i);
    for (index_t j : seen.keys) {
      T const* const x = all.of(seen.logits.size());
      T const s = f.score(x, key<T>{T(double(j))});
      seen.logits.push_back(logit(d, f, s, x));
      if (d == defect::cap_after_mask && seen.logits.back() != seen.logits.back())
        seen.logits.back() = -math::infinity<T>();  // no cap: hidden keys stay hidden
      if constexpr (std::is_same_v<T, double>)
        if (d == defect::logits_in_bf16 || d == defect::logits_in_fp16)
          seen.logits.back() =
              rounded_to(d == defect::logits_in_bf16 ? storage::bf16 : storage::fp16, seen.logits.back());
      if (d == defect::lse_without_scale) {
        raw.push_back(x[0]);
        raw_largest = math::larger(raw_largest, x[0]);
      }
    }
    auto done = attune::detail::weigh<normalizer>(f.normalizer, seen, r.visible);
    T lse = done.lse == -math::infinity<T>() ? done.lse : T(done.lse + f.logit_shift);
    if constexpr (Op::has_ground_weight) {
      T earned(0);
      for (T const& w : done.weights) earned = earned + w;
      bool const some = earned > T(0);
      if (d == defect::ground_ignored || d == defect::ground_not_in_sum)
        for (T& w : done.weights) w = some ? T(w / earned) : w;
      if (d == defect::ground_ignored) done.ground_weight = T(0);
      if (d == defect::ground_ignored || d == defect::lse_without_ground) lse = some ? T(lse + math::log(earned)) : lse;
    }
    if constexpr (Op::has_ground_weight)
      if (int const times = ground_times(d); times > 1) {
        T const total = T(1) + T(double(times - 1)) * done.ground_weight;
        for (T& w : done.weights) w = w / total;
        done.ground_weight = T(double(times)) * done.ground_weight / total;
        lse = lse + math::log(total);
      }
    if ((d == defect::first_key_not_in_sum || d == defect::last_key_not_in_sum) && seen.keys.size() > 1) {
      T const rest = T(1) - (d == defect::first_key_not_in_sum ? done.weights.front() : done.weights.back());
      for (T& w : done.weights) w = w / rest;
      done.ground_weight = done.ground_weight / rest;
      lse = lse + math::log(rest);
    }
    if (d == defect::sink_added && !done.weights.empty()) {
      for (T& w : done.weights) w = w * math::sigmoid(lse);
      lse = math::softplus(lse);
    }
    if constexpr (std::is_same_v<T, double>) {
      if (d == defect::weights_in_bf16) round_weights(done.weights, storage::bf16);
      if (d == defect::weights_in_fp16) round_weights(done.weights, storage::fp16);
    }
    if (d == defect::lse_in_base_two) lse = lse * T(1.4426950408889634);
    if (d == defect::lse_in_base_e) lse = lse * T(0.6931471805599453);
    if (d == defect::lse_without_scale) {
      T sum(0);
      for (T const& x : raw) sum = sum + math::exp_nonpositive(T(x - raw_largest));
      lse = raw_largest + math::log(sum);
    }

    to.out.assign(std::size_t(p_.value_width), T(0));
    std::vector<T> weights = done.weights;
    for (std::size_t n = 0; n < seen.keys.size(); ++n)
      weights[n] = attune::detail::gate_of_key(contract, f, b, h, i, seen.keys[n])(weights[n]);
    if (!add_plain_values(d, b, h, seen.keys, weights, to.out))
      for (std::size_t n = 0; n < seen.keys.size(); ++n) {
        if (Op::has_threshold && done.weights[n] == T(0)) continue;
        if (d == defect::positions_ignored) p.set_offset(seen.keys[n] - i);
        for (index_t c = 0; c < p_.value_width; ++c)
          to.out[std::size_t(c)] =
              to.out[std::size_t(c)] + weights[n] * value(d, contract, f, b, h, i, seen.keys[n], c);
      }
    if constexpr (Op::uses(field::v0))
      if (d != defect::ground_value_ignored) {
        auto const at = attune::detail::broadcast(in_.v0, b, h, i);
        for (index_t c = 0; c < p_.value_width; ++c)
          to.out[std::size_t(c)] =
              to.out[std::size_t(c)] +
              done.ground_weight * attune::detail::read<T>(in_.v0, at.batch, at.head, at.position, c);
      }
    if constexpr (Op::has_output_gate)
      if (d != defect::output_gate_ignored)
        for (index_t c = 0; c < p_.value_width; ++c)
          to.out[std::size_t(c)] = to.out[std::size_t(c)] * attune::detail::output_factor<T>(in_, p_, f, b, h, i, c);
    to.lse = lse;
    to.ground_weight = done.ground_weight;
    to.keys = seen.keys;
    to.weights = done.weights;
    return to;
  }

 private:
  using gate_of = gate::evaluation<typename Op::gate_policy>;
  static constexpr bool has_gate = gate_of::contractions::size != 0;

  // ---- what many defects share: the same rows are evaluated once for each of them -----------------------------------
  /// The contractions of a row with all keys; null: not kept.
  struct known_contractions {
    double const* numbers = nullptr;
  };
  static constexpr std::size_t most_known = 4'000'000;  ///< numbers: 32 MB

  static bool reads_other_keys(defect d) {
    return d == defect::query_one_later || d == defect::query_one_earlier || d == defect::positions_ignored ||
           d == defect::other_rotary_layout || d == defect::cap_after_mask || d == defect::marked_keys_elsewhere ||
           d == defect::heads_interleaved || d == defect::key_head_plus_one || d == defect::batch_plus_one;
  }
  known_contractions contractions_of(defect d, index_t b, index_t h, index_t i) const {
    std::size_t const size = std::size_t(Op::contractions::size) * std::size_t(p_.keys);
    if (size == 0 || reads_other_keys(d)) return {};
    std::size_t const row = std::size_t((b * p_.heads + h) * p_.queries + i);
    auto found = known_.find(row);
    if (found == known_.end()) {
      if ((known_.size() + 1) * size > most_known) return {};
      found = known_.emplace(row, std::vector<double>(size)).first;
      lift<double> const numbers{};
      attune::detail::reference_contraction<double, Op, view> const contract{op_, in_, p_, numbers};
      for (index_t j = 0; j < p_.keys; ++j)
        contract.all(found->second.data() + std::size_t(j) * std::size_t(Op::contractions::size), b, h, i, j);
    }
    return {found->second.data()};
  }
  /// The value sum of values without gates, a pack of features at a time; false: not these.
  template <class T>
  bool add_plain_values([[maybe_unused]] defect d, [[maybe_unused]] index_t b, [[maybe_unused]] index_t h,
                        [[maybe_unused]] std::vector<index_t> const& keys,
                        [[maybe_unused]] std::vector<T> const& weights, [[maybe_unused]] std::vector<T>& out) const {
    if constexpr (std::is_same_v<T, double> && !Op::has_value_gate && !Op::has_pair_values) {
      if (reads_other_keys(d) || d == defect::values_one_late || d == defect::values_by_position) return false;
      values_.see(in_.v, b, p_.group(h, p_.value_heads), keys);
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

  void see(defect d, index_t b, index_t h, index_t i, std::vector<index_t>& keys) const {
    mask_row m = p_.row(b, h, i);
    if (d == defect::mask_ignored || d == defect::cap_after_mask) {
      for (index_t j = 0; j < p_.keys; ++j) keys.push_back(j);
      return;
    }
    if (d == defect::causal_top_left) m.position = i;
    if (d == defect::position_plus_one) ++m.position;
    if (d == defect::position_minus_one) --m.position;
    index_t const longer = d == defect::last_key_beyond ? 1 : d == defect::last_key_missing ? -1 : 0;
    index_t const later = d == defect::first_key_beyond ? -1 : d == defect::first_key_missing ? 1 : 0;
    index_t from = 0;
    for (key_interval k = mask::next(op_.mask, m, 0); !k.empty(); k = mask::next(op_.mask, m, k.last)) {
      bool const starts_late = d == defect::window_starts_late || d == defect::window_narrower,
                 ends_early = d == defect::window_ends_early || d == defect::window_narrower;
      index_t const wider = d == defect::window_wider ? 1 : 0;
      index_t const first = k.first + later + (starts_late && k.first > 0 ? 1 : 0) - wider,
                    last = k.last + longer - (ends_early && k.last < p_.keys ? 1 : 0) + wider;
      for (index_t j = (std::max)(from, first); j < (std::min)(p_.keys, last); ++j) keys.push_back(j);
      from = keys.empty() ? 0 : keys.back() + 1;
    }
    if (d == defect::marked_keys_missing) std::erase_if(keys, [&](index_t j) { return marked_[std::size_t(j)]; });
    if (keys.empty()) return;
    if (d == defect::marked_keys_doubled) {
      std::vector<index_t> twice;
      for (index_t j : keys)
        if (marked_[std::size_t(j)]) twice.push_back(j);
      keys.insert(keys.end(), twice.begin(), twice.end());
    }
    if (d == defect::key_zero_doubled) keys.insert(keys.begin(), keys.front());
    if (d == defect::last_key_doubled) keys.push_back(keys.back());
  }

  template <class T>
  void count(defect d, index_t b, index_t h, index_t i, row<T>& r) const {
    index_t const k = mask::count(op_.mask, p_.row(b, h, i));
    index_t const taken = d == defect::count_plus_one      ? k + 1
                          : d == defect::count_minus_one   ? (std::max<index_t>)(k - 1, 1)
                          : d == defect::count_of_all_keys ? p_.keys
                                                           : k;
    if (taken == k || k == 0) return;
    r.visible = T(double(taken));
    r.log_visible = math::log(r.visible);
  }

  template <class T, class Bound>
  static T logit(defect d, Bound const& f, T const& s, T const* x) {
    if (d == defect::gate_ignored) return f.length_scale.scale(s);
    if (d != defect::length_scale_ignored) return f.logit_of_score(s, x);
    T const a = s - f.logit_shift;
    return gate_of::gate(f.gate, a, x + (Op::logit_contractions - gate_of::contractions::size));
  }

  template <class T, class Bound>
  T value(defect d, attune::detail::reference_contraction<T, Op, view> const& contract, Bound const& f, index_t b,
          index_t h, index_t i, index_t j, index_t c) const {
    index_t head = d == defect::heads_interleaved ? h % p_.value_heads : p_.group(h, p_.value_heads);
    if (d == defect::key_head_plus_one) head = (head + 1) % p_.value_heads;
    if (d == defect::batch_plus_one) b = (b + 1) % p_.batch;
    if (is_elsewhere(d, j)) b = from_batch_, j += from_by_;
    if (d == defect::values_one_late) j = (std::min)(j + 1, p_.keys - 1);
    if (d == defect::values_by_position) {
      index_t const place = j * p_.value_heads + head;
      head = place / p_.keys;
      j = place % p_.keys;
    }
    if (d == defect::value_gate_ignored) return attune::detail::read<T>(in_.v, b, head, j, c);
    return attune::detail::value_of_pair(contract, f, b, h, i, head, j, c);
  }

  static void round_weights(std::vector<double>& w, storage to) {
    double largest = 0;
    for (double x : w) largest = std::fmax(largest, x);
    if (largest > 0)
      for (double& x : w) x = rounded_to(to, x / largest) * largest;
  }

  /// The inputs of a row of a kernel that reads keys of another head or batch element.
  inputs<Op, view> with_other_keys([[maybe_unused]] defect d, [[maybe_unused]] index_t b,
                                   [[maybe_unused]] index_t h) const {
    inputs<Op, view> in = in_;
    if constexpr (Op::uses(field::k)) {
      index_t const own = p_.group(h, p_.key_heads);
      if (d == defect::heads_interleaved) in.k = in_.k.of_head(b, h % p_.key_heads);
      if (d == defect::key_head_plus_one) in.k = in_.k.of_head(b, (own + 1) % p_.key_heads);
      if (d == defect::marked_keys_elsewhere) in.k = in_.k.of_head(from_batch_, own);
      if (d == defect::batch_plus_one) in.k = in_.k.of_head((b + 1) % p_.batch, own);
    }
    return in;
  }

  Op const& op_;
  inputs<Op, view> const& in_;
  problem_shape const& p_;
  bool is_elsewhere(defect d, index_t j) const { return d == defect::marked_keys_elsewhere && marked_[std::size_t(j)]; }
  static int ground_times(defect d) {
    return d == defect::ground_twice ? 2 : d == defect::ground_four_times ? 4 : d == defect::ground_eight_times ? 8 : 1;
  }
  std::vector<bool> marked_;
  index_t from_batch_ = 0, from_by_ = 0;
  mutable std::unordered_map<std::size_t, std::vector<double>> known_;  ///< by row
  mutable certify::detail::row_values values_;
  mutable certify::detail::feature_sums sums_;
};

}  // namespace attune::testing::detail
