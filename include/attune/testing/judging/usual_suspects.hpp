// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_slopes()    "ALiBi slopes of 16 heads"      by_pages()    "page 3 of batch element 1 read as ..."
//
// Defects that need more than a change of one step: slopes of another formula, stale pages, rows without keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/stable_sort.hpp>
#include <attune/testing/judging/exponential_range.hpp>
#include <attune/testing/judging/key_suspects.hpp>

namespace attune::testing::detail {

template <class Op>
class usual_suspects : protected key_suspects<Op> {
 protected:
  using base = key_suspects<Op>;
  using base::base;
  using base::bounds_, base::by_defect, base::direction, base::given_, base::how_, base::in_, base::judge_direction;
  using base::op_, base::p_, base::precision_, base::report_, base::rows_, base::sampled_, base::seen_;
  using typename base::sampled_row;

  /// The changes in the sampled rows where `in` holds.
  template <class In>
  std::vector<double> change_to(altered_rows<Op> const& rows, In const& in, defect d = defect::none) const {
    return direction([&](sampled_row const& r, std::vector<double>& x) {
      if (!in(r)) return x.resize(x.size() + base::step(), 0);
      auto const row = rows.template evaluate<double>(d, r.batch, r.head, r.query);
      base::append_change(row, r, x);
    });
  }
  std::vector<double> change_to(altered_rows<Op> const& rows) const {
    return change_to(rows, [](sampled_row const&) { return true; });
  }

  /// A slope for each head, as ALiBi has them: the slopes of another number of heads, and slopes rounded to bf16.
  void by_slopes() {
    for (operator_parameter const& listed : listed_parameters(op_)) {
      shape const e = listed.at->extents();
      std::string const path = listed.path();
      if (!listed.at->is_set() || !path.ends_with("slope") || e.head != p_.heads || e.batch * e.position != 1) continue;
      std::vector<double> right;
      for (index_t h = 0; h < e.head; ++h) right.push_back(lift<double>{}.value(*listed.at, {0, h, 0, p_.queries}));
      auto const with = [&](std::string const& name, std::vector<double> const& slopes) {
        if (slopes == right) return;
        Op other = op_;
        for (operator_parameter const& x : listed_parameters(other))
          if (x.path() == path) const_cast<parameter&>(*x.at) = parameter(tensor<double const>(slopes.data(), e));
        altered_rows<Op> const rows(other, in_, p_);
        finding f;
        f.name = name;
        judge_direction(f, change_to(rows));
      };
      index_t power = 1;
      while (power < p_.heads) power *= 2;
      std::vector<index_t> counts{p_.heads, 2 * p_.heads, (std::max<index_t>)(1, p_.heads / 2), power, power / 2};
      std::sort(counts.begin(), counts.end());
      counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
      for (index_t n : counts) {
        if (n == 0) continue;
        std::vector<double> slopes;
        for (index_t h = 0; h < p_.heads; ++h) slopes.push_back(std::exp2(-8. * double(h + 1) / double(n)));
        bool same = true;
        for (std::size_t h = 0; h < slopes.size(); ++h)
          same = same && std::fabs(slopes[h] - right[h]) < 1e-6 * slopes[h];
        if (!same) with("ALiBi slopes of " + std::to_string(n) + " heads", slopes);
      }
      std::vector<double> narrow;
      for (double x : right) narrow.push_back(rounded_to(storage::bf16, x));
      with(path + " rounded to bf16", narrow);
    }
  }

  /// Pages that are read as their neighbors, or as pages of another sequence. For a FAIL, where the caller says how
  /// many keys a page has. The pages whose own keys seem to be missing come first; where there are very many readings,
  /// the others are not tried.
  void by_pages() {
    if constexpr (Op::uses(field::k)) {
      if (how_.page <= 0 || how_.page >= p_.keys) return;
      constexpr index_t most = 256;  // readings that are tried
      index_t tried = 0;
      for (auto const& [b, n] : pages_by_suspicion())
        for (index_t from = 0; from < p_.batch; ++from)
          for (index_t m : {n, n - 1, n + 1}) {
            index_t const first = n * how_.page, last = (std::min)(p_.keys, first + how_.page),
                          by = (m - n) * how_.page;
            if ((m == n && from == b) || (from != b && m != n)) continue;
            if (first + by < 0 || last + by > p_.keys || ++tried > most) continue;  // no such keys
            std::vector<bool> marked(std::size_t(p_.keys), false);
            std::fill(marked.begin() + first, marked.begin() + last, true);
            rows_.mark(std::move(marked));
            rows_.read_from(from, by);
            finding f;
            f.name = attune::detail::text("page ", n, " of batch element ", b, " read as page ", m,
                                          " of batch element ", from, ": a stale page");
            judge_direction(
                f, change_to(
                       rows_, [b = b](sampled_row const& r) { return r.batch == b; }, defect::marked_keys_elsewhere));
          }
    }
  }

