// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij v_j,   w_ij = e^(-(q_i - k_j)^2 / tau) / z_i        in O(n log n) for a given tolerance, with a certificate
//
// No finite set of sums over keys serves every query (the kernel is strictly positive definite), so this is an approximation, and says how
// good: a 1-D fast Gauss transform. Queries in runs of about sqrt(tau) share the moments of the keys in their window; a run with few
// queries, or far from all keys, meets the keys of its window one by one.
#pragma once

#include <vector>

#include <attune/policies/kernel/scalar.hpp>
#include <attune/sorted/gaussian_plan.hpp>
#include <attune/sorted/mass_rows.hpp>
#include <attune/sorted/order.hpp>
#include <attune/sorted/workers.hpp>

namespace attune::sorted {

namespace detail {

template <class T, class Arch>
class gaussian_head {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: the fast Gauss transform is a plan in double: float and double tensors only");
  using W = double;

 public:
  gaussian_head(gaussian const& op, arrays<T> const& in, extents const& e, index_t b, index_t h)
      : e_(e), b_(b), h_(h), tau_(op.tau.template value<W>(b, h, 0)), inverse_unit_(1 / std::sqrt(tau_)), kernel_{tau_},
        sums_(e.queries, e.width), values_(e.keys, e.width + 1), series_(e.width + 1), lse_(std::size_t(e.queries)) {
    line<W> const on(in, e, b, h);
    sorted_runs<W> by_query(on.q), by_key(on.k);
    by_query.sort(0, e.queries);
    by_key.sort(0, e.keys);
    for (index_t const i : by_query.run(0, e.queries)) query_.push_back(i), q_.push_back(on.q[std::size_t(i)]);
    for (index_t const j : by_key.run(0, e.keys)) {
      load(values_[index_t(key_.size())], in.v, b, e.value_head(h), j, W(1));
      key_.push_back(j), k_.push_back(on.k[std::size_t(j)]);
    }
    plan_ = plan_gaussian(q_, k_, tau_, op.tolerance);
  }

  gaussian_certificate forward() {
    gaussian_certificate worst;
    for (gaussian_box const& box : plan_) {
      ++worst.boxes;
      if (box.order > 0) {
        ++worst.expanded;
        gather_keys(box, box.order);
        evaluate(
            box.order, box.first, box.last, [&](index_t r, W* x) { series_at(place_of_query(box, r), box.order, W(0), x); },
            [&](index_t r, W const* out) {
              W* const sums = sums_[query_[std::size_t(r)]];
              for (index_t f = 0; f <= e_.width; ++f) sums[f] = out[f * series<Arch>::targets];
            });
      }
      for (index_t r = box.first; r < box.last; ++r) {
        index_t const i = query_[std::size_t(r)];
        W const q = q_[std::size_t(r)];
        gaussian_certificate row;
        W log_unit = 0;  // the masses are relative to e^log_unit
        if (box.order > 0) {
          W const y = (q - box.center) * inverse_unit_, fade = std::exp(-y * y);
          sums_.reference(i) = 0;
          W const mass = sums_[i][e_.width];
          row.truncated = box.missing * fade / mass;
          row.rounded =
              rounding_ * (W(box.hi - box.lo) + 3 * box.order + 256) * size_of_terms(box.order, std::fabs(y)) * fade / mass;
        } else {
          W farthest = 0;
          for (index_t j = box.lo; j < box.hi; ++j) {
            W const s = kernel_.score(q - k_[std::size_t(j)], no_key);
            farthest = std::max(farthest, -s);
            sums_.join(i, s, values_[j]);
          }
          log_unit = sums_.reference(i);
          row.rounded = rounding_of_pairs(box.hi - box.lo, farthest);
        }
        row.discarded = mass_outside(kernel_, q, k_.data(), e_.keys, box.lo, box.hi, log_unit) / sums_[i][e_.width];
        worst.include(row);
        lse_[std::size_t(i)] = sums_.finish(i);
      }
    }
    if (e_.keys == 0)
      for (W& lse : lse_) lse = -math::infinity<W>();
    return worst;
  }
  void write(results<T> const& to) { store_head(to, b_, h_, sums_, lse_); }

