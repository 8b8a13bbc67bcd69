// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   backward_search<Op> search(gradient_call);   search()
//
// For a verdict on gradients that is already FAIL: which mistake of a backward pass with a saved lse, and in which rows
// of queries?
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/testing/judging/backward/backward_rows.hpp>
#include <attune/testing/judging/backward/gradient_call.hpp>
#include <attune/testing/judging/backward/row_regions.hpp>
#include <attune/testing/judging/backward/skipped_keys.hpp>
#include <attune/testing/judging/defects/altered_row.hpp>
#include <attune/testing/judging/defects/backward_defects.hpp>
#include <attune/testing/judging/defects/known_defects.hpp>
#include <attune/testing/judging/defects/rare_defects.hpp>
#include <attune/testing/judging/key_equations.hpp>
#include <attune/testing/judging/mask_words.hpp>
#include <attune/testing/judging/other_call.hpp>

namespace attune::testing::detail {

template <RecomputesWeights Op>
class backward_search {
  using dense = dense_gradients<double>;

 public:
  explicit backward_search(gradient_call<Op>& call)
      : call_(call), rows_(call.op, call.in, call.p, call.d),
        places_({call.p.batch, call.p.heads, call.p.queries, 1}, "query", "head") {}

  /// Returns false for operators whose backward pass it does not know.
  bool operator()() {
    dense const whole = of_rows(row_effect{row_effect::kind::whole}, {});
    if (!is_exact(whole)) return false;
    call_facts const facts = altered_rows<Op>(call_.op, call_.in, call_.p).facts();
    capped_ = facts.capped;
    std::vector<suspect> all{
        {"factor of the recomputed logits", look::operators, {row_effect::kind::logit_factor}},
        {"factor of dP", "dropout's scale, and what multiplies <dout, v>", {row_effect::kind::product_factor}}};
    auto const add = [&](known_defect const& d, bool alone) {
      if (!d.applies(facts)) return;
      bool const rounding =
          d.change.logits_stored || d.change.weights_stored || d.change.logit_bits > 0 || d.change.weight_bits > 0;
      all.push_back({std::string(d.name) + (alone && !rounding ? " in the backward pass alone" : ""),
                     d.look_at,
                     {row_effect::kind::change, d.change}});
    };
    for (known_defect const& d : backward_defects) add(d, false);
    for (known_defect const& d : known_defects)
      if (in_backward_alone(d)) add(d, true);
    for (known_defect const& d : rare_defects)
      if (in_backward_alone(d)) add(d, true);
    if (Op::uses(field::k) && facts.key_heads > 1)
      for (auto const& [head, name] : {std::pair{heads::next, "next key head"}, {heads::previous, "key head before"}})
        all.push_back({std::string("dS multiplied by k of the ") + name,
                       look::heads,
                       {row_effect::kind::last_product, {.key_head = head}}});
    all.push_back({"dS multiplied by k of the next key",
                   look::layout,
                   {row_effect::kind::last_product, {.key_rows = matrix::one_row_late}}});
    // Many at a time, because a row is read for all of them at once; not so many that they take much memory.
    std::size_t const size = numbers(whole).size(),
                      most = std::clamp<std::size_t>(std::size_t(2e7) / (size + 1), 1, all.size());
    for (std::size_t first = 0; first < all.size(); first += most) {
      std::size_t const last = (std::min)(first + most, all.size());
      std::vector<row_effect> some;
      for (std::size_t n = first; n < last; ++n) some.push_back(all[n].effect);
      std::vector<dense> const changes = of_rows(some, {});
      for (std::size_t n = first; n < last; ++n) by_suspect(all[n], changes[n - first]);
    }
    by_other_calls();
    by_factors(whole);
    by_skipped_keys(call_, rows_);
    return true;
  }

 private:
  struct suspect {
    std::string name;
    std::string_view look_at;
    row_effect effect;
  };
  static constexpr double explained = 0.95;  ///< a share that needs no better region

