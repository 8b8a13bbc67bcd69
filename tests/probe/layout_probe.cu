// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   nvcc -std=c++20 -gencode=arch=compute_90a,code=sm_90a -Iinclude tests/probe/layout_probe.cu -o layout_probe
//
// The warp vocabulary of a GPU against that of the host, bit by bit: fragments of mma, ldmatrix and wgmma, shuffles,
// rounding to 16 bits, copies. Then facts of the device: how its tensor cores add, and the error of its approximations.
// One line a probe; fails if an answer differs. Facts never fail. Without sm_90a, wgmma is left out and says so. With an
// argument, only whether the device answers.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include <attune/exec/cuda/warp/device.cuh>
#include <attune/exec/cuda/warp/vocabulary.hpp>
#if defined(ATTUNE_PROBE_WARPGROUP)
#include <attune/exec/cuda/warp/group.cuh>
#endif
#include <attune/exec/cuda/host/host_warp.hpp>

namespace {
using namespace attune;
using exec_cuda::device_warp;
using testing::host_warp;
using testing::lanes;
using word = std::uint32_t;
static_assert(exec_cuda::warp_vocabulary<device_warp> && exec_cuda::warp_vocabulary<host_warp>);

int failures = 0;
bool device_lives() {
  cudaError_t const e = cudaDeviceSynchronize();
  if (e != cudaSuccess) std::printf("FAIL  CUDA: %s\n", cudaGetErrorString(e));
  return e == cudaSuccess;
}
void report(char const* name, std::size_t compared, std::size_t different) {
  failures += different != 0;
  std::printf("%s  %-44s %zu of %zu words differ\n", different == 0 ? "PASS" : "FAIL", name, different, compared);
  std::fflush(stdout);
}
/// Numbers that both sides see.
template <class T>
struct both {
  T* data;
  std::size_t size;
  explicit both(std::size_t n) : data(nullptr), size(n) {
    if (cudaMallocManaged(&data, n * sizeof(T)) != cudaSuccess) {
      std::printf("FAIL  no memory on the device\n");
      std::exit(1);
    }
    std::memset(data, 0xff, n * sizeof(T));
  }
  ~both() { cudaFree(data); }
  both(both const&) = delete;
  T& operator[](std::size_t n) { return data[n]; }
};
std::size_t differing(float const* a, float const* b, std::size_t n) {
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < n; ++k) wrong += std::bit_cast<word>(a[k]) != std::bit_cast<word>(b[k]);
  return wrong;
}
template <class E>
word two(float low, float high) {
  return E(low).bits | word(E(high).bits) << 16;
}

// ---- mma: a[lane][4], b[lane][2], d[lane][4]
template <class E>
__global__ void run_mma(word const* a, word const* b, float* d, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    int const l = threadIdx.x, at = r * 32 + l;
    word const x[4] = {a[4 * at], a[4 * at + 1], a[4 * at + 2], a[4 * at + 3]};
    float y[4] = {d[4 * at], d[4 * at + 1], d[4 * at + 2], d[4 * at + 3]};
    device_warp::mma<E>(y, x, b[2 * at], b[2 * at + 1]);
    for (int e = 0; e < 4; ++e) d[4 * at + e] = y[e];
  }
}
/// Small integers, so that every order of additions gives the same bits.
template <class E>
void probe_mma(char const* name) {
  int const rounds = 64;
  std::mt19937 random(1);
  auto const draw = [&] { return float(int(random() % 33) - 16); };
  both<word> a(rounds * 128), b(rounds * 64);
  both<float> d(rounds * 128);
  std::vector<float> expected(rounds * 128);
  for (int k = 0; k < rounds * 128; ++k) a[k] = two<E>(draw(), draw()), d[k] = draw();
  for (int k = 0; k < rounds * 64; ++k) b[k] = two<E>(draw(), draw());
  for (int r = 0; r < rounds; ++r) {
    lanes<float> y[4];
    lanes<word> x[4], z[2];
    for (int l = 0; l < 32; ++l) {
      for (int e = 0; e < 4; ++e) x[e].v[l] = a[4 * (r * 32 + l) + e], y[e].v[l] = d[4 * (r * 32 + l) + e];
      for (int e = 0; e < 2; ++e) z[e].v[l] = b[2 * (r * 32 + l) + e];
    }
    host_warp::mma<E>(y, x, z[0], z[1]);
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 4; ++e) expected[4 * (r * 32 + l) + e] = y[e].v[l];
  }
  run_mma<E><<<1, 32>>>(a.data, b.data, d.data, rounds);
  report(name, expected.size(), device_lives() ? differing(d.data, expected.data(), expected.size()) : 1);
}

