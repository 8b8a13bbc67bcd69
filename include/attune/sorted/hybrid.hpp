// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = softmax_j(c <q_i, k_j> - (sort_q_i - sort_k_j)^2 / tau_i) v      over visible keys, by windows in key order
//
// Scores with a dot product do not factorise along the line, but keys far away on it still cannot matter: with |c <q,
// k>| <= B and a row of mass Z, the n keys beyond distance d hold at most n e^(B - d^2/tau) of it. What is left is
// computed by the fused CPU executor.
#pragma once

#include <attune/sorted/key_order.hpp>
#include <attune/sorted/workers.hpp>

namespace attune::sorted {

/// Softmax attention with kernel::dot_product + kernel::scalar_sort, or with the latter alone where no vectors are
/// given; forward and gradients, float and double.
/// tolerance: what windows may leave out of any row, as a share of its mass. What they left out at most comes back,
/// with the rounding.
/// tau, scale: shared, per head or per query; scale is 1 / sqrt(D) where it was not set.
/// sees: full, causal, windows, documents. A key that a query does not see is never read into it; a visible one beyond
///   its window neither, whatever it holds.
/// Extremes: tau -> 0: the nearest key, ties share; tau -> inf: nothing is left out. Vectors that are not finite leave
///   nothing out of the rows they touch, which are NaN then, as everywhere.
/// Cost: O(n log n) to sort, and per row its window times (D + Dv), in each of O(log n) rectangles of visible pairs;
///   with short windows near_keys / 2 keys besides that are near by position. At worst (tau -> inf) that of the dense
///   operator and of copying its inputs O(log n) times. Memory: 8 (Dv + 2) bytes per query, 30 bytes per query and key
///   in each of the O(log n) levels.
/// Determinism: bitwise the same for any number of threads.
/// Source: Scalar Sort, "Hybrid", with the bound of docs/sorted.md in the place of the paper's radius.
struct hybrid {
  parameter tau = 1;
  double tolerance = 1e-6;
  visibility sees{};
  parameter scale{};
};

/// The paper's truncated windows: the `keys` nearest in rank, half of them on each side. Under other visibilities than
/// full as many of each rectangle of visible pairs. Nothing is promised; the certificate says what was left out at
/// most.
/// Source: Scalar Sort, "Training complexity": truncated local windows in key order.
struct truncated {
  parameter tau = 1;
  index_t keys = 64;
  visibility sees{};
  parameter scale{};
};

/// The paper's radius sqrt(-tau log eps), for single weights before normalization: it bounds no error, and may hold no
/// key at all.
/// Source: Scalar Sort, "Training complexity": radius-limited attention.
struct limited_radius {
  parameter tau = 1;
  double eps = 1e-6;
  visibility sees{};
  parameter scale{};
};

/// Vectors and a sink are optional. The sink is a token that every query sees, at sort key sink_k, with a zero vector
/// key and the value
/// sink_v: "a learned scalar sink token". It is appended here, since no search finds it by itself.
template <class T>
struct hybrid_arrays {
  tensor<T const> sort_q{}, sort_k{}, v{};  ///< as `arrays`
  tensor<T const> q{}, k{};                 ///< (B, H, Lq, D)  (B, H'', Lk, D)
  tensor<T const> sink_k{}, sink_v{};       ///< (1, 1 or H, 1, 1)  (1, 1 or H, 1, Dv); no sink_v: zeros
};
template <class T>
struct hybrid_results {
  tensor<T> out{}, lse{};
  tensor<double> discarded{};  ///< (B, H, Lq, 1): the share of each row that windows left out, at most
};
/// Gradients are written, not added. What is absent is not written. tau, scale: (1 or B, 1 or H, 1 or Lq, 1).
template <class T>
struct hybrid_gradients {
  tensor<T> sort_q{}, sort_k{}, v{}, q{}, k{}, tau{}, scale{}, sink_k{}, sink_v{};
};

/// The worst row of a call.
struct hybrid_certificate {
  double discarded = 0;             ///< weight of the keys that windows left out, at most
  double rounded = 0;               ///< of the executor's arithmetic, first order, in units of max|v|
  index_t visible = 0, scored = 0;  ///< pairs of all rows

