// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   queries and keys that all see each other, sorted  ->  sums of e^(-(q - k)^2 / tau) rows; forward and backward
//
// One rectangle of the fast Gauss transform: boxes of queries, each by series or pair by pair (docs/reference/line.md).
#pragma once

#include <vector>

#include <attune/line/call/workers.hpp>
#include <attune/line/gaussian/plan.hpp>
#include <attune/line/gaussian/waves.hpp>
#include <attune/line/order/mass_rows.hpp>
#include <attune/line/order/near_pairs.hpp>
#include <attune/line/order/order.hpp>
#include <attune/policies/kernel/scalar.hpp>

namespace attune::line::detail {

/// Queries and keys that all see each other: the sums from keys to queries, and their exact transpose.
template <class Arch>
class gaussian_rectangle {
  using W = double;

 public:
  /// value(j): the row (v_j, 1).
  template <class Value>
  gaussian_rectangle(std::span<index_t const> queries, std::span<index_t const> keys, scalars<W> const& on, W tau,
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

  /// Adds the masses and value sums of its keys to the rows of its queries.
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

  /// Adds the gradients of sum_i <pull_i, sum_j e^(-(y_i - u_j)^2 - lse_i) (v_j, 1)>, exact for the results of
  /// forward(). dq and dk are in units of 2 / sqrt(tau).
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
  /// Sets series_ to the series in y of the cells in the box's window.
  void collect_cells(gaussian_box const& box) {
    int const p = plan_.most_terms;
    series_.begin(box.order);
    for (index_t c = box.first_cell; c < box.last_cell; ++c) {
      translation const to_box(box, plan_.cells[std::size_t(c)], inverse_unit_);
      series_.add(moments_[c * p], moments_.step(), p, to_box);
    }
    series_.end();
  }
  /// Calls use(t, sum_m x_m terms_m) with the weights that weigh(t, x) writes. The features of the sum are
  /// series::targets apart.
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

  /// dq of a box, and the sums for its cells: collected_(box, m) = sum_i y_i^m e^(-lse_i) pull_i.
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

}  // namespace attune::line::detail