// ---- facts: d_00 for one row of a and one column of b
template <class E>
float product(std::vector<std::pair<int, float>> const& a, float start) {
  both<word> x(128), y(64);
  both<float> d(128);
  for (int k = 0; k < 128; ++k) x[k] = 0, d[k] = 0;
  for (int k = 0; k < 64; ++k) y[k] = two<E>(1, 1);
  d[0] = start;
  for (auto const& [column, value] : a) {  // lane (column % 8) / 2 of row 0, register 2 (column / 8), half column % 2
    word& w = x[4 * ((column % 8) / 2) + 2 * (column / 8)];
    w |= word(E(value).bits) << (16 * (column % 2));
  }
  run_mma<E><<<1, 32>>>(x.data, y.data, d.data, 1);
  return device_lives() ? d[0] : NAN;
}
float power(int n) { return std::ldexp(1.f, n); }
void tell_additions() {
  using E = bfloat16;
  float const up = product<E>({{0, 3 * power(-25)}}, 1), down = product<E>({{0, -3 * power(-25)}}, -1);
  std::printf("fact  1 + 0.75 ulp gives %s, -1 - 0.75 ulp gives %s: additions %s\n", up == 1 ? "1" : "1 + ulp",
              down == -1 ? "-1" : "-1 - ulp", up == 1 && down == -1 ? "go towards zero" : "do not truncate");
  int kept = 0, with_start = 0, halves = 0;
  for (int n = 1; n < 40; ++n) kept = product<E>({{0, 1}, {1, -1}, {2, power(-n)}}, 0) == power(-n) ? n : kept;
  for (int n = 1; n < 40; ++n) with_start = product<E>({{0, -1}, {2, power(-n)}}, 1) == power(-n) ? n : with_start;
  std::printf("fact  1 - 1 + 2^-n of three products keeps n <= %d; with the accumulator as 1, n <= %d (float: 23)\n",
              kept, with_start);
  std::printf("fact  1 - 1 in columns 0 and 1, 2^-35 in column c is kept for c =");
  for (int c = 2; c < 16; ++c)
    if (product<E>({{0, 1}, {1, -1}, {c, power(-35)}}, 0) == power(-35)) std::printf(" %d", c), ++halves;
  std::printf("%s: columns %s\n", halves ? "" : " none",
              halves ? "are added in groups, one after the other" : "are added together");
  std::printf("fact  16 products of 2^-24 and the accumulator 1 give 1 + %g ulp (exact: 8)\n",
              (double(product<E>({{0, power(-24)},
                                  {1, power(-24)},
                                  {2, power(-24)},
                                  {3, power(-24)},
                                  {4, power(-24)},
                                  {5, power(-24)},
                                  {6, power(-24)},
                                  {7, power(-24)},
                                  {8, power(-24)},
                                  {9, power(-24)},
                                  {10, power(-24)},
                                  {11, power(-24)},
                                  {12, power(-24)},
                                  {13, power(-24)},
                                  {14, power(-24)},
                                  {15, power(-24)}},
                                 1)) -
               1) /
                  power(-23));
  std::printf("fact  subnormal bf16 2^-130 gives %g (2^-130 is %g); fp16 2^-24 gives %g\n",
              double(product<E>({{0, power(-130)}}, 0)), double(power(-130)),
              double(product<float16>({{0, power(-24)}}, 0)));
  std::printf("fact  NaN has the bits %08x; inf - inf %08x; 65504 * 1 in fp16 gives %g\n",
              std::bit_cast<word>(product<E>({{0, NAN}}, 0)),
              std::bit_cast<word>(product<E>({{0, INFINITY}, {1, -INFINITY}}, 0)),
              double(product<float16>({{0, 65504}}, 0)));
}

