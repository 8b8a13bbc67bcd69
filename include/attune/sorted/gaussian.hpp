// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij v_j,  w_ij = e^(-(q_i - k_j)^2 / tau) / z_i
//       in O(n log n) for a given tolerance, with a certificate
//
// No finite set of sums over keys serves every query (the kernel is strictly positive definite), so this is an
// approximation, and says how
// good: a 1-D fast Gauss transform. Keys in runs of about sqrt(tau) / 2 are summed once to moments, runs of queries
// collect the moments of the cells in their window; a run with few queries, or far from all keys, meets the keys of its
// window one by one.
#pragma once

#include <vector>

#include <attune/policies/kernel/scalar.hpp>
#include <attune/sorted/gaussian_plan.hpp>
#include <attune/sorted/mass_rows.hpp>
#include <attune/sorted/near_pairs.hpp>
#include <attune/sorted/order.hpp>
#include <attune/sorted/waves.hpp>
#include <attune/sorted/workers.hpp>

namespace attune::sorted {

namespace detail {

/// Queries and keys that all see each other: what keys give to queries, and its exact transpose.
template <class Arch>
class gaussian_rectangle {
  using W = double;

 public:
  /// value(j): the row (v_j, 1).
  template <class Value>
  gaussian_rectangle(std::span<index_t const> queries, std::span<index_t const> keys, line<W> const& on, W tau,
                     W tolerance, index_t width, series<Arch>& sums, Value const& value)
      : query_(queries), key_(keys), features_(width + 1), inverse_unit_(1 / std::sqrt(tau)), kernel_{tau},
        series_(sums), values_(index_t(keys.size()), width + 1) {
    for (index_t const i : queries) q_.push_back(on.q[std::size_t(i)]);
    for (index_t const j : keys) {
      W const* const row = value(j);
      std::copy(row, row + values_.step(), values_[index_t(k_.size())]);
      k_.push_back(on.k[std::size_t(j)]);
    }
    plan_ = plan_gaussian(q_, k_, tau, tolerance);
    if (plan_.most_terms > 0) sum_cells();
  }

  /// Joins the masses and value sums of its keys to the rows of its queries.
  gaussian_certificate forward(mass_rows<W>& rows_of_queries) {
    gaussian_certificate worst;
    rows<W> one(1, features_);
    for (gaussian_box const& box : plan_.boxes) {
      ++worst.boxes;
      if (box.order > 0) {
        ++worst.expanded;
        collect_cells(box);
        evaluate(
            box.order, box.first, box.last, [&](index_t r, W* y) { powers(place(q_, r, box.center), box.order, y); },
            [&](index_t r, W const* out) {
              for (index_t f = 0; f < features_; ++f) one[0][f] = out[f * series<Arch>::targets];
              gaussian_certificate row;
              W const mass = one[0][features_ - 1];
              row.truncated = box.missing / mass;
              row.rounded = box.rounding(box.order) / mass;
              row.discarded = discarded(box, q_[std::size_t(r)], 0) / mass;
              worst.include(row);
              rows_of_queries.join(query_[std::size_t(r)], W(0), one[0]);
            });
        continue;
      }
      for (index_t r = box.first; r < box.last; ++r) {
        W const q = q_[std::size_t(r)];
        W farthest = 0, most = initial_max<W>(), mass = 0;
        for (index_t j = box.lo; j < box.hi; ++j)
          most = (std::max)(most, kernel_.score(q - k_[std::size_t(j)], no_key));
        std::fill(one[0], one[0] + one.step(), W(0));
        for (index_t j = box.lo; j < box.hi; ++j) {
          W const s = kernel_.score(q - k_[std::size_t(j)], no_key),
                  w = normalizer::softmax::bound<W>{}.earned(s, most);
          farthest = (std::max)(farthest, -s);
          mass += w;
          add(one[0], values_[j], w, one.step());
        }
        rows_of_queries.join(query_[std::size_t(r)], most, one[0]);
        gaussian_certificate row;
        row.rounded = rounding_of_pairs(box.hi - box.lo, farthest);
        row.discarded = discarded(box, q, most) / mass;
        worst.include(row);
      }
    }
    return worst;
  }