  /// After forward(), the exact gradients of the approximate weights w~: da_ij = w~_ij <(do_i, -R_i), (v_j, 1)>, a = -(y - u)^2.
  /// Returns the gradient by tau.
  W backward(cotangents<T> const& by, gradients<T> const& d) {
    make_pulls(e_, b_, h_, by, lse_, sums_.sums());
    rows<W> const& pulls = sums_.sums();
    std::vector<W> dq(std::size_t(e_.queries), W(0)), dk(std::size_t(e_.keys), W(0)), dk_sorted(std::size_t(e_.keys), W(0));
    rows<W> dv_sorted(e_.keys, e_.width + 1), dv(e_.keys, e_.width + 1);
    for (gaussian_box const& box : plan_) {
      if (box.order > 0)
        expanded_gradients(box, pulls, dq, dk_sorted, dv_sorted);
      else
        paired_gradients(box, pulls, dq, dk_sorted, dv_sorted);
    }
    // Scores do not change when scalars grow by a factor and tau by its square, nor when all scalars move together.
    W by_tau = 0;
    W const origin = k_.empty() ? W(0) : k_[k_.size() / 2];
    for (std::size_t r = 0; r < q_.size(); ++r) by_tau -= (q_[r] - origin) * dq[std::size_t(query_[r])];
    for (std::size_t r = 0; r < k_.size(); ++r) {
      by_tau -= (k_[r] - origin) * dk_sorted[r];
      dk[std::size_t(key_[r])] = dk_sorted[r];
      std::copy(dv_sorted[index_t(r)], dv_sorted[index_t(r)] + dv.step(), dv[key_[r]]);
    }
    add_to_gradients(e_, b_, h_, dq, dk, dv, W(2 * inverse_unit_), d);
    return by_tau * inverse_unit_ / tau_;
  }

 private:
  static constexpr key<W> no_key{W(0)};
  static constexpr W rounding_ = 0x1p-53;

  W place_of_key(gaussian_box const& box, index_t j) const { return (k_[std::size_t(j)] - box.center) * inverse_unit_; }
  W place_of_query(gaussian_box const& box, index_t r) const { return (q_[std::size_t(r)] - box.center) * inverse_unit_; }

  /// terms_m = sum_j u_j^m e^(-u_j^2) (v_j, 1) over the window
  void gather_keys(gaussian_box const& box, int count) {
    series_.gather(
        count, values_[0], values_.step(), box.lo, box.hi, false,
        [&](index_t j) {
          W const u = place_of_key(box, j);
          return std::exp(-u * u);
        },
        [&](index_t j) { return place_of_key(box, j); });
  }
  /// x_m = e^(-y^2 - lse) (2 y)^m / m!, m < count
  static void series_at(W y, int count, W lse, W* x) {
    x[0] = std::exp(-y * y - lse);
    for (int m = 1; m < count; ++m) x[m] = x[m - 1] * (2 * y / W(m));
  }
  /// use(t, sum_m x_m terms_m) with the weights that weigh(t, x) writes. The features of the sum lie series::targets apart.
  template <class Weigh, class Use>
  void evaluate(int count, index_t first, index_t last, Weigh const& weigh, Use const& use) {
    constexpr index_t many = series<Arch>::targets;
    W x[most_terms + 2];
    for (index_t at = first; at < last; at += many) {
      index_t const n = std::min(many, last - at);
      for (index_t t = 0; t < many; ++t) {
        if (t < n) weigh(at + t, x);
        for (int m = 0; m < count; ++m) series_.weights()[m * many + t] = t < n ? x[m] : W(0);
      }
      W const* const out = series_.evaluate(count);
      for (index_t t = 0; t < n; ++t) use(at + t, out + t);
    }
  }
  /// What the rounding of a row is relative to: its series in absolute values.
  W size_of_terms(int order, W y) const {
    W weight = 1, sum = 0;
    for (int m = 0; m < order; ++m) {
      sum += weight * series_.size(m);
      weight *= 2 * y / W(m + 1);
    }
    return sum;
  }
  /// The transpose of the forward sums; dq and dk in units of 2 / sqrt(tau).
  void expanded_gradients(gaussian_box const& box, rows<W> const& pulls, std::vector<W>& dq, std::vector<W>& dk, rows<W>& dv) {
    constexpr index_t apart = series<Arch>::targets;
    int const p = box.order;
    // Of the weight (2 y)^m / m! u^m: da/dq wants it times (u - y), so x_(m - 1) - y x_m of term m; the last x is that of term p.
    gather_keys(box, p + 1);
    evaluate(
        p + 1, box.first, box.last,
        [&](index_t r, W* x) {
          W const y = place_of_query(box, r);
          series_at(y, p, lse_[std::size_t(query_[std::size_t(r)])], x);
          x[p] = x[p - 1];
          for (int m = p - 1; m > 0; --m) x[m] = x[m - 1] - y * x[m];
          x[0] = -y * x[0];
        },
        [&](index_t r, W const* out) {
          index_t const i = query_[std::size_t(r)];
          W sum = 0;
          for (index_t f = 0; f <= e_.width; ++f) sum += pulls[i][f] * out[f * apart];
          dq[std::size_t(i)] += sum;
        });
    // terms_m = sum_i w_i (2 y_i)^m / m! pull_i, and one more: y (2 y)^m / m! = (m + 1) / 2 (2 y)^(m + 1) / (m + 1)!
    rows<W> of_box(box.last - box.first, e_.width + 1);
    for (index_t r = box.first; r < box.last; ++r)
      std::copy_n(pulls[query_[std::size_t(r)]], of_box.step(), of_box[r - box.first]);
    series_.gather(
        p + 1, of_box[0], of_box.step(), 0, box.last - box.first, true,
        [&](index_t s) {
          W const y = place_of_query(box, box.first + s);
          return std::exp(-y * y - lse_[std::size_t(query_[std::size_t(box.first + s)])]);
        },
        [&](index_t s) { return 2 * place_of_query(box, box.first + s); });
    auto const powers = [&](index_t j, W* x) {
      W const u = place_of_key(box, j);
      x[0] = std::exp(-u * u);
      for (int m = 1; m < p; ++m) x[m] = x[m - 1] * u;
      return u;
    };
    evaluate(p, box.lo, box.hi, powers, [&](index_t j, W const* out) {
      for (index_t f = 0; f < e_.width; ++f) dv[j][f] += out[f * apart];
    });
    evaluate(
        p + 1, box.lo, box.hi,
        [&](index_t j, W* x) {  // (y - u) of the same weight: m / 2 x_(m - 1) - u x_m of term m
          W const u = powers(j, x);
          x[p] = W(p) / 2 * x[p - 1];
          for (int m = p - 1; m > 0; --m) x[m] = W(m) / 2 * x[m - 1] - u * x[m];
          x[0] = -u * x[0];
        },
        [&](index_t j, W const* out) {
          W sum = 0;
          for (index_t f = 0; f <= e_.width; ++f) sum += values_[j][f] * out[f * apart];
          dk[std::size_t(j)] += sum;
        });
  }
  void paired_gradients(gaussian_box const& box, rows<W> const& pulls, std::vector<W>& dq, std::vector<W>& dk, rows<W>& dv) {
    index_t const step = values_.step();
    for (index_t r = box.first; r < box.last; ++r) {
      index_t const i = query_[std::size_t(r)];
      for (index_t j = box.lo; j < box.hi; ++j) {
        W const e = q_[std::size_t(r)] - k_[std::size_t(j)];
        W const w = normalizer::softmax::bound<W>{}.earned(kernel_.score(e, no_key), lse_[std::size_t(i)]);
        if (w == 0) continue;
        W const pull = w * dot(pulls[i], values_[j], step) * (e * inverse_unit_);
        dq[std::size_t(i)] -= pull;
        dk[std::size_t(j)] += pull;
        add(dv[j], pulls[i], w, step);
      }
    }
  }