// ---- ldmatrix, copies, 16-byte and 4-byte reads
__global__ void run_memory(unsigned char const* from, word const* at, word* out, bool const* inside) {
  __shared__ __align__(128) unsigned char memory[4096];
  word const base = word(__cvta_generic_to_shared(memory)), l = threadIdx.x;
  for (int k = 0; k < 8; ++k)
    device_warp::copy16(base, (k * 32 + l) * 16, from + (k * 32 + l) * 16, inside[k * 32 + l]);
  device_warp::commit();
  device_warp::wait<0>();
  device_warp::sync();
  word r[4];
  for (int t = 0; t < 2; ++t) {
    device_warp::ldmatrix4(r, base, at[l], t != 0);
    for (int e = 0; e < 4; ++e) out[(t * 32 + l) * 4 + e] = r[e];
  }
  device_warp::read16(r, base, at[l]);
  for (int e = 0; e < 4; ++e) out[(64 + l) * 4 + e] = r[e];
  out[384 + l] = device_warp::read4(base, at[l] + 4);
  device_warp::sync();
  device_warp::write16(base, l * 16, r);
  device_warp::sync();
  device_warp::read16(r, base, (l + 5) % 32 * 16);
  for (int e = 0; e < 4; ++e) out[416 + 4 * l + e] = r[e];
}
void probe_memory() {
  std::mt19937 random(2);
  std::size_t wrong[5] = {}, count[5] = {};
  for (int round = 0; round < 50; ++round) {
    both<unsigned char> from(4096);
    both<word> at(32), out(544);
    both<bool> inside(256);
    for (int k = 0; k < 4096; ++k) from[k] = static_cast<unsigned char>(random());
    lanes<word> where;
    for (int l = 0; l < 32; ++l) where.v[l] = at[l] = 16 * (random() % 256);
    for (int k = 0; k < 256; ++k) inside[k] = random() % 8 != 0;
    alignas(128) unsigned char memory[4096];
    for (int k = 0; k < 8; ++k) {
      lanes<word> to;
      lanes<unsigned char const*> source;
      lanes<bool> in;
      for (int l = 0; l < 32; ++l) {
        int const n = k * 32 + l;
        to.v[l] = word(n * 16), source.v[l] = from.data + n * 16, in.v[l] = inside[n];
      }
      host_warp::copy16(memory, to, source, in);
    }
    run_memory<<<1, 32>>>(from.data, at.data, out.data, inside.data);
    bool const lives = device_lives();
    auto const compare = [&](int kind, int first, int e, int step, lanes<word> const& expected) {
      for (int l = 0; l < 32; ++l) wrong[kind] += !lives || out[first + step * l + e] != expected.v[l], ++count[kind];
    };
    lanes<word> r[4];
    for (int t = 0; t < 2; ++t) {
      host_warp::ldmatrix4(r, memory, where, t != 0);
      for (int e = 0; e < 4; ++e) compare(t, t * 128, e, 4, r[e]);
    }
    host_warp::read16(r, memory, where);
    for (int e = 0; e < 4; ++e) compare(2, 256, e, 4, r[e]);
    lanes<word> next;
    for (int l = 0; l < 32; ++l) next.v[l] = where.v[l] + 4;
    compare(3, 384, 0, 1, host_warp::read4(memory, next));
    lanes<word> own, other;
    for (int l = 0; l < 32; ++l) own.v[l] = word(l * 16), other.v[l] = word((l + 5) % 32 * 16);
    host_warp::write16(memory, own, r);
    host_warp::read16(r, memory, other);
    for (int e = 0; e < 4; ++e) compare(4, 416, e, 4, r[e]);
  }
  report("cp.async with zeros, ldmatrix", count[0], wrong[0]);
  report("cp.async with zeros, ldmatrix.trans", count[1], wrong[1]);
  report("16 bytes of shared memory", count[2], wrong[2]);
  report("4 bytes of shared memory", count[3], wrong[3]);
  report("16 bytes written to shared memory", count[4], wrong[4]);
}