  /// Adds the gradients of sum_i <pull_i, sum_j e^(-(y_i - u_j)^2 - lse_i) (v_j, 1)>, exact for what forward()
  /// computes; dq and dk in units of 2 / sqrt(tau).
  void backward(rows<W> const& pulls, std::vector<W> const& lse, std::vector<W>& dq, std::vector<W>& dk, rows<W>& dv) {
    std::vector<W> along(k_.size(), W(0));  // dk and dv in sorted order
    rows<W> values(index_t(k_.size()), features_);
    rows<W> collected(index_t(plan_.boxes.size()) * plan_.most_terms, features_);
    for (std::size_t b = 0; b < plan_.boxes.size(); ++b) {
      gaussian_box const& box = plan_.boxes[b];
      if (box.order > 0)
        expanded_queries(box, index_t(b), pulls, lse, dq, collected);
      else
        paired_gradients(box, pulls, lse, dq, along, values);
    }
    if (plan_.most_terms > 0) expanded_keys(collected, along, values);
    for (std::size_t r = 0; r < k_.size(); ++r) {
      dk[std::size_t(key_[r])] += along[r];
      add(dv[key_[r]], values[index_t(r)], W(1), dv.step());
    }
  }

 private:
  static constexpr key<W> no_key{W(0)};

  W place(std::vector<W> const& x, index_t at, W center) const { return (x[std::size_t(at)] - center) * inverse_unit_; }
  static void powers(W y, int count, W* to) {
    to[0] = 1;
    for (int m = 1; m < count; ++m) to[m] = to[m - 1] * y;
  }
  /// m y^(m - 1)
  static void slopes(W y, int count, W* to) {
    powers(y, count, to);
    for (int m = count - 1; m > 0; --m) to[m] = W(m) * to[m - 1];
    to[0] = 0;
  }
  /// t^a / a!
  static void over_factorials(int count, W* x) {
    W factorial = 1;
    for (int a = 1; a < count; ++a) x[a] /= (factorial *= W(a));
  }

  /// moments_(cell, a) = sum_j t_j^a / a! (v_j, 1)
  void sum_cells() {
    int const p = plan_.most_terms;
    moments_ = rows<W>(index_t(plan_.cells.size()) * p, features_);
    for (std::size_t c = 0; c < plan_.cells.size(); ++c) {
      gaussian_cell const& cell = plan_.cells[c];
      series_.gather(
          p, values_[0], values_.step(), cell.first, cell.last, true, [](index_t) { return W(1); },
          [&](index_t j) { return place(k_, j, cell.center); });
      for (int a = 0; a < p; ++a)
        for (index_t f = 0; f < features_; ++f) moments_[index_t(c) * p + a][f] = series_.term(a, f);
    }
  }
  /// (-1)^m / m! h_(a + m)(-d) for a < most_terms, m < order; 0 for other m.
  struct translation {
    W at[2 * most_terms], over_factorial[most_terms + 1];
    int order;
    translation(gaussian_box const& box, gaussian_cell const& cell, W inverse_unit) : order(box.order) {
      W const x = (box.center - cell.center) * inverse_unit;
      at[0] = std::exp(-x * x);
      at[1] = 2 * x * at[0];
      for (int n = 1; n + 1 < 2 * most_terms; ++n) at[n + 1] = 2 * x * at[n] - 2 * n * at[n - 1];
      over_factorial[0] = 1;
      for (int m = 1; m <= most_terms; ++m) over_factorial[m] = -over_factorial[m - 1] / m;
    }
    W operator()(index_t a, index_t m) const { return m < order ? at[a + m] * over_factorial[m] : W(0); }
  };
  /// series_ becomes the series in y of the cells in the box's window.
  void collect_cells(gaussian_box const& box) {
    int const p = plan_.most_terms;
    series_.begin(box.order);
    for (index_t c = box.first_cell; c < box.last_cell; ++c) {
      translation const to_box(box, plan_.cells[std::size_t(c)], inverse_unit_);
      series_.add(moments_[c * p], moments_.step(), p, to_box);
    }
    series_.end();
  }
  /// use(t, sum_m x_m terms_m) with the weights that weigh(t, x) writes. The features of the sum lie series::targets
  /// apart.
  template <class Weigh, class Use>
  void evaluate(int count, index_t first, index_t last, Weigh const& weigh, Use const& use) {
    constexpr index_t many = series<Arch>::targets;
    W x[most_terms + 1];
    for (index_t at = first; at < last; at += many) {
      index_t const n = (std::min)(many, last - at);
      for (index_t t = 0; t < many; ++t) {
        if (t < n) weigh(at + t, x);
        for (int m = 0; m < count; ++m) series_.weights()[m * many + t] = t < n ? x[m] : W(0);
      }
      W const* const out = series_.evaluate(count);
      for (index_t t = 0; t < n; ++t) use(at + t, out + t);
    }
  }
  /// Bound on the mass outside the window of query q, relative to e^log_unit.
  W discarded(gaussian_box const& box, W q, W log_unit) const {
    return mass_outside(kernel_, q, k_.data(), index_t(k_.size()), box.lo, box.hi, log_unit);
  }

