// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   values.of_head(...);   values.see(keys);   sums.add_terms<finite>(values, weights, share)
//
// The values of a row's keys, and sums over the keys with one number for each feature. Features are padded to whole
// packs, so that every compiler turns the loops into vector instructions. The keys are added in their order.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <attune/certify/row_error.hpp>
#include <attune/exec/reference/any_tensor.hpp>

namespace attune::certify::detail {

/// Features that are computed together.
inline constexpr std::size_t pack = 8;

/// The first numbers of the keys' values. Read once for a head; gated values, once for a row.
class row_values {
 public:
  /// Features of a row, with the padding.
  std::size_t stride() const { return stride_; }
  /// Number of keys.
  std::size_t size() const { return places_.size(); }
  /// Feature d of key n.
  double operator()(std::size_t n, std::size_t d) const { return column(d - d % pack)[place(n) + d % pack]; }
  /// The pack of features from `first` on. Its numbers of key n begin at place(n).
  double const* column(std::size_t first) const { return numbers_.data() + first * keys_; }
  std::size_t place(std::size_t n) const { return places_[n]; }
  /// Whether all numbers of the visible keys are finite.
  bool finite() const { return finite_; }

  /// The values of one head, for the keys of a row.
  void see(any_tensor const& v, index_t b, index_t head, std::vector<index_t> const& keys) {
    shape const& e = v.extents();
    if (b != batch_ || head != head_) {
      begin(std::size_t(e.feature), std::size_t(e.position));
      finite_keys_.assign(std::size_t(e.position), 1);
      for (index_t j = 0; j < e.position; ++j)
        v.row(b, head, j, [&](auto const* from, index_t step) {
          bool all = true;
          for (index_t d = 0; d < e.feature; ++d) {
            double const x = number(std::size_t(j), std::size_t(d)) = double(from[d * step]);
            all = all && std::isfinite(x);
          }
          finite_keys_[std::size_t(j)] = all;
        });
      batch_ = b, head_ = head;
    }
    places_.clear();
    finite_ = true;
    for (index_t j : keys) {
      places_.push_back(std::size_t(j) * pack);
      finite_ = finite_ && finite_keys_[std::size_t(j)] != 0;
    }
  }
  /// Values that the caller computes for each row: make(n, d).
  template <class Make>
  void fill(std::size_t width, std::size_t keys, Make const& make) {
    begin(width, keys);
    batch_ = head_ = -1;
    places_.clear();
    finite_ = true;
    for (std::size_t n = 0; n < keys; ++n) {
      for (std::size_t d = 0; d < width; ++d) finite_ = std::isfinite(number(n, d) = make(n, d)) && finite_;
      places_.push_back(n * pack);
    }
  }

 private:
  void begin(std::size_t width, std::size_t keys) {
    stride_ = (width + pack - 1) / pack * pack;
    keys_ = keys;
    numbers_.assign(keys * stride_, 0);
  }
  double& number(std::size_t key, std::size_t d) { return numbers_[(d - d % pack) * keys_ + key * pack + d % pack]; }

  std::vector<double> numbers_;      // [pack of features][key][feature of the pack]: a sum reads them one after another
  std::vector<std::size_t> places_;  // of the row's keys
  std::vector<char> finite_keys_;
  std::size_t stride_ = 0, keys_ = 0;
  index_t batch_ = -1, head_ = -1;
  bool finite_ = true;
};

/// |x y|, where 0 times anything is 0. Numbers that are known to be finite need no test.
template <bool Finite>
double size_of_product(double x, double y) {
  if constexpr (Finite)
    return std::fabs(x * y);
  else
    return weighed(x, y);
}

/// The effect of a key's error on the masses: up and down by the error of its logit, and by the policy's rounding.
struct mass_change {
  double up_e, up_g, down_e, down_g, own_e, own_g;
};

/// Sums over the keys of a row.
struct feature_sums {
  std::vector<double> terms,  ///< sum of e v, the weights without a uniform share
      values,                 ///< sum of v
      sizes,                  ///< sum of |e v|
      squares,                ///< sum of (e v)^2
      plain,                  ///< sum of |v|
      out,                    ///< sum of w v
      used,                   ///< sum of |v| where w is not 0
      errors;                 ///< of add_errors

