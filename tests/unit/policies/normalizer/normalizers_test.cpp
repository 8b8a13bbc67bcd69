// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Masses by hand; whole rows: operators/row_state_test.cpp.
#include <attune/policies/normalizer/grounded.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/sink.hpp>
#include <attune/policies/normalizer/softmax.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

row<double> const plain = row_with(0), shifted = row_with(0, 0, 5);  // row constant 5

TEST_CASE("every normalizer: a key earns e^(a - m)") {
  auto const check = [](auto const& f) {
    CHECK(f.earned(3.0, 3.0) == 1);
    CHECK(near(f.earned(3 - ln2, 3.0), 0.5));
    CHECK(f.earned(-inf, 3.0) == 0);
    CHECK(f.earned(-1e4, 1e4) == 0);
    CHECK(std::isnan(f.earned(nan, 3.0)));
    CHECK(std::isnan(f.earned(inf, inf)));
  };
  check(normalizer::softmax{}.bind(plain));
  check(normalizer::off_by_one{}.bind(plain));
  check(normalizer::valued_off_by_one{}.bind(plain));
  check(normalizer::sink{1.0}.bind(plain));
  check(normalizer::valued_sink{1.0}.bind(plain));
  check(normalizer::grounded{1.0}.bind(plain));
}

TEST_CASE("sink: a mass of e^(t - m), at the true logit") {
  auto const f = normalizer::sink{ln2}.bind(plain);
  CHECK(f.lowest_reference() == ln2);
  CHECK(f.constant(ln2) == 1);
  CHECK(near(f.constant(2 * ln2), 0.5));
  auto const g = normalizer::sink{7.0}.bind(shifted);  // logits arrive without the constant 5: so does the sink's
  CHECK(g.lowest_reference() == 2);
  CHECK(near(g.constant(2 + ln2), 0.5));
}

TEST_CASE("sink: infinite logits") {
  auto const off = normalizer::sink{-inf}.bind(plain), all = normalizer::sink{inf}.bind(plain);
  CHECK(off.constant(-3.0) == 0);
  CHECK(off.lowest_reference() == -inf);
  CHECK(all.constant(inf) == 1);
  CHECK(all.earned(3.0, inf) == 0);
}

TEST_CASE("off_by_one: a sink of logit 0") {
  auto const f = normalizer::off_by_one{}.bind(plain);
  CHECK(f.lowest_reference() == 0);
  CHECK(f.constant(0.0) == 1);
  CHECK(near(f.constant(2 * ln2), 0.25));
  CHECK(normalizer::valued_off_by_one{}.bind(shifted).lowest_reference() == -5);
}

TEST_CASE("grounded: a key below gamma leaves e^gamma - e^a to the ground, relative to e^m") {
  auto const f = normalizer::grounded{2 * ln2}.bind(plain);  // e^gamma = 4
  CHECK(f.lowest_reference() == 2 * ln2);
  CHECK(near(f.ground(0.0, 2 * ln2), 0.75));  // (4 - 1) / 4
  CHECK(near(f.ground(ln2, 2 * ln2), 0.5));   // (4 - 2) / 4
  CHECK(near(f.ground(ln2, 3 * ln2), 0.25));  // (4 - 2) / 8
  CHECK(f.ground(2 * ln2, 2 * ln2) == 0);     // at gamma counts as above
  CHECK(f.ground(5.0, 5.0) == 0);
  CHECK(f.ground(-inf, 2 * ln2) == 1);  // earned nothing, left everything
  auto const g = normalizer::grounded{7.0}.bind(shifted);
  CHECK(g.lowest_reference() == 2);
  CHECK(near(g.ground(2 - ln2, 2.0), 0.5));
}

TEST_CASE("grounded: what a key lacks by a hair is not 0") {
  CHECK(near(normalizer::grounded{0.0}.bind(plain).ground(-1e-20, 0.0), 1e-20));
}

TEST_CASE("grounded: infinite gamma") {
  auto const all = normalizer::grounded{inf}.bind(plain), none = normalizer::grounded{-inf}.bind(plain);
  CHECK(all.ground(3.0, inf) == 1);
  CHECK(all.earned(3.0, inf) == 0);
  CHECK(none.ground(3.0, 3.0) == 0);
  CHECK(none.ground(-inf, 3.0) == 0);
}

}  // namespace
}  // namespace attune::test
