// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// libattune_bench.so: attune and the machine's limits behind plain C symbols, so that a script can time them interleaved
// with other libraries in one process. Tensors are dense, row-major (B, H, L, D).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <attune/attune.hpp>

namespace {

using namespace attune;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct call {
  float const *q, *k, *v;
  float* o;
  index_t batch, heads, key_heads, queries, keys, width;
  int causal, threads;
};

/// Runs `compose(mask)`: an operator for a given mask.
template <class Compose, class Extra>
void run(call const& c, Compose const& compose, Extra const& extra) {
  using view = tensor<float const>;
  auto const with = [&](auto const& op) {
    using op_type = std::remove_cvref_t<decltype(op)>;
    shape const s{c.batch, c.heads, c.queries, c.width}, g{c.batch, c.key_heads, c.keys, c.width};
    auto const in = extra.template operator()<op_type>(view(c.q, s), view(c.k, g), view(c.v, g));
    forward(cpu<float>{c.threads}, op, in, {.out = tensor<float>(c.o, s)});
  };
  if (c.causal != 0)
    with(compose(mask::causal{}));
  else
    with(compose(mask::none{}));
}
auto const plain = []<class Op>(tensor<float const> q, tensor<float const> k, tensor<float const> v) {
  return inputs<Op, tensor<float const>>{.q = q, .k = k, .v = v};
};

/// Runs work(thread) on all threads at once; seconds of the slowest.
template <class Work>
double slowest(int threads, Work const& work) {
  std::atomic<int> ready{0};
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        ++ready;
        while (ready < threads) {
        }
        double const start = now();
        work(t);
        seconds[static_cast<std::size_t>(t)] = now() - start;
      });
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

using batch = xsimd::batch<float>;
std::atomic<float> sink_hole;

}  // namespace

extern "C" {

void attune_softmax(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                    int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)}, normalizer::softmax{}, m); }, plain);
}

void attune_entmax15(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                     int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)}, normalizer::entmax15{}, m); }, plain);
}

void attune_sparsemax(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                      int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)}, normalizer::sparsemax{}, m); }, plain);
}

void attune_entmax13(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                     int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)}, normalizer::entmax{1.3}, m); }, plain);
}

void attune_top_k(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                  int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)}, normalizer::top_k{16}, m); }, plain);
}

void attune_affine(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                   int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) {
        return attention(kernel::dot_product{double(scale)}, normalizer::affine<>{0.7, 0.6}, m);
      },
      plain);
}

void attune_self_adjusted(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                          int causal, int threads, float scale) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) {
        return attention(kernel::dot_product{double(scale)}, normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{},
                         m);
      },
      plain);
}

void attune_alibi(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                  int causal, int threads, float scale, float const* slope) {
  parameter const slopes = tensor<float const>(slope, shape{1, H, 1, 1});
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)} + kernel::alibi{slopes}, m); }, plain);
}

void attune_softcap(float const* q, float const* k, float const* v, float* o, int B, int H, int Hk, int Lq, int Lk, int D,
                    int causal, int threads, float scale, float cap) {
  run(
      {q, k, v, o, B, H, Hk, Lq, Lk, D, causal, threads},
      [&](auto m) { return attention(kernel::dot_product{double(scale)} | kernel::softcap{double(cap)}, m); }, plain);
}

/// GFLOP/s of fused multiply-adds in registers, right now.
double peak_fma(int threads) {
  constexpr int chains = 12;
  constexpr long rounds = 2000000;
  double const seconds = slowest(threads, [](int) {
    batch a[chains];
    for (int c = 0; c < chains; ++c) a[c] = batch(0.1f * float(c));
    batch x(0.999f), y(0.001f);
    exec_cpu::keep(x);
    exec_cpu::keep(y);
    for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 12
      for (int c = 0; c < chains; ++c) a[c] = xsimd::fma(a[c], x, y);
    }
    batch sum = a[0];
    for (int c = 1; c < chains; ++c) sum = sum + a[c];
    sink_hole = sum.get(0);
  });
  return threads * double(rounds) * chains * 2 * double(batch::size) / seconds / 1e9;
}

/// GB/s of reading memory that no cache holds, right now.
double peak_bw(int threads) {
  std::size_t const n = std::size_t(128) * 1024 * 1024 / sizeof(float) / std::size_t(threads);
  static std::vector<std::vector<float>> memory;
  if (memory.size() != std::size_t(threads)) memory.assign(std::size_t(threads), std::vector<float>(n, 1.0f));
  double const seconds = slowest(threads, [&](int t) {
    float const* const p = memory[std::size_t(t)].data();
    batch sum[8];
    for (auto& s : sum) s = batch(0.0f);
    for (std::size_t i = 0; i + 8 * batch::size <= n; i += 8 * batch::size)
      for (std::size_t c = 0; c < 8; ++c) sum[c] = sum[c] + batch::load_unaligned(p + i + c * batch::size);
    for (std::size_t c = 1; c < 8; ++c) sum[0] = sum[0] + sum[c];
    sink_hole = sum[0].get(0);
  });
  return threads * double(n) * sizeof(float) / seconds / 1e9;
}

}  // extern "C"
