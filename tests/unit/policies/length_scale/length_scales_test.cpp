// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <limits>

#include <attune/policies/length_scale/log_n.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/none.hpp>
#include <attune/policies/length_scale/ssmax.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

TEST_CASE("none: the score") {
  CHECK(length_scale::none{}.bind(row_with(2)).scale(4.0) == 4);
  CHECK(length_scale::none{}.bind(row_with(2)).scale(-inf) == -inf);
}

double const unit = std::log(std::expm1(1.0));  // softplus(unit) = 1, so that kappa = log K

TEST_CASE("margin: s + kappa (s - gamma)") {
  auto const f = length_scale::margin{unit, 3.0}.bind(row_with(2));  // kappa = 2
  CHECK(near(f.scale(4.0), 6));                                      // 4 + 2 (4 - 3)
  CHECK(near(f.scale(0.0), -6));
  CHECK(f.scale(3.0) == 3);  // the fixed point
  CHECK(f.row_constant() == 0);
  CHECK(f.scale(-inf) == -inf);
  auto const g = length_scale::margin{0.0, 0.0}.bind(row_with(2));  // softplus(0) = log 2
  CHECK(near(g.scale(1.0), 1 + 2 * ln2));
}

TEST_CASE("margin: a gamma beyond the scores is a row constant") {
  for (double gamma : {1e6, -1e6, 33.0, -33.0, 1e30}) {
    auto const f = length_scale::margin{unit, gamma}.bind(row_with(2));
    CHECK(near(f.scale(4.0), 12));  // 4 + 2 * 4: every digit of s, whatever gamma
    CHECK(near(f.row_constant(), -2 * gamma));
  }
  for (double gamma : {32.0, -32.0}) {  // the last that is used as written
    auto const f = length_scale::margin{unit, gamma}.bind(row_with(2));
    CHECK(near(f.scale(4.0), 12 - 2 * gamma));
    CHECK(f.row_constant() == 0);
  }
}

TEST_CASE("margin: an infinite gamma leaves no constant; the normalizer sees the infinity itself") {
  for (double gamma : {inf, -inf}) {
    auto const f = length_scale::margin{unit, gamma}.bind(row_with(2));
    CHECK(near(f.scale(4.0), 12));
    CHECK(f.row_constant() == 0);
  }
}

TEST_CASE("margin: alpha = -inf and K = 1 change no bit of the score") {
  for (double gamma : {0.1, 1e6, inf, -inf})
    for (auto const& f :
         {length_scale::margin{-inf, gamma}.bind(row_with(2)), length_scale::margin{5.0, gamma}.bind(row_with(0))}) {
      CHECK(f.scale(0.1) == 0.1);
      CHECK(f.scale(-inf) == -inf);
      CHECK(f.row_constant() == 0);
    }
}

TEST_CASE("margin: alpha far down keeps a small kappa") {
  auto const f = length_scale::margin{-100.0, 0.0}.bind(row_with(2));
  CHECK(near(f.kappa, 2 * 3.720075976020836e-44));  // 2 e^-100
}

TEST_CASE("margin: parameters at the end of float leave no NaN") {
  row<float> const r{{0, 0, 0, 1}, 0, 4, 2, 0.5f, 0};
  for (double alpha : {1e4, 1e30, 1e300}) {
    for (double gamma : {1e37, 3e38}) {  // no score reaches gamma: as written, everything lies infinitely far below
      auto const f = length_scale::margin{alpha, gamma}.bind(r);
      CHECK(f.scale(4.0f) == -std::numeric_limits<float>::infinity());
      CHECK(f.row_constant() == 0);
    }
    auto const f = length_scale::margin{alpha, -3e38}.bind(r);  // every score reaches gamma
    CHECK(std::isfinite(f.scale(4.0f)));
    CHECK(f.scale(4.0f) > f.scale(3.0f));
    CHECK(f.row_constant() == std::numeric_limits<float>::infinity());
  }
}

TEST_CASE("ssmax: (scale log K + bias) s") {
  CHECK(length_scale::ssmax{0.5, 1.0}.bind(row_with(2)).scale(3.0) == 6);  // (0.5 * 2 + 1) 3
  CHECK(length_scale::ssmax{}.bind(row_with(2)).scale(3.0) == 6);          // by default log K
  CHECK(length_scale::ssmax{0.0, 1.0}.bind(row_with(2)).scale(0.1) == 0.1);
}

TEST_CASE("ssmax: one visible key has factor 0, and -inf stays -inf") {
  auto const f = length_scale::ssmax{}.bind(row_with(0));
  CHECK(f.scale(7.0) == 0);
  CHECK(f.scale(-inf) == -inf);
  CHECK(std::isnan(f.scale(inf)));
}

TEST_CASE("log_n: s log K / log(training length)") {
  CHECK(near(length_scale::log_n{4.0}.bind(row_with(4 * ln2)).scale(3.0), 6));     // log 16 / log 4 = 2
  CHECK(near(length_scale::log_n{}.bind(row_with(std::log(512))).scale(3.0), 3));  // 512 by default
  CHECK(length_scale::log_n{4.0}.bind(row_with(0)).scale(3.0) == 0);
  CHECK(length_scale::log_n{4.0}.bind(row_with(0)).scale(-inf) == -inf);
}

}  // namespace
}  // namespace attune::test