  /// dq of a box, and what it gives to cells: collected_(box, m) = sum_i y_i^m e^(-lse_i) pull_i.
  void expanded_queries(gaussian_box const& box, index_t b, rows<W> const& pulls, std::vector<W> const& lse,
                        std::vector<W>& dq, rows<W>& collected) {
    auto const weight = [&](index_t r) { return std::exp(-lse[std::size_t(query_[std::size_t(r)])]); };
    collect_cells(box);
    evaluate(
        box.order, box.first, box.last, [&](index_t r, W* x) { slopes(place(q_, r, box.center), box.order, x); },
        [&](index_t r, W const* out) {
          index_t const i = query_[std::size_t(r)];
          W sum = 0;
          for (index_t f = 0; f < features_; ++f) sum += pulls[i][f] * out[f * series<Arch>::targets];
          dq[std::size_t(i)] += weight(r) * sum / 2;
        });
    rows<W> of_box(box.last - box.first, features_);
    for (index_t r = box.first; r < box.last; ++r)
      std::copy_n(pulls[query_[std::size_t(r)]], of_box.step(), of_box[r - box.first]);
    series_.gather(
        box.order, of_box[0], of_box.step(), 0, box.last - box.first, false,
        [&](index_t s) { return weight(box.first + s); },
        [&](index_t s) { return place(q_, box.first + s, box.center); });
    for (int m = 0; m < box.order; ++m)
      for (index_t f = 0; f < features_; ++f) collected[b * plan_.most_terms + m][f] = series_.term(m, f);
  }
  void expanded_keys(rows<W> const& collected, std::vector<W>& dk, rows<W>& dv) {
    int const p = plan_.most_terms;
    for (std::size_t c = 0; c < plan_.cells.size(); ++c) {
      gaussian_cell const& cell = plan_.cells[c];
      series_.begin(p);
      for (std::size_t b = 0; b < plan_.boxes.size(); ++b) {
        gaussian_box const& box = plan_.boxes[b];
        if (box.order == 0 || index_t(c) < box.first_cell || index_t(c) >= box.last_cell) continue;
        translation const to_box(box, cell, inverse_unit_);
        series_.add(collected[index_t(b) * p], collected.step(), box.order,
                    [&](index_t m, index_t a) { return a < p ? to_box(a, m) : W(0); });
      }
      series_.end();
      auto const at = [&](index_t j) { return place(k_, j, cell.center); };
      evaluate(
          p, cell.first, cell.last,
          [&](index_t j, W* x) {
            powers(at(j), p, x);
            over_factorials(p, x);
          },
          [&](index_t j, W const* out) {
            for (index_t f = 0; f < features_ - 1; ++f) dv[j][f] += out[f * series<Arch>::targets];
          });
      evaluate(
          p, cell.first, cell.last,
          [&](index_t j, W* x) {
            slopes(at(j), p, x);
            over_factorials(p, x);
          },
          [&](index_t j, W const* out) {
            W sum = 0;
            for (index_t f = 0; f < features_; ++f) sum += values_[j][f] * out[f * series<Arch>::targets];
            dk[std::size_t(j)] += sum / 2;
          });
    }
  }
  void paired_gradients(gaussian_box const& box, rows<W> const& pulls, std::vector<W> const& lse, std::vector<W>& dq,
                        std::vector<W>& dk, rows<W>& dv) {
    index_t const step = values_.step();
    for (index_t r = box.first; r < box.last; ++r) {
      index_t const i = query_[std::size_t(r)];
      for (index_t j = box.lo; j < box.hi; ++j) {
        W const e = q_[std::size_t(r)] - k_[std::size_t(j)];
        W const w = normalizer::softmax::bound<W>{}.earned(kernel_.score(e, no_key), lse[std::size_t(i)]);
        if (w == 0) continue;
        W const pull = w * dot(pulls[i], values_[j], step) * (e * inverse_unit_);
        dq[std::size_t(i)] -= pull;
        dk[std::size_t(j)] += pull;
        add(dv[j], pulls[i], w, step);
      }
    }
  }

