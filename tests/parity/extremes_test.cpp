// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The rest of the contracts' table (see contracts_test.cpp): what is invisible, what is huge, and that limits are
// reached.

#include <doctest/doctest.h>

#include "../support/everywhere.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("contracts");

TEST_CASE("contract: anything in invisible keys or values") {
  everywhere(
      [](entry const& e, policies const&, dimensions const& n, backend b, std::string const& where, rng& random) {
        for (mask_kind kind : all_mask_kinds) {
          if (kind == mask_kind::none || (static_cast<int>(kind) + static_cast<int>(e.name.size())) % 2 != 0) continue;
          if (kind > mask_kind::padding && b == backend::reference_50) continue;
          recipe how;
          how.mask = kind;
          problem p = make_problem(e, n, how, random);
          if (random.chance(0.5))  // keys that nobody sees at all: whole rows of k and v
            for (std::size_t x = 0; x < p.visible.size(); ++x) p.visible[x] &= x % to_size(n.keys) % 3 != 1;
          result const clean = e.run(p, b, {});
          poison(p, n, random);
          options odd;
          odd.odd_strides = is_cpu(b);  // the padding of every axis is NaN
          CHECK_MESSAGE(same_bits(e.run(p, b, {}), clean), where << ", mask " << name(kind));
          CHECK_MESSAGE(same_bits(e.run(p, b, odd), clean), where << ", mask " << name(kind) << ", odd strides");
        }
      });
}

TEST_CASE("contract: K in LengthScale counts the visible keys of the row") {
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        problem p = make_problem(e, n, {}, random);
        p.offset = n.keys / 2;
        if (what.normalizer.find("total") != std::string::npos) return;  // divides by all keys, seen or not
        // What remains: any keys, but a range where positions matter; then the position of query 0 moves with the first
        //               key.
        auto const stays = [&](index j) { return what.positional() ? j >= 2 && j < n.keys - 1 : j % 3 != 1; };
        problem removed = p;
        dimensions few = n;
        few.keys = 0;
        for (index j = 0; j < n.keys; ++j) few.keys += stays(j) ? 1 : 0;
        if (what.positional()) removed.offset = *p.offset - 2;
        for (auto& [key, a] : removed.tensors) {
          bool const columns = is_of_pairs(key);
          if (!columns && !is_of_keys(key)) continue;
          array const all = a;
          a.shape[columns ? 3 : 2] = few.keys;
          a.data.clear();
          for (std::size_t x = 0; x < all.data.size(); ++x) {
            index const position = columns ? static_cast<index>(x) : static_cast<index>(x) / all.shape[3];
            if (stays(position % n.keys)) a.data.push_back(all.data[x]);
          }
        }
        set_mask(p, 1, 1, n.queries, n.keys, [&](index, index, index, index j) { return stays(j); });
        comparison const c = check(e, removed, b, e.run(p, b, {}), e.run(removed, backend::reference_double, {}));
        CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
      });
}

/// No NaN anywhere, and what 50 digits say within the bounds.
void check_extreme(entry const& e, problem const& p, backend b, std::string const& where) {
  result const r = e.run(p, b, {});
  auto const any_nan = [](array const& a) {
    return std::any_of(a.data.begin(), a.data.end(), [](double x) { return std::isnan(x); });
  };
  CHECK_MESSAGE(!any_nan(r.out), where << ": NaN in out");
  CHECK_MESSAGE(!any_nan(r.lse), where << ": NaN in lse");
  CHECK_MESSAGE(!any_nan(r.ground_weight), where << ": NaN in w0");
  comparison const c = check(e, p, b, r, e.run(p, backend::reference_50, {}));
  CHECK_MESSAGE(c.failure.empty(), where << ": " << c.failure);
}

TEST_CASE("contract: extreme scores") {
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        if (n.keys > small.keys) return;
        for (double size : {1e4, -1e4, 3e4}) {
          problem p = make_problem(e, n, {}, random);
          bool const overflows = what.is("exponential") && !what.has("rbf");  // e^a is not held relative to a maximum
          if (overflows && (size > 0 || !what.given)) continue;
          for (char const* t : {"scores", "gates"})
            if (p.tensors.count(t))
              for (double& x : p.tensors[t].data)
                x = f32(random.chance(0.5) ? size * random.uniform() : random.normal());
          if (p.parameters.count("scale")) {
            set_parameter(p, "scale", size);
          } else {
            for (char const* t : {"q", "sort_q"})
              if (p.tensors.count(t))
                for (double& x : p.tensors[t].data) x = f32(size * x);
          }
          check_extreme(e, p, b, where + ", size " + std::to_string(size));
        }
      });
}