  /// Whether rows that are made of e^(a - lse) have the exact gradients.
  bool is_exact(dense const& whole) const {
    auto const a = call_.along(whole, [](double x) { return x; }),
               b = call_.along(call_.exact, [](double x) { return x; });
    std::size_t n = 0;
    for (auto const& [name, x] : call_.given.all()) {
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
  /// The effects of some rows; an empty list of rows: of all.
  std::vector<dense> of_rows(std::vector<row_effect> const& effects, std::vector<bool> const& has) {
    std::vector<dense> to(effects.size(), attune::detail::blank_gradients<double>(call_.op, call_.in));
    std::size_t row = 0;
    call_.for_each_row([&](index_t b, index_t h, index_t i) {
      if (!has.empty() && !has[row++]) return;
      rows_.select(b, h, i);
      for (std::size_t n = 0; n < effects.size(); ++n) rows_.add(effects[n], to[n]);
    });
    return to;
  }
  dense of_rows(row_effect const& effect, std::vector<bool> const& has) {
    return std::move(of_rows(std::vector<row_effect>{effect}, has).front());
  }
  /// Only the gradients of these inputs.
  static dense only(dense x, std::vector<field> const& fields) {
    for (std::size_t f = 0; f < x.fields.size(); ++f)
      if (std::find(fields.begin(), fields.end(), field(f)) == fields.end())
        std::fill(x.fields[f].values.begin(), x.fields[f].values.end(), 0.);
    return x;
  }
  std::vector<double> numbers(dense const& x) const {
    return call_.along(x, [](double y) { return y; });
  }
  bool has_given(field f) const { return call_.given.all().count(f) > 0; }

  /// A rounding that the kernel's precision allows.
  bool allows(row_change const& c) const {
    auto const wide = [&](std::optional<storage> const& rounded) {
      return rounded && format_of(call_.formats.weights).unit >= format_of(*rounded).unit;
    };
    return wide(c.weights_stored) || wide(c.slopes_stored);
  }
  void by_suspect(suspect const& s, dense const& all) {
    finding f;
    f.name = s.name;
    f.look_at = s.look_at;
    if (changes_mask(s.effect.change)) f.hint = words_of_mask(call_.op.mask);
    if (s.effect.is == row_effect::kind::logit_factor && capped_) f.hint = " (or the derivative of the cap)";
    f.of_inputs = true;
    f.parameter = f.relative = s.effect.is != row_effect::kind::change;
    bool const of_group = s.effect.change.one_head_of_group;
    std::vector<field> const both{field::k, field::v};
    f = call_.seen.judged(f, numbers(of_group ? only(all, both) : all));
    f.tested = f.tested && !allows(s.effect.change);
    if (f.tested && f.share < explained) {
      std::optional<double> const factor = f.parameter ? std::nullopt : std::optional(1.0);
      std::vector<row_share> shares;
      if (!changes_queries(s.effect))
        shares = by_keys(s.effect, of_group ? both : std::vector<field>{field::v});
      else if (has_given(field::q))
        shares = by_queries(all);
      better(f, s.effect, shares, factor, of_group ? both : std::vector<field>{});
    }
    if (f.tested && f.share < explained) in_some_gradients(f, all);
    push(f);
  }
  /// The same in the gradients that are wrong, if the others are right.
  void in_some_gradients(finding& f, dense const& all) const {
    std::vector<field> wrong;
    std::string names;
    std::size_t inputs_given = 0;
    for (auto const& [name, unused] : call_.given.all()) {
      if (!name.is_input()) continue;
      ++inputs_given;
      if (!call_.seen.must_be_explained(call_.tensors.at(name))) continue;
      wrong.push_back(name.input);
      names += (names.empty() ? "" : " and ") + name.text();
    }
    if (wrong.empty() || wrong.size() == inputs_given) return;
    finding g = f;
    g.name += ", in " + names + " alone";
    g = call_.seen.judged(g, numbers(only(all, wrong)), false);
    if (g.share > f.share + 0.1) f = g;
  }
  /// A finding of the rows that show it, if this explains more.
  void better(finding& f, row_effect const& effect, std::vector<row_share> const& shares, std::optional<double> factor,
              std::vector<field> const& fields) {
    if (shares.empty()) return;
    auto const region = places_.best(shares, factor);
    if (region.where.empty()) return;
    dense const change = of_rows(effect, region.has);
    finding g = f;
    g = call_.seen.judged(g, numbers(fields.empty() ? change : only(change, fields)), false);
    g.where = region.where;
    if (g.share > f.share) f = g;
  }
  void push(finding f) {
    f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
    call_.report.findings.push_back(std::move(f));
  }

  // ---- estimates by row ---------------------------------------------------------------------------------------------
  /// From dq: each row of it belongs to one row of queries.
  std::vector<row_share> by_queries(dense const& change) const {
    auto const& effect = change.of(field::q);
    std::vector<row_share> to(std::size_t(call_.p.batch * call_.p.heads * call_.p.queries));
    std::size_t const width = std::size_t(effect.extents.feature), first = call_.first_of(field::q);
    if (effect.values.size() != to.size() * width) return {};  // heads share queries
    for (std::size_t row = 0; row < to.size(); ++row)
      for (std::size_t n = row * width; n < (row + 1) * width; ++n) {
        double const x = effect.values[n], m = call_.seen.metric(first + n);
        if (!std::isfinite(x)) continue;
        to[row].precision += x * x * m;
        to[row].share += x * m * call_.seen.residual(first + n);
      }
    for (row_share& x : to) x.share = x.precision > 0 ? x.share / x.precision : 0;
    return to;
  }
  /// From dk and dv: the rows of a group of heads are the unknowns of a system of equations. Empty where the system is
  /// too large, or has too few equations.
  std::vector<row_share> by_keys(row_effect const& effect, std::vector<field> const& fields) {
    if constexpr (!Op::uses(field::k)) return {};
    if (call_.p.key_heads != call_.p.value_heads) return {};
    index_t const group = call_.p.heads / call_.p.key_heads, unknowns = group * call_.p.queries;
    index_t numbers = 0;
    for (field f : fields) {
      if (!has_given(f)) return {};
      numbers += call_.p.keys * call_.exact.of(f).extents.feature;
    }
    if (numbers < unknowns || unknowns > 1024 || double(numbers) * double(unknowns) > 8e6) return {};
    dense scratch = attune::detail::blank_gradients<double>(call_.op, call_.in);
    std::vector<row_share> to(std::size_t(call_.p.batch * call_.p.heads * call_.p.queries));
    for (index_t b = 0; b < call_.p.batch; ++b)
      for (index_t kh = 0; kh < call_.p.key_heads; ++kh) {
        key_equations system(numbers, unknowns);
        for (index_t u = 0; u < unknowns; ++u) {
          rows_.select(b, kh * group + u / call_.p.queries, u % call_.p.queries);
          rows_.add(effect, scratch);
          index_t at = 0;
          for (field f : fields) {
            auto& x = scratch.of(f);
            std::size_t const from = std::size_t(x.at(b, kh, 0, 0)),
                              size = std::size_t(call_.p.keys * x.extents.feature), first = call_.first_of(f) + from;
            for (std::size_t n = 0; n < size; ++n, ++at) {
              double const unit = std::sqrt(call_.seen.metric(first + n));
              system.effect(at, u) = std::isfinite(x.values[from + n]) ? unit * x.values[from + n] : 0;
              system.residual(at) = unit * call_.seen.residual(first + n);
              x.values[from + n] = 0;
            }
          }
        }
        key_equations::estimates const found = system.estimated();
        for (index_t u = 0; u < unknowns; ++u) {
          std::size_t const row = std::size_t((b * call_.p.heads + kh * group + u / call_.p.queries) * call_.p.queries +
                                              u % call_.p.queries);
          to[row] = {found.x[std::size_t(u)], found.precision[std::size_t(u)]};
        }
      }
    return to;
  }

  // ---- another call ------------------------------------------------------------------------------------------------
  /// Logits that the backward pass recomputes without a bias, or with another head's parameter.
  void by_other_calls() {
    auto const with = [&](std::string name, auto const& make) {
      other_call<Op> other(call_.op, call_.in, call_.p);
      if (!make(other)) return;
      backward_rows<Op> rows(other.op, other.in, call_.p, call_.d);
      dense to = attune::detail::blank_gradients<double>(call_.op, call_.in);
      call_.for_each_row([&](index_t b, index_t h, index_t i) {
        rows_.select(b, h, i), rows.select(b, h, i);
        rows_.add_other(rows, to);
      });
      finding f;
      f.name = std::move(name);
      f.look_at = "how the backward pass recomputes the logits";
      f.of_inputs = true;
      f = call_.seen.judged(f, numbers(to));
      if (f.tested && f.share < explained) in_some_gradients(f, to);
      push(f);
    };
    for (operator_parameter const& listed : listed_parameters(call_.op)) {
      shape const e = listed.at->extents();
      std::string const path = listed.path();
      if (!listed.at->is_set() || e.batch * e.position != 1 || (e.head != 1 && e.head != call_.p.heads)) continue;
      if (path.ends_with("scale") || path.starts_with("normalizer")) continue;
      auto const values = [&](auto const& value) {
        return [&, value](other_call<Op>& to) {
          std::vector<double>& other = to.numbers.emplace_back();
          bool same = true;
          for (index_t h = 0; h < e.head; ++h) {
            auto const of = [&](index_t n) { return lift<double>{}.value(*listed.at, {0, n, 0, call_.p.queries}); };
            other.push_back(value(of, h));
            same = same && other.back() == of(h);
          }
          set_parameter(to.op, path, other);
          return !same;
        };
      };
      bool const cap = path.ends_with("cap");
      with(path + " ignored in the backward pass alone",
           values([cap](auto const& of, index_t h) { return cap ? 1e8 * of(h) : 0; }));
      with(path + " of the next head in the backward pass alone",
           values([n = e.head](auto const& of, index_t h) { return of((h + 1) % n); }));
    }
    if constexpr (Op::uses(field::bias))
      with("bias ignored in the backward pass alone", [&](other_call<Op>& to) {
        to.numbers.emplace_back(std::size_t(call_.in.bias.extents().size()), 0.);
        to.in.bias = tensor<double const>(to.numbers.back(), call_.in.bias.extents());
        return true;
      });
  }

  // ---- factors of rows ----------------------------------------------------------------------------------------------
  /// A factor of one gradient in some rows of queries; rows that dk and dv lack, or have twice.
  void by_factors(dense const& whole) {
    row_effect const rows{row_effect::kind::whole};
    auto const factor = [&](field of, std::vector<row_share> const& shares) {
      if (shares.empty()) return;
      finding f;
      f.name = gradient_name(of).text();
      f.parameter = f.relative = true;
      better(f, rows, shares, std::nullopt, {of});
      if (f.share > 0) push(f);
    };
    if (has_given(field::q)) factor(field::q, by_queries(whole));
    for (field of : {field::k, field::v})
      if (call_.seen.must_explain_any() && has_given(of)) factor(of, by_keys(rows, {of}));
    if (!has_given(field::k) || !has_given(field::v)) return;
    auto const shares = by_keys(rows, {field::k, field::v});
    for (double by : {-1., 1.}) {
      if (shares.empty()) break;
      auto const region = places_.best(shares, by);
      if (region.gain == 0 || region.last - region.first == call_.p.queries) continue;
      finding f;
      f.name = (by < 0 ? "queries skipped in dk and dv: " : "queries counted twice in dk and dv: ") +
               row_regions::words(region.first, region.last, "", "");
      auto change = numbers(only(of_rows(rows, region.has), {field::k, field::v}));
      for (double& x : change) x *= by;
      f = call_.seen.judged(f, change, false);
      f.where = region.members;
      push(f);
    }
  }

  gradient_call<Op>& call_;
  backward_rows<Op> rows_;
  row_regions places_;
  bool capped_ = false;
};

}  // namespace attune::testing::detail
