// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The degenerate rows that every backend treats alike (docs: contracts). One test per row of that table, for every
// operator of the registry and every backend; expectations are exact unless a bound is named.

#include <doctest/doctest.h>

#include "../support/affine_row.hpp"
#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("contracts");

/// Whether a row of a result says: everything on the ground.
std::string row_is_ground(entry const& e, problem const& p, dimensions const& n, result const& r, index b, index h,
                          index i) {
  for (index d = 0; d < n.value_width; ++d) {
    double const expected = e.has_ground_value ? at(p.tensors.at("v0"), n, b, h, i, d) : 0;
    if (at(r.out, n, b, h, i, d) != expected)
      return "out " + std::to_string(at(r.out, n, b, h, i, d)) + " is not " + std::to_string(expected);
  }
  if (e.has_ground_weight && at(r.ground_weight, n, b, h, i) != 1)
    return "w0 " + std::to_string(at(r.ground_weight, n, b, h, i)) + " is not 1";
  if (e.has_threshold && !std::isnan(at(r.threshold, n, b, h, i)))
    return "threshold " + std::to_string(at(r.threshold, n, b, h, i)) + " is not NaN";
  return {};
}

/// lse of a row where no key has mass.
double empty_lse(policies const& what, problem const& p, dimensions const& n, index b, index h, index i) {
  return what.off_by_one() ? 0 : what.sink() ? parameter(p, "sink", n.heads, b, h, i, 0) : -infinity;
}

/// The tensors with a row per query, the tensors with a row per key and those with a slot per pair, of which logits are
/// made.
constexpr char const* query_tensors[] = {"q", "gate_q", "sort_q", "position_q", "center", "spread"};
constexpr char const* key_tensors[] = {"k", "gate_k", "sort_k", "position_k", "place", "key_bias"};
constexpr char const* pair_tensors[] = {"scores", "gates", "bias"};

/// The tensor that holds, and the value that makes, one logit -inf; null if the operator has no such tensor.
std::pair<char const*, double> pair_switch(policies const& what) {
  if (what.gate == "given_softplus") return {"gates", -infinity};
  if (what.softcap) return {nullptr, 0};  // a cap makes -inf finite
  if (what.given) return {"scores", -infinity};
  if (what.has("log_prior")) return {"bias", 0};
  return {nullptr, 0};
}

/// Makes every logit of row (b, h, i) -inf, by whatever the operator offers; false if nothing does.
bool switch_row_off(problem& p, policies const& what, dimensions const& n, index b, index h, index i) {
  if (auto const [tensor, off] = pair_switch(what); tensor != nullptr) {
    for (index j = 0; j < n.keys; ++j) element(p.tensors[tensor], n.heads, b, h, i, j) = off;
    return true;
  }
  if (what.softcap) return false;
  element(p.tensors[p.tensors.count("q") ? "q" : "sort_q"], n.heads, b, h, i, 0) =
      -infinity;  // what it meets is 1, see below
  return true;
}

void ready_to_switch_off(problem& p, dimensions const& n) {
  if (p.tensors.count("k")) {
    array& k = p.tensors["k"];
    for (index g = 0; g < k.shape[1]; ++g)
      for (index j = 0; j < n.keys; ++j) element(k, k.shape[1], 0, g, j, 0) = 1;
  }
  for (char const* name : {"metric", "relative"})
    if (p.tables.count(name)) std::fill(p.tables[name].data.begin(), p.tables[name].data.end(), 1);
  set_parameter(p, "scale", 0.5);
}

