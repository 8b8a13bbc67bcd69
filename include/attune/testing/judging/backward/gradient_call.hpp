// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   gradient_call<Op> call(op, inputs, cotangents, candidate, options);   call.judge(name, call.change_to(gradients))
//
// The call behind a verdict on gradients: the exact gradients, those with other cotangents, and the residuals. The
// effects of defects are projected on the residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/reference/directional.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/judging/backward/gradient_candidate.hpp>
#include <attune/testing/judging/backward/moved_call.hpp>
#include <attune/testing/projection.hpp>
#include <attune/testing/verdict_report.hpp>

namespace attune::testing::detail {

template <class Op>
struct gradient_call {
  using view = any_tensor;
  using dense = dense_gradients<double>;
  static constexpr int noise_samples = 24;

  Op const& op;
  inputs<Op, view> const& in;
  cotangents<Op, view> const& d;
  gradient_candidate const& given;
  verdict_options const& how;
  storage stored = storage::fp32;
  precision formats;
  regions parts;
  projections seen;
  std::map<gradient_name, int> tensors;                ///< in parts
  std::map<gradient_name, bounds_of_gradient> bounds;  ///< of the given gradients
  problem_shape p;
  dense exact;
  verdict_report report;

  gradient_call(Op const& of, inputs<Op, view> const& from, cotangents<Op, view> const& by,
                gradient_candidate const& result, verdict_options const& options)
      : op(of), in(from), d(by), given(result), how(options), seen(options.gate, parts),
        p(attune::detail::checked_inputs("gradient_verdict", of, from)) {
    if (given.all().empty()) throw error("testing::gradient_verdict", "the candidate", "no gradient", "at least one");
    storage narrowest = given.all().begin()->second.stored;
    for (auto const& [name, x] : given.all()) {
      if (!name.is_input()) continue;
      if (!Op::uses(name.input))
        throw error("testing::gradient_verdict", name.text(), "values", "none: the operator has no such input");
      if (format_of(x.stored).unit > format_of(narrowest).unit) narrowest = x.stored;
    }
    stored = narrowest;
    formats = how.how.value_or(precision(stored));
    formats.out = stored;
  }
  gradient_call(gradient_call const&) = delete;  // its members refer to each other

  dense gradients(cotangents<Op, view> const& by, problem_shape const& extents) const {
    return attune::detail::dense_vjp<double>(op, in, extents, by);
  }
  /// The numbers of all given fields, in the order of the residual.
  template <class T, class Get>
  std::vector<double> along(dense_gradients<T> const& g, Get const& get) const {
    std::vector<double> to;
    for (auto const& [name, x] : given.all())
      for (T const& y : array_of(g, name).values) to.push_back(get(y));
    return to;
  }
  /// Where the numbers of a field begin in the residual.
  std::size_t first_of(field f) const {
    std::size_t at = 0;
    for (auto const& [name, x] : given.all()) {
      if (name.is(f)) break;
      at += x.values.size();
    }
    return at;
  }
  void judge(finding const& f, std::vector<double> const& direction) {
    report.findings.push_back(seen.judged(f, direction));
  }
  void judge(std::string name, std::vector<double> const& direction) {
    finding f;
    f.name = std::move(name);
    judge(f, direction);
  }
  /// The change of the gradients if they were `other`.
  std::vector<double> change_to(dense const& other) const {
    auto to = along(other, [](double x) { return x; });
    auto const from = along(exact, [](double x) { return x; });
    for (std::size_t n = 0; n < to.size(); ++n) to[n] = to[n] == from[n] ? 0 : to[n] - from[n];
    return to;
  }

  // ---- cotangents ---------------------------------------------------------------------------------------------------
  shape rows() const { return {p.batch, p.heads, p.queries, 1}; }
  double by_row(any_tensor const& x, index_t b, index_t h, index_t i) const { return x.absent() ? 0 : x(b, h, i, 0); }
  template <class Visit>
  void for_each_row(Visit const& visit) const {
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) visit(b, h, i);
  }
  /// The gradients with another cotangent of the lse, given per row.
  template <class Number>
  dense with_lse(cotangents<Op, view> others, Number const& number) const {
    std::vector<double> by;
    for_each_row([&](index_t b, index_t h, index_t i) { by.push_back(number(b, h, i)); });
    if constexpr (Op::has_lse) others.lse = tensor<double const>(by, rows());
    return gradients(others, p);
  }

