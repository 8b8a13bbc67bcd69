// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   one head by windows: rectangles of visible pairs -> windows -> the fused CPU executor; forward and backward
#pragma once

#include <attune/line/call/workers.hpp>
#include <attune/line/certificates.hpp>
#include <attune/line/order/key_order.hpp>

namespace attune::line::detail {

/// Keys that are this near by position are computed for all rows that see them, without regard to their sort keys:
/// shorter rectangles cost more than they save.
inline constexpr index_t near_keys = 256;

/// The parameters of an operator, as the heads use them.
struct windowed_call {
  parameter tau, scale;
  window_rule rule;
  parameter sink{};  ///< unset: no sink
};
/// The inputs of a call; vectors and a sink are optional.
template <class T>
struct windowed_arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};  ///< as `arrays`
  tensor<T const> q{}, k{};                 ///< (B, H, Lq, D)  (B, H'', Lk, D)
  tensor<T const> sink_v{};                 ///< (1|B, 1|H, 1, Dv); absent: zeros
};
template <class T>
struct windowed_results {
  tensor<T> out{}, lse{};
  tensor<double> discarded{};  ///< (B, H, Lq, 1): bound on the share of each row that windows dropped
};
/// Gradients are written, not accumulated. Absent ones are not written. tau, scale: (1|B, 1|H, 1|Lq, 1). All queries
/// share sink_k: (1|B, 1|H, 1, 1), and sink_v: (1|B, 1|H, 1, Dv).
template <class T>
struct windowed_gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, q{}, k{}, tau{}, scale{}, sink_k{}, sink_v{};
};

/// Gradients of the parameters per row, before they are summed for rows that share a parameter.
struct row_parameters {
  std::vector<double> tau, scale;
};
/// Gradients of the sink per head.
struct sink_parameters {
  std::vector<double> key, value;
};

template <class T, class Arch, class Scores>
class windowed_head {
  using W = double;
  static constexpr W unit = std::numeric_limits<T>::epsilon() / 2;

 public:
  windowed_head(windowed_call const& op, sight const& sees, windowed_arrays<T> const& in, extents const& e, index_t b,
                index_t h, workers const& who)
      : op_(op), e_(e), b_(b), h_(h), in_(in), on_(arrays<T>{in.sort_q, in.sort_k, in.v}, e, b, h), sees_(sees),
        seen_(sees_.intervals()), sums_(e.queries, e.width), bounds_(e.queries, op.rule.tolerance),
        scored_(std::size_t(e.queries), 0.0), key_norm_(std::size_t(e.keys), 0.0) {
    exec_.threads = who.threads;
    exec_.executor = who.executor;
    head_ = {tensors::of_head(in.sort_q, b, h),
             tensors::of_head(in.sort_k, b, e.key_head(h)),
             tensors::of_head(in.q, b, h),
             tensors::of_head(in.k, b, vector_head()),
             tensors::of_head(in.v, b, e.value_head(h)),
             {},
             {}};
    W const usual = Scores::has_vectors ? 1 / std::sqrt(W(in.q.extents().feature)) : W(1);
    for (index_t i = 0; i < e.queries; ++i) {
      head_.tau.push_back(op.tau.template value<W>(b, h, i));
      head_.scale.push_back(op.scale.is_set() ? op.scale.template value<W>(b, h, i) : usual);
    }
    if constexpr (Scores::has_vectors) measure_vectors();
    cut();
  }

