// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sums over sorted keys (attune/sorted/) beside the dense fused operator on the same numbers: time, ratio, and the
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
#include <vector>

#include <attune/attune.hpp>
#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/hybrid.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/sliced_relu.hpp>

namespace {

using namespace attune;

struct problem {
  index_t keys, heads, width = 64;
  double tau;
  std::vector<float> q, k, v, by, out, dq, dk, dv, vector_q, vector_k, dvq, dvk;

  problem(index_t n, index_t h, double t) : keys(n), heads(h), tau(t) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto const fill = [&](std::vector<float>& x, index_t features) {
      x.resize(std::size_t(heads * keys * features));
      for (float& e : x) e = normal(random);
    };
    for (auto* x : {&q, &k, &dq, &dk}) fill(*x, 1);
    for (auto* x : {&v, &by, &out, &dv, &vector_q, &vector_k, &dvq, &dvk}) fill(*x, width);
    for (auto* x : {&vector_q, &vector_k})
      for (float& e : *x) e *= 0.5f;  // |<q, k>| / 8 of one half, at most |q| |k| / 8 of about 2
  }
  shape line() const { return {1, heads, keys, 1}; }
  shape wide() const { return {1, heads, keys, width}; }
  sorted::arrays<float> in() const { return {tensor(q, line()), tensor(k, line()), tensor(v, wide())}; }
  sorted::gradients<float> gradients() { return {tensor(dq, line()), tensor(dk, line()), tensor(dv, wide()), {}}; }
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

template <class Op, class Sorted>
contender make(std::string name, bool causal, bool normalised, std::function<long double(long double)> weight,
               Op const& op, Sorted const& ours, int threads) {
  sorted::workers const who{threads};
  contender c{
      std::move(name), causal, normalised, std::move(weight), {}, {}, {}, {}, [](problem&) { return std::string(); }};
  c.dense = [=](problem& p) {
    auto const in = p.in();
    forward(cpu<float>{threads}, op, {.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
            {.out = tensor(p.out, p.wide())});
  };
  c.dense_vjp = [=](problem& p) {
    auto const in = p.in();
    vjp(cpu<float>{threads}, op, {.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
        {.out = tensor<float const>(p.by, p.wide())});
  };
  c.ours = [=](problem& p) { sorted::forward<float>(ours, p.in(), {tensor(p.out, p.wide()), {}}, who); };
  c.our_vjp = [=](problem& p) {
    sorted::vjp<float>(ours, p.in(), {tensor<float const>(p.by, p.wide()), {}}, p.gradients(), who);
  };
  if constexpr (std::is_same_v<Sorted, sorted::gaussian>)
    c.certificate = [=](problem& p) {
      auto const of = sorted::forward<float>(ours, p.in(), {tensor(p.out, p.wide()), {}}, who);
      char text[160];
      std::snprintf(text, sizeof text,
                    "  certificate %.1e: discarded %.1e, truncated %.1e, rounded %.1e; %td of %td boxes by series",
                    of.output(), of.discarded, of.truncated, of.rounded, of.expanded, of.boxes);
      return std::string(text);
    };
  return c;
}

/// Windows in key order, with a dot product or without; causal, tolerance 1e-6. Errors are not looked at where there
/// are vectors.
template <class Op>
contender make_windows(std::string name, Op const& op, double tau, bool vectors, int threads) {
  sorted::workers const who{threads};
  sorted::hybrid const ours{.tau = tau, .tolerance = 1e-6, .sees = sorted::visibility::causal};
  auto const weight = [=](long double e) { return std::exp(-e * e / static_cast<long double>(tau)); };
  contender c{std::move(name), true, true, {}, {}, {}, {}, {}, {}};
  if (!vectors) c.weight = weight;
  auto const dense = [=](problem& p) {
    auto const in = p.in();
    return make_inputs<Op, tensor<float const>>([&]<field F>() {
      if constexpr (F == field::v) return in.v;
      if constexpr (F == field::sort_q) return in.sort_q;
      if constexpr (F == field::sort_k) return in.sort_k;
      if constexpr (F == field::q) return tensor<float const>(p.vector_q, p.wide());
      if constexpr (F == field::k) return tensor<float const>(p.vector_k, p.wide());
    });
  };
  auto const sorted_in = [=](problem& p) {
    auto const in = p.in();
    sorted::hybrid_arrays<float> all{.sort_q = in.sort_q, .sort_k = in.sort_k, .v = in.v};
    if (vectors) all.q = tensor(p.vector_q, p.wide()), all.k = tensor(p.vector_k, p.wide());
    return all;
  };
  c.dense = [=](problem& p) { forward(cpu<float>{threads}, op, dense(p), {.out = tensor(p.out, p.wide())}); };
  c.dense_vjp = [=](problem& p) {
    vjp(cpu<float>{threads}, op, dense(p), {.out = tensor<float const>(p.by, p.wide())});
  };
  c.ours = [=](problem& p) { sorted::forward<float>(ours, sorted_in(p), {tensor(p.out, p.wide()), {}, {}}, who); };
  c.our_vjp = [=](problem& p) {
    sorted::hybrid_gradients<float> d{
        .sort_q = tensor(p.dq, p.line()), .sort_k = tensor(p.dk, p.line()), .v = tensor(p.dv, p.wide())};
    if (vectors) d.q = tensor(p.dvq, p.wide()), d.k = tensor(p.dvk, p.wide());
    sorted::vjp<float>(ours, sorted_in(p), {tensor<float const>(p.by, p.wide()), {}}, d, who);
  };
  c.certificate = [=](problem& p) {
    auto const of = sorted::forward<float>(ours, sorted_in(p), {tensor(p.out, p.wide()), {}, {}}, who);
    char text[160];
    std::snprintf(text, sizeof text,
                  "  certificate %.1e: discarded %.1e, rounded %.1e; %.1f%% of visible pairs scored%s", of.output(),
                  of.discarded, of.rounded, 100 * double(of.scored) / double(of.visible),
                  vectors ? "; no errors with vectors" : "");
    return std::string(text);
  };
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  auto const argument = [&](int n, double otherwise) { return argc > n ? std::atof(argv[n]) : otherwise; };
  index_t const keys = index_t(argument(1, 16384)), heads = index_t(argument(2, 2));
  int const threads = int(argument(3, 2)), attempts = int(argument(4, 5));
  double const tau = argument(5, 0.1);
  problem p(keys, heads, tau);
  auto const gauss = [=](long double e) { return std::exp(-e * e / static_cast<long double>(tau)); };
  auto const laplace = [=](long double e) { return std::exp(-std::fabs(e) / static_cast<long double>(tau)); };
  auto const relu = [](long double e) { return std::max(e, 0.0L); };
  std::vector<contender> const all{
      make("laplacian", false, true, laplace, scalar_laplacian_attention(tau), sorted::laplacian{tau}, threads),
      make("laplacian, causal", true, true, laplace, scalar_laplacian_attention(tau, mask::causal{}),
           sorted::laplacian{tau, sorted::visibility::causal}, threads),
      make("sliced ReLU", false, false, relu, attention(kernel::scalar_difference{}, normalizer::relu{}),
           sorted::sliced_relu{}, threads),
      make("sliced ReLU, causal", true, false, relu,
           attention(kernel::scalar_difference{}, normalizer::relu{}, mask::causal{}),
           sorted::sliced_relu{divisor::one, sorted::visibility::causal}, threads),
      make("gaussian, 1e-6", false, true, gauss, scalar_sort_attention(tau), sorted::gaussian{tau, 1e-6}, threads),
      make("gaussian, 1e-3", false, true, gauss, scalar_sort_attention(tau), sorted::gaussian{tau, 1e-3}, threads),
      make("gaussian, causal, 1e-6", true, true, gauss, scalar_sort_attention(tau, mask::causal{}),
           sorted::gaussian{tau, 1e-6, sorted::visibility::causal}, threads),
      make("gaussian, causal, 1e-3", true, true, gauss, scalar_sort_attention(tau, mask::causal{}),
           sorted::gaussian{tau, 1e-3, sorted::visibility::causal}, threads),
      make_windows("windows, causal, 1e-6", scalar_sort_attention(tau, mask::causal{}), tau, false, threads),
      make_windows("hybrid, causal, 1e-6", hybrid_attention(tau, mask::causal{}), tau, true, threads),
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
