// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How an experiment is run on the CPU executor and compared with the reference: a template on the system and the mask.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "experiment.hpp"
#include "shared/systems.hpp"

namespace demo {

/// The first heads of a layer, on the CPU executor.
template <class System, class Mask>
void run_cpu(System const& system, Mask mask, layer const& l, index_t heads, int threads, computed& to) {
  using namespace attune;
  auto const op = system.op(l, [&](setting const& s) { return s.first(heads); }, mask);
  using op_type = std::remove_const_t<decltype(op)>;
  auto const view = [&](std::vector<float> const& x) { return l.first(x, heads); };
  auto const in = inputs_of<tensor<float const>>(op, l, view, view, ground_values<op_type>(system, l, 0, heads));
  to.out.resize(std::size_t(heads * l.length * l.width));
  outputs<op_type, float> out{.out = tensor<float>(to.out.data(), {1, heads, l.length, l.width})};
  if constexpr (op_type::has_ground_weight) {
    to.ground_weight.resize(std::size_t(heads * l.length));
    out.ground_weight = tensor<float>(to.ground_weight.data(), {1, heads, l.length, 1});
  }
  forward(cpu<float>{threads}, op, in, out);
}

/// Rows of one head against the reference.
template <class System, class Mask>
head_report check_head(System const& system, Mask mask, layer const& l, magnitudes const& m, computed const& result,
                       check_plan const& plan) {
  using namespace attune;
  constexpr double eps32 = 0x1p-23, eps64 = 0x1p-52;
  constexpr bool causal = std::is_same_v<Mask, mask::causal>;
  row_range const rows = plan.rows;
  if (causal && rows.step != 1) throw std::invalid_argument("check_head: under a causal mask rows cannot be left out");
  index_t const h = rows.head;
  auto const op = system.op(l, [&](setting const& s) { return s.of(rows); }, mask);
  using op_type = std::remove_const_t<decltype(op)>;
  auto const v0 = ground_values<op_type>(system, l, h, 1);
  auto const in = inputs_of<any_tensor>(
      op, l, [&](std::vector<float> const& x) { return l.of(x, rows); },
      [&](std::vector<float> const& x) { return l.head(x, h); }, v0);

  auto const exact = forward(reference<double>{}, op, in);
  dense_head<double> const& head = exact.at(0, 0);

  double largest_v0 = 0;
  if constexpr (op_type::uses(field::v0))
    for (index_t d = 0; d < l.width; ++d) largest_v0 = std::max(largest_v0, std::fabs(double(v0(0, 0, 0, d))));
  auto const condition = [&](index_t n) {  // 1 + A_i and V_i
    row_magnitudes const& r = m.at(causal, h, rows.row(n));
    magnification const x = system.magnify(l, h, rows.row(n), std::log(double(causal ? rows.row(n) + 1 : l.length)));
    double logit = 0;
    for (index_t j = 0; j < l.length; ++j)
      if (head.visible(n, j)) logit = std::max(logit, std::fabs(head.logits(n, j)));
    return std::pair(1 + logit + x.factor * r.product + x.level + x.gate * (r.gate_penalty + r.gate_product),
                     std::max(r.value, largest_v0));
  };
  auto const keep_worst = [](double& worst, double x) {  // a NaN is the worst and stays
    if (worst == worst && !(x <= worst)) worst = x;
  };

  head_report report;
  for (index_t n = 0; n < rows.count; ++n) {
    auto const [a, v] = condition(n);
    index_t const at = h * l.length + rows.row(n);
    for (index_t d = 0; d < l.width; ++d) {
      keep_worst(report.error, std::fabs(result.out[std::size_t(at * l.width + d)] - head.out(n, d)) / (eps32 * a * v));
      keep_worst(report.stored_error, std::fabs(l.stored[std::size_t(at * l.width + d)] - head.out(n, d)));
    }
    auto const add_entropy = [&](double w) {
      if (w > 0) report.entropy -= w * std::log(w) / double(rows.count);
    };
    for (index_t j = 0; j < l.length; ++j) add_entropy(head.weights(n, j));
    if constexpr (op_type::has_ground_weight) {
      double const w0 = head.ground_weight(n);
      keep_worst(report.error, std::fabs(result.ground_weight[std::size_t(at)] - w0) / (eps32 * a));
      add_entropy(w0);
      report.ground += w0 / double(rows.count);
    }
  }

  for (index_t const n : plan.sample) {
    auto const row = forward_row(reference<digits50>{}, op, in, 0, 0, n);
    auto const [a, v] = condition(n);
    auto const compare = [&](double computed_by_cpu, double computed_by_reference, digits50 const& truth,
                             double scale) {
      keep_worst(report.digits_error, std::fabs(double(computed_by_cpu - truth)) / (eps32 * scale));
      keep_worst(report.reference_error, std::fabs(double(computed_by_reference - truth)) / (eps64 * scale));
    };
    index_t const at = h * l.length + rows.row(n);
    for (index_t d = 0; d < l.width; ++d)
      compare(result.out[std::size_t(at * l.width + d)], head.out(n, d), row.out(0, d), a * v);
    if constexpr (op_type::has_ground_weight)
      compare(result.ground_weight[std::size_t(at)], head.ground_weight(n), row.ground_weight(0), a);
  }

  index_t const corner = std::min(plan.corner, rows.count);
  for (index_t n = 0; n < corner; ++n) {
    if constexpr (op_type::has_ground_weight)
      report.corner.push_back(float(head.ground_weight(n)));
    else
      report.corner.push_back(0);
    for (index_t j = 0; j < corner; ++j) report.corner.push_back(float(head.weights(n, j)));
  }
  return report;
}

template <class System, class Mask>
experiment make_experiment(std::string name, std::string mask_name, System system, Mask mask) {
  return {std::move(name), std::move(mask_name),
          [=](layer const& l, int threads) {
            computed to;
            run_cpu(system, mask, l, l.heads, threads, to);
            return to;
          },
          [=](layer const& l, index_t heads, computed& to) { run_cpu(system, mask, l, heads, 1, to); },
          [=](layer const& l, magnitudes const& m, computed const& result, check_plan const& plan) {
            return check_head(system, mask, l, m, result, plan);
          }};
}

}  // namespace demo
