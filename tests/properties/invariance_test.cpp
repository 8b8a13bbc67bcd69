// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What must not change a result: the order of keys, how keys are split and merged, a common shift of logits; and what
// may change it in one direction only.

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("invariance");

/// The problem with key j taken from order[j].
problem permute_keys(problem const& p, dimensions const& n, std::vector<index> const& order) {
  problem moved = p;
  for (auto& [name, a] : moved.tensors) {
    bool const columns = is_of_pairs(name);
    if (!columns && !is_of_keys(name)) continue;
    array const& from = p.tensors.at(name);
    index const width = columns ? 1 : a.shape[3];
    for (std::size_t x = 0; x < a.data.size(); ++x) {
      index const at_x = static_cast<index>(x), j = at_x / width % n.keys;
      a.data[x] = from.data[to_size(at_x + (order[to_size(j)] - j) * width)];
    }
  }
  for (std::size_t x = 0; x < moved.visible.size(); ++x) {
    index const j = static_cast<index>(x) % n.keys;
    moved.visible[x] = p.visible[to_size(static_cast<index>(x) + order[to_size(j)] - j)];
  }
  return moved;
}

TEST_CASE("the order of keys does not matter") {
  for (auto const& named : instances::registry()) {
    entry const& e = named.second;
    if (policies_of(e).positional()) continue;  // positions are the order
    under_every_mask(e, [&](problem& p, dimensions const& n, backend b, std::string const& where, rng& random) {
      std::vector<index> order(to_size(n.keys));
      std::iota(order.begin(), order.end(), index{0});
      for (std::size_t j = order.size(); j > 1; --j)
        std::swap(order[j - 1], order[to_size(random.between(0, static_cast<index>(j) - 1))]);
      comparison const c =
          check(e, p, b, e.run(permute_keys(p, n, order), b, {}), e.run(p, backend::reference_double, {}));
      CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
    });
  }
}

TEST_CASE("keys split anywhere and merged in any order give the same row") {
  for (index number = 0; number < case_count(0.2); ++number) {
    std::uint64_t const seed = static_cast<std::uint64_t>(7000 + number);
    bool const digits = number % 10 == 0;
    sample const s = random_sample(seed, [&](rng& r) {
      return random_dimensions(r, digits ? 6 : number % 7 == 0 ? 200 : 40, 8);
    });
    rng random(seed);
    result const whole = s.op->run(s.p, backend::reference_double, {});
    for (backend b : instances::all_backends) {
      if (b == backend::reference_50 && !digits) continue;
      options how;
      for (index cuts = random.between(1, 9); cuts > 0; --cuts)  // 0, Lk and repeated cuts leave parts without a key
        how.cuts.push_back(random.chance(0.2) ? random.pick<index>({0, s.n.keys}) : random.between(0, s.n.keys));
      if (random.chance(0.3)) how.cuts.push_back(how.cuts.front());
      std::sort(how.cuts.begin(), how.cuts.end());
      how.tree_seed = random.bits();
      result merged = s.op->run(s.p, b, how);
      merged.average = whole.average;  // a parameter of the whole: nothing to merge
      bounds bound = s.op->bounds(s.p, b);
      if (policies_of(*s.op).is(
              "top_k"))  // a kept key whose weight underflows may be gone from a part: the cut is then unknown
        each_row(s.n, [&](index bb, index h, index i) {
          for (index j = 0; j < s.n.keys; ++j)
            if (visible(s.p, bb, h, i, j) && at(whole.weights, s.n, bb, h, i, j) < 16 * accuracy_of(b).tiny &&
                at(whole.logits, s.n, bb, h, i, j) > -infinity &&
                at(whole.logits, s.n, bb, h, i, j) >= at(whole.threshold, s.n, bb, h, i))
              element(bound.threshold, s.n.heads, bb, h, i) = infinity;
        });
      comparison const c = compare(merged, whole, bound);
      CHECK_MESSAGE(c.failure.empty(), describe(*s.op, b, s.n, name(s.mask), s.seed) << how.cuts.size() << " cuts\n"
                                                                                     << c.failure);
    }
  }
}

