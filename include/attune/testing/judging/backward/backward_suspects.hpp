// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   class gradient_judge : backward_suspects<Op>     by_backward_rows()
//
// For a verdict on gradients that is already FAIL: which mistake of a backward pass with a saved lse, and in which rows
// of queries?
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/backward/backward_rows.hpp>
#include <attune/testing/judging/backward/query_regions.hpp>
#include <attune/testing/judging/gradient_rounding.hpp>
#include <attune/testing/judging/key_equations.hpp>

namespace attune::testing::detail {

template <class Op>
class backward_suspects : protected gradient_rounding<Op> {
 protected:
  using base = gradient_rounding<Op>;
  using base::along, base::base, base::d_, base::exact_, base::first_of, base::for_each_row, base::given_, base::in_,
      base::op_, base::p_, base::precision_, base::report_, base::seen_;
  using typename base::dense;

  /// Returns false for operators whose backward pass it does not know.
  bool by_backward_rows() {
    if constexpr (RecomputesWeights<Op>) {
      backward_rows<Op> rows(op_, in_, p_, d_);
      query_regions const places(p_);
      dense const whole = of_rows(rows, backward_defect::whole_row, {});
      if (!is_exact(whole)) return false;
      std::vector<backward_defect> all;
      for (int n = 1; n < int(backward_defect::count); ++n)
        if (rows.applies(backward_defect(n))) all.push_back(backward_defect(n));
      // Many at a time, because a row is read for all of them at once; not so many that they take much memory.
      std::size_t const size = along(whole, [](double x) { return x; }).size(),
                        most = std::clamp<std::size_t>(std::size_t(2e7) / (size + 1), 1, all.size());
      for (std::size_t first = 0; first < all.size(); first += most) {
        std::vector<backward_defect> const some(all.begin() + std::ptrdiff_t(first),
                                                all.begin() + std::ptrdiff_t((std::min)(first + most, all.size())));
        std::vector<dense> const changes = of_rows(rows, some, {});
        for (std::size_t n = 0; n < some.size(); ++n) by_defect(rows, places, some[n], changes[n]);
      }
      by_factors(rows, places, whole);
      by_skipped_keys(rows);
      return true;
    } else {
      return false;
    }
  }

 private:
  using defect = backward_defect;
  static constexpr double explained = 0.95;  ///< a share that needs no better region

  /// Whether rows that are made of e^(a - lse) have the exact gradients.
  bool is_exact(dense const& whole) const {
    auto const a = along(whole, [](double x) { return x; }), b = along(exact_, [](double x) { return x; });
    std::size_t n = 0;
    for (auto const& [name, x] : given_.all()) {
      double most = 0, off = 0;
      for (std::size_t k = 0; k < x.values.size(); ++k, ++n) {
        if (!std::isfinite(b[n]) || !name.is_input()) continue;
        most = std::fmax(most, std::fabs(b[n]));
        off = std::isfinite(a[n]) ? std::fmax(off, std::fabs(a[n] - b[n])) : math::infinity<double>();
      }
      if (!(off <= 1e-6 * most)) return false;
    }
    return true;
  }
  /// The changes that defects of some rows make; an empty list of rows: of all.
  template <class Rows>
  std::vector<dense> of_rows(Rows& rows, std::vector<defect> const& defects, std::vector<bool> const& has) const {
    std::vector<dense> to(defects.size(), attune::detail::blank_gradients<double>(op_, in_));
    bool const others = std::any_of(defects.begin(), defects.end(), [](defect d) { return reads_other_keys(d); });
    row_keys const keys = others ? row_keys::all : row_keys::visible;
    std::size_t row = 0;
    for_each_row([&](index_t b, index_t h, index_t i) {
      if (!has.empty() && !has[row++]) return;
      rows.select(b, h, i, keys);
      for (std::size_t n = 0; n < defects.size(); ++n) rows.add(defects[n], to[n]);
    });
    return to;
  }
  template <class Rows>
  dense of_rows(Rows& rows, defect d, std::vector<bool> const& has) const {
    return std::move(of_rows(rows, std::vector<defect>{d}, has).front());
  }
  /// Only the gradients of these inputs.
  static dense only(dense x, std::vector<field> const& fields) {
    for (std::size_t f = 0; f < x.fields.size(); ++f)
      if (std::find(fields.begin(), fields.end(), field(f)) == fields.end())
        std::fill(x.fields[f].values.begin(), x.fields[f].values.end(), 0.);
    return x;
  }
  std::vector<double> numbers(dense const& x) const {
    return along(x, [](double y) { return y; });
  }
  bool has_given(field f) const { return given_.all().count(f) > 0; }