TEST_CASE("contract: extreme parameters") {
  struct setting {
    char const* name;
    std::vector<double> values;
  };
  static setting const settings[] = {{"alpha", {-infinity, -1e4, -100, 1e4}},
                                     {"beta", {-infinity, -1e4, -100, 1e4}},
                                     {"gamma", {-infinity, infinity, -1e16, -1e4, 1e4}},
                                     {"sink", {-infinity, infinity, -1e4, 1e4}},
                                     {"scale", {1e-6, 1e4}},
                                     {"slope", {0, 1e4}},
                                     {"cap", {1e-3, 1e6}},
                                     {"ss_scale", {0, -1, 1e4}},
                                     {"ss_bias", {0, -1, 1e4}},
                                     {"length0", {1.0009765625, 1e9}},
                                     {"tau", {1e-5, 1e9}},
                                     {"eps", {1e-30, 1e30}},
                                     {"spatial_beta", {1e-5, 1e9}},
                                     {"rbf_gamma", {0, 1e4}},
                                     {"extension", {1e-3, 1, 1e30}},
                                     {"ent_alpha", {1, 1 + 0x1p-23, 1.5, 2, 2 + 0x1p-20, 4}},
                                     {"alpha_pre", {-1e4, -5, 5, 1e4}},
                                     {"affine_alpha", {0, -1, 1e4}},
                                     {"affine_beta", {0, -1, 1e4}},
                                     {"average", {0, -1, 1e4}},
                                     {"sig_bias", {-1e4, 0, 1e4}}};
  everywhere(
      [](entry const& e, policies const& what, dimensions const& n, backend b, std::string const& where, rng& random) {
        if (n.keys > small.keys) return;
        auto const overflows = [&](setting const& one) {
          return what.is("exponential") && one.name == std::string("scale");
        };
        for (setting const& one : settings) {
          if (!contains(e.parameters, one.name) || overflows(one)) continue;
          for (double value : one.values) {
            problem p = make_problem(e, n, {}, random);
            set_parameter(p, one.name, value);
            check_extreme(e, p, b, where + ", " + one.name + " = " + std::to_string(value));
          }
        }
        for (int round = 0; round < 4; ++round) {  // all at once
          problem p = make_problem(e, n, {}, random);
          std::string all;
          for (setting const& one : settings) {
            double const value = one.values[to_size(random.between(0, static_cast<index>(one.values.size()) - 1))];
            if (random.chance(0.3) || !p.parameters.count(one.name) || overflows(one)) continue;
            set_parameter(p, one.name, value);
            all += std::string(", ") + one.name + " = " + std::to_string(value);
          }
          check_extreme(e, p, b, where + all);
        }
      });
}

TEST_CASE("contract: limits are reached") {
  everywhere([](entry const& e, policies const& what, dimensions n, backend b, std::string const& where, rng& random) {
    if (n.keys > small.keys || what.softcap || what.gate != "none" || !what.post.empty()) return;
    problem const plain = [&] {
      problem p = make_problem(e, n, {}, random);
      make_values_identity(p, n);
      return p;
    }();
    auto const weights = [&](auto change) {
      problem p = plain;
      change(p);
      return e.run(p, b, {});
    };
    auto const all_of = [&](array const& a, auto holds) { return std::all_of(a.data.begin(), a.data.end(), holds); };
    auto const zero_or_one = [](double w) { return w == 0 || w == 1; };
    bool const linear = what.terms.front() == "dot" || what.given;  // a distance this large is the same for all keys
    if (linear && what.length_scale != "ssmax" &&
        (what.normalizer == "softmax" || what.candidates() || what.is("sigmoid"))) {  // sharp: one key takes all
      auto const hot = [&](problem& p) {
        for (auto& [key, a] : p.tensors)
          if (key == "q" || key == "scores")
            for (double& x : a.data) x = f32(1e8 * x);
      };
      CHECK_MESSAGE(all_of(weights(hot).out, zero_or_one), where << ", hot scores");
      if (what.length_scale == "margin")
        CHECK_MESSAGE(all_of(weights([](problem& p) { set_parameter(p, "alpha", 1e6); }).out, zero_or_one),
                      where << ", alpha");
    }
    if (what.grounded() || what.sink()) {
      std::string const level = what.grounded() ? "gamma" : "sink";
      for (double high : {1e4, infinity}) {
        result const r = weights([&](problem& p) {
          set_parameter(p, level, high);
          set_parameter(p, "alpha", -1);
        });
        CHECK_MESSAGE(all_of(r.out, [](double w) { return w == 0; }), where << ", " << level << " = " << high);
        CHECK_MESSAGE(all_of(r.ground_weight, [](double w) { return w == 1; }),
                      where << ", " << level << " = " << high);
      }
      for (double low : {-1e4, -infinity}) {
        result const r = weights([&](problem& p) {
          set_parameter(p, level, low);
          set_parameter(p, "alpha", -1);
        });
        CHECK_MESSAGE(all_of(r.ground_weight, [](double w) { return w == 0; }), where << ", " << level << " = " << low);
      }
    }
  });
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