  window_certificate forward() {
    if (op_.sink.is_set()) join_sink();
    for (key_order_part const& part : parts_) run(part);  // so far only the parts that are near by position
    for (auto& [queries, keys] : rectangles_) {
      for (index_t const i : queries) bounds_.find(i, log_mass(i) - rounding(i, W(e_.keys)) / 2);
      key_order_part part = windowed_rectangle(queries, keys, on_, head_.tau, key_norm_, seen_, op_.rule, bounds_,
                                               [&](index_t i, index_t j) { return score(i, j); });
      if (part.queries.empty()) continue;
      run(part);
      parts_.push_back(std::move(part));
    }
    rectangles_.clear();
    window_certificate worst;
    for (index_t i = 0; i < e_.queries; ++i) {
      window_certificate row;
      W const rounded = rounding(i, scored_[std::size_t(i)]), lost = bounds_.lost(i);
      // Two bounds on the dropped share: relative to the mass that was summed, and relative to the mass that the row
      // has at least, regardless of the rounding of sums.
      if (lost > -math::infinity<W>())
        row.discarded =
            (std::min)(1 / (1 + std::exp(log_mass(i) - rounded / 2 - lost)), std::exp(lost - bounds_.found(i)));
      row.rounded = sums_[i][e_.width] == 0 ? 0 : rounded;
      row.visible = seen_[std::size_t(i)].size();
      row.scored = index_t(scored_[std::size_t(i)]);
      worst.include(row);
      discarded_.push_back(row.discarded);
    }
    return worst;
  }
  void write(windowed_results<T> const& to) {
    rows<W> one(1, e_.width + 1);
    for (index_t i = 0; i < e_.queries; ++i) {
      std::copy_n(sums_[i], sums_.step(), one[0]);
      W const mass = one[0][e_.width];
      for (index_t d = 0; d < e_.width; ++d) one[0][d] = mass == 0 ? W(0) : one[0][d] / mass;
      store(to.out, b_, h_, i, one[0]);
      if (!to.lse.absent()) to.lse(b_, h_, i, 0) = T(log_mass(i));
      if (!to.discarded.absent()) to.discarded(b_, h_, i, 0) = discarded_[std::size_t(i)];
    }
  }

  /// After forward(): runs every part backward from the merged states.
  void backward(result_cotangents<T> const& by, windowed_gradients<T> const& d, row_parameters& by_row,
                sink_parameters& by_sink) {
    index_t const width = Scores::has_vectors ? in_.q.extents().feature : 0;
    std::vector<W> dsq(std::size_t(e_.queries), W(0)), dsk(std::size_t(e_.keys), W(0));
    rows<W> dq(e_.queries, width), dk(e_.keys, width), dv(e_.keys, e_.width);
    W* const dtau = by_row.tau.data() + (b_ * e_.heads + h_) * e_.queries;
    W* const dscale = by_row.scale.data() + (b_ * e_.heads + h_) * e_.queries;
    tensor<T const> const d_out = tensors::of_head(by.out, b_, h_), d_lse = tensors::of_head(by.lse, b_, h_);
    std::vector<T> do_rows, dl_rows;
    for (key_order_part const& part : parts_) {
      part_problem<T, T, Scores> const problem(head_, part);
      auto const op = problem.op();
      auto const in = problem.in();
      index_t const n = index_t(part.queries.size());
      auto saved = problem.blank_states();
      for (index_t r = 0; r < n; ++r) {
        index_t const i = part.queries[std::size_t(r)];
        saved.reference[std::size_t(r)] = T(sums_.reference(i));
        saved.earned[std::size_t(r)] = T(sums_[i][e_.width]);
        for (index_t f = 0; f < e_.width; ++f) saved.acc[std::size_t(r * e_.width + f)] = T(sums_[i][f]);
      }
      part_problem<T, T, Scores>::take(do_rows, d_out, part.queries);
      attune::cotangents<typename part_problem<T, T, Scores>::op_type, tensor<T const>> from;
      from.out = part_problem<T, T, Scores>::view(do_rows, n, e_.width);
      if (!by.lse.absent()) {
        part_problem<T, T, Scores>::take(dl_rows, d_lse, part.queries);
        from.lse = part_problem<T, T, Scores>::view(dl_rows, n, 1);
      }
      auto const g = vjp(exec_, op, in, saved, from);
      auto const sum = [](rows<W>& to, gradient_array<T> const& x, std::vector<index_t> const& ids) {
        for (index_t r = 0; r < index_t(ids.size()); ++r)
          for (index_t f = 0; f < x.extents.feature; ++f) to[ids[std::size_t(r)]][f] += W(x(0, 0, r, f));
      };
      auto const sum_line = [](auto&& to, gradient_array<T> const& x, std::vector<index_t> const& ids) {
        for (index_t r = 0; r < index_t(ids.size()); ++r) to[ids[std::size_t(r)]] += W(x(0, 0, r, 0));
      };
      sum_line(dsq.data(), g.of(field::sort_q), part.queries);
      sum_line(dsk.data(), g.of(field::sort_k), part.keys);
      sum(dv, g.of(field::v), part.keys);
      sum_line(dtau, g.parameter("tau"), part.queries);
      if constexpr (Scores::has_vectors) {
        sum(dq, g.of(field::q), part.queries);
        sum(dk, g.of(field::k), part.keys);
        sum_line(dscale, g.parameter("scale"), part.queries);
      }
    }
    if (op_.sink.is_set()) pull_sink(d_out, d_lse, dsq, dtau, by_sink);
    add_to_gradients(e_, b_, h_, dsq, dsk, dv, W(1), gradient_views<T>{d.sort_q, d.sort_k, d.v});
    if (!d.q.absent())
      for (index_t i = 0; i < e_.queries; ++i) store(d.q, b_, h_, i, dq[i]);
    if (!d.k.absent())
      for (index_t j = 0; j < e_.keys; ++j)
        for (index_t f = 0; f < width; ++f) {
          T& to = d.k(b_, vector_head(), j, f);
          to = T(W(to) + dk[j][f]);
        }
  }

