// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/line/sorted_cache.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using line::token;

/// Keys and values in the order of arrival, searched one by one.
struct naive {
  struct entry {
    token id;
    std::vector<double> keys, values;
  };
  std::vector<entry> entries;

  /// Positions in `entries`, by key; equal ones stay in the order of arrival.
  std::vector<std::size_t> sorted(std::size_t order) const {
    std::vector<std::size_t> p(entries.size());
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = i;
    std::stable_sort(p.begin(), p.end(),
                     [&](std::size_t a, std::size_t b) { return entries[a].keys[order] < entries[b].keys[order]; });
    return p;
  }
  std::vector<token> between(std::size_t order, double lowest, double highest) const {
    std::vector<token> found;
    for (std::size_t i : sorted(order))
      if (entries[i].keys[order] >= lowest && entries[i].keys[order] <= highest) found.push_back(entries[i].id);
    return found;
  }
};

using kv_cache = line::sorted_cache<double>;

std::vector<token> scanned(kv_cache const& kv, index_t order, double lowest, double highest) {
  std::vector<token> found;
  kv.scan(order, lowest, highest, [&](double, token id) { found.push_back(id); });
  return found;
}

void check_same(kv_cache const& kv, naive const& model) {
  REQUIRE(kv.size() == index_t(model.entries.size()));
  for (index_t o = 0; o < kv.orders(); ++o)
    REQUIRE(scanned(kv, o, -inf, inf) == model.between(std::size_t(o), -inf, inf));
  for (auto const& e : model.entries) {
    REQUIRE(kv.holds(e.id));
    for (index_t o = 0; o < kv.orders(); ++o) REQUIRE(kv.sort_key(o, e.id) == e.keys[std::size_t(o)]);
    for (std::size_t d = 0; d < e.values.size(); ++d) REQUIRE(kv.value(0, e.id)[d] == e.values[d]);
  }
}

/// Random insertions, erasures, scans, searches, snapshots and misuse.
void run_operations(int count, unsigned seed) {
  int const tide = count / 10;
  std::mt19937 random(seed);
  auto const uniform = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  auto const percent = [&](unsigned p) { return random() % 100 < p; };
  auto const draw = [&] { return percent(30) ? double(int(random() % 5)) / 4 : uniform(); };  // ties are common
  kv_cache kv({.heads = 3, .value_width = 2});
  naive model;
  kv_cache saved = kv;
  naive then;
  for (int step = 0; step < count; ++step) {
    unsigned const grow = step / tide % 3 == 1 ? 10 : 80;
    auto const kind = random() % 100;
    if (kind < 70) {
      if (model.entries.empty() || percent(grow)) {
        std::vector<double> const keys{draw(), draw(), 1.0}, values{uniform(), uniform()};
        model.entries.push_back({kv.insert(keys, values), keys, values});
      } else {
        std::size_t const i = random() % model.entries.size();
        kv.erase(model.entries[i].id);
        model.entries.erase(model.entries.begin() + std::ptrdiff_t(i));
      }
    } else if (kind < 80) {
      double const x = draw();
      auto const o = index_t(random() % 3);
      CHECK(kv.lower_bound(o, x) == std::count_if(model.entries.begin(), model.entries.end(),
                                                  [&](auto const& e) { return e.keys[std::size_t(o)] < x; }));
    } else if (kind < 90) {
      double a = draw(), b = draw();
      if (b < a) std::swap(a, b);
      auto const o = index_t(random() % 3);
      CHECK(scanned(kv, o, a, b) == model.between(std::size_t(o), a, b));
    } else if (kind < 92) {
      saved = kv.snapshot();
      then = model;
    } else if (kind < 93) {
      kv.restore(saved);
      model = then;
    } else {
      std::vector<double> const bad{0, nan, 0}, good{0, 0, 0}, values{0, 0};
      CHECK(error_of([&] { kv.insert(bad, values); }) != "");
      CHECK(error_of([&] { kv.insert(good, bad); }) != "");
      token absent = token(random() % 4000);
      while (std::any_of(model.entries.begin(), model.entries.end(), [&](auto const& e) { return e.id == absent; }))
        ++absent;
      CHECK(error_of([&] { kv.erase(absent); }) != "");
    }
    if (step % 250 == 0) check_same(kv, model);
  }
  check_same(kv, model);
}

template <class F>
std::string refusal(kv_cache& kv, F const& f) {
  auto const before = scanned(kv, 0, -inf, inf);
  std::string const message = error_of(f);
  CHECK(scanned(kv, 0, -inf, inf) == before);
  return message;
}

