// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   int main() { return variants::run(op, loop, options); }
//
// What the programs of this folder share. A program is one published variant: an operator, and an independent loop that
// computes one row as the paper writes it. The loop writes the weights of the keys, or the output itself. The program
// compares the operator with the loop and runs attune's checks of the forward pass and of the gradients. Two macros
// compile less of it:
//   ATTUNE_VARIANT_LOOP   the comparison alone
//   ATTUNE_VARIANT_TIMES  no checks: the program prints its times relative to softmax
// ATTUNE_VARIANT_THRUST adds Thrust's host executor to the checks.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/drawn_problem.hpp>
#if !defined(ATTUNE_VARIANT_LOOP) && !defined(ATTUNE_VARIANT_TIMES)
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>
#endif
#ifdef ATTUNE_VARIANT_THRUST
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>
#endif

namespace variants {

using namespace attune;

/// The numbers of one problem, for a loop in double.
struct loop_inputs {
  index_t heads, queries, keys, width, value_width;
  index_t offset;                                                   ///< position of query 0 among the keys
  std::array<testing::detail::drawn_tensor*, field_count> tensors;  ///< by field

  /// Feature d of query or key `at` for query head h. Heads of keys and values serve groups of query heads.
  double& of(field f, index_t b, index_t h, index_t at, index_t d = 0) const {
    return in_head(f, b, h * tensors[std::size_t(f)]->extents.head / heads, at, d);
  }
  /// The same for a head of the input itself. The inputs of a fold have several heads for each head of its output.
  double& in_head(field f, index_t b, index_t head, index_t at, index_t d = 0) const {
    auto& x = *tensors[std::size_t(f)];
    shape const& e = x.extents;
    index_t const batch = e.batch == 1 ? 0 : b, position = e.position == 1 ? 0 : at;
    return x.doubles[std::size_t(((batch * e.head + head) * e.position + position) * e.feature + d)];
  }
  double q(index_t b, index_t h, index_t i, index_t d) const { return of(field::q, b, h, i, d); }
  double k(index_t b, index_t h, index_t j, index_t d) const { return of(field::k, b, h, j, d); }
  double v(index_t b, index_t h, index_t j, index_t d) const { return of(field::v, b, h, j, d); }
  /// <q_i, k_j>
  double dot(index_t b, index_t h, index_t i, index_t j) const {
    double sum = 0;
    for (index_t d = 0; d < width; ++d) sum += q(b, h, i, d) * k(b, h, j, d);
    return sum;
  }
  /// 1 / sqrt(D)
  double scale() const { return 1 / std::sqrt(double(width)); }
};

/// A row of the loop: query i of head h in batch element b, at position i + offset.
struct loop_row {
  index_t b, h, i, position;
};

/// A number per key, 0 where nothing was written.
using weights = std::vector<double>;

/// A number per feature of the output, 0 where nothing was written: for a loop that is no sum of weights times values.
struct output_row {
  std::vector<double> values;
};

/// Turns logits into weights that sum to 1. Keys without a logit hold -inf.
inline void softmax(weights& w) {
  double highest = -INFINITY, sum = 0;
  for (double const x : w) highest = std::max(highest, x);
  for (double& x : w) sum += x = std::exp(x - highest);
  for (double& x : w) x /= sum;
}

/// What a variant needs besides its operator and its loop.
struct options {
  testing::problem_extents extents{.heads = 2, .queries = 7, .keys = 9, .width = 8};     ///< of attune's checks
  testing::problem_extents compared{.heads = 2, .queries = 70, .keys = 90, .width = 8};  ///< of the comparison
  testing::problem_extents timed{.heads = 2, .queries = 1024, .keys = 1024, .width = 64};
  testing::draw_rule draw = {};  ///< for inputs of a restricted domain
  double error = 1e-10;          ///< the largest difference from the loop, relative to the largest output
  /// Computes inputs from other inputs, as the paper's model does. For the comparison: it changes drawn numbers.
  std::function<void(loop_inputs const&)> model = {};
  double (*after)(double) = nullptr;  ///< your code's function of each output, in the comparison
};

namespace detail {

/// The operator for these extents. `op` is an operator, or a function that makes one for given extents.
template <class Op>
decltype(auto) operator_for(Op const& op, testing::problem_extents const& e) {
  if constexpr (std::is_invocable_v<Op const&, testing::problem_extents const&>)
    return op(e);
  else
    return (op);
}

template <class Op>
loop_inputs read(testing::drawn_problem<Op>& p, testing::problem_extents const& e) {
  loop_inputs x{e.heads,
                e.queries,
                e.keys,
                e.width,
                e.value_width == 0 ? e.width : e.value_width,
                e.offset.value_or(e.keys - e.queries),
                {}};
  for (std::size_t f = 0; f < field_count; ++f) x.tensors[f] = &p.of(field(f));
  return x;
}

/// The output row of a loop that writes weights, or the output itself.
template <class Loop>
std::vector<double> row_of(Loop const& loop, loop_inputs const& x, loop_row const& row) {
  output_row out{std::vector<double>(std::size_t(x.value_width), 0.0)};
  if constexpr (std::is_invocable_v<Loop const&, loop_inputs const&, loop_row const&, output_row&>) {
    loop(x, row, out);
  } else {
    weights w(std::size_t(x.keys), 0.0);
    loop(x, row, w);
    for (index_t j = 0; j < x.keys; ++j)
      if (w[std::size_t(j)] != 0)
        for (index_t d = 0; d < x.value_width; ++d)
          out.values[std::size_t(d)] += w[std::size_t(j)] * x.v(row.b, row.h, j, d);
  }
  return out.values;
}

/// The largest difference between the operator and the loop, relative to the largest output.
template <class Op, class Loop>
double distance(Op const& op, Loop const& loop, options const& o) {
  testing::problem_extents const& e = o.compared;
  testing::detail::normal_numbers random(1);
  testing::drawn_problem<Op> p(e, random, o.draw);
  loop_inputs const x = read(p, e);
  if (o.model) o.model(x);
  std::vector<double> out(std::size_t(e.batch * x.heads * x.queries * x.value_width));
  shape const rows{e.batch, x.heads, x.queries, x.value_width};
  forward(cpu<double>{}, op, p.template inputs<tensor<double const>>(), {.out = tensor<double>(out, rows)});
  double worst = 0, largest = 0;
  std::size_t n = 0;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < x.heads; ++h)
      for (index_t i = 0; i < x.queries; ++i)
        for (double const expected : row_of(loop, x, loop_row{b, h, i, i + x.offset})) {
          double const computed = o.after == nullptr ? out[n] : o.after(out[n]);
          ++n;
          largest = std::max(largest, std::fabs(expected));
          if (double const error = std::fabs(expected - computed); !(error <= worst)) worst = error;
        }
  return worst / largest;
}

#if !defined(ATTUNE_VARIANT_LOOP) && !defined(ATTUNE_VARIANT_TIMES)
/// attune's checks of the forward pass and of the gradients.
template <class Op>
bool passes_checks(Op const& op, options const& o) {
  testing::forward_check_options const forward_options{.threads = 2, .draw = o.draw};
#ifdef ATTUNE_VARIANT_THRUST
  auto const forward_report = testing::check_forward(op, o.extents, 1, forward_options, thrust_on<float>(thrust::host),
                                                     thrust_on<double>(thrust::host));
#else
  auto const forward_report = testing::check_forward(op, o.extents, 1, forward_options);
#endif
  std::cout << forward_report;
  auto const gradient_report = testing::check_gradients(op, o.extents, 1, {.entries = 8, .draw = o.draw});
  std::cout << gradient_report;
  return forward_report.passed() && gradient_report.passed();
}
#endif

/// Milliseconds of a forward pass, and of a forward pass with gradients.
template <class Op>
std::pair<double, double> milliseconds(Op const& op, testing::drawn_problem<Op> const& p,
                                       testing::problem_extents const& e) {
  using clock = std::chrono::steady_clock;
  shape const rows{e.batch, e.heads, e.queries, e.value_width == 0 ? e.width : e.value_width};
  std::vector<float> out(std::size_t(rows.size()));
  auto const in = p.template inputs<tensor<float const>>();
  auto const d = p.template cotangents<tensor<float const>>();
  outputs<Op, float> const to{.out = tensor<float>(out, rows)};
  auto const timed = [](auto const& run) {
    auto const start = clock::now();
    run();
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
  };
  return {timed([&] { forward(cpu<float>{1}, op, in, to); }), timed([&] {
            if constexpr (requires { forward_and_save(cpu<float>{1}, op, in, to); }) {
              auto const saved = forward_and_save(cpu<float>{1}, op, in, to);
              vjp(cpu<float>{1}, op, in, saved, d);
            } else {
              vjp(cpu<float>{1}, op, in, d);
            }
          })};
}

/// Prints the median over rounds in which the operator and softmax alternate.
template <class Op>
int times(Op const& op, options const& o) {
  auto const softmax_op = softmax_attention(mask::causal{});
  testing::detail::normal_numbers random(1);
  testing::drawn_problem<Op> const own(o.timed, random, o.draw);
  testing::drawn_problem<std::remove_const_t<decltype(softmax_op)>> const plain(o.timed, random);
  std::vector<double> forward_ratio, step_ratio;
  for (int round = 0; round < 10; ++round) {
    auto const [forward_ms, step_ms] = milliseconds(op, own, o.timed);
    auto const [softmax_forward, softmax_step] = milliseconds(softmax_op, plain, o.timed);
    if (round == 0) continue;  // warms up
    forward_ratio.push_back(forward_ms / softmax_forward);
    step_ratio.push_back(step_ms / softmax_step);
  }
  auto const median = [](std::vector<double>& x) {
    std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
    return x[x.size() / 2];
  };
  std::printf("%.2f %.2f\n", median(forward_ratio), median(step_ratio));
  return 0;
}

}  // namespace detail

/// loop(x, row, w) writes the weight of each key of the row to w, or the output if w is an output_row. `op` is an
/// operator, or a function of testing::problem_extents that returns one. Returns the program's exit status.
template <class Op, class Loop>
int run(Op const& op, [[maybe_unused]] Loop const& loop, options const& o = {}) {
#ifdef ATTUNE_VARIANT_TIMES
  return detail::times(detail::operator_for(op, o.timed), o);
#else
  double const error = detail::distance(detail::operator_for(op, o.compared), loop, o);
  bool passed = error <= o.error;
  std::printf("%-6s the loop: relative difference %.1e\n", passed ? "ok" : "WRONG", error);
#ifndef ATTUNE_VARIANT_LOOP
  passed = detail::passes_checks(detail::operator_for(op, o.extents), o) && passed;
#endif
  return passed ? 0 : 1;
#endif
}

}  // namespace variants