 private:
  using tensors = head_tensors<T>;

  index_t vector_head() const { return in_.k.absent() ? 0 : h_ * in_.k.extents().head / e_.heads; }

  void measure_vectors() {
    index_t const width = in_.q.extents().feature;
    std::vector<W> x(static_cast<std::size_t>(width));
    auto const norm = [&](tensor<T const> const& from, index_t i) {
      for (index_t d = 0; d < width; ++d) x[std::size_t(d)] = W(from(0, 0, i, d));
      return norm_of(x.data(), width);
    };
    for (index_t i = 0; i < e_.queries; ++i)
      bounds_.reach(i) = std::fabs(head_.scale[std::size_t(i)]) * norm(head_.q, i) * (1 + 1e-15);
    for (index_t j = 0; j < e_.keys; ++j) {
      W& to = key_norm_[std::size_t(j)];
      to = norm(head_.k, j);
      longest_ = to <= longest_ ? longest_ : to == to ? to : math::infinity<W>();
    }
  }
  /// Rectangles, and the short stretches next to them, which form two parts in the order of positions.
  void cut() {
    near_stretches stretches(e_.queries);
    for_each_visible(
        sees_, on_, near_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          rectangles_.emplace_back(std::vector<index_t>(queries.begin(), queries.end()),
                                   std::vector<index_t>(keys.begin(), keys.end()));
        },
        [&](index_t i, index_t first, index_t last) { stretches.add(i, first, last); });
    stretches.for_each_part(e_.queries, [&](key_order_part part) { parts_.push_back(std::move(part)); });
  }

  void run(key_order_part const& part) {
    part_problem<T, T, Scores> const problem(head_, part);
    auto const states = accumulate(exec_, problem.op(), problem.in(), {0, index_t(part.keys.size())});
    rows<W> one(1, e_.width + 1);
    for (index_t r = 0; r < index_t(part.queries.size()); ++r) {
      if (states.earned[std::size_t(r)] == T(0)) continue;
      for (index_t d = 0; d < e_.width; ++d) one[0][d] = W(states.acc[std::size_t(r * e_.width + d)]);
      one[0][e_.width] = W(states.earned[std::size_t(r)]);
      index_t const i = part.queries[std::size_t(r)];
      sums_.join(i, W(states.reference[std::size_t(r)]), one[0]);
      scored_[std::size_t(i)] += W(part.windows[std::size_t(r)].size());
    }
  }
  W log_mass(index_t i) {
    W const mass = sums_[i][e_.width];
    return mass == 0 ? -math::infinity<W>() : sums_.reference(i) + std::log(mass);
  }
  /// The score of one pair, minus a bound on its own rounding error.
  W score(index_t i, index_t j) const {
    W const e = on_.q[std::size_t(i)] - on_.k[std::size_t(j)], a = e * e / head_.tau[std::size_t(i)];
    W product = 0, size = 0;
    if constexpr (Scores::has_vectors) {
      for (index_t d = 0; d < in_.q.extents().feature; ++d) product += W(head_.q(0, 0, i, d)) * W(head_.k(0, 0, j, d));
      product *= head_.scale[std::size_t(i)];
      size = bounds_.product(i, key_norm_[std::size_t(j)]);
    }
    return product - a - 1e-13 * (a + size);
  }
  /// Bound on the effect of the executor's rounding on out, in units of max|v|; the effect on lse is half of it. Let u
  /// be the unit roundoff of T, a_j the scalar part of a score and B the largest value of the other part. A logit
  /// relative to the largest logit is off by u ((D + 5) B + 7 a_j + a_max), and sum_j w_j a_j <= B - lse + ln n. In
  /// addition 4 u per exponential and n u per sum.
  W rounding(index_t i, W n) {
    W const lse = log_mass(i), product = bounds_.product(i, longest_),
            width = Scores::has_vectors ? W(in_.q.extents().feature) : 0;
    if (lse == -math::infinity<W>()) return 0;
    W const drop = (std::max)(W(0), product - lse) + std::log(n + 1);
    return unit * (2 * ((width + 5) * product + 8 * drop + 4) + 2.2 * n + 140);
  }

  // ---- the sink -----------------------------------------------------------------------------------------------------

  W sink_value(index_t d) const {
    if (in_.sink_v.absent()) return 0;
    shape const e = in_.sink_v.extents();
    return W(in_.sink_v(e.batch == 1 ? 0 : b_, e.head == 1 ? 0 : h_, 0, d));
  }
  W to_sink(index_t i) const { return on_.q[std::size_t(i)] - op_.sink.template value<W>(b_, h_, 0); }
  W sink_score(index_t i) const { return -(to_sink(i) * to_sink(i) / head_.tau[std::size_t(i)]); }
  void join_sink() {
    rows<W> one(1, e_.width + 1);
    for (index_t i = 0; i < e_.queries; ++i) {
      // The reference must be a T: the backward pass passes it to the executor.
      W const s = sink_score(i), reference = W(T(s)), mass = std::exp(s - reference);
      for (index_t d = 0; d < e_.width; ++d) one[0][d] = sink_value(d) * mass;
      one[0][e_.width] = mass;
      sums_.join(i, reference, one[0]);
      ++scored_[std::size_t(i)];
    }
  }
  void pull_sink(tensor<T const> const& d_out, tensor<T const> const& d_lse, std::vector<W>& dsq, W* dtau,
                 sink_parameters& to) {
    index_t const head = b_ * e_.heads + h_;
    for (index_t i = 0; i < e_.queries; ++i) {
      W const mass = sums_[i][e_.width], w = std::exp(sink_score(i) - log_mass(i)), e = to_sink(i),
              tau = head_.tau[std::size_t(i)];
      W gain = d_lse.absent() ? W(0) : W(d_lse(0, 0, i, 0));
      for (index_t d = 0; d < e_.width; ++d) {
        W const by = W(d_out(0, 0, i, d));
        gain += by * (sink_value(d) - sums_[i][d] / mass);
        to.value[std::size_t(head * e_.width + d)] += w * by;
      }
      W const pull = w * gain;
      dsq[std::size_t(i)] -= 2 * e / tau * pull;
      to.key[std::size_t(head)] += 2 * e / tau * pull;
      dtau[i] += e * e / (tau * tau) * pull;
    }
  }

  windowed_call const& op_;
  extents const& e_;
  index_t b_, h_;
  windowed_arrays<T> const& in_;
  cpu<T, Arch> exec_;
  head_tensors<T> head_;
  scalars<W> on_;
  sight const& sees_;
  std::vector<key_interval> const& seen_;
  mass_rows<W> sums_;
  row_bounds bounds_;
  std::vector<W> scored_, key_norm_, discarded_;
  W longest_ = 0;
  std::vector<std::pair<std::vector<index_t>, std::vector<index_t>>> rectangles_;
  std::vector<key_order_part> parts_;
};

}  // namespace attune::line::detail
