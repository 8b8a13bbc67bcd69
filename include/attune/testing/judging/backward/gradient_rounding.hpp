// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_numbers_of_rows(call)      by_rounded_sums(call)      by_rounded_pairs(call)
//
// For a verdict on gradients that is already FAIL: is a number of each row off, or was something rounded?
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/backward/gradient_call.hpp>

namespace attune::testing::detail {

/// For each query, the multiple of `effect` that fits the residual of dq.
template <class Op>
std::vector<double> fitted(gradient_call<Op> const& call, gradient_array<double> const& effect) {
  std::size_t const at = call.first_of(field::q);
  std::size_t const width = std::size_t(effect.extents.feature);
  std::vector<double> to;
  for (std::size_t n = 0; n < effect.values.size(); n += width) {
    double square = 0, product = 0;
    for (std::size_t c = n; c < n + width; ++c) {
      double const y = effect.values[c], m = call.seen.metric(at + c);
      square += y * y * m;
      product += y * m * call.seen.residual(at + c);
    }
    to.push_back(square > 0 ? product / square : 0);
  }
  return to;
}
/// The row term, or the saved lse, has another error in each row.
template <class Op>
void by_numbers_of_rows(gradient_call<Op>& call) {
  if constexpr (Op::has_lse && Op::uses(field::q)) {
    if (call.given.all().count(field::q) == 0) return;
    auto const add = [&](char const* name, dense_gradients<double> const& effect) {
      finding f;
      f.name = name;
      f.last_resort = true;
      f = call.seen.judged(f, call.along(effect, [](double x) { return x; }), false);
      f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
      call.report.findings.push_back(f);
    };
    cotangents<Op, any_tensor> const none;
    auto const by = fitted(call, call.with_lse(none, [](index_t, index_t, index_t) { return 1.; }).of(field::q));
    std::size_t n = 0;
    add("row term <dout, out> off, by another number in each row",
        call.with_lse(none, [&](index_t, index_t, index_t) { return by[n++]; }));
    add("saved lse off, by another number in each row", call.scaled(fitted(call, call.exact.of(field::q))));
  }
}
/// A rounding that looks like noise: in number n of the gradient `x` an error of deviation c size(x, n), with `least`
/// <= c <= `most`.
template <class Op, class Size>
void by_rounding(gradient_call<Op>& call, std::string name, double least, double most, Size const& size) {
  finding f;
  f.name = std::move(name);
  std::vector<int> in;
  std::vector<double> sizes;
  std::size_t number = 0;
  for (auto const& [by, x] : call.given.all()) {
    energy_excess const& e = call.report.energies[number++];
    bool any = false;
    for (std::size_t n = 0; n < x.values.size(); ++n) {
      sizes.push_back(size(by, n));
      any = any || sizes.back() > 0;
    }
    if (!any || !e.found) continue;
    if (f.where.empty()) f.where = call.parts.words(e.parts);
    if (e.parts.empty())
      in.push_back(0);
    else
      in.insert(in.end(), e.parts.begin(), e.parts.end());
  }
  call.report.findings.push_back(call.seen.judged_as_noise(f, sizes, least, most, in));
}
/// The root of the sum of the squares of a number's terms.
template <class Op>
double spread(gradient_call<Op> const& call, gradient_name const& x, std::size_t n) {
  return call.bounds.at(x).spreads[n];
}
inline double unit_of(storage s) { return format_of(s).unit; }

/// Sums of tiles, or of the heads of a group, that were rounded: they are as large as the spread.
template <class Op>
void by_rounded_sums(gradient_call<Op>& call) {
  auto const partial = [&](gradient_name const& x, std::size_t n) {
    return std::hypot(call.bounds.at(x).numbers[n].value, spread(call, x, n));
  };
  double const least = unit_of(storage::fp16) / 8,
               most = most_roundings(double((std::max)(call.p.keys, call.p.heads * call.p.queries))) *
                      unit_of(storage::bf16);
  for (auto const& [by, unused] : call.given.all())
    by_rounding(call, "sums of " + by.text() + " rounded to 16 bits", least, most,
                [&, by = by](gradient_name const& x, std::size_t n) { return x == by ? partial(x, n) : 0; });
  if (call.given.all().count(field::k) > 0 && call.given.all().count(field::v) > 0)
    by_rounding(call, "sums of dk and dv rounded to 16 bits", least, most, [&](gradient_name const& x, std::size_t n) {
      return x.is(field::k) || x.is(field::v) ? partial(x, n) : 0;
    });
}
/// Probabilities, dS, dP or logits that were rounded, of operators for which the exact effect is not known.
template <class Op>
void by_rounded_pairs(gradient_call<Op>& call) {
  double const usual = 0.42;  // the deviation, of numbers spread evenly on a logarithmic scale
  for (storage s : {storage::bf16, storage::fp16}) {
    double const unit = unit_of(s) * usual;
    if (!(unit_of(call.formats.weights) < unit_of(s))) continue;
    by_rounding(call, std::string("dS or dP rounded to ") + name_of(s), 0.3 * unit, 3 * unit,
                [&](gradient_name const& x, std::size_t n) { return x.is(field::v) ? 0 : spread(call, x, n); });
    by_rounding(call, std::string("probabilities rounded to ") + name_of(s), 0.3 * unit, 1.6 * unit,
                [&](gradient_name const& x, std::size_t n) { return x.is(field::v) ? spread(call, x, n) : 0; });
  }
  by_rounding(call, "logits rounded to 16 bits", unit_of(storage::fp16) / 32, 4 * unit_of(storage::bf16),
              [&](gradient_name const& x, std::size_t n) { return spread(call, x, n); });
}

}  // namespace attune::testing::detail
