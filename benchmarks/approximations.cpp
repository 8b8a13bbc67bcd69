// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The approximations that Scalar Sort names for training, beside the certified operators of attune/line.hpp: time of
// forward and gradients, and the error that each makes, measured against long double on some rows. CSV on standard
// output.
//
//   attune_approximations [keys = 4096] [attempts = 5] [tau = 0.1] [threads = 1]
//
// One head of queries and keys from a normal distribution, Dv = 64, float, full visibility. Columns: error and median
// error: |out - exact| over max|v|, the worst and the median of 64 rows; captured: the least share of a row's weight
// whose keys the method meets (1 for features, which meet all); lost: rows whose mass is not positive; promised: what
// the method itself says, empty where it says nothing.
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

#include <attune/line.hpp>

namespace {

using namespace attune;

struct problem {
  index_t keys, width = 64;
  double tau;
  std::vector<float> q, k, v, by, out;

  problem(index_t n, double t) : keys(n), tau(t) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto* x : {&q, &k}) x->resize(std::size_t(n));
    for (auto* x : {&v, &by, &out}) x->resize(std::size_t(n * width));
    for (auto* x : {&q, &k, &v, &by})
      for (float& e : *x) e = normal(random);
  }
  shape scalars() const { return {1, 1, keys, 1}; }
  shape wide() const { return {1, 1, keys, width}; }
};

/// What one method says of itself.
struct claim {
  double promised = -1, captured = 1;
  index_t lost = 0;
};
struct method {
  std::string name;
  std::function<claim(problem&)> forward;
  std::function<void(problem&)> vjp;
};

double seconds(std::function<void()> const& f, int attempts) {
  double best = 1e9;
  for (int a = 0; a < attempts; ++a) {
    std::clock_t const start = std::clock();
    f();
    best = std::min(best, double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

/// |out - exact| / max|v| of 64 rows, ascending.
std::vector<double> errors(problem const& p) {
  double largest = 0;
  for (index_t j = 0; j < p.keys; ++j) {
    double sum = 0;
    for (index_t d = 0; d < p.width; ++d)
      sum += double(p.v[std::size_t(j * p.width + d)]) * double(p.v[std::size_t(j * p.width + d)]);
    largest = std::max(largest, std::sqrt(sum));
  }
  std::vector<double> all;
  for (index_t i = 0; i < p.keys; i += std::max<index_t>(1, p.keys / 64)) {
    std::vector<long double> sum(std::size_t(p.width), 0);
    std::vector<long double> score;
    long double most = -1e30L, mass = 0;
    for (index_t j = 0; j < p.keys; ++j) {
      long double const e = static_cast<long double>(p.q[std::size_t(i)]) - p.k[std::size_t(j)];
      score.push_back(-e * e / static_cast<long double>(p.tau));
      most = std::max(most, score.back());
    }
    for (index_t j = 0; j < p.keys; ++j) {
      long double const w = std::exp(score[std::size_t(j)] - most);
      mass += w;
      for (index_t d = 0; d < p.width; ++d) sum[std::size_t(d)] += w * p.v[std::size_t(j * p.width + d)];
    }
    long double off = 0;
    for (index_t d = 0; d < p.width; ++d) {
      long double const e = sum[std::size_t(d)] / mass - p.out[std::size_t(i * p.width + d)];
      off += e * e;
    }
    all.push_back(double(std::sqrt(off)) / largest);
  }
  std::sort(all.begin(), all.end());
  return all;
}

claim claim_of(line::gaussian<> const&, line::gaussian_certificate const& c) {
  return {c.output(), 1 - c.discarded, 0};
}
template <class Window>
claim claim_of(line::windowed<Window> const&, line::window_certificate const& c) {
  return {std::is_same_v<Window, line::certified> ? c.output() : -1, 1 - c.discarded, 0};
}
template <class Op>
claim claim_of(Op const&, line::low_rank_report const& r) {
  return {-1, 1, r.rows_without_mass};
}

template <class Op>
method measured(std::string name, Op const& op, int threads) {
  auto const in = [](problem const& p) {
    return inputs<Op, tensor<float const>>{
        .v = tensor(p.v, p.wide()), .sort_q = tensor(p.q, p.scalars()), .sort_k = tensor(p.k, p.scalars())};
  };
  return {std::move(name),
          [=](problem& p) {
            return claim_of(op, forward(cpu<float>{threads}, op, in(p), {.out = tensor(p.out, p.wide())}));
          },
          [=](problem& p) { vjp(cpu<float>{threads}, op, in(p), {.out = tensor<float const>(p.by, p.wide())}); }};
}

}  // namespace

int main(int argc, char** argv) {
  auto const argument = [&](int n, double otherwise) { return argc > n ? std::atof(argv[n]) : otherwise; };
  problem p(index_t(argument(1, 4096)), argument(3, 0.1));
  int const attempts = int(argument(2, 5)), threads = int(argument(4, 1));
  double const tau = p.tau;
  std::vector<method> all;
  for (double const tolerance : {1e-3, 1e-6}) {
    char text[64];
    std::snprintf(text, sizeof text, "Gauss transform %g", tolerance);
    all.push_back(measured(text, line::gaussian{tau, tolerance}, threads));
    std::snprintf(text, sizeof text, "certified windows %g", tolerance);
    all.push_back(measured(text, line::windowed{tau, line::certified{tolerance}}, threads));
  }
  for (index_t const keys : {64, 256, 1024})
    all.push_back(measured("nearest " + std::to_string(keys), line::windowed{tau, line::half{keys}}, threads));
  for (double const eps : {1e-2, 1e-6}) {
    char text[64];
    std::snprintf(text, sizeof text, "radius %g", eps);
    all.push_back(measured(text, line::windowed{tau, line::radius{eps}}, threads));
  }
  for (index_t const rank : {32, 128, 512})
    all.push_back(measured("Fourier " + std::to_string(rank), line::fourier_features{tau, rank / 2}, threads));
  for (index_t const rank : {16, 32, 64, 128})
    all.push_back(measured("Nystroem " + std::to_string(rank), line::nystroem{tau, rank}, threads));
  std::printf("method,keys,tau,forward_ms,vjp_ms,error,median_error,captured,lost,promised\n");
  for (method const& m : all) {
    claim c;
    double const forward = seconds([&] { c = m.forward(p); }, attempts), vjp = seconds([&] { m.vjp(p); }, attempts);
    auto const e = errors(p);
    std::printf("%s,%td,%g,%.3g,%.3g,%.2e,%.2e,%.6f,%td,", m.name.c_str(), p.keys, tau, 1e3 * forward, 1e3 * vjp,
                e.back(), e[e.size() / 2], c.captured, c.lost);
    std::printf(c.promised < 0 ? "\n" : "%.2e\n", c.promised);
    std::fflush(stdout);
  }
}