// ---- registers of the warp
template <class E>
__global__ void run_registers(float const* x, int const* from, word* out, int n) {
  int const l = threadIdx.x;
  for (int r = 0; r < n; ++r) {
    float const a = x[r * 64 + l], b = x[r * 64 + 32 + l];
    word* const to = out + r * 224;
    to[l] = device_warp::pack<E>(a, b);
    to[32 + l] = __float_as_uint(device_warp::shfl_xor(a, 1));
    to[64 + l] = __float_as_uint(device_warp::shfl_xor(a, 2));
    to[96 + l] = __float_as_uint(device_warp::shfl(a, from[r * 32 + l]));
    to[128 + l] = device_warp::any(a < b && l == r % 32);
    float low, high;
    device_warp::unpack<E>(to[l], low, high);
    to[160 + l] = __float_as_uint(low), to[192 + l] = __float_as_uint(high);
  }
}
template <class E>
void probe_registers(char const* packs, char const* shuffles) {
  int const n = 2000;
  std::mt19937 random(3);
  both<float> x(n * 64);
  both<int> from(n * 32);
  both<word> out(n * 224);
  for (int k = 0; k < n * 64; ++k) {
    word const bits = word(random());
    float const f = std::bit_cast<float>(bits), near = std::bit_cast<float>((bits & 0xc7ffffffu) | 0x30000000u);
    x[k] = std::isnan(f) ? 0.f
           : k % 3 == 0  ? std::bit_cast<float>((std::bit_cast<word>(near) & 0xffff0000u) | 0x8000u)
           : k % 3 == 1  ? near
                         : f;
  }
  for (int k = 0; k < n * 32; ++k) from[k] = int(random() % 32);
  run_registers<E><<<1, 32>>>(x.data, from.data, out.data, n);
  bool const lives = device_lives();
  std::size_t bad = 0, moved = 0;
  for (int r = 0; r < n; ++r) {
    lanes<float> a, b;
    lanes<int> source;
    lanes<bool> c;
    for (int l = 0; l < 32; ++l) {
      a.v[l] = x[r * 64 + l], b.v[l] = x[r * 64 + 32 + l], source.v[l] = from[r * 32 + l];
      c.v[l] = a.v[l] < b.v[l] && l == r % 32;
    }
    auto const packed = host_warp::pack<E>(a, b);
    lanes<float> low, high;
    host_warp::unpack<E>(packed, low, high);
    auto const one = host_warp::shfl_xor(a, 1), other = host_warp::shfl_xor(a, 2), any = host_warp::shfl(a, source);
    for (int l = 0; l < 32; ++l) {
      word const* const got = out.data + r * 224 + l;
      bad += !lives || got[0] != packed.v[l] || got[160] != std::bit_cast<word>(low.v[l]) ||
             got[192] != std::bit_cast<word>(high.v[l]);
      moved += !lives || got[32] != std::bit_cast<word>(one.v[l]) || got[64] != std::bit_cast<word>(other.v[l]) ||
               got[96] != std::bit_cast<word>(any.v[l]) || got[128] != word(host_warp::any(c));
    }
  }
  report(packs, std::size_t(n) * 32, bad);
  report(shuffles, std::size_t(n) * 32, moved);
}

// ---- approximations
__global__ void run_functions(float const* x, float* y, int n) {
  for (int k = int(blockIdx.x * blockDim.x + threadIdx.x); k < n; k += int(gridDim.x * blockDim.x)) {
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y[k]) : "f"(-x[k]));
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y[n + k]) : "f"(x[k]));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y[2 * n + k]) : "f"(x[k]));
  }
}
void tell_functions() {
  int const n = 1 << 20;
  std::mt19937 random(4);
  both<float> x(n), y(3 * n);
  for (int k = 0; k < n; ++k)
    x[k] = std::ldexp(1.f + float(random() % (1u << 23)) * power(-23), int(random() % 32) - 25);
  run_functions<<<64, 256>>>(x.data, y.data, n);
  if (!device_lives()) return;
  double most[3] = {};
  for (int k = 0; k < n; ++k) {
    double const exact[3] = {std::exp2(-double(x[k])), std::log2(double(x[k])), 1 / double(x[k])};
    for (int f = 0; f < 3; ++f) {
      double const e = std::fabs(double(y[f * n + k]) - exact[f]) / (f == 1 ? 1 : exact[f]);
      if (f != 0 || x[k] < 120) most[f] = std::fmax(most[f], e);
    }
  }
  std::printf("fact  relative error of ex2.approx %.2e, of rcp.approx %.2e; absolute error of lg2.approx %.2e\n",
              most[0], most[2], most[1]);
}