  /// |out - exact| <= output() max|v| in the Euclidean norm, before rounding to the tensor's type.
  double output() const { return 2 * discarded + rounded; }
  /// |lse - exact| <= lse(), likewise.
  double lse() const { return discarded / (1 - discarded) + rounded; }
  void include(hybrid_certificate const& other) {
    discarded = (std::max)(discarded, other.discarded);
    rounded = (std::max)(rounded, other.rounded);
    visible += other.visible;
    scored += other.scored;
  }
};

namespace detail {

/// Keys that are this near by position are met without a look at where they lie: shorter rectangles cost more than they
/// save.
inline constexpr index_t near_keys = 256;

/// An operator as the head runs it.
struct windowed_call {
  parameter tau, scale;
  visibility const& sees;
  window_rule rule;
};
inline windowed_call call_of(hybrid const& op) { return {op.tau, op.scale, op.sees, {.tolerance = op.tolerance}}; }
inline windowed_call call_of(truncated const& op) {
  return {op.tau, op.scale, op.sees, {.kind = window_kind::neighbours, .keys = op.keys}};
}
inline windowed_call call_of(limited_radius const& op) {
  return {op.tau, op.scale, op.sees, {.kind = window_kind::radius, .eps = op.eps}};
}
template <class Op>
concept windowed = requires(Op const& op) {
  { call_of(op) } -> std::same_as<windowed_call>;
};

/// What the parameters of all rows of a call get, before it is summed where rows share them.
struct row_parameters {
  std::vector<double> tau, scale;
};
/// The sink's gradients by head.
struct sink_parameters {
  std::vector<double> key, value;
};

template <class T, class Arch, class Scores>
class hybrid_head {
  using W = double;
  static constexpr W unit = std::numeric_limits<T>::epsilon() / 2;

 public:
  hybrid_head(windowed_call const& op, hybrid_arrays<T> const& in, extents const& e, index_t b, index_t h,
              workers const& who)
      : e_(e), b_(b), h_(h), in_(in), on_(arrays<T>{in.sort_q, in.sort_k, in.v}, e, b, h), sees_(op.sees, e),
        seen_(sees_.intervals()), sums_(e.queries, e.width), rule_(op.rule), bounds_(e.queries, op.rule.tolerance),
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

