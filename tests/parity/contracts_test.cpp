// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The degenerate rows that every backend treats alike (docs: contracts). One test per row of that table, for every
// operator of the registry and every backend; expectations are exact unless a bound is named.

#include <doctest/doctest.h>

#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("contracts");

/// Whether a row of a result says: everything on the ground.
std::string row_is_ground(entry const& e, problem const& p, dimensions const& n, result const& r, index b, index h, index i) {
  for (index d = 0; d < n.value_width; ++d) {
    double const expected = e.has_ground_value ? at(p.tensors.at("v0"), n, b, h, i, d) : 0;
    if (at(r.out, n, b, h, i, d) != expected)
      return "out " + std::to_string(at(r.out, n, b, h, i, d)) + " is not " + std::to_string(expected);
  }
  if (e.has_ground_weight && at(r.ground_weight, n, b, h, i) != 1)
    return "w0 " + std::to_string(at(r.ground_weight, n, b, h, i)) + " is not 1";
  return {};
}

/// lse of a row where no key has mass.
double empty_lse(policies const& what, problem const& p, dimensions const& n, index b, index h, index i) {
  return what.off_by_one() ? 0 : what.sink() ? parameter(p, "sink", n.heads, b, h, i, 0) : -infinity;
}

/// Makes every logit of row (b, h, i) -inf, by whatever the operator offers; false if nothing does.
bool switch_row_off(problem& p, policies const& what, dimensions const& n, index b, index h, index i) {
  if (what.gate == "given_softplus") {
    for (index j = 0; j < n.keys; ++j) element(p.tensors["gates"], n.heads, b, h, i, j) = -infinity;
    return true;
  }
  if (what.softcap) return false;  // a cap makes -inf finite
  if (what.given)
    for (index j = 0; j < n.keys; ++j) element(p.tensors["scores"], n.heads, b, h, i, j) = -infinity;
  else
    element(p.tensors["q"], n.heads, b, h, i, 0) = -infinity;  // keys have 1 there, see below
  return true;
}

void ready_to_switch_off(problem& p, policies const& what, dimensions const& n) {
  if (what.given) return;
  array& k = p.tensors["k"];
  for (index g = 0; g < k.shape[1]; ++g)
    for (index j = 0; j < n.keys; ++j) element(k, k.shape[1], 0, g, j, 0) = 1;
  set_parameter(p, "scale", 0.5);
}

TEST_CASE("contract: no visible key") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
    for (double limit : {0., 1.}) {
      recipe how;
      how.parameter_limit = limit;
      problem p = make_problem(e, n, how, random);
      auto const sees = [](index, index h, index i, index j) { return (i + h) % 2 == 1 && j % 3 != 0; };
      set_mask(p, n.batch, n.heads, n.queries, n.keys, sees);
      poison(p, n, random);
      for (char const* t : {"q", "gate_q"})  // a row that sees no key does not read its query either
        if (p.tensors.count(t))
          each_row(n, [&](index bb, index h, index i) {
            if (!sees(bb, h, i, 1)) element(p.tensors[t], n.heads, bb, h, i, 0) = not_a_number;
          });
      result const r = e.run(p, b, {});
      each_row(n, [&](index bb, index h, index i) {
        if (sees(bb, h, i, 1)) return;
        std::string const wrong = row_is_ground(e, p, n, r, bb, h, i);
        CHECK_MESSAGE(wrong.empty(), where << ": " << wrong);
        if (e.has_lse) CHECK_MESSAGE(at(r.lse, n, bb, h, i) == empty_lse(what, p, n, bb, h, i), where);
      });
    }
  });
}

TEST_CASE("contract: no visible key, for no key exists") {
  everywhere([](entry const& e, policies const& what, dimensions n, backend b, std::string const& where, rng& random) {
    n.keys = 0;
    problem const p = make_problem(e, n, {}, random);
    result const r = e.run(p, b, {});
    each_row(n, [&](index bb, index h, index i) {
      std::string const wrong = row_is_ground(e, p, n, r, bb, h, i);
      CHECK_MESSAGE(wrong.empty(), where << ", Lk 0: " << wrong);
      if (e.has_lse) CHECK_MESSAGE(at(r.lse, n, bb, h, i) == empty_lse(what, p, n, bb, h, i), where << ", Lk 0");
    });
  });
}