  /// A rounding that the kernel's precision allows.
  bool allows(defect d) const {
    auto const wide = [&](storage s) { return format_of(precision_.weights).unit >= format_of(s).unit; };
    if (d == defect::weights_in_bf16 || d == defect::slopes_in_bf16) return wide(storage::bf16);
    return (d == defect::weights_in_fp16 || d == defect::slopes_in_fp16) && wide(storage::fp16);
  }
  template <class Rows>
  void by_defect(Rows& rows, query_regions const& places, defect d, dense const& all) {
    finding f;
    f.name = name_of(d);
    f.of_inputs = true;
    f.parameter = f.relative = d == defect::logits_too_large;
    std::vector<field> const both{field::k, field::v};
    f = seen_.judged(f, numbers(d == defect::one_head_of_group ? only(all, both) : all));
    f.tested = f.tested && !allows(d);
    if (f.tested && f.share < explained) {
      std::optional<double> const factor = f.parameter ? std::nullopt : std::optional(1.0);
      std::vector<row_share> shares;
      if (!changes_queries(d))
        shares = by_keys(rows, d, d == defect::one_head_of_group ? both : std::vector<field>{field::v});
      else if (has_given(field::q))
        shares = by_queries(all);
      better(f, rows, places, d, shares, factor, d == defect::one_head_of_group ? both : std::vector<field>{});
    }
    push(f);
  }
  /// A finding of the rows that show it, if this explains more.
  template <class Rows>
  void better(finding& f, Rows& rows, query_regions const& places, defect d, std::vector<row_share> const& shares,
              std::optional<double> factor, std::vector<field> const& fields) {
    if (shares.empty()) return;
    auto const region = places.best(shares, factor);
    if (region.where.empty()) return;
    dense const change = of_rows(rows, d, region.has);
    finding g = f;
    g = seen_.judged(g, numbers(fields.empty() ? change : only(change, fields)), false);
    g.where = region.where;
    if (g.share > f.share) f = g;
  }
  void push(finding f) {
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    report_.findings.push_back(std::move(f));
  }

  // ---- estimates by row ---------------------------------------------------------------------------------------------
  /// From dq: each row of it belongs to one row of queries.
  std::vector<row_share> by_queries(dense const& change) const {
    auto const& effect = change.of(field::q);
    std::vector<row_share> to(std::size_t(p_.batch * p_.heads * p_.queries));
    std::size_t const width = std::size_t(effect.extents.feature), first = first_of(field::q);
    if (effect.values.size() != to.size() * width) return {};  // heads share queries
    for (std::size_t row = 0; row < to.size(); ++row)
      for (std::size_t n = row * width; n < (row + 1) * width; ++n) {
        double const x = effect.values[n], m = seen_.metric(first + n);
        if (!std::isfinite(x)) continue;
        to[row].precision += x * x * m;
        to[row].share += x * m * seen_.residual(first + n);
      }
    for (row_share& x : to) x.share = x.precision > 0 ? x.share / x.precision : 0;
    return to;
  }
  /// From dk and dv: the rows of a group of heads are the unknowns of a system of equations. Empty where the system is
  /// too large, or has too few equations.
  template <class Rows>
  std::vector<row_share> by_keys(Rows& rows, defect d, std::vector<field> const& fields) const {
    if constexpr (!Op::uses(field::k)) return {};
    if (p_.key_heads != p_.value_heads) return {};
    index_t const group = p_.heads / p_.key_heads, unknowns = group * p_.queries;
    index_t numbers = 0;
    for (field f : fields) {
      if (!has_given(f)) return {};
      numbers += p_.keys * exact_.of(f).extents.feature;
    }
    if (numbers < unknowns || unknowns > 1024 || double(numbers) * double(unknowns) > 8e6) return {};
    dense scratch = attune::detail::blank_gradients<double>(op_, in_);
    std::vector<row_share> to(std::size_t(p_.batch * p_.heads * p_.queries));
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t kh = 0; kh < p_.key_heads; ++kh) {
        key_equations system(numbers, unknowns);
        for (index_t u = 0; u < unknowns; ++u) {
          rows.select(b, kh * group + u / p_.queries, u % p_.queries, row_keys::visible);
          rows.add(d, scratch);
          index_t at = 0;
          for (field f : fields) {
            auto& x = scratch.of(f);
            std::size_t const from = std::size_t(x.at(b, kh, 0, 0)), size = std::size_t(p_.keys * x.extents.feature),
                              first = first_of(f) + from;
            for (std::size_t n = 0; n < size; ++n, ++at) {
              double const unit = std::sqrt(seen_.metric(first + n));
              system.effect(at, u) = std::isfinite(x.values[from + n]) ? unit * x.values[from + n] : 0;
              system.residual(at) = unit * seen_.residual(first + n);
              x.values[from + n] = 0;
            }
          }
        }
        key_equations::estimates const found = system.estimated();
        for (index_t u = 0; u < unknowns; ++u) {
          std::size_t const row =
              std::size_t((b * p_.heads + kh * group + u / p_.queries) * p_.queries + u % p_.queries);
          to[row] = {found.x[std::size_t(u)], found.precision[std::size_t(u)]};
        }
      }
    return to;
  }