  std::span<index_t const> query_, key_;
  index_t features_;
  W inverse_unit_;
  kernel::scalar_sort::bound<W> kernel_;
  series<Arch>& series_;
  rows<W> values_, moments_;
  std::vector<W> q_, k_;
  gaussian_plan plan_;
};

template <class T, class Arch>
class gaussian_head {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: the fast Gauss transform is a plan in double: float and double tensors only");
  using W = double;
  using near_type = near_pairs<T, Arch, scalar_scores>;

 public:
  gaussian_head(parameter const& tau, double tolerance, sight const& sees, arrays<T> const& in, extents const& e,
                index_t b, index_t h)
      : e_(e), b_(b), h_(h), tolerance_(tolerance), sees_(sees), tau_(tau.template value<W>(b, h, 0)), on_(in, e, b, h),
        sums_(e.queries, e.width), series_(e.width + 1), value_(in, e, b, h), near_(in, e, b, h, tau_),
        lse_(std::size_t(e.queries)) {}

  /// The share that a row lacks is at most the largest of its rectangles'.
  gaussian_certificate forward() {
    gaussian_certificate worst;
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          worst.include(rectangle(queries, keys).forward(sums_));
        },
        [&](index_t i, index_t first, index_t last) { near_.add(i, first, last); });
    near_.forward([&](index_t i, W const& reference, W const* row) { sums_.join(i, reference, row); });
    if (!sees_.sees_all()) worst.rounded += near_rounding();
    return worst;
  }
  /// After forward().
  void write(results<T> const& to) {
    store_head(to, b_, h_, e_.queries, sums_, [&](index_t i) { return sums_.finish(i); });
  }

