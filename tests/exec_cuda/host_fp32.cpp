// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The fp32 mode of `cuda` on emulated warps, which add as tensor cores do: archetypes, the error of 8192 keys, numbers
// beyond fp16, infinities, what invisible keys must not change, and the bound of certify.
#include <cstring>
#include <optional>

#include <attune/certify/error_bound.hpp>
#include <attune/exec/cuda/host/forward.hpp>

#include "check.hpp"

namespace attune::cuda_check {
struct warp_place : host_place {
  template <class Op, class E>
  void forward(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& to) {
    testing::forward_on_host_warps<exec_cuda::widths<64, 128>>(op, in, to);
  }
};

void require(bool holds, char const* what, double number) {
  failures += holds ? 0 : 1;
  std::printf("%s  %-66s %.3g\n", holds ? "PASS" : "FAIL", what, number);
  std::fflush(stdout);
}

/// Softmax of one head, causal with an offset, or with any other operator of q, k and v.
struct problem {
  index_t queries, keys, width, value_width, offset;
  std::vector<float> q, k, v;
  problem(index_t l, index_t n, index_t d, index_t dv, float shift = 0, index_t first = 0)
      : queries(l), keys(n), width(d), value_width(dv), offset(first) {
    std::mt19937 random{17};
    std::normal_distribution<float> normal;
    for (index_t x = 0; x < l * d; ++x) q.push_back(normal(random));
    for (index_t x = 0; x < n * d; ++x) k.push_back(normal(random));
    for (index_t x = 0; x < n * dv; ++x) v.push_back(shift + normal(random));
  }
  template <class T, class Op>
  inputs<Op, tensor<T const>> in(std::vector<T> const& a, std::vector<T> const& b, std::vector<T> const& c) const {
    return make_inputs<Op, tensor<T const>>(
        [&]<field F>() {
          return F == field::q   ? tensor<T const>(a.data(), {1, 1, queries, width})
                 : F == field::k ? tensor<T const>(b.data(), {1, 1, keys, width})
                                 : tensor<T const>(c.data(), {1, 1, keys, value_width});
        },
        offset);
  }
  template <class Op>
  std::vector<float> run(Op const& op, std::vector<float>* lse = nullptr) const {
    std::vector<float> out(std::size_t(queries * value_width), NAN), of_rows(std::size_t(queries), NAN);
    outputs<Op, float> to{.out = tensor<float>(out.data(), {1, 1, queries, value_width})};
    if constexpr (Op::has_lse) to.lse.values = tensor<float>(of_rows.data(), {1, 1, queries, 1});
    testing::forward_on_host_warps<exec_cuda::widths<64, 128>>(op, in<float, Op>(q, k, v), to);
    if (lse != nullptr) *lse = of_rows;
    return out;
  }
  std::vector<float> run() const { return run(softmax_attention(mask::causal{})); }
  /// The largest |error| / sum w |v|, and the relative error of all in the norm of Frobenius. `wrong` counts numbers
  /// that are not finite on one side alone, or another infinity.
  template <class Op>
  void compare(Op const& op, std::vector<float> const& got, double& worst, double& norm, int& wrong) const {
    std::vector<double> const a(q.begin(), q.end()), b(k.begin(), k.end()), c(v.begin(), v.end());
    auto const x = in<double, Op>(a, b, c);
    problem_shape const p = detail::checked_problem("check", op, x, {1, 1, queries, value_width});
    double error = 0, size = 0;
    worst = 0, wrong = 0;
    for (index_t i = 0; i < queries; i += keys > 1000 ? 8 : 1) {
      auto const exact = evaluate(op, x, p, 0, 0, i);
      for (index_t d = 0; d < value_width; ++d) {
        double const y = double(got[std::size_t(i * value_width + d)]), z = exact.out[std::size_t(d)];
        if (!std::isfinite(z) || !std::isfinite(y)) {
          wrong += !(y == z || (std::isnan(y) && std::isnan(z)));
          continue;
        }
        error += (y - z) * (y - z), size += z * z;
        if (y != z) worst = std::fmax(worst, std::fabs(y - z) / exact.absolute[std::size_t(d)]);
      }
    }
    norm = std::sqrt(error / size);
  }
};

template <class Op>
void agrees(char const* what, problem const& p, Op const& op, double most, double of_norm = 2e-6) {
  double worst, norm;
  int wrong;
  p.compare(op, p.run(op), worst, norm, wrong);
  require(worst <= most && norm <= of_norm && wrong == 0, what, worst);
  if (wrong != 0) std::printf("      %d infinities or NaN are wrong\n", wrong);
}
bool same(std::vector<float> const& a, std::vector<float> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
std::vector<float> times(std::vector<float> x, float by) {
  for (float& y : x) y *= by;
  return x;
}

/// 8192 keys, D 128.
void long_rows() {
  for (float shift : {0.f, 1.f}) {
    problem const p(128, 8192, 128, 128, shift, 8191);
    double worst, norm;
    int wrong;
    auto const op = softmax_attention();
    p.compare(op, p.run(op), worst, norm, wrong);
    require(norm <= 2e-6 && worst <= 2e-6 && wrong == 0, "8192 keys: relative error of out, v ~ N(0 or 1, 1)", norm);
  }
}
/// Powers of two change no bit; rows of any size are as right as others.
void scales() {
  auto const op = softmax_attention(mask::causal{});
  problem const p(70, 100, 40, 24, 0, 30);
  auto const out = p.run();
  bool equal = true;
  for (float by : {0x1p-100f, 0x1p-60f, 0x1p60f, 0x1p100f}) {
    problem x = p;
    x.q = times(p.q, by), x.k = times(p.k, 1 / by);
    equal = equal && same(x.run(), out);
    x = p, x.v = times(p.v, by);
    equal = equal && same(x.run(), times(out, by));
  }
  require(equal, "powers of two of q and 1 / k, or of v, change no bit", equal);
  problem rows = p;
  for (index_t j = 0; j < p.keys; ++j)
    for (index_t d = 0; d < p.value_width; ++d)
      rows.v[std::size_t(j * p.value_width + d)] *= std::ldexp(1.f, int(j * 37 % 120) - 60);
  for (index_t j = 0; j < p.keys; ++j)
    for (index_t d = 0; d < p.width; ++d) rows.k[std::size_t(j * p.width + d)] *= std::ldexp(1.f, -int(j * 13 % 30));
  for (index_t i = 0; i < p.queries; ++i)
    for (index_t d = 0; d < p.width; ++d) rows.q[std::size_t(i * p.width + d)] *= std::ldexp(1.f, -int(i * 11 % 20));
  agrees("rows of sizes from 2^-60 to 2^60", rows, op, 2e-6);
  problem tiny = p;  // subnormal numbers
  tiny.q = times(p.q, 0x1p-128f), tiny.k = times(p.k, 0x1p126f);
  agrees("subnormal queries, keys near the largest float", tiny, op, 2e-6);
  tiny = p, tiny.v = times(p.v, 0x1p-126f);
  agrees("subnormal values", tiny, op, 1e-6, 1e-5);
  tiny = p, tiny.v = times(p.v, 0x1p120f);  // sums of masses and values are floats too
  agrees("values near the largest float", tiny, op, 2e-6);
}
/// A row that sees one key has its value, to 1 unit in the last place.
void one_key() {
  problem const p(1, 1, 40, 64, 1);
  auto const out = p.run();
  double units = 0;
  for (std::size_t d = 0; d < out.size(); ++d)
    units = std::fmax(units, std::ldexp(std::fabs(double(out[d]) - double(p.v[d])), 23 - std::ilogb(p.v[d])));
  require(units <= 1, "one key: units in the last place", units);
}
/// Infinities and NaN go where IEEE arithmetic takes them, and nowhere else.
void infinities() {
  float const inf = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  auto const op = softmax_attention(mask::causal{});
  problem const p(70, 100, 40, 24, 0, 30);
  auto const out = p.run();
  for (float bad : {inf, -inf, none}) {
    problem x = p;
    x.v[std::size_t(40 * p.value_width + 5)] = bad, x.v[std::size_t(40 * p.value_width + 23)] = bad;
    x.v[std::size_t(41 * p.value_width + 5)] = bad;
    agrees("a value that is not finite", x, op, 2e-6);
    x = p, x.k[std::size_t(45 * p.width + 7)] = bad;
    agrees("a key that is not finite", x, op, 2e-6);
    x = p, x.q[std::size_t(33 * p.width + 9)] = bad;
    agrees("a query that is not finite", x, op, 2e-6);
    x = p;
    for (index_t d = 0; d < p.width; ++d) x.k[std::size_t(45 * p.width + d)] = bad;
    agrees("a key without a finite number", x, op, 2e-6);
  }
  // A logit of -inf: weight 0, exactly.
  problem x = p;
  for (index_t i = 0; i < p.queries; ++i) x.q[std::size_t(i * p.width)] = 1 + float(i % 3);
  problem without = x;
  for (index_t d = 0; d < p.width; ++d) x.k[std::size_t(50 * p.width + d)] = d == 0 ? -inf : 0.25f;
  for (index_t d = 0; d < p.value_width; ++d) without.v[std::size_t(50 * p.value_width + d)] = 0;
  agrees("logits of -inf", x, op, 2e-6);
  agrees("logits of -inf, full tiles", x, softmax_attention(), 2e-6);
  agrees("logits of -inf, sigmoid", x, sigmoid_attention({}, mask::causal{}), 4e-6);
  agrees("logits of -inf, self-adjusted", x, self_adjusted_attention(mask::causal{}), 8e-6, 8e-6);
  agrees("a negative scale and infinities", x, attention(kernel::dot_product{.scale = -0.1}, mask::causal{}), 2e-6);
  // What rows do not see changes no bit of them.
  index_t const seen = 60;
  bool equal = true;
  for (float bad : {inf, none, 3e38f, 1e-45f}) {
    problem y = p;
    for (index_t j = seen; j < p.keys; ++j) {
      for (index_t d = 0; d < p.width; ++d) y.k[std::size_t(j * p.width + d)] = bad;
      for (index_t d = 0; d < p.value_width; ++d) y.v[std::size_t(j * p.value_width + d)] = bad;
    }
    auto const got = y.run();
    index_t const rows = seen - p.offset;  // the first that sees none of them
    equal = equal && std::memcmp(got.data(), out.data(), std::size_t(rows * p.value_width) * sizeof(float)) == 0;
  }
  require(equal, "invisible keys and values change no bit", equal);
}
/// The bound of certify.
template <class Op>
void within_bound(char const* what, problem const& p, Op const& op) {
  std::vector<float> lse;
  auto const got = p.run(op, &lse);
  auto const x = p.in<float, Op>(p.q, p.k, p.v);
  auto const in = make_inputs<Op, any_tensor>([&]<field F>() { return any_tensor(member<F>(x)); }, p.offset);
  auto const bound = certify::error_bound(op, in, certify::precision::split_products());
  double share = 0;
  for (std::size_t n = 0; n < got.size(); ++n)
    share = std::fmax(share, std::fabs(double(got[n]) - bound.out[n].value) / bound.out[n].bound);
  if constexpr (Op::has_lse)
    for (std::size_t n = 0; n < lse.size(); ++n)
      if (double(lse[n]) != bound.lse[n].value)
        share = std::fmax(share, std::fabs(double(lse[n]) - bound.lse[n].value) / bound.lse[n].bound);
  require(share <= 1 && share > 0, what, share);
}
void bounds() {
  problem const p(70, 100, 40, 24, 0, 30), few(9, 9, 2, 2);
  within_bound("share of the bound, softmax", p, softmax_attention(mask::causal{}));
  within_bound("share of the bound, softmax, few keys", few, softmax_attention(mask::causal{}));
  within_bound("share of the bound, sink", p, sink_attention(0.7, mask::causal{}));
  within_bound("share of the bound, softcap", p, softcap_attention(10, mask::causal{}));
  within_bound("share of the bound, sigmoid", p, sigmoid_attention({}, mask::causal{}));
  within_bound("share of the bound, affine", p, affine_scaled_attention(0.8, 0.9, mask::causal{}));
}
void archetypes() {
  warp_place place;
  auto const causal = [](auto&) { return softmax_attention(mask::causal{}); };
  check<float>(place, "softmax", {}, [](auto&) { return softmax_attention(); });
  check<float>(place, "softmax causal", {.queries = 257, .keys = 257, .unseen = 3}, causal, 1, -1, -3);
  check<float>(place, "softmax causal, a NaN value", {.queries = 257, .keys = 257}, causal, 1, 50);
  check<float>(place, "softmax, a NaN value", {}, [](auto&) { return softmax_attention(); }, 1, 50);
  sizes const tails{.batch = 2, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 129, .keys = 130};
  check<float>(place, "negative and positive scales", tails,
               [](auto& of) { return attention(kernel::dot_product{.scale = of.numbers(4, 1, 1)}, mask::causal{}); });
  sizes wide = tails;
  wide.width = 128, wide.value_width = 71, wide.unseen = 3;
  check<float>(place, "softmax causal", wide, causal, 1, -1, -3);
  wide.width = 104, wide.value_width = 72, wide.padded = true;
  check<float>(place, "softmax causal, rows apart", wide, causal, 1, -1, -2);
  check<float>(place, "principled causal", {.queries = 150, .keys = 257},
               [](auto&) { return principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}); });
}
}  // namespace attune::cuda_check

int main() {
  using namespace attune::cuda_check;
  attune::testing::host_warp::truncates = true;
  archetypes();
  scales();
  one_key();
  infinities();
  bounds();
  long_rows();
  auto const& t = attune::testing::host_warp::tally;
  bool const conflicts = t.load_waves != 4 * t.loads || t.copy_waves != 4 * t.copies;
  std::printf("%s  rounds of shared memory: %ld of %ld loads, %ld of %ld copies; 4 each without bank conflicts\n",
              conflicts ? "FAIL" : "PASS", t.load_waves, t.loads, t.copy_waves, t.copies);
  return failures + int(conflicts);
}
