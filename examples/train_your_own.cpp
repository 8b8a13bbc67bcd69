// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel term, a length scale, a gate and a normalizer of one's own, one operator of them: gradients checked, then
// trained on the CPU executor. No derivative is written anywhere.
//
// The task is retrieval. Queries are noisy copies of keys in another order, and a hidden operator of the same form says
// what to make of them. Learned are the projections to q, k and the gate's two sides, and the parameters of all four
// policies.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
// [/snippet]
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

namespace mine {

using namespace attune;

// [snippet: policies]
/// An additive term: -rate sqrt|i - j|.
struct root_distance {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter rate = 1;
  static constexpr auto parameters() { return std::array{listed("rate", &root_distance::rate)}; }
  template <class T>
  struct bound {
    T rate, position;
    T score(key<T> const& k) const { return -rate * math::sqrt(math::abs(T(position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};

/// Scores grow as (1 + log K)^exponent.
struct power_of_log {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  parameter exponent = 1;
  static constexpr auto parameters() { return std::array{listed("exponent", &power_of_log::exponent)}; }
  template <class T>
  struct bound {
    T factor;
    T scale(T const& score) const { return math::scale_keeping_off(factor, score); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {math::exp(T(r(exponent) * math::log1p(r.log_visible)))};
  }
};

/// A veto: a key whose gate product is negative loses up to `strength`.
struct veto {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::gate_dot;
  parameter strength = 1;
  static constexpr auto parameters() { return std::array{listed("strength", &veto::strength)}; }
  template <class T>
  struct bound {
    T strength;
    T gate(T const& score, T const& g) const { return score - strength * math::sigmoid(T(-g)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(strength)};
  }
};

/// Weights s_j / (1 + sum s), s = softplus(a - threshold)^2: a row in which nothing stands out attends to nothing.
struct squared_tail {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none, .constant_mass = true};
  parameter threshold = 0;
  static constexpr auto parameters() { return std::array{listed("threshold", &squared_tail::threshold)}; }
  template <class T>
  struct bound {
    T threshold;
    T earned(T const& logit, T const&) const {
      T const s = math::softplus(T(logit - threshold));
      return s * s;
    }
    T constant(T const&) const { return T(1); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit(threshold)};
  }
};
// [/snippet]

}  // namespace mine

namespace {

using namespace attune;

constexpr index_t batch = 16, heads = 2, length = 24, width = 8, gate_width = 4;

std::mt19937_64 bits(1);

/// Sums of 12 uniform numbers: nearly normal, and the same on every machine.
float normal() {
  double sum = -6;
  for (int n = 0; n < 12; ++n) sum += double(bits() >> 11) * 0x1p-53;
  return float(sum);
}
std::vector<float> normals(index_t n) {
  std::vector<float> x;
  for (index_t i = 0; i < n; ++i) x.push_back(normal());
  return x;
}

/// Numbers that are learned, by gradient descent with momentum. Views of `values` see every step.
struct learned {
  std::vector<float> values, velocity = std::vector<float>(values.size(), 0.0f);
  void step(std::vector<float> const& gradient, float rate) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      velocity[n] = 0.9f * velocity[n] - rate * gradient[n];
      values[n] += velocity[n];
    }
  }
};

/// y = W_h x for every token x (B, 1, L, width), W (1, H, rows, width), y (B, H, L, rows); and the gradient by W.
struct linear {
  index_t rows;
  learned weight;
  std::vector<float> y = std::vector<float>(std::size_t(batch * heads * length * rows), 0.0f);

  shape extents() const { return {batch, heads, length, rows}; }
  tensor<float const> operator()(tensor<float const> x) {
    tensor<float> const to(y, extents());
    visit([&](index_t b, index_t h, index_t i, index_t r) {
      float sum = 0;
      for (index_t c = 0; c < width; ++c) sum += weight.values[at(h, r, c)] * x(b, 0, i, c);
      to(b, h, i, r) = sum;
    });
    return to;
  }
  void step(tensor<float const> x, gradient_array<float> const& by_y, float rate) {
    std::vector<float> by_weight(weight.values.size(), 0.0f);
    visit([&](index_t b, index_t h, index_t i, index_t r) {
      for (index_t c = 0; c < width; ++c) by_weight[at(h, r, c)] += by_y(b, h, i, r) * x(b, 0, i, c);
    });
    weight.step(by_weight, rate);
  }

 private:
  std::size_t at(index_t h, index_t r, index_t c) const { return std::size_t((h * rows + r) * width + c); }
  template <class Visit>
  void visit(Visit const& each) const {
    for (index_t b = 0; b < batch; ++b)
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < length; ++i)
          for (index_t r = 0; r < rows; ++r) each(b, h, i, r);
  }
};

/// Weights near `diagonal` times the identity.
linear projection_near(float diagonal, float noise, index_t rows) {
  linear p{rows, {normals(heads * rows * width)}};
  for (std::size_t n = 0; n < p.weight.values.size(); ++n) {
    index_t const row = index_t(n) / width % rows, column = index_t(n) % width;
    p.weight.values[n] = noise * p.weight.values[n] + (row == column ? diagonal : 0.0f);
  }
  return p;
}

/// The mean of |out - target|^2 / 2 over positions, and its gradient by out.
double mean_square(std::vector<float> const& out, std::vector<float> const& target, std::vector<float>& by_out) {
  double sum = 0;
  for (std::size_t n = 0; n < out.size(); ++n) {
    float const error = out[n] - target[n];
    by_out[n] = error / float(batch * length);
    sum += 0.5 * double(error) * double(by_out[n]);
  }
  return sum;
}

struct model {
  linear q, k, gate_q, gate_k;
  learned rate, exponent, strength, threshold;  // one number per head

  auto op() const {
    return attention(kernel::dot_product{} + mine::root_distance{per_head(rate.values)},
                     mine::power_of_log{per_head(exponent.values)}, mine::veto{per_head(strength.values)},
                     mine::squared_tail{per_head(threshold.values)});
  }
};

}  // namespace

int main() {
  model hidden{projection_near(2, 0.1f, width),
               projection_near(2, 0.1f, width),
               projection_near(0, 0.5f, gate_width),
               projection_near(0, 0.5f, gate_width),
               {{0.2f, 0.6f}},
               {{0.5f, 0.2f}},
               {{1.0f, 3.0f}},
               {{1.0f, 2.0f}}};
  model student{projection_near(1, 0.3f, width),
                projection_near(1, 0.3f, width),
                projection_near(0, 0.5f, gate_width),
                projection_near(0, 0.5f, gate_width),
                {{0.0f, 0.0f}},
                {{0.0f, 0.0f}},
                {{0.5f, 0.5f}},
                {{0.0f, 0.0f}}};

  // [snippet: check]
  auto op = student.op();
  auto const report = testing::check_gradients(op, {.heads = heads, .queries = 5, .keys = 7, .width = 4}, 1);
  std::cout << report;
  if (!report.passed()) return 1;
  // [/snippet]
  auto const computed = testing::check_forward(op, {.heads = heads, .queries = 5, .keys = 40, .width = 4}, 1);
  std::cout << computed;
  if (!computed.passed()) return 1;

  // Keys are random tokens; query i is a noisy copy of key 5 i + 3 (mod L).
  shape const token{batch, 1, length, width}, rows{batch, heads, length, width};
  std::vector<float> const keys = normals(token.size());
  std::vector<float> queries = normals(token.size()), out(std::size_t(rows.size())), by_out(out);
  tensor const X(keys, token);
  tensor const Y(queries, token);
  for (index_t b = 0; b < batch; ++b)
    for (index_t i = 0; i < length; ++i)
      for (index_t c = 0; c < width; ++c) Y(b, 0, i, c) = 0.2f * Y(b, 0, i, c) + X(b, 0, (5 * i + 3) % length, c);
  tensor const O(out, rows), DO(by_out, rows);
  forward(cpu{}, hidden.op(),
          {.q = hidden.q(Y), .k = hidden.k(X), .v = X, .gate_q = hidden.gate_q(Y), .gate_k = hidden.gate_k(X)},
          {.out = O});
  std::vector<float> const target = out;

  double first = 0, loss = 0;
  constexpr int steps = 600;
  for (int step = 0; step <= steps; ++step) {
    inputs<decltype(op), tensor<float const>> const in{
        .q = student.q(Y), .k = student.k(X), .v = X, .gate_q = student.gate_q(Y), .gate_k = student.gate_k(X)};
    // [snippet: step]
    auto const saved = forward_and_save(cpu{}, op, in, {.out = O});
    loss = mean_square(out, target, by_out);  // by_out = d loss / d out, what DO views
    auto const g = vjp(cpu{}, op, in, saved, {.out = DO});
    student.q.step(Y, g.of(field::q), 0.1f);              // d loss / d q, and on to the projection's weights
    student.rate.step(g.parameter("rate").values, 0.1f);  // the operator views these numbers: it has learned already
    // [/snippet]
    student.k.step(X, g.of(field::k), 0.1f);
    student.gate_q.step(Y, g.of(field::gate_q), 0.1f);
    student.gate_k.step(X, g.of(field::gate_k), 0.1f);
    student.exponent.step(g.parameter("exponent").values, 0.1f);
    student.strength.step(g.parameter("strength").values, 0.1f);
    student.threshold.step(g.parameter("threshold").values, 0.1f);
    if (step == 0) first = loss;
    if (step % 50 == 0) std::printf("step %4d   loss %.5f\n", step, loss);
  }
  for (std::size_t h = 0; h < 2; ++h)
    std::printf("head %d: rate %.2f, exponent %.2f, strength %.2f, threshold %.2f\n", int(h),
                double(student.rate.values[h]), double(student.exponent.values[h]), double(student.strength.values[h]),
                double(student.threshold.values[h]));
  bool const learned = loss < first / 10;
  std::printf("trained: %s\n", learned ? "the loss is below a tenth of the first" : "THE LOSS DID NOT FALL");
  return learned ? 0 : 1;
}