  /// In 16 bits the row term <do, out> uses a rounded `out`. This error is common to a whole row of dS, and differs
  /// between correct kernels. It enters the gradients like a cotangent of the lse.
  void common_noise() {
    double const unit = format_of(formats.arithmetic).unit;
    if (!(format_of(formats.weights).unit > unit || format_of(formats.out).unit > unit)) return;
    if (!Op::has_lse || d.out.absent()) return;
    auto const forward = error_bound(op, in, formats);
    normal_numbers random(1);
    for (int n = 0; n < noise_samples; ++n) {
      cotangents<Op, view> none;
      auto const noise = with_lse(none, [&](index_t b, index_t h, index_t i) {
        double square = 0;
        for (index_t c = 0; c < p.value_width; ++c) {
          double const x = d.out(b, h, i, c) * forward.at_out(b, h, i, c).scatter;
          square += std::isfinite(x) ? x * x : 0;
        }
        return random() * std::sqrt(square);
      });
      auto response = along(noise, [](double x) { return x; });
      bool const finite = std::all_of(response.begin(), response.end(), [](double x) { return std::isfinite(x); });
      if (finite) seen.add_common(std::move(response));
    }
  }
  /// A rounded weight, or dS, enters all features of a row: of a number with few terms they have its error in common.
  double together(gradient_name const& name, std::size_t n) const {
    bounds_of_gradient const& b = bounds.at(name);
    bool const coarse = format_of(formats.weights).unit > format_of(formats.arithmetic).unit;
    if (!coarse || b.counts.empty()) return 1;
    return detail::together(b.numbers[n], double(b.extents.feature) / b.counts[n], stored);
  }
  /// In fp32 the worst case may have few steps, and its usual share (accumulation_of) is too small then. Samples: the
  /// errors of the dense backward pass in float, of calls near this one. A kernel may have larger ones, because it
  /// recomputes weights from a saved lse. Returns whether there are samples.
  bool fp32_noise() {
    if (formats.arithmetic != storage::fp32 || !seen.common().empty()) return false;
    constexpr int samples = 8;
    constexpr double larger = 2;
    auto const as_double = [](auto x) { return double(x); };
    normal_numbers random(1);
    for (int n = 0; n < samples; ++n) {
      moved_call<Op> const moved(in, d, random);
      auto noise = along(attune::detail::dense_vjp<float>(op, moved.in, p, moved.d), as_double);
      auto const right = along(attune::detail::dense_vjp<double>(op, moved.in, p, moved.d), as_double);
      for (std::size_t k = 0; k < noise.size(); ++k) noise[k] = larger * (noise[k] - right[k]);
      bool const finite = std::all_of(noise.begin(), noise.end(), [](double x) { return std::isfinite(x); });
      if (finite) seen.add_common(std::move(noise));
    }
    return !seen.common().empty();
  }
  /// The gradients with each row's cotangents multiplied.
  dense scaled(std::vector<double> const& by) const {
    std::vector<double> out, lse, ground;
    std::size_t n = 0;
    for_each_row([&](index_t b, index_t h, index_t i) {
      double const x = by[n++];
      for (index_t c = 0; c < p.value_width; ++c) out.push_back(d.out.absent() ? 0 : x * d.out(b, h, i, c));
      if constexpr (Op::has_lse) lse.push_back(x * by_row(d.lse, b, h, i));
      if constexpr (Op::has_ground_weight) ground.push_back(x * by_row(d.ground_weight, b, h, i));
    });
    cotangents<Op, view> to;
    to.out = tensor<double const>(out, {p.batch, p.heads, p.queries, p.value_width});
    if constexpr (Op::has_lse) to.lse = tensor<double const>(lse, rows());
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<double const>(ground, rows());
    return gradients(to, p);
  }
};

}  // namespace attune::testing::detail