  /// Exponentials that are not relative to the largest logit of their row.
  void by_exponentials() {
    if constexpr (Op::has_lse) {
      std::vector<double> lse;
      for (bounded_number const& x : bounds_.lse) lse.push_back(x.value);
      exponential_range range(std::move(lse), precision_.arithmetic);
      std::vector<double> const* const numbers[] = {&given_.out(), &given_.lse(), &given_.ground_weight()};
      std::size_t n = 0;
      for (auto const* x : numbers)
        if (!x->empty()) range.see_rows(report_.elements[n++], *x);
      if (auto const f = range.found(how_.gate)) report_.findings.push_back(*f);
    }
  }

  /// Rows without keys have their own contract (docs/reference/contracts.md). Kernels divide 0 by 0, or give every key
  /// the same weight.
  void by_empty_rows() {
    index_t wrong = 0, nan = 0, mean = 0;
    std::size_t n = 0;
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t h = 0; h < p_.heads; ++h)
        for (index_t i = 0; i < p_.queries; ++i, n += std::size_t(p_.value_width)) {
          if (mask::count(op_.mask, p_.row(b, h, i)) != 0 || p_.keys == 0) continue;
          for (index_t c = 0; c < p_.value_width; ++c) {
            std::size_t const at = n + std::size_t(c);
            double const got = given_.out()[at];
            if (share_of_bound(got, bounds_.out[at]) <= 1) continue;
            ++wrong;
            nan += std::isnan(got);
            double sum = 0, size = 0;
            for (index_t j = 0; j < p_.keys; ++j) {
              double const v = in_.v(b, p_.group(h, p_.value_heads), j, c);
              sum += v, size += std::fabs(v);
            }
            mean += std::fabs(got - sum / double(p_.keys)) <= 0.01 * size / double(p_.keys);
          }
        }
    // All that is outside its bound is in these rows.
    if (wrong == 0 || report_.elements[0].outside != wrong) return;
    finding f;
    f.name = nan == wrong    ? "rows without keys are NaN"
             : mean == wrong ? "rows without keys are the mean of all values"
                             : "rows without keys have other numbers";
    f.share = 1;
    f.gain = seen_.total();
    f.z = 2 * how_.gate;
    f.estimate = 1;
    report_.findings.push_back(f);
  }

 private:
  struct page_place {
    index_t batch, number;
  };
  /// All pages. First those whose keys explain most of the residual if the rows lack them: a kernel that reads other
  /// keys in their place lacks them too.
  std::vector<page_place> pages_by_suspicion() const {
    index_t const pages = (p_.keys + how_.page - 1) / how_.page;
    struct sums {
      double square = 0, product = 0;
      double gain() const { return square > 0 && product > 0 ? product * product / square : 0; }
    };
    std::vector<sums> of(std::size_t(p_.batch * pages));
    std::vector<double> effect(static_cast<std::size_t>(pages));
    for (std::size_t n = 0; n < sampled_.size(); ++n) {
      sampled_row const& r = sampled_[n];
      auto const row = rows_.template evaluate<double>(defect::none, r.batch, r.head, r.query);
      index_t const head = p_.group(r.head, p_.value_heads);
      for (index_t c = 0; c < p_.value_width; ++c) {
        std::size_t const at = n * base::step() + std::size_t(c);
        double const m = seen_.metric(at);
        if (m == 0) continue;
        std::fill(effect.begin(), effect.end(), 0.);
        for (std::size_t k = 0; k < row.keys.size(); ++k)
          if (row.weights[k] != 0)
            effect[std::size_t(row.keys[k] / how_.page)] -=
                row.weights[k] * (in_.v(r.batch, head, row.keys[k], c) - row.out[std::size_t(c)]);
        for (std::size_t k = 0; k < effect.size(); ++k) {
          if (!std::isfinite(effect[k])) continue;
          sums& to = of[std::size_t(r.batch * pages) + k];
          to.square += effect[k] * effect[k] * m;
          to.product += effect[k] * seen_.residual(at) * m;
        }
      }
    }
    std::vector<page_place> to;
    for (index_t b = 0; b < p_.batch; ++b)
      for (index_t n = 0; n < pages; ++n) to.push_back({b, n});
    attune::detail::sort_stably(to, [&](page_place const& x, page_place const& y) {
      return of[std::size_t(x.batch * pages + x.number)].gain() > of[std::size_t(y.batch * pages + y.number)].gain();
    });
    return to;
  }
};

}  // namespace attune::testing::detail