TEST_CASE("contract: one visible key") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
    problem p = make_problem(e, n, {}, random);
    auto const only = [&](index i) { return (3 * i + 1) % n.keys; };
    set_mask(p, 1, 1, n.queries, n.keys, [&](index, index, index i, index j) { return j == only(i); });
    set_parameter(p, "alpha", 1e4);  // log K = 0 switches the amplification off whatever its strength
    set_parameter(p, "gamma", 1e4);
    result const r = e.run(p, b, {}), exact = e.run(p, backend::reference_50, {});
    each_row(n, [&](index bb, index h, index i) {
      index const j = only(i);
      if (what.normalizer == "softmax")
        for (index d = 0; d < n.value_width; ++d)
          CHECK_MESSAGE(at(r.out, n, bb, h, i, d) == at(p.tensors.at("v"), n, bb, h, j, d), where);
      double const s = at(exact.scores, n, bb, h, i, j), a = at(exact.logits, n, bb, h, i, j),
                   bias = parameter(p, "ss_bias", n.heads, bb, h, i, 0);
      if (what.gate == "none")
        CHECK_MESSAGE(std::fabs(a - (what.length_scale == "logn"    ? 0
                                     : what.length_scale == "ssmax" ? bias * s
                                                                    : s)) <= 0x1p-50 * std::fabs(s),
                      where);
      double const level = what.sink() ? parameter(p, "sink", n.heads, bb, h, i, 0) : 0;
      double const w = what.normalizer == "softmax" ? 1 : what.grounded() ? std::exp(a - 1e4) : detail::sigmoid(a - level);
      CHECK_MESSAGE(std::fabs(at(exact.weights, n, bb, h, i, j) - w) <= 1e-14, where);
    });
    comparison const c = check(e, p, n, b, r, exact);
    CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
  });
}

TEST_CASE("contract: all logits -inf") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
    for (double level : {-infinity, -1.5, infinity}) {  // gamma; sinks: -inf or finite
      if (level == infinity && !what.grounded()) continue;
      problem p = make_problem(e, n, {}, random);
      ready_to_switch_off(p, what, n);
      if (what.grounded() || std::isfinite(level)) set_parameter(p, "gamma", level);
      set_parameter(p, "sink", level);
      bool possible = true;
      each_row(n, [&](index bb, index h, index i) {
        if (i % 2 == 0) possible &= switch_row_off(p, what, n, bb, h, i);
      });
      if (!possible) continue;
      result const r = e.run(p, b, {});
      each_row(n, [&](index bb, index h, index i) {
        if (i % 2 != 0) return;
        std::string const here = where + ", level " + std::to_string(level);
        double const lse = e.has_lse ? at(r.lse, n, bb, h, i) : 0, log_count = std::log(static_cast<double>(n.keys));
        if (what.grounded() && level == -infinity) {  // softmax: nothing earned, nothing given
          CHECK_MESSAGE(at(r.ground_weight, n, bb, h, i) == 0, here);
          for (index d = 0; d < n.value_width; ++d) CHECK_MESSAGE(at(r.out, n, bb, h, i, d) == 0, here);
          CHECK_MESSAGE(lse == -infinity, here);
          return;
        }
        std::string const wrong = row_is_ground(e, p, n, r, bb, h, i);
        CHECK_MESSAGE(wrong.empty(), here << ": " << wrong);
        if (!what.grounded())
          CHECK_MESSAGE(lse == empty_lse(what, p, n, bb, h, i), here);
        else if (level == infinity)
          CHECK_MESSAGE(lse == infinity, here);
        else
          CHECK_MESSAGE(std::fabs(lse - (level + log_count)) <= 8 * accuracy_of(b).eps * (1 + log_count),
                        here << ": lse " << lse);
      });
    }
  });
}

TEST_CASE("contract: some logits -inf") {
  everywhere([](entry const& e, policies const& what, dimensions n, backend b, std::string const& where, rng& random) {
    if (!what.given && what.gate != "given_softplus") return;
    if (what.given && what.softcap && what.gate != "given_softplus") return;
    problem p = make_problem(e, n, {}, random);
    make_values_identity(p, n);
    array& planted = p.tensors[what.gate == "given_softplus" ? "gates" : "scores"];
    auto const off = [&](index i, index j) { return (i * i + 2 * j) % 5 < 2; };
    each_row(n, [&](index bb, index h, index i) {
      for (index j = 0; j < n.keys; ++j)
        if (off(i, j)) element(planted, n.heads, bb, h, i, j) = -infinity;
    });
    result const r = e.run(p, b, {}),
                 exact = e.run(p, n.keys > small.keys ? backend::reference_double : backend::reference_50, {});
    index leaks = 0;
    each_row(n, [&](index bb, index h, index i) {
      for (index j = 0; j < n.keys; ++j) leaks += off(i, j) && at(r.out, n, bb, h, i, j) != 0 ? 1 : 0;
    });
    CHECK_MESSAGE(leaks == 0, where << ": keys of logit -inf with a weight: " << leaks);
    comparison const c = check(e, p, n, b, r, exact);
    CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
  });
}

