// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sorted cache from 10^3 to 10^7 keys: insertions per second, certified decode against dense decode, and how both
// grow.
//
//   attune_sorted                    CSV on standard output; --largest N, --width Dv, --eps E, --window KEYS, --repeats
//                                    R, --seed S
//
// Keys are uniform in [0, 1) and arrive in random order; tau is chosen so that the radius of eps holds `window` keys at
// every n: what remains of the time as n grows is the search. A second table keeps tau instead, and with it the
// density's share of keys.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/line/decode.hpp>

namespace {

using namespace attune;

struct settings {
  index_t largest = 10'000'000, width = 64, key_width = 64, window = 1000;
  double eps = 1e-6;
  int repeats = 200;
  unsigned seed = 1;
};

settings parse(int count, char** arguments) {
  settings s;
  for (int i = 1; i + 1 < count; i += 2) {
    std::string const name = arguments[i];
    double const value = std::atof(arguments[i + 1]);
    if (name == "--largest")
      s.largest = index_t(value);
    else if (name == "--width")
      s.width = index_t(value);
    else if (name == "--key-width")
      s.key_width = index_t(value);
    else if (name == "--window")
      s.window = index_t(value);
    else if (name == "--eps")
      s.eps = value;
    else if (name == "--repeats")
      s.repeats = int(value);
    else if (name == "--seed")
      s.seed = unsigned(value);
    else
      std::fprintf(stderr, "attune_sorted: unknown option %s\n", name.c_str()), std::exit(2);
  }
  return s;
}

/// Processor time of this thread: everything here runs on one, and other programs may run beside it.
double now() {
  std::timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// Uniform numbers, the same for every n.
class source {
 public:
  explicit source(unsigned seed) : random_(seed) {}
  float number() { return float(random_() >> 8) * 0x1p-24f; }
  void fill(std::vector<float>& x) {
    for (float& e : x) e = 2 * number() - 1;
  }

 private:
  std::mt19937 random_;
};

struct figures {
  double insert_rate = 0, insert_last = 0;       ///< per second: all n, and the last tenth of them
  double certified = 0, dense = 0;               ///< seconds per row, median
  double scored = 0, summed = 0, discarded = 0;  ///< per row: means, and the greatest
  double bytes = 0, printed = 0;
};

/// One cache of n keys, and rows on it. Hybrid caches have vector keys with |<q, k>| / sqrt(D) of some units.
figures measure(settings const& s, index_t n, double tau, bool hybrid, bool with_dense) {
  index_t const width = hybrid ? s.key_width : 0;
  source random(s.seed);
  line::sorted_cache<float> kv({.key_width = width, .value_width = s.width});
  std::vector<float> value(static_cast<std::size_t>(s.width)), key(static_cast<std::size_t>(width)), sort_q(1),
      q(key.size()), out(value.size());
  figures f;
  double const begin = now();
  double late = begin;
  for (index_t j = 0; j < n; ++j) {
    if (j == n - n / 10) late = now();
    value[std::size_t(j % s.width)] = random.number();
    if (hybrid) key[std::size_t(j % width)] = 2 * random.number() - 1;
    float const sort_key = random.number();
    kv.insert({&sort_key, 1}, value, key);
  }
  double const end = now();
  f.insert_rate = double(n) / (end - begin);
  f.insert_last = double(n / 10) / (end - late);
  f.bytes = double(kv.memory().total());
  f.printed = double(kv.memory().printed);

  shape const number{1, 1, 1, 1};
  line::row_report report;
  line::certified const window{s.eps};
  line::queries<float> const in{.sort_q = {sort_q, number},
                                .q = hybrid ? tensor<float const>(q, {1, 1, 1, width}) : tensor<float const>{}};
  line::decoded<float> const to{.out = {out, {1, 1, 1, s.width}}, .rows = {&report, 1}};
  std::vector<double> times;
  for (int i = 0; i < s.repeats + 10; ++i) {
    sort_q[0] = random.number();
    random.fill(q);
    double const start = now();
    if (hybrid)
      decode(cpu<float>{1}, line::hybrid{tau, window}, kv, in, to);
    else
      decode(cpu<float>{1}, line::windowed{tau, window}, kv, in, to);
    double const stop = now();
    if (i < 10) continue;
    times.push_back(stop - start);
    f.scored += double(report.scored) / s.repeats;
    f.summed += double(report.summed) / s.repeats;
    f.discarded = std::max(f.discarded, report.discarded);
  }
  f.certified = median(times);
  if (!with_dense) return f;

  // The same tokens in the order of arrival, and the fused dense decode.
  std::vector<float> sort_k(std::size_t(n), 0.0f), v(std::size_t(n * s.width)), k(std::size_t(n * width)),
      dense_out(out);
  for (index_t j = 0; j < n; ++j) {
    auto const id = line::token(j);
    sort_k[std::size_t(j)] = kv.sort_key(0, id);
    std::copy_n(kv.value(0, id), s.width, v.begin() + j * s.width);
    if (hybrid) std::copy_n(kv.vector_key(0, id), width, k.begin() + j * width);
  }
  tensor<float const> const K(sort_k, {1, 1, n, 1}), V(v, {1, 1, n, s.width}), Q(sort_q, number);
  tensor<float> const O(dense_out, {1, 1, 1, s.width});
  times.clear();
  for (int i = 0; i < std::clamp(int(4e7 / double(n)), 5, 100); ++i) {
    double const start = now();
    if (hybrid)
      decode(cpu<float>{1}, hybrid_attention(tau),
             {.q = tensor<float const>(q, {1, 1, 1, width}),
              .k = tensor<float const>(k, {1, 1, n, width}),
              .v = V,
              .sort_q = Q,
              .sort_k = K},
             {.out = O});
    else
      decode(cpu<float>{1}, scalar_sort_attention(tau), {.v = V, .sort_q = Q, .sort_k = K}, {.out = O});
    times.push_back(now() - start);
  }
  f.dense = median(times);
  double difference = 0;
  for (std::size_t d = 0; d < out.size(); ++d)
    difference = std::max(difference, std::fabs(double(out[d]) - double(dense_out[d])));
  if (difference > 1e-4)
    std::fprintf(stderr, "attune_sorted: certified and dense decode differ by %g at n = %td\n", difference, n);
  return f;
}

/// Least squares: seconds = a + b log2 n.
void print_slope(char const* what, std::vector<double> const& n, std::vector<double> const& seconds) {
  double x = 0, y = 0, xx = 0, xy = 0;
  auto const m = double(n.size());
  for (std::size_t i = 0; i < n.size(); ++i) {
    double const l = std::log2(n[i]);
    x += l / m, y += seconds[i] / m, xx += l * l / m, xy += l * seconds[i] / m;
  }
  double const b = (xy - x * y) / (xx - x * x),
               power = std::log(seconds.back() / seconds.front()) / std::log(n.back() / n.front());
  std::printf("# %s: %.3g us + %.3g us per doubling of n; from the first n to the last it grows like n^%.3f\n", what,
              1e6 * (y - b * x), 1e6 * b, power);
}

void print_table(settings const& s, char const* name, bool hybrid, bool keep_window, index_t largest) {
  std::vector<double> sizes, decodes;
  for (index_t n = 1000; n <= largest; n *= 10) {
    index_t const at = keep_window ? n : 10000;
    double const radius = std::min(0.5, double(s.window) / double(2 * at));
    double const tau = radius * radius / -std::log(s.eps);
    figures const f = measure(s, n, tau, hybrid, n <= 1'000'000);
    std::printf("%s,%td,%.3g,%.4g,%.4g,%.4g,%.4g,%.1f,%.1f,%.1f,%.2g,%.1f,%.1f\n", name, n, tau, f.insert_rate,
                f.insert_last, 1e6 * f.certified, 1e6 * f.dense, f.dense / f.certified, f.scored, f.summed, f.discarded,
                f.bytes / double(n), f.printed / double(n));
    std::fflush(stdout);
    sizes.push_back(double(n));
    decodes.push_back(f.certified);
  }
  if (sizes.size() > 1) print_slope(name, sizes, decodes);
}

}  // namespace

int main(int count, char** arguments) {
  settings const s = parse(count, arguments);
  std::printf(
      "table,n,tau,inserts_per_s,last_inserts_per_s,certified_us,dense_us,ratio,scored,summed,discarded,bytes_per_"
      "token,"
      "printed_bytes_per_token\n");
  print_table(s, "scalar", false, true, s.largest);
  print_table(s, "hybrid", true, true, std::min<index_t>(s.largest, 1'000'000));
  print_table(s, "fixed tau", false, false, std::min<index_t>(s.largest, 1'000'000));
}