TEST_CASE("a common shift of scores, and of gamma where there is one") {
  int shown = 0;
  for (auto const& named : instances::registry()) {
    entry const& e = named.second;
    policies const what = policies_of(e);
    if (!what.given || what.softcap || (!what.shift_invariant() && !what.grounded())) continue;
    if (what.length_scale != "none" && what.length_scale != "margin") continue;
    ++shown;
    under_every_mask(e, [&](problem& p, dimensions const& n, backend b, std::string const& where, rng&) {
      auto const round = [](double x) { return std::nearbyint(x * 256) / 256; };  // so that the shift is exact in float
      for (double& x : p.tensors["scores"].data) x = round(x);
      bool const has_gamma = p.parameters.count("gamma") != 0;
      if (has_gamma)
        for (double& x : p.parameters["gamma"].data) x = round(x);
      result expected = e.run(p, backend::reference_double, {});
      for (double c : {1000., -512.}) {
        problem shifted = p;
        for (double& x : shifted.tensors["scores"].data) x += c;
        if (has_gamma)
          for (double& x : shifted.parameters["gamma"].data) x += c;
        result wanted = expected;
        for (double& x : wanted.lse.data) x += c;
        each_row(n, [&](index bb, index h, index i) {  // a threshold is (alpha - 1) a less something
          if (!what.candidates()) return;
          double const rate = what.normalizer == "entmax15" ? 0.5
                              : what.normalizer == "entmax" ? parameter(p, "ent_alpha", n.heads, bb, h, i, 1.5) - 1
                                                            : 1;
          element(wanted.threshold, n.heads, bb, h, i) += rate * c;
        });
        comparison const r = compare(e.run(shifted, b, {}), wanted, e.bounds(shifted, b));
        CHECK_MESSAGE(r.failure.empty(), where << ", shift " << c << ": " << r.failure);
      }
    });
  }
  CHECK(shown >= 2);
}

TEST_CASE("the ground weight increases with gamma, a sink's weight with its logit") {
  for (auto const& named : instances::registry()) {
    entry const& e = named.second;
    policies const what = policies_of(e);
    if (!what.grounded() && !what.sink()) continue;
    std::string const level = what.grounded() ? "gamma" : "sink";
    under_every_mask(e, [&](problem& p, dimensions const& n, backend b, std::string const& where, rng&) {
      result last;
      for (double value : {-infinity, -1e4, -30., -4., -1., 0., 0.5, 2., 5., 40., 1e4, infinity}) {
        set_parameter(p, level, value);
        result const now = e.run(p, b, {});
        if (!last.out.empty()) {
          index decreases = 0, equals = 0;
          each_row(n, [&](index bb, index h, index i) {
            if (visible_count(p, n, bb, h, i) == 0) return;
            double const before = at(last.ground_weight, n, bb, h, i), after = at(now.ground_weight, n, bb, h, i);
            double const slack = 16 * accuracy_of(b).eps * (1 + std::fabs(std::log(std::fmax(before, 1e-30))));
            decreases += after < before * (1 - slack) ? 1 : 0;
            equals += std::fabs(value) <= 2 && before > 1e-6 && before < 0.9 && after <= before * (1 + slack) ? 1 : 0;
          });
          CHECK_MESSAGE(decreases == 0,
                        where << ", " << level << " = " << value << ": w0 decreases in rows: " << decreases);
          CHECK_MESSAGE(equals == 0,
                        where << ", " << level << " = " << value << ": w0 does not increase in rows: " << equals);
        }
        last = now;
      }
      bool const full = std::all_of(last.ground_weight.data.begin(), last.ground_weight.data.end(),
                                    [](double w0) { return w0 == 1; });
      CHECK_MESSAGE(full, where << ", " << level << " = inf");
    });
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