/// Rows for which touched(b, h, i) holds must have NaN in every feature of out (and lse, w0 where `all`), others keep each bit.
template <class Touched>
void check_isolation(std::string const& where, dimensions const& n, result const& before, result const& after, bool all,
                     Touched touched) {
  std::string wrong;
  each_row(n, [&](index b, index h, index i) {
    bool const hit = touched(b, h, i);
    auto const look = [&](char const* what, array const& x, array const& y, index width, bool must_be_nan) {
      for (index d = 0; d < (x.empty() ? 0 : width); ++d) {
        double const old = at(x, n, b, h, i, d), now = at(y, n, b, h, i, d);
        if (hit ? must_be_nan && !std::isnan(now) : old != now)
          wrong = std::string(what) + (hit ? " is not NaN" : " changed") + " in row " + std::to_string(i) + " of head " +
                  std::to_string(h);
      }
    };
    look("out", before.out, after.out, n.value_width, true);
    look("lse", before.lse, after.lse, 1, all);
    look("w0", before.ground_weight, after.ground_weight, 1, all);
  });
  CHECK_MESSAGE(wrong.empty(), where << ": " << wrong);
}

TEST_CASE("contract: +inf or NaN logit at a visible key") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
    problem p = make_problem(e, n, {}, random);
    set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index i, index j) { return (i + j) % 3 != 0; });
    result const before = e.run(p, b, {});
    for (double bad : {not_a_number, infinity}) {
      std::string const here = where + ", " + std::to_string(bad);
      for (char const* t : {"scores", "gates"}) {  // one logit of one row
        bool const is_score = std::string(t) == "scores";
        if (!p.tensors.count(t) || (bad == infinity && (!is_score || what.softcap))) continue;
        problem broken = p;
        for (index j : {index{1}, n.keys - 1})  // n.queries - 1 sees one of them
          if (visible(p, 0, 0, n.queries - 1, j)) element(broken.tensors[t], n.heads, 0, 1, n.queries - 1, j) = bad;
        check_isolation(here + " in " + t, n, before, e.run(broken, b, {}), std::isnan(bad),
                        [&](index, index h, index i) { return h == 1 && i == n.queries - 1; });
      }
      if (std::isfinite(bad) || bad == infinity) continue;
      for (char const* t : {"q", "gate_q"}) {  // one query: its row
        if (!p.tensors.count(t)) continue;
        problem broken = p;
        element(broken.tensors[t], n.heads, 0, 1, 2, 0) = bad;
        check_isolation(here + " in " + t, n, before, e.run(broken, b, {}), true,
                        [](index, index h, index i) { return h == 1 && i == 2; });
      }
      for (char const* t : {"k", "gate_k"}) {  // one key: all rows that see it, and no other row of the tile
        if (!p.tensors.count(t)) continue;
        problem broken = p;
        element(broken.tensors[t], 1, 0, 0, n.keys - 2, 0) = bad;
        check_isolation(here + " in " + t, n, before, e.run(broken, b, {}), true,
                        [&](index bb, index h, index i) { return visible(p, bb, h, i, n.keys - 2); });
      }
    }
    if (what.normalizer == "softmax" && what.given && !what.softcap) {
      problem broken = p;
      element(broken.tensors["scores"], n.heads, 0, 0, 1, 0) = infinity;
      CHECK_MESSAGE(std::isnan(at(e.run(broken, b, {}).lse, n, 0, 0, 1)), where << ": lse of a row with +inf");
    }
  });
}

TEST_CASE("contract: weight 0 on a visible key with non-finite v") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
    bool const by_gate = what.gate == "given_softplus";
    if (!by_gate && (!what.given || what.softcap)) return;
    problem p = make_problem(e, n, {}, random);
    set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index i, index j) { return (i + j) % 3 != 0; });
    index const key = n.keys - 3;
    each_row(n, [&](index bb, index h, index i) {
      element(p.tensors[by_gate ? "gates" : "scores"], n.heads, bb, h, i, key) = -infinity;
    });
    result const before = e.run(p, b, {});
    for (double bad : {not_a_number, infinity, -infinity}) {
      problem broken = p;
      array& v = broken.tensors["v"];
      for (index g = 0; g < v.shape[1]; ++g) element(v, v.shape[1], 0, g, key, 1) = bad;
      result const after = e.run(broken, b, {});
      index hidden = 0, changed = 0;
      each_row(n, [&](index bb, index h, index i) {
        for (index d = 0; d < n.value_width; ++d) {
          double const x = at(after.out, n, bb, h, i, d);
          bool const hit = d == 1 && visible(p, bb, h, i, key);
          hidden += hit && !std::isnan(x) ? 1 : 0;
          changed += !hit && x != at(before.out, n, bb, h, i, d) ? 1 : 0;
        }
      });
      CHECK_MESSAGE(hidden == 0,
                    where << ", v = " << bad << ": 0 * v is NaN (IEEE, only masks hide), but not in " << hidden << " rows");
      CHECK_MESSAGE(changed == 0, where << ", v = " << bad << ": other elements that changed: " << changed);
    }
  });
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