  /// After forward(), the exact gradients of the approximate weights w~: da_ij = w~_ij <(do_i, -R_i), (v_j, 1)>, a =
  /// -(y - u)^2. Returns the gradient by tau.
  W backward(cotangents<T> const& by, gradients<T> const& d) {
    for (index_t i = 0; i < e_.queries; ++i) lse_[std::size_t(i)] = sums_.finish(i);
    make_pulls(e_, b_, h_, by, lse_, sums_.sums());
    rows<W> const& pulls = sums_.sums();
    std::vector<W> dq(std::size_t(e_.queries), W(0)), dk(std::size_t(e_.keys), W(0));
    rows<W> dv(e_.keys, e_.width + 1);
    for_each_visible(
        sees_, on_, near_type::most_keys,
        [&](std::span<index_t const> queries, std::span<index_t const> keys) {
          rectangle(queries, keys).backward(pulls, lse_, dq, dk, dv);
        },
        [](index_t, index_t, index_t) {});
    W const unit = 2 / std::sqrt(tau_);
    near_.backward(pulls, lse_, unit, dq, dk, dv);
    // Scores do not change when scalars grow by a factor and tau by its square, nor when all scalars move together; the
    // series keep that within the tolerance, and so is the gradient by tau.
    W by_tau = 0;
    W const origin = e_.keys > 0 ? on_.k[std::size_t(e_.keys / 2)] : W(0);
    for (index_t i = 0; i < e_.queries; ++i) by_tau -= (on_.q[std::size_t(i)] - origin) * dq[std::size_t(i)];
    for (index_t j = 0; j < e_.keys; ++j) by_tau -= (on_.k[std::size_t(j)] - origin) * dk[std::size_t(j)];
    add_to_gradients(e_, b_, h_, dq, dk, dv, unit, d);
    return by_tau * unit / 2 / tau_;
  }

 private:
  gaussian_rectangle<Arch> rectangle(std::span<index_t const> queries, std::span<index_t const> keys) {
    return {queries, keys, on_, tau_, tolerance_, e_.width, series_, [&](index_t j) { return value_(j); }};
  }
  /// Rounding of what near_ sums, and of joining the parts of a row, as hybrid_head::rounding, without vectors, in
  /// double.
  W near_rounding() {
    W deepest = 0;
    for (index_t i = 0; i < e_.queries; ++i)
      if (W const mass = sums_[i][e_.width]; mass > 0)
        deepest = (std::max)(deepest, -(sums_.reference(i) + std::log(mass)));
    return 0x1p-53 * (16 * (deepest + std::log(W(e_.keys) + 1)) + 2.2 * W(near_type::most_keys) + 400);
  }

  extents const& e_;
  index_t b_, h_;
  double tolerance_;
  sight const& sees_;
  W tau_;
  line<W> on_;
  mass_rows<W> sums_;
  series<Arch> series_;
  value_rows<T, W> value_;
  near_type near_;
  std::vector<W> lse_;
};

/// A head whose visible pairs are one staircase, by waves and straight to the outputs; nothing if waves do not serve
/// it.
template <class T, class Arch>
std::optional<gaussian_certificate> forward_by_waves(parameter const& bandwidth, double tolerance, sight const& sees,
                                                     arrays<T> const& in, extents const& e, index_t b, index_t h,
                                                     results<T> const& to) {
  std::vector<index_t> const counts = lone_staircase(sees, shortest_block);
  if (counts.empty()) return std::nullopt;
  line<double> const on(in, e, b, h);
  double const tau = bandwidth.template value<double>(b, h, 0);
  auto const finish = [&](index_t i, double const& reference, double* row, double mass) {
    store_row(to, b, h, i, row,
              finish_masses<normalizer::softmax>(normalizer::softmax::bound<double>{}, reference, mass, 0.0, 1.0));
  };
  gaussian_certificate worst;
  std::vector<index_t> late;
  double const rows_of_tables = walk_waves<T, Arch>(
      in, e, b, h, on, tau, tolerance, {counts, {0, false}, {0, false}}, worst,
      [&](index_t i, double* row, double mass) { finish(i, 0, row, mass); }, [&](index_t i) { late.push_back(i); });
  if (rows_of_tables == 0) return std::nullopt;
  // As long as they cost half of what the waves did; lone pairs are slow.
  double work = rows_of_tables / 2 * double(e.width);
  rows<double> one(1, e.width);
  for (index_t const i : late) {
    lone_row<T> const row(in, e, b, h, on, tau, tolerance, i, counts[std::size_t(i)], one[0]);
    work -= double(counts[std::size_t(i)]) + 4 * double(row.met) * double(e.width);
    if (work < 0) return std::nullopt;
    worst.include(row.left_out);
    finish(i, row.reference, one[0], row.mass);
  }
  return worst;
}

