// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators on a line (attune/line.hpp) beside the dense fused operators on the same numbers: time, ratio, and the
// error of both against long double on a few rows, as a share of max|v|. Attempts are interleaved; each figure is the
// best of them, in processor time.
//
//   attune_subquadratic [keys = 16384] [heads = 2] [threads = 2] [attempts = 5] [tau = 0.1]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace {

using namespace attune;

struct problem {
  index_t keys, heads, width = 64;
  double tau;
  std::vector<float> q, k, v, by, out, vector_q, vector_k;

  problem(index_t n, index_t h, double t) : keys(n), heads(h), tau(t) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto const fill = [&](std::vector<float>& x, index_t features) {
      x.resize(std::size_t(heads * keys * features));
      for (float& e : x) e = normal(random);
    };
    for (auto* x : {&q, &k}) fill(*x, 1);
    for (auto* x : {&v, &by, &out, &vector_q, &vector_k}) fill(*x, width);
    for (auto* x : {&vector_q, &vector_k})
      for (float& e : *x) e *= 0.5f;  // |<q, k>| / 8 of one half, at most |q| |k| / 8 of about 2
  }
  shape scalars() const { return {1, heads, keys, 1}; }
  shape wide() const { return {1, heads, keys, width}; }
  template <class Op>
  inputs<Op, tensor<float const>> in() const {
    return make_inputs<Op, tensor<float const>>([&]<field F>() {
      if constexpr (F == field::q) return tensor<float const>(vector_q, wide());
      if constexpr (F == field::k) return tensor<float const>(vector_k, wide());
      if constexpr (F == field::v) return tensor<float const>(v, wide());
      if constexpr (F == field::sort_q) return tensor<float const>(q, scalars());
      if constexpr (F == field::sort_k) return tensor<float const>(k, scalars());
    });
  }
};

/// Processor time of all threads together: a busy machine stretches it less than the time on the clock. Of a second
/// call: memory that the first returned is at hand, as in a program that calls again and again.
double seconds(std::function<void()> const& f) {
  f();
  std::clock_t const start = std::clock();
  f();
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

/// max |out - exact| / max |v| over 32 rows of the first head; weight(q - k), normalised or not, of the keys that the
/// row sees.
double worst_error(problem const& p, bool causal, bool normalised,
                   std::function<long double(long double)> const& weight) {
  double worst = 0, scale = 0;
  for (float x : p.v) scale = std::max(scale, double(std::fabs(x)));
  for (index_t i = 0; i < p.keys; i += p.keys / 32) {
    std::vector<long double> sum(std::size_t(p.width), 0);
    long double mass = 0, absolute = 0;
    for (index_t j = 0; j < (causal ? i + 1 : p.keys); ++j) {
      long double const w = weight(static_cast<long double>(p.q[std::size_t(i)]) - p.k[std::size_t(j)]);
      mass += w;
      absolute += w;
      for (index_t d = 0; d < p.width; ++d) sum[std::size_t(d)] += w * p.v[std::size_t(j * p.width + d)];
    }
    for (index_t d = 0; d < p.width; ++d) {
      long double const exact = normalised ? sum[std::size_t(d)] / mass : sum[std::size_t(d)];
      double const off = double(std::fabs(exact - p.out[std::size_t(i * p.width + d)]));
      worst = std::max(worst, off / (normalised ? scale : std::max(1e-30, double(absolute) * scale)));
    }
  }
  return worst;
}

struct contender {
  std::string name;
  bool causal, normalised;
  std::function<long double(long double)> weight;
  std::function<void(problem&)> dense, ours, dense_vjp, our_vjp;
  std::function<std::string(problem&)> certificate;
};

template <class Op>
std::string describe(line::gaussian_certificate const& c) {
  char text[160];
  std::snprintf(text, sizeof text,
                "  certificate %.1e: discarded %.1e, truncated %.1e, rounded %.1e; %td of %td boxes by series",
                c.output(), c.discarded, c.truncated, c.rounded, c.expanded, c.boxes);
  return text;
}
template <class Op>
std::string describe(line::window_certificate const& c) {
  char text[160];
  std::snprintf(text, sizeof text, "  certificate %.1e: discarded %.1e, rounded %.1e; %.1f%% of visible pairs scored%s",
                c.output(), c.discarded, c.rounded, 100 * double(c.scored) / double(c.visible),
                Op::has_vectors ? "; no errors with vectors" : "");
  return text;
}

template <class Op>
std::function<void(problem&)> forward_of(Op const& op, int threads) {
  return [=](problem& p) { forward(cpu<float>{threads}, op, p.in<Op>(), {.out = tensor(p.out, p.wide())}); };
}
template <class Op>
std::function<void(problem&)> vjp_of(Op const& op, int threads) {
  return [=](problem& p) { vjp(cpu<float>{threads}, op, p.in<Op>(), {.out = tensor<float const>(p.by, p.wide())}); };
}

/// Without a weight, errors are not looked at.
template <class Op>
contender make(std::string name, bool causal, bool normalised, std::function<long double(long double)> weight,
               Op const& ours, int threads) {
  auto const certificate = [=](problem& p) {
    auto const call = [&] { return forward(cpu<float>{threads}, ours, p.in<Op>(), {.out = tensor(p.out, p.wide())}); };
    if constexpr (std::is_void_v<decltype(call())>)
      return std::string();
    else
      return describe<Op>(call());
  };
  return {std::move(name),
          causal,
          normalised,
          std::move(weight),
          forward_of(ours.dense(), threads),
          forward_of(ours, threads),
          vjp_of(ours.dense(), threads),
          vjp_of(ours, threads),
          certificate};
}

}  // namespace