  extents const& e_;
  index_t b_, h_;
  W tau_, inverse_unit_;
  kernel::scalar_sort::bound<W> kernel_;
  mass_rows<W> sums_;
  rows<W> values_;
  series<Arch> series_;
  std::vector<W> lse_, q_, k_;
  std::vector<index_t> query_, key_;
  std::vector<gaussian_box> plan_;
};

}  // namespace detail

/// Writes out, and lse if it is there. Returns the worst row's certificate.
/// Errors: throws attune::error on shapes that do not fit, scalars that are not finite, tau that is not positive or one per query, a tolerance
///         outside [1e-12, 1); nothing is written then.
template <class T, class Arch = xsimd::default_arch>
gaussian_certificate forward(gaussian const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  detail::extents const e = detail::checked("sorted::forward(gaussian)", in);
  detail::check_bandwidth<T>("sorted::forward(gaussian)", e, op.tau);
  detail::check_tolerance("sorted::forward(gaussian)", op.tolerance);
  detail::check_results("sorted::forward(gaussian)", e, to);
  std::vector<gaussian_certificate> of_heads(std::size_t(e.batch * e.heads));
  detail::for_each_head(who, e, [&](index_t b, index_t h) {
    detail::gaussian_head<T, Arch> head(op, in, e, b, h);
    of_heads[std::size_t(b * e.heads + h)] = head.forward();
    head.write(to);
  });
  gaussian_certificate worst;
  for (auto const& c : of_heads) worst.include(c);
  return worst;
}

/// The gradients of <by.out, out> + <by.lse, lse>, exact for the approximate weights, whose rows differ from the exact ones by at most
/// certificate.output() in sum. Runs the forward pass again: nothing has to be saved.
template <class T, class Arch = xsimd::default_arch>
gaussian_certificate vjp(gaussian const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
                         workers const& who = {}) {
  detail::extents const e = detail::checked("sorted::vjp(gaussian)", in);
  detail::check_bandwidth<T>("sorted::vjp(gaussian)", e, op.tau);
  detail::check_tolerance("sorted::vjp(gaussian)", op.tolerance);
  detail::check_gradients("sorted::vjp(gaussian)", e, by, d);
  detail::clear(d.sort_k);
  detail::clear(d.v);
  std::vector<gaussian_certificate> of_heads(std::size_t(e.batch * e.heads));
  std::vector<double> by_tau(of_heads.size());
  detail::for_each_head(who, e, [&](index_t b, index_t h) {
    detail::gaussian_head<T, Arch> head(op, in, e, b, h);
    of_heads[std::size_t(b * e.heads + h)] = head.forward();
    by_tau[std::size_t(b * e.heads + h)] = head.backward(by, d);
  });
  detail::write_tau(e, by_tau, d.tau);
  gaussian_certificate worst;
  for (auto const& c : of_heads) worst.include(c);
  return worst;
}

}  // namespace attune::sorted