/// Arguments that have been checked; sees(b, h) is the sight of a head.
template <class T, class Arch, class Sees>
gaussian_certificate run_gaussian(parameter const& tau, double tolerance, Sees const& sees, arrays<T> const& in,
                                  extents const& e, results<T> const& to, workers const& who) {
  return report_of_heads<gaussian_certificate>(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    if (auto const by_waves = forward_by_waves<T, Arch>(tau, tolerance, seen, in, e, b, h, to)) return *by_waves;
    gaussian_head<T, Arch> head(tau, tolerance, seen, in, e, b, h);
    auto const certificate = head.forward();
    head.write(to);
    return certificate;
  });
}
/// by_tau: the gradients by the bandwidth of each (batch, head).
template <class T, class Arch, class Sees>
gaussian_certificate run_gaussian_vjp(parameter const& tau, double tolerance, Sees const& sees, arrays<T> const& in,
                                      extents const& e, cotangents<T> const& by, gradients<T> const& d,
                                      std::vector<double>& by_tau, workers const& who) {
  clear(d.sort_k);
  clear(d.v);
  by_tau.assign(std::size_t(e.batch * e.heads), 0);
  return report_of_heads<gaussian_certificate>(who, e, [&](index_t b, index_t h) {
    sight const seen = sees(b, h);
    gaussian_head<T, Arch> head(tau, tolerance, seen, in, e, b, h);
    auto const certificate = head.forward();
    by_tau[std::size_t(b * e.heads + h)] = head.backward(by, d);
    return certificate;
  });
}

}  // namespace detail

/// Writes out, and lse if it is there. Returns the worst row's certificate.
/// Errors: throws attune::error on shapes that do not fit, scalars that are not finite, tau that is not positive or one
///         per query, a tolerance outside [1e-12, 1); nothing is written then.
template <class T, class Arch = xsimd::default_arch>
gaussian_certificate forward(gaussian const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  detail::extents const e = detail::checked("sorted::forward(gaussian)", in);
  op.sees.check("sorted::forward(gaussian)", e.queries, e.keys);
  detail::check_bandwidth<T>("sorted::forward(gaussian)", e, op.tau);
  detail::check_tolerance("sorted::forward(gaussian)", op.tolerance);
  detail::check_results("sorted::forward(gaussian)", e, to);
  return detail::run_gaussian<T, Arch>(
      op.tau, op.tolerance, [&](index_t, index_t) { return detail::sight(op.sees, e); }, in, e, to, who);
}

/// The gradients of <by.out, out> + <by.lse, lse>, exact for approximate weights whose rows differ from the exact ones
/// by at most certificate.output() in sum. Runs a forward pass of its own, by series: nothing has to be saved. (A
/// forward() that went by waves has other weights, within both certificates.)
template <class T, class Arch = xsimd::default_arch>
gaussian_certificate vjp(gaussian const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
                         workers const& who = {}) {
  detail::extents const e = detail::checked("sorted::vjp(gaussian)", in);
  op.sees.check("sorted::vjp(gaussian)", e.queries, e.keys);
  detail::check_bandwidth<T>("sorted::vjp(gaussian)", e, op.tau);
  detail::check_tolerance("sorted::vjp(gaussian)", op.tolerance);
  detail::check_gradients("sorted::vjp(gaussian)", e, by, d);
  std::vector<double> by_tau;
  auto const worst = detail::run_gaussian_vjp<T, Arch>(
      op.tau, op.tolerance, [&](index_t, index_t) { return detail::sight(op.sees, e); }, in, e, by, d, by_tau, who);
  detail::write_tau(e, by_tau, d.tau);
  return worst;
}

}  // namespace attune::sorted