  // ---- factors of rows ----------------------------------------------------------------------------------------------
  /// A factor of one gradient in some rows of queries; rows that dk and dv lack, or have twice.
  template <class Rows>
  void by_factors(Rows& rows, query_regions const& places, dense const& whole) {
    auto const factor = [&](field of, std::vector<row_share> const& shares) {
      if (shares.empty()) return;
      finding f;
      f.name = gradient_name(of).text();
      f.parameter = f.relative = true;
      better(f, rows, places, defect::whole_row, shares, std::nullopt, {of});
      if (f.share > 0) push(f);
    };
    if (has_given(field::q)) factor(field::q, by_queries(whole));
    for (field of : {field::k, field::v})
      if (seen_.must_explain_any() && has_given(of)) factor(of, by_keys(rows, defect::whole_row, {of}));
    if (!has_given(field::k) || !has_given(field::v)) return;
    auto const shares = by_keys(rows, defect::whole_row, {field::k, field::v});
    for (double by : {-1., 1.}) {
      if (shares.empty()) break;
      auto const region = places.best(shares, by);
      if (region.gain == 0 || region.last - region.first == p_.queries) continue;
      finding f;
      f.name = (by < 0 ? "queries skipped in dk and dv: " : "queries counted twice in dk and dv: ") +
               query_regions::words(region.first, region.last, "", "");
      auto change = numbers(only(of_rows(rows, defect::whole_row, region.has), {field::k, field::v}));
      for (double& x : change) x *= by;
      f = seen_.judged(f, change, false);
      f.where = region.members;
      push(f);
    }
  }

  // ---- keys that dq lacks -------------------------------------------------------------------------------------------
  /// The keys next to each other that dq lacks: the same for all rows, or others in each row.
  template <class Rows>
  void by_skipped_keys(Rows& rows) {
    if (p_.keys == 0 || !has_given(field::q) || !seen_.must_be_explained(base::tensors_.at(field::q))) return;
    constexpr index_t lengths[] = {1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
    auto const& q = exact_.of(field::q);
    std::size_t const width = std::size_t(q.extents.feature), first = first_of(field::q);
    if (q.values.size() != std::size_t(p_.batch * p_.heads * p_.queries) * width) return;
    dense scratch = attune::detail::blank_gradients<double>(op_, in_);
    std::vector<double> common(std::size(lengths) * std::size_t(p_.keys), 0), change(q.values.size(), 0);
    std::vector<double> sums(std::size_t(p_.keys + 1) * width);
    double of_all = 0;
    /// Visits the ranges of a row: the gain if they are missing.
    auto const with_ranges = [&](std::size_t row, auto const& visit) {
      std::fill(sums.begin(), sums.end(), 0.);
      rows.for_each_key(scratch, [&](index_t j, double const* x) {
        std::copy_n(x, width, sums.begin() + std::ptrdiff_t(std::size_t(j + 1) * width));
      });
      for (std::size_t n = width; n < sums.size(); ++n) sums[n] += sums[n - width];
      for (std::size_t l = 0; l < std::size(lengths); ++l)
        for (index_t j = 0; j + lengths[l] <= p_.keys; ++j) {
          double gain = 0;
          double const *low = &sums[std::size_t(j) * width], *high = &sums[std::size_t(j + lengths[l]) * width];
          for (std::size_t c = 0; c < width; ++c) {
            double const x = low[c] - high[c], m = seen_.metric(first + row * width + c);
            gain += x * m * (2 * seen_.residual(first + row * width + c) - x);
          }
          visit(l, j, gain, low, high);
        }
    };
    std::size_t row = 0;
    for_each_row([&](index_t b, index_t h, index_t i) {
      rows.select(b, h, i, row_keys::visible);
      double best = 9;
      double* const to = &change[row * width];
      with_ranges(row, [&](std::size_t l, index_t j, double gain, double const* low, double const* high) {
        common[l * std::size_t(p_.keys) + std::size_t(j)] += gain;
        if (!(gain > best)) return;
        best = gain;
        for (std::size_t c = 0; c < width; ++c) to[c] = low[c] - high[c];
      });
      if (best > 9) of_all += best;
      ++row;
    });
    auto const most = std::max_element(common.begin(), common.end());
    bool const same = *most > 0.9 * of_all;
    finding f;
    f.name = "keys skipped in dq: other ones in each row";
    f.last_resort = !same;
    if (same) {
      std::size_t const at = std::size_t(most - common.begin()), l = at / std::size_t(p_.keys);
      index_t const from = index_t(at % std::size_t(p_.keys));
      f.name = "keys skipped in dq: " + query_regions::words(from, from + lengths[l], "", "");
      row = 0;
      for_each_row([&](index_t b, index_t h, index_t i) {
        rows.select(b, h, i, row_keys::visible);
        double* const to = &change[row * width];
        with_ranges(row, [&](std::size_t of, index_t j, double gain, double const* low, double const* high) {
          if (of != l || j != from) return;
          for (std::size_t c = 0; c < width; ++c) to[c] = gain > 0 ? low[c] - high[c] : 0;
        });
        ++row;
      });
    }
    std::fill(scratch.of(field::q).values.begin(), scratch.of(field::q).values.end(), 0.);
    scratch.of(field::q).values = change;
    f = seen_.judged(f, numbers(only(scratch, {field::q})), false);
    // Ranges that are chosen for each row explain a part of any residual.
    if (same || f.share > 0.9) push(f);
  }
};

}  // namespace attune::testing::detail