TEST_CASE("contract: no visible key") {
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        for (double limit : {0., 1.}) {
          recipe how;
          how.parameter_limit = limit;
          problem p = make_problem(e, n, how, random);
          auto const sees = [](index, index h, index i, index j) { return (i + h) % 2 == 1 && j % 3 != 0; };
          set_mask(p, n.batch, n.heads, n.queries, n.keys, sees);
          poison(p, n, random);
          for (char const* t : query_tensors)  // a row that sees no key does not read its query either
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

/// What a key of logit a gets if it is the only one.
double weight_of_only_key(policies const& what, problem const& p, dimensions const& n, result const& r, index b,
                          index h, index i, double a) {
  auto const row = [&](char const* name) { return parameter(p, name, n.heads, b, h, i, 0); };
  auto const sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  if (what.affine()) {
    auto const x = affine_of(what, p, n, r, b, h, i);
    return x.alpha + x.share / x.keys;
  }
  if (what.adjusted()) return what.is("adjusted_product") ? a : what.is("adjusted_with_zero") && a > 0 ? 1 : 0;
  if (what.is("sigmoid")) return sigmoid(a + row("sig_bias"));  // -log K is 0
  if (what.is("exponential")) return std::exp(a);
  if (what.is("relu") || what.is("mean_relu")) return std::fmax(a, 0);
  if (what.is("normalized_relu")) return a > 0 ? 1 : 0;
  if (what.is("centered_relu")) return 0;
  if (what.grounded()) return std::exp(a - 1e4);
  if (what.sink() || what.off_by_one()) return sigmoid(a - row("sink"));
  return 1;
}

TEST_CASE("contract: one visible key") {
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        problem p = make_problem(e, n, {}, random);
        auto const only = [&](index i) { return (3 * i + 1) % n.keys; };
        set_mask(p, 1, 1, n.queries, n.keys, [&](index, index, index i, index j) { return j == only(i); });
        set_parameter(p, "alpha", 1e4);  // log K = 0 switches the amplification off whatever its strength
        set_parameter(p, "gamma", 1e4);
        result const r = e.run(p, b, {}), exact = e.run(p, backend::reference_50, {});
        each_row(n, [&](index bb, index h, index i) {
          index const j = only(i);
          double const s = at(exact.scores, n, bb, h, i, j), a = at(exact.logits, n, bb, h, i, j),
                       bias = parameter(p, "ss_bias", n.heads, bb, h, i, 0);
          if (!std::isfinite(s)) return;  // a prior of 0
          if (what.normalizer == "softmax" && what.post.empty())
            for (index d = 0; d < n.value_width; ++d)
              CHECK_MESSAGE(at(r.out, n, bb, h, i, d) == at(p.tensors.at("v"), n, bb, h, j, d), where);
          if (what.gate == "none" && what.length_scale != "yarn")
            CHECK_MESSAGE(std::fabs(a - (what.length_scale == "logn"    ? 0
                                         : what.length_scale == "ssmax" ? bias * s
                                                                        : s)) <= 0x1p-50 * std::fabs(s),
                          where);
          double const w = weight_of_only_key(what, p, n, exact, bb, h, i, a);
          CHECK_MESSAGE(std::fabs(at(exact.weights, n, bb, h, i, j) - w) <= 1e-14 * (1 + std::fabs(w)),
                        where << ", w is not " << w);
        });
        comparison const c = check(e, p, b, r, exact);
        CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
      });
}

TEST_CASE("contract: all logits -inf") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where,
                rng& random) {
    for (double level : {-infinity, -1.5, infinity}) {  // gamma; sinks: -inf or finite
      if (level == infinity && !what.grounded()) continue;
      problem p = make_problem(e, n, {}, random);
      ready_to_switch_off(p, n);
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
        if (!what.grounded() && !e.has_lse) return;
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
    auto const off_switch = pair_switch(what);
    if (off_switch.first == nullptr) return;
    problem p = make_problem(e, n, {}, random);
    make_values_identity(p, n);
    auto const off = [&](index i, index j) { return (i * i + 2 * j) % 5 < 2; };
    each_row(n, [&](index bb, index h, index i) {
      for (index j = 0; j < n.keys; ++j)
        if (off(i, j)) element(p.tensors[off_switch.first], n.heads, bb, h, i, j) = off_switch.second;
    });
    result const r = e.run(p, b, {}),
                 exact = e.run(p, n.keys > small.keys ? backend::reference_double : backend::reference_50, {});
    index leaks = 0;
    each_row(n, [&](index bb, index h, index i) {
      double expected = 0, slack = 0;
      if (what.affine()) {  // the uniform share remains
        auto const x = affine_of(what, p, n, exact, bb, h, i);
        expected = x.share / x.keys;
        slack = 64 * accuracy_of(b).eps * (std::fabs(x.average) + std::fabs(x.alpha) + 1) / x.keys;
      }
      for (index j = 0; j < n.keys; ++j)
        leaks += off(i, j) && !(std::fabs(at(r.out, n, bb, h, i, j) - expected) <= slack) ? 1 : 0;
    });
    CHECK_MESSAGE(leaks == 0, where << ": keys of logit -inf with a weight: " << leaks);
    comparison c = check(e, p, b, r, exact);
    CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
    // Where K plays no role such a key might as well be masked: no extreme, no candidate, no mass.
    if (what.length_scale != "none" || !(what.normalizer == "softmax" || what.adjusted() || what.candidates())) return;
    problem removed = p;
    set_mask(removed, 1, 1, n.queries, n.keys, [&](index, index, index i, index j) { return !off(i, j); });
    c = check(e, removed, b, r, e.run(removed, backend::reference_double, {}));
    CHECK_MESSAGE(c.failure.empty(), where << ", masked instead: " << c.failure);
  });
}