int main(int argc, char** argv) {
  auto const argument = [&](int n, double otherwise) { return argc > n ? std::atof(argv[n]) : otherwise; };
  index_t const keys = index_t(argument(1, 16384)), heads = index_t(argument(2, 2));
  int const threads = int(argument(3, 2)), attempts = int(argument(4, 5));
  double const tau = argument(5, 0.1);
  problem p(keys, heads, tau);
  mask::causal const causal;
  auto const gauss = [=](long double e) { return std::exp(-e * e / static_cast<long double>(tau)); };
  auto const laplace = [=](long double e) { return std::exp(-std::fabs(e) / static_cast<long double>(tau)); };
  auto const relu = [](long double e) { return std::max(e, 0.0L); };
  std::vector<contender> const all{
      make("laplacian", false, true, laplace, line::laplacian{tau}, threads),
      make("laplacian, causal", true, true, laplace, line::laplacian{tau, causal}, threads),
      make("sliced ReLU", false, false, relu, line::sliced_relu{}, threads),
      make("sliced ReLU, causal", true, false, relu, line::sliced_relu{normalizer::relu{}, causal}, threads),
      make("gaussian, 1e-6", false, true, gauss, line::gaussian{tau, 1e-6}, threads),
      make("gaussian, 1e-3", false, true, gauss, line::gaussian{tau, 1e-3}, threads),
      make("gaussian, causal, 1e-6", true, true, gauss, line::gaussian{tau, 1e-6, causal}, threads),
      make("gaussian, causal, 1e-3", true, true, gauss, line::gaussian{tau, 1e-3, causal}, threads),
      make("windows, causal, 1e-6", true, true, gauss, line::windowed{tau, line::certified{1e-6}, causal}, threads),
      make("hybrid, causal, 1e-6", true, true, {}, line::hybrid{tau, line::certified{1e-6}, causal}, threads),
  };
  std::printf("%td queries and keys, %td heads, Dv = %td, float, tau = %g, %d threads, best of %d\n", keys, heads,
              p.width, tau, threads, attempts);
  std::printf("%-22s %10s %10s %7s %10s %10s %7s %10s %10s\n", "", "dense ms", "sorted ms", "ratio", "vjp ms",
              "sorted ms", "ratio", "dense err", "sorted err");
  for (auto const& c : all) {
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    for (int a = 0; a < attempts; ++a) {
      best[0] = std::min(best[0], seconds([&] { c.dense(p); }));
      best[1] = std::min(best[1], seconds([&] { c.ours(p); }));
      best[2] = std::min(best[2], seconds([&] { c.dense_vjp(p); }));
      best[3] = std::min(best[3], seconds([&] { c.our_vjp(p); }));
    }
    c.dense(p);
    auto const error = [&] { return c.weight ? worst_error(p, c.causal, c.normalised, c.weight) : std::nan(""); };
    double const dense_error = error();
    c.ours(p);
    double const our_error = error();
    std::printf("%-22s %10.1f %10.2f %6.0fx %10.1f %10.2f %6.0fx %10.1e %10.1e%s\n", c.name.c_str(), 1e3 * best[0],
                1e3 * best[1], best[0] / best[1], 1e3 * best[2], 1e3 * best[3], best[2] / best[3], dense_error,
                our_error, c.certificate(p).c_str());
    std::fflush(stdout);
  }
}
