// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every promise of a decoded row against sums in 50 digits: random keys of every kind, any eps, any tau.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <attune/line/decode.hpp>

#include "../../../support/exact_row.hpp"
#include "../../check.hpp"

namespace attune::test {
namespace {

enum class keys_are { uniform, clustered, equal, heavy_tailed, gapped, mirrored };
constexpr keys_are every_kind[] = {keys_are::uniform,      keys_are::clustered, keys_are::equal,
                                   keys_are::heavy_tailed, keys_are::gapped,    keys_are::mirrored};

class drawn {
 public:
  explicit drawn(unsigned seed) : random_(seed) {}
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(random_); }
  double normal() { return std::normal_distribution<double>()(random_); }
  index_t below(index_t n) { return index_t(random_() % std::mt19937::result_type(n)); }

  double key(keys_are kind, index_t j) {
    switch (kind) {
      case keys_are::uniform:
        return uniform(-1, 1);
      case keys_are::clustered:
        return double(j % 3) + 1e-3 * normal();
      case keys_are::equal:
        return 0.25;
      case keys_are::heavy_tailed:
        return normal() / normal();
      case keys_are::gapped:  // one key near, all others in a swarm just beyond: where a bound by the density fails
        return j == 0 ? 1.0 : uniform(1.005, 1.06);
      case keys_are::mirrored:  // ties on both sides of 0, exact and nearly so
        break;
    }
    double const distance = double(1 + below(4)) / 4;
    return (j % 2 == 0 ? 1 : -1) * (below(3) == 0 ? std::nextafter(distance, 2) : distance);
  }
  double query(keys_are kind) {
    if (kind == keys_are::mirrored || kind == keys_are::gapped) return below(2) == 0 ? 0.0 : uniform(-1e-3, 1e-3);
    return below(5) == 0 ? uniform(-20, 20) : uniform(-1, 1);
  }

 private:
  std::mt19937 random_;
};

struct seen {
  double worst_share = 0;  ///< error / promise
  index_t scored = 0, keys = 0, rows = 0;
};

/// A cache of n keys and some rows on it.
template <class T>
void check_cache(drawn& draw, keys_are kind, index_t n, index_t width, index_t rows, double widest_tau, seen& so_far) {
  line::sorted_cache<T> kv({.key_width = width, .value_width = 3});
  exact_problem p;
  auto const strength = draw.uniform(0, 3);
  auto const vector_of = [&](index_t size, double scale) {
    std::vector<T> x;
    for (index_t d = 0; d < size; ++d) x.push_back(T(scale * draw.normal()));
    return x;
  };
  auto const as_double = [](std::vector<T> const& x) { return std::vector<double>(x.begin(), x.end()); };
  for (index_t j = 0; j < n; ++j) {
    std::vector<T> const key{T(draw.key(kind, j))}, v = vector_of(3, 1), k = vector_of(width, strength);
    kv.insert(key, v, k);
    p.sort_k.push_back(double(key[0]));
    p.v.push_back(as_double(v));
    p.k.push_back(as_double(k));
  }
  double largest = 0;
  for (auto const& v : p.v) largest = std::max(largest, std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));