  /// terms, values, sizes, squares and plain. e: w - share, 0 if `none`.
  template <bool Finite>
  void add_terms(row_values const& v, std::vector<double> const& w, double share, bool none) {
    for (auto* x : {&terms, &values, &sizes, &squares, &plain}) x->assign(v.stride(), 0);
    for (std::size_t first = 0; first < v.stride(); first += pack) {
      double a[pack]{}, b[pack]{}, c[pack]{}, s[pack]{}, p[pack]{};
      double const* const column = v.column(first);
      for (std::size_t n = 0; n < v.size(); ++n) {
        double const e = none ? 0 : w[n] - share;
        double const* const x = column + v.place(n);
        for (std::size_t d = 0; d < pack; ++d) {
          double const size = size_of_product<Finite>(e, x[d]);
          a[d] += Finite || weighed(1, e) != 0 ? e * x[d] : 0;
          b[d] += x[d];
          c[d] += size;
          s[d] += size * size;
          p[d] += Finite ? std::fabs(x[d]) : magnitude(x[d]);
        }
      }
      for (std::size_t d = 0; d < pack; ++d)
        terms[first + d] = a[d], values[first + d] = b[d], sizes[first + d] = c[d], squares[first + d] = s[d],
                      plain[first + d] = p[d];
    }
  }
  /// terms, sizes, squares, out and used in one pass, where weights and values are finite and no share is subtracted:
  /// the numbers of add_terms and add_out. values and plain, which only a share multiplies, are 0.
  void add_terms_and_out(row_values const& v, std::vector<double> const& w) {
    for (auto* x : {&terms, &values, &sizes, &squares, &plain, &used}) x->assign(v.stride(), 0);
    for (std::size_t first = 0; first < v.stride(); first += pack) {
      double a[pack]{}, c[pack]{}, s[pack]{}, p[pack]{};
      double const* const column = v.column(first);
      for (std::size_t n = 0; n < v.size(); ++n) {
        double const e = w[n];
        if (e == 0) continue;
        double const* const x = column + v.place(n);
        for (std::size_t d = 0; d < pack; ++d) {
          double const term = e * x[d], size = std::fabs(term);
          a[d] += term;
          c[d] += size;
          s[d] += size * size;
          p[d] += std::fabs(x[d]);
        }
      }
      for (std::size_t d = 0; d < pack; ++d)
        terms[first + d] = a[d], sizes[first + d] = c[d], squares[first + d] = s[d], used[first + d] = p[d];
    }
    out = terms;
  }
  /// out and used. skips: values of weight 0 are not read.
  template <bool Finite>
  void add_out(row_values const& v, std::vector<double> const& w, bool skips) {
    for (auto* x : {&out, &used}) x->assign(v.stride(), 0);
    for (std::size_t first = 0; first < v.stride(); first += pack) {
      double a[pack]{}, b[pack]{};
      double const* const column = v.column(first);
      for (std::size_t n = 0; n < v.size(); ++n) {
        double const* const x = column + v.place(n);
        if (w[n] == 0 && (Finite || skips)) continue;
        for (std::size_t d = 0; d < pack; ++d) {
          a[d] += w[n] * x[d];
          b[d] += Finite ? std::fabs(x[d]) : w[n] == 0 ? 0 : magnitude(x[d]);
        }
      }
      for (std::size_t d = 0; d < pack; ++d) out[first + d] = a[d], used[first + d] = b[d];
    }
  }
  /// errors: the sum over the keys of the effect of its change on a function of the row, whose derivative by e_n is
  /// slope v + by_e[d], and by g_n by_g[d].
  template <bool Finite, bool Ground>
  void add_errors(row_values const& v, std::vector<mass_change> const& changes, double slope,
                  std::vector<double> const& by_e, std::vector<double> const& by_g) {
    errors.assign(v.stride(), 0);
    auto const product = [](double x, double y) { return Finite ? x * y : y == 0 ? 0 : x * y; };
    for (std::size_t first = 0; first < v.stride(); first += pack) {
      double sum[pack]{}, e[pack], g[pack];
      for (std::size_t d = 0; d < pack; ++d) e[d] = by_e[first + d], g[d] = by_g[first + d];
      double const* const column = v.column(first);
      for (std::size_t n = 0; n < v.size(); ++n) {
        mass_change const& c = changes[n];
        double const* const x = column + v.place(n);
        if constexpr (!Ground && Finite) {
          double const both = larger(std::fabs(c.up_e), std::fabs(c.down_e)) + c.own_e;
          for (std::size_t d = 0; d < pack; ++d) sum[d] += std::fabs(slope * x[d] + e[d]) * both;
        } else {
          for (std::size_t d = 0; d < pack; ++d) {
            double const by = (slope == 0 ? 0 : slope * x[d]) + e[d];
            double const up = std::fabs(product(by, c.up_e) + (Ground ? product(g[d], c.up_g) : 0)),
                         down = std::fabs(product(by, c.down_e) + (Ground ? product(g[d], c.down_g) : 0));
            sum[d] += larger(up, down) + size_of_product<Finite>(by, c.own_e) +
                      (Ground ? size_of_product<Finite>(g[d], c.own_g) : 0);
          }
        }
      }
      for (std::size_t d = 0; d < pack; ++d) errors[first + d] = sum[d];
    }
  }
};

}  // namespace attune::certify::detail