/// Rows for which touched(b, h, i) holds must have NaN in every feature of out, and in lse, w0 and threshold; others
/// keep each bit.
enum class poisoned { nothing, out, all };
template <class Touched>
void check_isolation(std::string const& where, dimensions const& n, result const& before, result const& after,
                     poisoned what, Touched touched) {
  bool const all = what == poisoned::all;
  std::string wrong;
  each_row(n, [&](index b, index h, index i) {
    bool const hit = touched(b, h, i);
    auto const look = [&](char const* output, array const& x, array const& y, index width, bool must_be_nan) {
      for (index d = 0; d < (x.empty() ? 0 : width); ++d) {
        double const old = at(x, n, b, h, i, d), now = at(y, n, b, h, i, d);
        if (hit ? must_be_nan && !std::isnan(now) : old != now && !(std::isnan(old) && std::isnan(now)))
          wrong = std::string(output) + (hit ? " is not NaN" : " changed") + " in row " + std::to_string(i) +
                  " of head " + std::to_string(h);
      }
    };
    look("out", before.out, after.out, n.value_width, what != poisoned::nothing);
    look("lse", before.lse, after.lse, 1, all);
    look("w0", before.ground_weight, after.ground_weight, 1, all);
    look("threshold", before.threshold, after.threshold, 1, all);
  });
  CHECK_MESSAGE(wrong.empty(), where << ": " << wrong);
}

TEST_CASE("contract: +inf or NaN logit at a visible key") {
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        problem p = make_problem(e, n, {}, random);
        set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index i, index j) { return (i + j) % 3 != 0; });
        result const before = e.run(p, b, {});
        for (double bad : {not_a_number, infinity}) {
          std::string const here = where + ", " + std::to_string(bad);
          for (char const* t : pair_tensors) {  // one logit of one row
            bool const is_gate = std::string(t) == "gates";
            if (!p.tensors.count(t) || (bad == infinity && (is_gate || what.softcap))) continue;
            problem broken = p;
            for (index j : {index{1}, n.keys - 1})  // n.queries - 1 sees one of them
              if (visible(p, 0, 0, n.queries - 1, j)) element(broken.tensors[t], n.heads, 0, 1, n.queries - 1, j) = bad;
            result const after = e.run(broken, b, {});
            bool const map_stays = bad == infinity && what.summed();  // a weight is F(+inf): a sigmoid's is 1
            check_isolation(here + " in " + t, n, before, after,
                            map_stays ? poisoned::nothing
                            : bad == infinity && (what.grounded() || what.sink() || what.off_by_one()) ? poisoned::out
                                                                                                       : poisoned::all,
                            [&](index, index h, index i) { return h == 1 && i == n.queries - 1; });
            if (map_stays && what.is("sigmoid")) {
              comparison const c = check(e, broken, b, after, e.run(broken, backend::reference_double, {}));
              CHECK_MESSAGE(c.failure.empty(), here << ": " << c.failure);
              double const out = at(after.out, n, 0, 1, n.queries - 1);
              CHECK_MESSAGE(std::isfinite(out), here << ": a weight of 1 leaves out finite");
            }
          }
          if (bad == infinity) continue;
          for (char const* t : query_tensors) {  // one query: its row
            if (!p.tensors.count(t)) continue;
            problem broken = p;
            element(broken.tensors[t], n.heads, 0, 1, 2, 0) = bad;
            check_isolation(here + " in " + t, n, before, e.run(broken, b, {}), poisoned::all,
                            [](index, index h, index i) { return h == 1 && i == 2; });
          }
          for (char const* t : key_tensors) {  // one key: all rows that see it, and no other row of the tile
            if (!p.tensors.count(t)) continue;
            problem broken = p;
            element(broken.tensors[t], 1, 0, 0, n.keys - 2, 0) = bad;
            check_isolation(here + " in " + t, n, before, e.run(broken, b, {}), poisoned::all,
                            [&](index bb, index h, index i) { return visible(p, bb, h, i, n.keys - 2); });
          }
        }
      });
}