  for (index_t i = 0; i < rows; ++i) {
    T const sort_q = T(draw.query(kind));
    std::vector<T> const q = vector_of(width, 1);
    std::vector<T> out(3);
    p.sort_q = double(sort_q);
    p.q = as_double(q);
    p.tau = std::exp(draw.uniform(-12, std::log(widest_tau)));
    p.scale = 0.5;
    double const least_eps = std::is_same_v<T, float> ? 1e-6 : 1e-11;
    double const eps = std::exp(draw.uniform(std::log(least_eps), std::log(0.9)));
    line::row_report report;
    auto const run = [&](auto const& op, tensor<T const> const& vectors) {
      decode(cpu<T>{1}, op, kv, {.sort_q = {&sort_q, {1, 1, 1, 1}}, .q = vectors},
             {.out = {out, {1, 1, 1, 3}}, .rows = {&report, 1}});
    };
    line::certified const window{eps};
    if (width > 0)
      run(line::hybrid{p.tau, window, mask::none{}, line::no_sink{}, p.scale}, {q.data(), {1, 1, 1, width}});
    else
      run(line::windowed{p.tau, window}, {});
    exact_row const exact = exactly(p);
    double const error = distance(exact, out);
    CAPTURE(int(kind));
    CAPTURE(n);
    CAPTURE(p.tau);
    CAPTURE(eps);
    CHECK(report.discarded <= eps);
    CHECK(error <= report.output_error);
    CHECK(report.output_error <= (2 * eps + report.rounding) * largest * (1 + 1e-12));
    // The missing weight itself, from the two normalizers.
    double const missing =
        static_cast<double>(exact_number(1 - exp(exact_number(exact_number(report.lse) - exact.lse))));
    double const of_lse = 1e-15 * (std::fabs(report.lse) + 100) * (width > 0 ? 10 : 1);
    CHECK(missing <= report.discarded + of_lse);
    CHECK(missing >= -of_lse);
    CHECK(report.summed <= report.scored);
    so_far.worst_share = std::max(so_far.worst_share, error / report.output_error);
    so_far.scored += report.scored;
    so_far.keys += n;
    ++so_far.rows;
  }
}

TEST_SUITE("certificate") {
  TEST_CASE("300 rows of up to 300 keys") {
    drawn draw(1);
    seen so_far;
    for (int round = 0; round < 13; ++round)
      for (keys_are kind : every_kind) {
        check_cache<double>(draw, kind, 1 + draw.below(200), 0, 1, 1e3, so_far);
        check_cache<double>(draw, kind, 1 + draw.below(300), 4, 1, 1e3, so_far);
        check_cache<float>(draw, kind, 1 + draw.below(200), 0, 1, 1e3, so_far);
        check_cache<float>(draw, kind, 1 + draw.below(300), 5, 1, 1e3, so_far);
      }
    CHECK(so_far.rows >= 300);
  }
}

TEST_SUITE("full_certificate") {
  TEST_CASE("9,000 rows of up to 500 keys") {
    drawn draw(2);
    seen so_far;
    for (int round = 0; round < 75; ++round)
      for (keys_are kind : every_kind) {
        check_cache<double>(draw, kind, 1 + draw.below(500), 0, 5, 1e3, so_far);
        check_cache<double>(draw, kind, 1 + draw.below(500), 8, 5, 1e3, so_far);
        check_cache<float>(draw, kind, 1 + draw.below(500), 0, 5, 1e3, so_far);
        check_cache<float>(draw, kind, 1 + draw.below(500), 3, 5, 1e3, so_far);
      }
    CHECK(so_far.rows == 9000);
    MESSAGE("rows " << so_far.rows << ", largest error / promise " << so_far.worst_share);
  }
  TEST_CASE("1,000 rows of 10,000 keys and more") {
    drawn draw(3);
    seen so_far;
    for (int round = 0; round < 9; ++round)
      for (keys_are kind : every_kind) {
        // Wide rows cost 50 digits for every key: windows of some hundreds of keys, mostly.
        bool const spread = kind == keys_are::uniform || kind == keys_are::heavy_tailed;
        double const widest = spread ? 1e-4 : 1e-5;
        check_cache<double>(draw, kind, 10000 + draw.below(5000), round % 3 == 0 ? 2 : 0, 10, widest, so_far);
        check_cache<float>(draw, kind, 10000 + draw.below(20000), round % 3 == 1 ? 2 : 0, 10, widest, so_far);
      }
    CHECK(so_far.rows >= 1000);
    MESSAGE("rows " << so_far.rows << ", largest error / promise " << so_far.worst_share << ", keys scored "
                    << so_far.scored << " of " << so_far.keys);
  }
}

}  // namespace
}  // namespace attune::test
