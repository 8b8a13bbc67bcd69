// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Exact gradients of an operator with a normalizer of one's own: by every tensor and parameter, checked along a
// direction.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

namespace {

using namespace attune;

// [snippet: normalizer]
/// Weights softplus(a - t) / sum softplus(a - t): below the learned threshold t a key fades, above it grows only
/// linearly.
struct linear_tail {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  parameter threshold = 0;
  static constexpr auto parameters() { return std::array{listed("threshold", &linear_tail::threshold)}; }

  template <class T>
  struct bound {
    T threshold;
    T earned(T const& logit, T const&) const { return math::softplus(T(logit - threshold)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit(threshold)};
  }
};
// [/snippet]

std::vector<double> numbers(index_t count, double seed) {
  std::vector<double> x;
  for (index_t i = 0; i < count; ++i) x.push_back(std::sin(seed + 1.3 * double(i)));
  return x;
}

}  // namespace

int main() {
  constexpr index_t heads = 2, length = 12, width = 8;
  shape const s{1, heads, length, width};
  auto const q = numbers(s.size(), 1), k = numbers(s.size(), 2), v = numbers(s.size(), 3),
             by_out = numbers(s.size(), 4);
  tensor Q(q, s), K(k, s), V(v, s), DO(by_out, s);

  // [snippet: vjp]
  std::vector<double> thresholds{0.5, -0.25};  // one per head
  auto op = attention(kernel::dot_product{}, linear_tail{per_head(thresholds)}, mask::causal{});
  auto g = vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V}, {.out = DO});  // no derivative was written anywhere
  double dq = g.of(field::q)(0, 1, 7, 3), dt = g.parameter("threshold")(0, 1, 0, 0);
  // [/snippet]
  std::printf("dL/dq[1, 7, 3] = %.6f, dL/dthreshold[1] = %.6f\n", dq, dt);

  // [snippet: jvp]
  auto moved = jvp(reference<double>{}, op, {.q = {Q, Q}, .k = K, .v = V}, {.parameters = {{"threshold", 1.0}}});
  double out = moved.at(0, 1).out(7, 3).value, rate = moved.at(0, 1).out(7, 3).tangent[0];
  // [/snippet]
  std::printf("out[1, 7, 3] = %.6f, moving at %.6f\n", out, rate);

  // [snippet: outputs]
  std::vector<double> out_memory(by_out.size()), dk(k.size());
  inputs<decltype(op), tensor<double const>> const in{.q = Q, .k = K, .v = V};
  std::vector<double> rows(static_cast<std::size_t>(saved_size(op, in)));
  forward_and_save(cpu<double>{}, op, in, {.out = tensor(out_memory, s)}, std::span(rows));
  gradient_outputs<decltype(op), double> wanted;  // absent: not wanted
  wanted.of(field::k) = tensor(dk, s);
  vjp(cpu<double>{}, op, in, std::span<double const>(rows), {.out = DO}, wanted);
  // [/snippet]
  std::printf("dL/dk[1, 7, 3] = %.6f\n", dk[static_cast<std::size_t>((1 * length + 7) * width + 3)]);

  double forward_rate = 0, backward_rate = 0;  // <dL/dout, d out> and <dL/d(q, t), d(q, t)> are the same number
  for (index_t h = 0; h < heads; ++h) {
    backward_rate += g.parameter("threshold")(0, h, 0, 0);
    for (index_t i = 0; i < length; ++i)
      for (index_t d = 0; d < width; ++d) {
        forward_rate += DO(0, h, i, d) * moved.at(0, h).out(i, d).tangent[0];
        backward_rate += g.of(field::q)(0, h, i, d) * Q(0, h, i, d);
      }
  }
  bool const agree = std::fabs(forward_rate - backward_rate) <= 1e-12 * std::fabs(forward_rate);
  std::printf("forward and backward: %s\n", agree ? "agree" : "DISAGREE");
  return agree ? 0 : 1;
}