TEST_CASE("contract: weight 0 on a visible key with non-finite v") {
  everywhere([](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where,
                rng& random) {
    auto const off_switch = pair_switch(what);
    if (off_switch.first == nullptr) return;
    problem p = make_problem(e, n, {}, random);
    set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index i, index j) { return (i + j) % 3 != 0; });
    index const key = n.keys - 3;
    each_row(n, [&](index bb, index h, index i) {
      element(p.tensors[off_switch.first], n.heads, bb, h, i, key) = off_switch.second;
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
          bool const hit =
              d == 1 && visible(p, bb, h, i, key) && !what.candidates();  // outside a support nothing is read
          hidden += hit && !(what.affine() ? !std::isfinite(x) : std::isnan(x)) ? 1 : 0;  // a share times inf is inf
          changed += !hit && x != at(before.out, n, bb, h, i, d) ? 1 : 0;
        }
      });
      CHECK_MESSAGE(hidden == 0, where << ", v = " << bad << ": 0 * v is NaN (IEEE, only masks hide), but not in "
                                       << hidden << " rows");
      CHECK_MESSAGE(changed == 0, where << ", v = " << bad << ": other elements that changed: " << changed);
    }
  });
}

TEST_CASE("contract: ties") {
  everywhere([](entry const& e, policies const& what, dimensions n, backend b, std::string const& where, rng& random) {
    if (e.tensors != std::vector<std::string>{"v", "scores"} || what.softcap || what.length_scale != "none") return;
    problem p = make_problem(e, n, {}, random);
    make_values_identity(p, n);
    std::fill(p.tensors["scores"].data.begin(), p.tensors["scores"].data.end(), 1.5);
    set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index i, index j) { return (i + j) % 3 != 0; });
    result const r = e.run(p, b, {});
    index wrong = 0;
    each_row(n, [&](index bb, index h, index i) {
      double const share = 1 / static_cast<double>(visible_count(p, n, bb, h, i)), eps = 16 * accuracy_of(b).eps;
      index before = 0;
      for (index j = 0; j < n.keys; ++j) {
        double const w = at(r.out, n, bb, h, i, j);
        if (!visible(p, bb, h, i, j)) continue;
        if (what.deformed() && !(std::fabs(w - share) <= eps * share * std::sqrt(1 / share)))
          ++wrong;  // equal logits share equally
        if (what.is("top_k") && !(before < 3 ? std::fabs(w - std::fmax(share, 1. / 3)) <= eps : w == 0))
          ++wrong;                                              // lower index
        if (what.is("adjusted_full_range") && w != 0) ++wrong;  // equal ends
        ++before;
      }
    });
    CHECK_MESSAGE(wrong == 0, where << ": wrong weights of equal logits: " << wrong);
    if (what.grounded()) {  // a key at gamma exactly counts as above
      set_parameter(p, "gamma", 1.5);
      result const level = e.run(p, b, {});
      CHECK_MESSAGE(std::all_of(level.ground_weight.data.begin(), level.ground_weight.data.end(),
                                [](double w) { return w == 0; }),
                    where);
    }
    if (what.normalizer == "sparsemax") {  // a logit on the threshold is outside: its value is never read
      for (std::size_t x = 0; x < p.tensors["scores"].data.size(); ++x)
        p.tensors["scores"].data[x] = static_cast<index>(x) % n.keys == 4 ? 2.5 : 1.5;
      set_mask(p, 1, 1, n.queries, n.keys, [](index, index, index, index) { return true; });
      for (index g = 0; g < n.value_heads; ++g) element(p.tensors["v"], n.value_heads, 0, g, 0, 0) = not_a_number;
      result const sharp = e.run(p, b, {});
      each_row(n, [&](index bb, index h, index i) {
        for (index j = 0; j < n.keys; ++j) CHECK_MESSAGE(at(sharp.out, n, bb, h, i, j) == (j == 4 ? 1 : 0), where);
        CHECK_MESSAGE(at(sharp.threshold, n, bb, h, i) == 1.5, where);
      });
    }
  });
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
