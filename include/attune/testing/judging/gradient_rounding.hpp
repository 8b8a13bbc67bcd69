// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   class gradient_judge : gradient_rounding<Op>     by_numbers_of_rows(), by_rounded_sums(), by_rounded_pairs()
//
// For a verdict on gradients that is already FAIL: is a number of each row off, or was something rounded?
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/gradient_call.hpp>

namespace attune::testing::detail {

template <class Op>
class gradient_rounding : protected gradient_call<Op> {
 protected:
  using base = gradient_call<Op>;
  using base::along, base::bounds_, base::exact_, base::given_;
  using base::base;
  using base::precision_, base::regions_;
  using base::report_, base::scaled, base::seen_, base::with_lse;
  using typename base::dense, typename base::view;

  /// For each query, the multiple of `effect` that fits the residual of dq.
  std::vector<double> fitted(gradient_array<double> const& effect) const {
    std::size_t const at = base::first_of(field::q);
    std::size_t const width = std::size_t(effect.extents.feature);
    std::vector<double> to;
    for (std::size_t n = 0; n < effect.values.size(); n += width) {
      double square = 0, product = 0;
      for (std::size_t c = n; c < n + width; ++c) {
        double const y = effect.values[c], m = seen_.metric(at + c);
        square += y * y * m;
        product += y * m * seen_.residual(at + c);
      }
      to.push_back(square > 0 ? product / square : 0);
    }
    return to;
  }
  /// The row term, or the saved lse, has another error in each row.
  void by_numbers_of_rows() {
    if constexpr (Op::has_lse && Op::uses(field::q)) {
      if (given_.all().count(field::q) == 0) return;
      auto const add = [&](char const* name, dense const& effect) {
        finding f;
        f.name = name;
        f.last_resort = true;
        f = seen_.judged(f, along(effect, [](double x) { return x; }), false);
        f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
        report_.findings.push_back(f);
      };
      cotangents<Op, view> const none;
      auto const by = fitted(with_lse(none, [](index_t, index_t, index_t) { return 1.; }).of(field::q));
      std::size_t n = 0;
      add("row term <dout, out> off, by another number in each row",
          with_lse(none, [&](index_t, index_t, index_t) { return by[n++]; }));
      add("saved lse off, by another number in each row", scaled(fitted(exact_.of(field::q))));
    }
  }
  /// A rounding that looks like noise: in number n of the gradient `x` an error of deviation c size(x, n), with `least`
  /// <= c <= `most`.
  template <class Size>
  void by_rounding(std::string name, double least, double most, Size const& size) {
    finding f;
    f.name = std::move(name);
    std::vector<int> in;
    std::vector<double> sizes;
    std::size_t number = 0;
    for (auto const& [by, x] : given_.all()) {
      energy_excess const& e = report_.energies[number++];
      bool any = false;
      for (std::size_t n = 0; n < x.values.size(); ++n) {
        sizes.push_back(size(by, n));
        any = any || sizes.back() > 0;
      }
      if (!any || !e.found) continue;
      if (f.where.empty()) f.where = regions_.words(e.parts);
      if (e.parts.empty())
        in.push_back(0);
      else
        in.insert(in.end(), e.parts.begin(), e.parts.end());
    }
    report_.findings.push_back(seen_.judged_as_noise(f, sizes, least, most, in));
  }
  /// The root of the sum of the squares of a number's terms.
  double spread(gradient_name const& x, std::size_t n) const { return bounds_.at(x).spreads[n]; }
  static double unit_of(storage s) { return format_of(s).unit; }

  /// Sums of tiles, or of the heads of a group, that were rounded: they are as large as the spread.
  void by_rounded_sums() {
    auto const partial = [&](gradient_name const& x, std::size_t n) {
      return std::hypot(bounds_.at(x).numbers[n].value, spread(x, n));
    };
    double const least = unit_of(storage::fp16) / 8,
                 most = most_roundings(double((std::max)(base::p_.keys, base::p_.heads * base::p_.queries))) *
                        unit_of(storage::bf16);
    for (auto const& [by, unused] : given_.all())
      by_rounding("sums of " + by.text() + " rounded to 16 bits", least, most,
                  [&, by = by](gradient_name const& x, std::size_t n) { return x == by ? partial(x, n) : 0; });
    if (given_.all().count(field::k) > 0 && given_.all().count(field::v) > 0)
      by_rounding("sums of dk and dv rounded to 16 bits", least, most, [&](gradient_name const& x, std::size_t n) {
        return x.is(field::k) || x.is(field::v) ? partial(x, n) : 0;
      });
  }
  /// Probabilities, dS, dP or logits that were rounded, of operators for which the exact effect is not known.
  void by_rounded_pairs() {
    double const usual = 0.42;  // the deviation, of numbers spread evenly on a logarithmic scale
    for (storage s : {storage::bf16, storage::fp16}) {
      double const unit = unit_of(s) * usual;
      if (!(unit_of(precision_.weights) < unit_of(s))) continue;
      by_rounding(std::string("dS or dP rounded to ") + name_of(s), 0.3 * unit, 3 * unit,
                  [&](gradient_name const& x, std::size_t n) { return x.is(field::v) ? 0 : spread(x, n); });
      by_rounding(std::string("probabilities rounded to ") + name_of(s), 0.3 * unit, 1.6 * unit,
                  [&](gradient_name const& x, std::size_t n) { return x.is(field::v) ? spread(x, n) : 0; });
    }
    by_rounding("logits rounded to 16 bits", unit_of(storage::fp16) / 32, 4 * unit_of(storage::bf16),
                [&](gradient_name const& x, std::size_t n) { return spread(x, n); });
  }
};

}  // namespace attune::testing::detail