// ---- products of a warpgroup: q 64 x 64 and k 64 x 64 in shared memory, d = q k^T; then d = p v from registers
#if defined(ATTUNE_PROBE_WARPGROUP)
template <class E>
__global__ void run_group(E const* q, E const* k, word const* p, float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using warp = exec_cuda::device_warpgroup;
  __shared__ __align__(1024) unsigned char memory[16384];
  word const base = word(__cvta_generic_to_shared(memory));
  for (int c = int(threadIdx.x); c < 1024; c += 128) {  // chunk c % 8 of row c / 8 of q, then of k
    int const row = c / 8, to = row * 128 + ((c % 8 ^ row % 8) * 16);
    std::memcpy(memory + to, reinterpret_cast<unsigned char const*>(row < 64 ? q : k) + (row % 64) * 128 + (c % 8) * 16,
                16);
  }
  warp::publish();
  warp::sync();
  float d[8][4] = {};
  warp::begin_products();
  for (int a = 0; a < 4; ++a)
    warp::product_of_tiles<E>(d, warp::tile(base + 32 * a), warp::tile(base + 8192 + 32 * a), a != 0);
  warp::commit_products();
  warp::wait_products<0>();
  for (int n = 0; n < 8; ++n)
    for (int e = 0; e < 4; ++e) out[(n * 4 + e) * 128 + threadIdx.x] = d[n][e];
  word x[4][4];
  for (int a = 0; a < 4; ++a)
    for (int e = 0; e < 4; ++e) x[a][e] = p[(a * 4 + e) * 128 + threadIdx.x];
  warp::begin_products();
  for (int a = 0; a < 4; ++a) warp::product_with_tile<E>(d, x[a], warp::tile(base + 8192 + 2048 * a), a != 0);
  warp::commit_products();
  warp::wait_products<0>();
  for (int n = 0; n < 8; ++n)
    for (int e = 0; e < 4; ++e) out[4096 + (n * 4 + e) * 128 + threadIdx.x] = d[n][e];
#endif
}
template <class E>
void probe_group(char const* tiles, char const* registers) {
  std::mt19937 random(5);
  auto const draw = [&] { return float(int(random() % 17) - 8); };
  both<E> q(4096), k(4096);
  both<word> p(2048);
  both<float> out(8192);
  std::vector<float> weights(4096);
  for (int n = 0; n < 4096; ++n) q[n] = E(draw()), k[n] = E(draw()), weights[n] = draw();
  for (int t = 0; t < 128; ++t)
    for (int a = 0; a < 4; ++a)
      for (int e = 0; e < 4; ++e) {
        int const row = 16 * (t / 32) + t % 32 / 4 + 8 * (e % 2), column = 16 * a + 2 * (t % 4) + 8 * (e / 2);
        p[(a * 4 + e) * 128 + t] = two<E>(weights[row * 64 + column], weights[row * 64 + column + 1]);
      }
  run_group<E><<<1, 128>>>(q.data, k.data, p.data, out.data);
  bool const lives = device_lives();
  std::size_t wrong[2] = {};
  for (int t = 0; t < 128; ++t)
    for (int n = 0; n < 8; ++n)
      for (int e = 0; e < 4; ++e) {
        int const row = 16 * (t / 32) + t % 32 / 4 + 8 * (e / 2), column = 8 * n + 2 * (t % 4) + e % 2;
        float scores = 0, sum = 0;
        for (int x = 0; x < 64; ++x) {
          scores += float(q[row * 64 + x]) * float(k[column * 64 + x]);
          sum += weights[row * 64 + x] * float(k[x * 64 + column]);
        }
        wrong[0] += !lives || out[(n * 4 + e) * 128 + t] != scores;
        wrong[1] += !lives || out[4096 + (n * 4 + e) * 128 + t] != sum;
      }
  report(tiles, 4096, wrong[0]);
  report(registers, 4096, wrong[1]);
}
#endif
}  // namespace

int main(int count, char**) {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    std::printf("no CUDA device: compiled, not run\n");
    return 77;
  }
  std::printf("%s, sm_%d%d\n", device.name, device.major, device.minor);
  if (count > 1) {  // "alive": only whether the device answers
    void* memory = nullptr;
    bool const works = cudaMalloc(&memory, 1024) == cudaSuccess && cudaMemset(memory, 0, 1024) == cudaSuccess;
    return device_lives() && works ? 0 : 1;
  }
  probe_mma<bfloat16>("mma m16n8k16, bf16");
  probe_mma<float16>("mma m16n8k16, fp16");
  probe_memory();
  probe_registers<bfloat16>("two floats as bf16, and back", "shuffles and votes");
  probe_registers<float16>("two floats as fp16, and back", "shuffles and votes again");
#if defined(ATTUNE_PROBE_WARPGROUP)
  if (device.major == 9) {
    probe_group<bfloat16>("wgmma m64n64k16 of two tiles, bf16", "wgmma of registers and a tile, bf16");
    probe_group<float16>("wgmma m64n64k16 of two tiles, fp16", "wgmma of registers and a tile, fp16");
  } else
    std::printf("left out: wgmma, which sm_90a alone has\n");
#else
  std::printf("left out: wgmma (compile for sm_90a with -DATTUNE_PROBE_WARPGROUP)\n");
#endif
  tell_additions();
  tell_functions();
  std::printf("%s\n", failures == 0 ? "probe passed" : "probe FAILED");
  return failures != 0;
}