TEST_SUITE("sorted_cache") {
  TEST_CASE("tokens in the order of each head, values once") {
    kv_cache kv({.heads = 2, .value_groups = 1, .value_width = 1});
    token const a = kv.insert(std::vector{2.0, -1.0}, std::vector{10.0});
    token const b = kv.insert(std::vector{1.0, 5.0}, std::vector{20.0});
    token const c = kv.insert(std::vector{2.0, 0.0}, std::vector{30.0});
    CHECK(scanned(kv, 0, -inf, inf) == std::vector{b, a, c});  // a and c are equal: as they came
    CHECK(scanned(kv, 1, -inf, inf) == std::vector{a, c, b});
    CHECK(scanned(kv, 1, -1, 0) == std::vector{a, c});
    CHECK(kv.lower_bound(0, 2) == 1);
    CHECK(kv.lower_bound(1, 0.5) == 2);
    CHECK(*kv.value(0, c) == 30);
    CHECK(kv.value_bound(0) == doctest::Approx(30));
    kv.erase(a);
    CHECK_FALSE(kv.holds(a));
    CHECK(scanned(kv, 0, -inf, inf) == std::vector{b, c});
    CHECK(scanned(kv, 1, -inf, inf) == std::vector{c, b});
  }

  TEST_CASE("a number that is used again is a later token") {
    kv_cache kv({.value_width = 1});
    token const a = kv.insert(std::vector{1.0}, std::vector{0.0});
    token const b = kv.insert(std::vector{1.0}, std::vector{0.0});
    kv.erase(a);
    token const c = kv.insert(std::vector{1.0}, std::vector{0.0});
    CHECK(c == a);
    CHECK(kv.arrival(c) > kv.arrival(b));
    CHECK(scanned(kv, 0, 1, 1) == std::vector{b, c});
  }

  // Scalar Sort: "Heads within a group binary-search into the same sorted value store using their own scalar query."
  TEST_CASE("keys of another head are not sorted in the order of the sort head") {
    std::vector<double> const first{1, 2, 3, 4, 5, 6, 7, 8}, second{3, 1, 4, 0, 5, 9, 2, 6};
    kv_cache own({.heads = 2, .value_groups = 1, .value_width = 1});
    kv_cache shared({.heads = 2, .value_groups = 1, .value_width = 1, .order = line::sort_keys::per_group});
    CHECK(own.orders() == 2);
    CHECK(shared.orders() == 1);
    for (std::size_t i = 0; i < first.size(); ++i) {
      own.insert(std::vector{first[i], second[i]}, std::vector{double(i)});
      shared.insert(std::vector{first[i]}, std::vector{double(i)});
    }
    // What the second head would search: its keys in the order of the first.
    std::vector<double> seen;
    shared.scan(0, -inf, inf, [&](double, token id) { seen.push_back(own.sort_key(1, id)); });
    int descents = 0;
    for (std::size_t i = 1; i < seen.size(); ++i) descents += seen[i] < seen[i - 1];
    CHECK(descents == 3);
    // Its search for its own key 3 ends at another token; in an order of its own, it does not.
    CHECK(*std::lower_bound(seen.begin(), seen.end(), 3.0) == 4);
    CHECK(scanned(own, 1, 3, 3) == std::vector<token>{0});
  }

  TEST_CASE("a snapshot stays what it was, and comes back") {
    line::sorted_cache<float> kv({.value_width = 1});
    for (int i = 0; i < 500; ++i) kv.insert(std::vector{float(i * 37 % 500)}, std::vector{float(i)});
    auto const saved = kv.snapshot();
    for (token t = 0; t < 400; ++t) kv.erase(t);
    CHECK(kv.size() == 100);
    kv.restore(saved);
    CHECK(kv.size() == 500);
    CHECK(kv.lower_bound(0, 250) == 250);
    CHECK(error_of([&] { kv.restore(line::sorted_cache<float>({.value_width = 2})); }) ==
          "attune::line::sorted_cache::restore: the snapshot has another layout; expected that of this cache");
    kv.clear();
    CHECK(kv.size() == 0);
    CHECK(kv.insert(std::vector{1.0f}, std::vector{1.0f}) == 0);
  }

  TEST_CASE("misuse is refused in words and changes nothing") {
    index_t volatile zero = 0;  // a constant one is stored as 1 by g++ 12 (-O2, AVX-512), see sorted_layout
    kv_cache kv({.heads = 2, .value_groups = 2, .key_width = 2, .value_width = 1});
    std::vector<double> const keys{1, 2}, values{3, 4}, vectors{1, 2, 3, 4};
    kv.insert(keys, values, vectors);
    CHECK(refusal(kv, [&] { kv.insert(std::vector{1.0, nan}, values, vectors); }) ==
          "attune::line::sorted_cache::insert: keys has the value nan at 1; expected finite numbers up to "
          "1.12355821e+307");
    CHECK(refusal(kv, [&] { kv.insert(std::vector{inf, 1.0}, values, vectors); }).find("the value inf at 0") !=
          std::string::npos);
    CHECK(refusal(kv, [&] { kv.insert(std::vector{1.0}, values, vectors); }) ==
          "attune::line::sorted_cache::insert: keys has 1 numbers; expected 2");
    CHECK(refusal(kv, [&] { kv.insert(keys, vectors, vectors); }) ==
          "attune::line::sorted_cache::insert: values has 4 numbers; expected 2");
    CHECK(refusal(kv, [&] { kv.insert(keys, values); }) ==
          "attune::line::sorted_cache::insert: vector_keys has 0 numbers; expected 4");
    CHECK(refusal(kv, [&] { kv.insert(keys, values, std::vector{1.0, 2.0, nan, 4.0}); }).find("vector_keys") !=
          std::string::npos);
    CHECK(refusal(kv, [&] { kv.erase(1); }) ==
          "attune::line::sorted_cache::erase: token has the value 1; expected a token in the cache");
    CHECK(refusal(kv, [&] { kv.lower_bound(2, 0); }) ==
          "attune::line::sorted_cache::lower_bound: order has the value 2; expected 0 .. 1");
    CHECK(refusal(kv, [&] { kv.lower_bound(0, nan); }).find("NaN") != std::string::npos);
    kv.erase(0);
    CHECK(refusal(kv, [&] { kv.erase(0); }) != "");
    CHECK(error_of([&] { kv_cache({.value_width = zero}); }) ==
          "attune::line::sorted_cache: value_width has the value 0; expected a number >= 1");
    CHECK(error_of([] { kv_cache({.heads = 3, .value_groups = 2, .value_width = 1}); }) ==
          "attune::line::sorted_cache: value_groups has the value 2; expected a divisor of 3 heads");
  }

  TEST_CASE("values need not be finite; their bound then is infinite until the cache is empty") {
    kv_cache kv({.value_width = 2});
    kv.insert(std::vector{0.0}, std::vector{3.0, 4.0});
    CHECK(kv.value_bound(0) >= 5);
    CHECK(near(kv.value_bound(0), 5));
    kv.insert(std::vector{0.0}, std::vector{1.0, nan});
    CHECK(kv.value_bound(0) == inf);
    kv.erase(1);
    kv.erase(0);
    CHECK(kv.value_bound(0) == 0);
    kv.insert(std::vector{0.0}, std::vector{3e-300, 4e-300});
    CHECK(near(kv.value_bound(0), 5e-300));
    kv.insert(std::vector{0.0}, std::vector{3e300, 4e300});
    CHECK(near(kv.value_bound(0), 5e300));
  }

  TEST_CASE("memory: what the paper prints, and what there is") {
    line::sorted_cache<float> kv({.heads = 8, .value_groups = 2, .value_width = 16});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> keys(8), values(32);
    for (int i = 0; i < 4096; ++i) {
      for (float& k : keys) k = normal(random);
      kv.insert(keys, values);
    }
    auto const m = kv.memory();
    CHECK(m.printed == (2 * 16 + 8) * 4096 * 4);
    CHECK(m.permutations == 8 * 4096 * 4);
    CHECK(m.values == 2 * 16 * 4096 * 4);
    CHECK(m.sort_keys == 8 * 4096 * 4);
    CHECK(m.vector_keys == 0);
    CHECK(m.orders >= m.permutations + m.sort_keys);
    CHECK(m.orders <= 4 * (m.permutations +
                           m.sort_keys));  // blocks are at least half full on random keys, chunks of them rounded up
    CHECK(m.total() == m.values + m.sort_keys + m.orders + m.bookkeeping);
  }

  TEST_CASE("2,000 random operations against a naive model") { run_operations(2000, 11); }
}

TEST_SUITE("full_sorted_cache") {
  TEST_CASE("50,000 random operations against a naive model") { run_operations(50000, 1); }
}

}  // namespace
}  // namespace attune::test