  hybrid_certificate forward() {
    if (!in_.sink_k.absent()) join_sink();
    for (key_order_part const& part : parts_) run(part);  // so far those near by position
    for (auto& [queries, keys] : rectangles_) {
      for (index_t const i : queries) bounds_.find(i, log_mass(i) - rounding(i, W(e_.keys)) / 2);
      key_order_part part = windowed_rectangle(queries, keys, on_, head_.tau, key_norm_, seen_, rule_, bounds_,
                                               [&](index_t i, index_t j) { return score(i, j); });
      if (part.queries.empty()) continue;
      run(part);
      parts_.push_back(std::move(part));
    }
    rectangles_.clear();
    hybrid_certificate worst;
    for (index_t i = 0; i < e_.queries; ++i) {
      hybrid_certificate row;
      W const rounded = rounding(i, scored_[std::size_t(i)]), lost = bounds_.lost(i);
      // Of what was lost, in terms of the mass that was summed, or of what the row has at least whatever the rounding
      // of sums.
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
  void write(hybrid_results<T> const& to) {
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

  /// After forward(): every part from the merged states.
  void backward(cotangents<T> const& by, hybrid_gradients<T> const& d, row_parameters& by_row,
                sink_parameters& by_sink) {
    index_t const width = Scores::has_vectors ? in_.q.extents().feature : 0;
    std::vector<W> dsq(std::size_t(e_.queries), W(0)), dsk(std::size_t(e_.keys), W(0));
    rows<W> dq(e_.queries, width), dk(e_.keys, width), dv(e_.keys, e_.width);
    W* const dtau = by_row.tau.data() + (b_ * e_.heads + h_) * e_.queries;
    W* const dscale = by_row.scale.data() + (b_ * e_.heads + h_) * e_.queries;
    tensor<T const> const by_out = tensors::of_head(by.out, b_, h_), by_lse = tensors::of_head(by.lse, b_, h_);
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
      part_problem<T, T, Scores>::take(do_rows, by_out, part.queries);
      attune::cotangents<typename part_problem<T, T, Scores>::op_type, tensor<T const>> from;
      from.out = part_problem<T, T, Scores>::view(do_rows, n, e_.width);
      if (!by.lse.absent()) {
        part_problem<T, T, Scores>::take(dl_rows, by_lse, part.queries);
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
    if (!in_.sink_k.absent()) pull_sink(by_out, by_lse, dsq, dtau, by_sink);
    add_to_gradients(e_, b_, h_, dsq, dsk, dv, W(1), gradients<T>{d.sort_q, d.sort_k, d.v, {}});
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
  index_t sink_head(tensor<T const> const& x) const { return x.extents().head == 1 ? 0 : h_; }

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
  /// Rectangles, and the short stretches beside them: two parts in the order of positions.
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
  /// The score of one pair, less what its own rounding may be.
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
  /// How far the executor's rounding moves out, in units of max|v|; half of that is what it does to lse. With a_j the
  /// scalar part of a score, B the most of the other part and u the unit roundoff of T: a logit relative to the
  /// greatest one is off by u ((D + 5) B + 7 a_j + a_max), and sum_j w_j a_j <= B - lse + ln n; 4 u per exponential, n
  /// u per sum.
  W rounding(index_t i, W n) {
    W const lse = log_mass(i), product = bounds_.product(i, longest_),
            width = Scores::has_vectors ? W(in_.q.extents().feature) : 0;
    if (lse == -math::infinity<W>()) return 0;
    W const drop = (std::max)(W(0), product - lse) + std::log(n + 1);
    return unit * (2 * ((width + 5) * product + 8 * drop + 4) + 2.2 * n + 140);
  }

  // ---- the sink -----------------------------------------------------------------------------------------------------

  W sink_value(index_t d) const { return in_.sink_v.absent() ? W(0) : W(in_.sink_v(0, sink_head(in_.sink_v), 0, d)); }
  W to_sink(index_t i) const { return on_.q[std::size_t(i)] - W(in_.sink_k(0, sink_head(in_.sink_k), 0, 0)); }
  W sink_score(index_t i) const { return -(to_sink(i) * to_sink(i) / head_.tau[std::size_t(i)]); }
  void join_sink() {
    rows<W> one(1, e_.width + 1);
    for (index_t i = 0; i < e_.queries; ++i) {
      // The reference must be a T: the backward pass hands it to the executor.
      W const s = sink_score(i), reference = W(T(s)), mass = std::exp(s - reference);
      for (index_t d = 0; d < e_.width; ++d) one[0][d] = sink_value(d) * mass;
      one[0][e_.width] = mass;
      sums_.join(i, reference, one[0]);
      ++scored_[std::size_t(i)];
    }
  }
  void pull_sink(tensor<T const> const& by_out, tensor<T const> const& by_lse, std::vector<W>& dsq, W* dtau,
                 sink_parameters& to) {
    index_t const head = b_ * e_.heads + h_;
    for (index_t i = 0; i < e_.queries; ++i) {
      W const mass = sums_[i][e_.width], w = std::exp(sink_score(i) - log_mass(i)), e = to_sink(i),
              tau = head_.tau[std::size_t(i)];
      W gain = by_lse.absent() ? W(0) : W(by_lse(0, 0, i, 0));
      for (index_t d = 0; d < e_.width; ++d) {
        W const by = W(by_out(0, 0, i, d));
        gain += by * (sink_value(d) - sums_[i][d] / mass);
        to.value[std::size_t(head * e_.width + d)] += w * by;
      }
      W const pull = w * gain;
      dsq[std::size_t(i)] -= 2 * e / tau * pull;
      to.key[std::size_t(head)] += 2 * e / tau * pull;
      dtau[i] += e * e / (tau * tau) * pull;
    }
  }

  extents const& e_;
  index_t b_, h_;
  hybrid_arrays<T> const& in_;
  cpu<T, Arch> exec_;
  head_tensors<T> head_;
  line<W> on_;
  sight sees_;
  std::vector<key_interval> const& seen_;
  mass_rows<W> sums_;
  window_rule rule_;
  row_bounds bounds_;
  std::vector<W> scored_, key_norm_, discarded_;
  W longest_ = 0;
  std::vector<std::pair<std::vector<index_t>, std::vector<index_t>>> rectangles_;
  std::vector<key_order_part> parts_;
};

template <class T>
extents checked_hybrid(char const* function, windowed_call const& op, hybrid_arrays<T> const& in) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: sorted::hybrid runs on the CPU executor: float and double tensors only");
  extents const e = checked(function, arrays<T>{in.sort_q, in.sort_k, in.v});
  op.sees.check(function, e.queries, e.keys);
  attune::detail::check_parameter<T>(function, "tau", op.tau, domain::positive, e.batch, e.heads, e.queries);
  attune::detail::check_parameter<T>(function, "scale", op.scale, domain::real, e.batch, e.heads, e.queries);
  if (op.rule.kind == window_kind::certified) check_tolerance(function, op.rule.tolerance);
  if (op.rule.kind == window_kind::neighbours && op.rule.keys < 1)
    throw error(function, "keys", attune::detail::text("the value ", op.rule.keys), "at least 1");
  if (op.rule.kind == window_kind::radius && !(op.rule.eps > 0 && op.rule.eps < 1))
    throw error(function, "eps", attune::detail::text("the value ", op.rule.eps), "a number in (0, 1)");
  if (in.q.absent() != in.k.absent())
    throw error(function, in.q.absent() ? "q" : "k", "no data",
                "both vectors, or neither: then scores are those of scalar_sort");
  if (!in.q.absent()) {
    index_t const heads = in.k.extents().head, width = in.q.extents().feature;
    require_shape(function, "q", in.q, e.query_side(width), false);
    require_shape(function, "k", in.k, {e.batch, heads, e.keys, width}, false);
    if (heads < 1 || e.heads % heads != 0)
      throw error(function, "k", attune::detail::text(heads, " heads"), attune::detail::text("a divisor of ", e.heads));
  }
  auto const check_sink = [&](char const* name, tensor<T const> const& x, index_t features) {
    if (x.absent()) return;
    if (x.extents().head != 1) require_shape(function, name, x, {1, e.heads, 1, features}, false);
    if (x.extents().head == 1) require_shape(function, name, x, {1, 1, 1, features}, false);
  };
  check_sink("sink_k", in.sink_k, 1);
  check_sink("sink_v", in.sink_v, e.width);
  if (!in.sink_k.absent()) require_finite(function, "sink_k", in.sink_k);
  if (in.sink_k.absent() && !in.sink_v.absent()) throw error(function, "sink_k", "no data", "the sort key of the sink");
  return e;
}

/// Heads that share vectors run one after the other too.
template <class T>
extents tasks_of(extents e, hybrid_arrays<T> const& in) {
  if (!in.k.absent()) e.key_heads = std::gcd(e.key_heads, in.k.extents().head);
  return e;
}

template <class T, class Arch, class F>
void with_head(windowed_call const& op, hybrid_arrays<T> const& in, extents const& e, index_t b, index_t h,
               workers const& who, F const& f) {
  if (in.q.absent()) {
    hybrid_head<T, Arch, scalar_scores> head(op, in, e, b, h, who);
    f(head);
  } else {
    hybrid_head<T, Arch, hybrid_scores> head(op, in, e, b, h, who);
    f(head);
  }
}

/// Sums numbers per (batch, head, query) to the granularity of `to`.
template <class T>
void write_shared(extents const& e, std::vector<double> const& rows, index_t queries, index_t features,
                  tensor<T> const& to) {
  if (to.absent()) return;
  shape const x = to.extents();
  std::vector<double> sums(std::size_t(x.size()), 0.0);
  auto const at = [&](index_t b, index_t h, index_t i, index_t f) {
    return ((((x.batch == 1 ? 0 : b) * x.head + (x.head == 1 ? 0 : h)) * x.position + (x.position == 1 ? 0 : i)) *
            x.feature) +
           f;
  };
  std::size_t n = 0;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.heads; ++h)
      for (index_t i = 0; i < queries; ++i)
        for (index_t f = 0; f < features; ++f) sums[std::size_t(at(b, h, i, f))] += rows[n++];
  for (index_t b = 0; b < x.batch; ++b)
    for (index_t h = 0; h < x.head; ++h)
      for (index_t i = 0; i < x.position; ++i)
        for (index_t f = 0; f < features; ++f) to(b, h, i, f) = T(sums[std::size_t(at(b, h, i, f))]);
}

/// (1 or batch, 1 or heads, 1 or queries, features)
template <class T>
void require_granularity(char const* function, char const* argument, tensor<T> const& x, shape const& most) {
  if (x.absent()) return;
  shape const e = x.extents();
  if ((e.batch != 1 && e.batch != most.batch) || (e.head != 1 && e.head != most.head) ||
      (e.position != 1 && e.position != most.position) || e.feature != most.feature)
    throw error(function, argument, attune::detail::text("shape ", to_string(e)),
                attune::detail::text("shape ", to_string(most), ", or 1 on an axis that is shared"));
  attune::detail::require_distinct(function, argument, x);
}

}  // namespace detail

/// Writes out, and lse and discarded if they are there. Returns the worst row's certificate.
/// Errors: throws attune::error on shapes that do not fit, scalars that are not finite, tau that is not positive,
///         documents whose ids do not ascend, a tolerance outside [1e-12, 1); nothing is written then.
template <class T, class Arch = xsimd::default_arch, detail::windowed Op>
hybrid_certificate forward(Op const& op, hybrid_arrays<T> const& in, hybrid_results<T> const& to,
                           workers const& who = {}) {
  detail::windowed_call const call = detail::call_of(op);
  detail::extents const e = detail::checked_hybrid("sorted::forward(hybrid)", call, in);
  detail::check_results("sorted::forward(hybrid)", e, results<T>{to.out, to.lse});
  detail::require_shape("sorted::forward(hybrid)", "discarded", to.discarded, e.query_side(1), true);
  return detail::report_of_heads<hybrid_certificate>(who, detail::tasks_of(e, in), [&](index_t b, index_t h) {
    hybrid_certificate certificate;
    detail::with_head<T, Arch>(call, in, e, b, h, who, [&](auto& head) {
      certificate = head.forward();
      head.write(to);
    });
    return certificate;
  });
}

/// The gradients of <by.out, out> + <by.lse, lse>, exact for the approximate weights up to rounding. Runs the forward
/// pass again: nothing has to be saved.
template <class T, class Arch = xsimd::default_arch, detail::windowed Op>
hybrid_certificate vjp(Op const& op, hybrid_arrays<T> const& in, cotangents<T> const& by, hybrid_gradients<T> const& d,
                       workers const& who = {}) {
  char const* const name = "sorted::vjp(hybrid)";
  detail::windowed_call const call = detail::call_of(op);
  detail::extents const e = detail::checked_hybrid(name, call, in);
  detail::check_gradients(name, e, by, gradients<T>{d.sort_q, d.sort_k, d.v, {}});
  index_t const width = in.q.extents().feature;
  if (in.q.absent() && !(d.q.absent() && d.k.absent() && d.scale.absent()))
    throw error(name, "d.q, d.k or d.scale", "a tensor", "none: there are no vectors");
  if (in.sink_k.absent() && !(d.sink_k.absent() && d.sink_v.absent()))
    throw error(name, "d.sink_k or d.sink_v", "a tensor", "none: there is no sink");
  detail::require_shape(name, "d.q", d.q, e.query_side(width), true);
  detail::require_shape(name, "d.k", d.k, in.k.extents(), true);
  for (auto const& [argument, x] : {std::pair("d.tau", d.tau), std::pair("d.scale", d.scale)})
    detail::require_granularity(name, argument, x, e.query_side(1));
  detail::require_granularity(name, "d.sink_k", d.sink_k, {1, e.heads, 1, 1});
  detail::require_granularity(name, "d.sink_v", d.sink_v, {1, e.heads, 1, e.width});
  detail::clear(d.sort_k);
  detail::clear(d.v);
  detail::clear(d.k);
  index_t const heads = e.batch * e.heads;
  std::vector<double> const zero(std::size_t(heads * e.queries), 0.0);
  detail::row_parameters by_row{zero, zero};
  detail::sink_parameters by_sink{std::vector<double>(std::size_t(heads), 0.0),
                                  std::vector<double>(std::size_t(heads * e.width), 0.0)};
  auto const worst =
      detail::report_of_heads<hybrid_certificate>(who, detail::tasks_of(e, in), [&](index_t b, index_t h) {
        hybrid_certificate certificate;
        detail::with_head<T, Arch>(call, in, e, b, h, who, [&](auto& head) {
          certificate = head.forward();
          head.backward(by, d, by_row, by_sink);
        });
        return certificate;
      });
  detail::write_shared(e, by_row.tau, e.queries, 1, d.tau);
  detail::write_shared(e, by_row.scale, e.queries, 1, d.scale);
  detail::write_shared(e, by_sink.key, 1, 1, d.sink_k);
  detail::write_shared(e, by_sink.value, 1, e.width, d.sink_v);
  return worst;
}

}  // namespace attune::sorted
