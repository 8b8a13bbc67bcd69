// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random calls, most of them wrong, of operators on a line of keys. Each computes what the dense reference computes, or
// throws attune::error before it writes anything.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <support/wild_tensor.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>
#include <attune/reference.hpp>

namespace attune::test {

/// The tensors of one call on a line, one of which may not be what it should be.
struct wild_line {
  rng random;
  index_t batch, key_heads, heads, value_heads, queries, keys, width;
  wild_tensor sort_q, sort_k, v, out, lse, by_out, by_lse;

  explicit wild_line(std::uint64_t seed) : random(seed) {
    batch = random.between(1, 2), key_heads = random.between(1, 2), heads = key_heads * random.between(1, 2);
    value_heads = random.chance(0.5) ? 1 : key_heads;
    queries = random.between(1, 6), keys = random.chance(0.1) ? 0 : random.between(1, 40), width = random.between(1, 4);
    int const victim = int(random.between(0, 13));
    auto const what = mishap(random.between(1, 7));
    int place = 0;
    auto const make = [&](shape const& e, bool output, bool optional) {
      auto const m = place++ == victim ? what : optional && random.chance(0.3) ? mishap::absent : mishap::none;
      return wild_tensor(e, m, output, random);
    };
    shape const q{batch, heads, queries, 1}, k{batch, key_heads, keys, 1}, value{batch, value_heads, keys, width};
    shape const o{batch, heads, queries, width};
    sort_q = make(q, false, false), sort_k = make(k, false, false), v = make(value, false, false);
    out = make(o, true, false), lse = make(q, true, true);
    by_out = make(o, false, false), by_lse = make(q, false, true);
  }
  template <class Op>
  inputs<Op, tensor<float const>> in() {
    return {.v = v.read(), .sort_q = sort_q.read(), .sort_k = sort_k.read()};
  }
  template <class Op>
  outputs<Op, float> to() {
    return {.out = out.view(), .lse = natural_lse<float>(lse.view())};
  }
};

struct tally {
  int computed = 0, refused = 0;
};

/// Calls, and sees that a call that throws has written nothing, and one that does not, nothing outside.
template <class Call>
bool comes_back(tally& to, std::vector<wild_tensor const*> const& outputs, Call const& call) {
  try {
    call();
  } catch (error const&) {
    ++to.refused;
    for (auto const* x : outputs) CHECK(x->untouched_everywhere());
    return false;
  }
  ++to.computed;
  for (auto const* x : outputs) {
    CHECK(x->untouched_outside());
    CHECK_FALSE(x->coincides());
  }
  return true;
}

/// Of an exact operator: every row within 1e-4, relative to 1 + |out|.
struct within_rounding {
  double operator()(double /*lse*/, index_t /*keys*/) const { return 1e-4; }
};

/// The outputs against the dense operator's, in double. allowed(lse, keys): the error of a row, relative to 1 + |out|.
template <class Op, class Allowed>
void compare(Op const& dense, wild_line& p, tensor<float> const& got, Allowed const& allowed) {
  auto const right = forward(
      reference<double>{}, dense,
      {.v = any_tensor(p.v.read()), .sort_q = any_tensor(p.sort_q.read()), .sort_k = any_tensor(p.sort_k.read())});
  REQUIRE(got.extents() ==
          shape{right.extents.batch, right.extents.heads, right.extents.queries, right.extents.value_width});
  for (index_t b = 0; b < right.extents.batch; ++b)
    for (index_t h = 0; h < right.extents.heads; ++h)
      for (index_t i = 0; i < right.extents.queries; ++i) {
        double const tolerance = allowed(Op::has_lse ? right.at(b, h).lse(i) : 0, right.extents.keys);
        for (index_t d = 0; d < right.extents.value_width; ++d)
          CHECK(std::fabs(double(got(b, h, i, d)) - right.at(b, h).out(i, d)) <
                tolerance * (1 + std::fabs(right.at(b, h).out(i, d))));
      }
}

/// One forward call, compared with the dense operator if it is not refused.
template <class Op, class Allowed = within_rounding>
void check_wild_line(Op const& op, std::uint64_t seed, tally& to, Allowed const& allowed = {}) {
  CAPTURE(seed);
  wild_line p(seed);
  if (comes_back(to, {&p.out, &p.lse}, [&] { forward(cpu{}, op, p.in<Op>(), p.to<Op>()); }))
    compare(op.dense(), p, p.out.view(), allowed);
}

/// As many calls as the configuration says, from a fixed seed and from a fresh one.
template <class Op, class Allowed = within_rounding>
void check_wild_lines(std::string const& name, Op const& op, Allowed const& allowed = {}) {
  bool const quick = case_count() < 1000;
  std::uint64_t const fresh = fresh_seed();
  MESSAGE(name << ": fresh calls from seed " << fresh);
  for (std::uint64_t const first : {std::uint64_t(1), fresh}) {
    tally forwards, gradients;
    index const count = quick ? 300 : 10000;
    for (index n = 0; n < count; ++n) {
      std::uint64_t const seed = first + std::uint64_t(n);
      CAPTURE(seed);
      check_wild_line(op, seed, forwards, allowed);
      wild_line g(seed);
      comes_back(gradients, {}, [&] {
        static_cast<void>(vjp(cpu{}, op, g.in<Op>(), {.out = g.by_out.read(), .lse = g.by_lse.read()}));
      });
    }
    CHECK(forwards.computed > count / 10);
    CHECK(forwards.refused > count / 10);
    CHECK(gradients.refused > count / 10);
    CHECK(gradients.computed > count / 20);
  }
}

}  // namespace attune::test
