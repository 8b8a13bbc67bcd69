// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <random>
#include <vector>

#include <attune/line/cache/ordered_keys.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using line::token;
using tree = line::ordered_keys<float>;

/// What the tree does not keep, and the same keys in a sorted array.
struct model {
  struct fact {
    float key = 0, bound = 0;
    std::uint64_t arrival = 0;
  };
  std::vector<fact> facts;
  std::vector<token> sorted, unused;

  std::uint64_t arrival(token id) const { return facts[id].arrival; }
  float bound(token id) const { return facts[id].bound; }

  token add(float key, float bound, std::uint64_t arrival) {
    token id = token(facts.size());
    if (unused.empty()) {
      facts.push_back({key, bound, arrival});
    } else {
      id = unused.back();
      unused.pop_back();
      facts[id] = {key, bound, arrival};
    }
    sorted.insert(
        std::upper_bound(sorted.begin(), sorted.end(), key, [&](float x, token t) { return x < facts[t].key; }), id);
    return id;
  }
  void remove(std::size_t rank) {
    unused.push_back(sorted[rank]);
    sorted.erase(sorted.begin() + std::ptrdiff_t(rank));
  }
  index_t below(double x, bool closed) const {
    return std::count_if(sorted.begin(), sorted.end(),
                         [&](token t) { return facts[t].key < x || (closed && double(facts[t].key) == x); });
  }
};

/// Both say the same, and what branches say of their children is true and tight.
struct verifier {
  tree const& t;
  model const& m;
  std::size_t seen = 0;
  int depth = -1;

  void check(tree::subtree const& s) {
    std::size_t const begin = seen;
    if (s.height > 0) {
      t.children(s, [&](tree::subtree const& c) { check(c); });
    } else {
      auto const& l = t.block(s.node);
      REQUIRE(l.size > 0);
      for (std::uint32_t i = 0; i < l.size; ++i, ++seen) {
        REQUIRE(l.id[i] == m.sorted[seen]);
        REQUIRE(l.key[i] == m.facts[l.id[i]].key);
      }
    }
    REQUIRE(std::size_t(s.keys) == seen - begin);
    REQUIRE(s.first == m.facts[m.sorted[begin]].key);
    REQUIRE(s.first_id == m.sorted[begin]);
    REQUIRE(s.last == m.facts[m.sorted[seen - 1]].key);
    float bound = 0;
    for (std::size_t i = begin; i < seen; ++i) bound = std::max(bound, m.facts[m.sorted[i]].bound);
    REQUIRE(s.bound == bound);
  }
};
void check_all(tree const& t, model const& m) {
  REQUIRE(t.size() == index_t(m.sorted.size()));
  verifier v{t, m};
  if (t.size() > 0) v.check(t.root());
}

/// What outside() calls for: every key outside [lower, upper) once, in few calls.
void check_outside(tree const& t, index_t lower, index_t upper) {
  index_t keys = 0, calls = 0;
  t.outside(lower, upper, [&](tree::range const& r) {
    keys += index_t(r.keys);
    ++calls;
  });
  index_t const inside = std::max(index_t(0), upper - lower);
  CHECK(keys == t.size() - inside);
  CHECK(calls <= 2 * (64 + 4 * 32));
}

void check_lookups(tree const& t, model const& m, std::mt19937& random, std::vector<float> const& values) {
  for (float x : values) {
    CHECK(t.lower_bound(double(x)).rank == m.below(double(x), false));
    CHECK(t.upper_bound(double(x)).rank == m.below(double(x), true));
  }
  if (t.size() == 0) return;
  std::uniform_int_distribution<index_t> any(0, t.size());
  index_t a = any(random), b = any(random);
  if (a > b) std::swap(a, b);
  std::vector<token> scanned;
  t.blocks(a, b, [&](tree::leaf const& l, std::uint32_t first, std::uint32_t last) {
    scanned.insert(scanned.end(), l.id + first, l.id + last);
  });
  CHECK(scanned == std::vector<token>(m.sorted.begin() + a, m.sorted.begin() + b));
  check_outside(t, a, b);
  if (a < t.size()) {
    auto const p = t.select(a);
    CHECK(t.block(p.node).id[p.at] == m.sorted[std::size_t(a)]);
  }
}

void insert(tree& t, model& m, float key, float bound, std::uint64_t arrival) {
  token const id = m.add(key, bound, arrival);
  t.reserve_one();
  t.insert(key, id, bound, m);
}
void erase(tree& t, model& m, std::size_t rank) {
  token const id = m.sorted[rank];
  t.erase(m.facts[id].key, id, m);
  m.remove(rank);
}

TEST_SUITE("ordered_keys") {
  TEST_CASE("an empty tree has no keys, and a place past its end") {
    tree const t;
    CHECK(t.size() == 0);
    CHECK(t.lower_bound(0).rank == 0);
    CHECK(t.upper_bound(0).rank == 0);
    t.blocks(0, 0, [](tree::leaf const&, std::uint32_t, std::uint32_t) { CHECK(false); });
    t.outside(0, 0, [](tree::range const&) { CHECK(false); });
  }

  TEST_CASE("four keys, two of them equal: the later comes later") {
    tree t;
    model m;
    std::uint64_t arrival = 0;
    for (float key : {2.0f, 1.0f, 2.0f, -3.0f}) insert(t, m, key, 0, ++arrival);
    CHECK(m.sorted == std::vector<token>{3, 1, 0, 2});
    check_all(t, m);
    CHECK(t.lower_bound(2).rank == 2);
    CHECK(t.upper_bound(2).rank == 4);
    CHECK(t.lower_bound(1.5).rank == 2);
    CHECK(t.lower_bound(-inf).rank == 0);
    CHECK(t.lower_bound(inf).rank == 4);
  }

  TEST_CASE("random operations against a sorted array") {
    enum class source { uniform, few, equal, ascending, descending };
    for (source from : {source::uniform, source::few, source::equal, source::ascending, source::descending}) {
      std::mt19937 random(7);
      std::uniform_real_distribution<float> uniform(-1, 1);
      tree t;
      model m;
      std::uint64_t arrival = 0;
      int step = 0;
      auto const draw = [&] {
        switch (from) {
          case source::uniform:
            return uniform(random);
          case source::few:
            return std::floor(3 * uniform(random));
          case source::equal:
            return 0.5f;
          case source::ascending:
            return float(step);
          case source::descending:
            break;
        }
        return -float(step);
      };
      for (step = 0; step < 14000; ++step) {
        // Three tides: up to some thousands of keys, down to none, up again.
        int const percent = step < 7000 ? 85 : step < 12000 ? 10 : 70;
        if (m.sorted.empty() || int(random() % 100) < percent)
          insert(t, m, draw(), std::fabs(uniform(random)), ++arrival);
        else
          erase(t, m, random() % m.sorted.size());
        if (step % 197 == 0) {
          check_all(t, m);
          check_lookups(t, m, random, {draw(), draw(), -1, 0, 0.5f, 1});
        }
      }
      check_all(t, m);
      while (!m.sorted.empty()) erase(t, m, random() % m.sorted.size());
      CHECK(t.size() == 0);
      insert(t, m, 1, 1, ++arrival);
      check_all(t, m);
    }
  }

  TEST_CASE("a copy is another tree") {
    tree t;
    model m;
    for (std::uint64_t i = 1; i <= 1000; ++i) insert(t, m, float(i * 7919 % 1000), 1, i);
    tree const saved = t;
    model const then = m;
    for (int i = 0; i < 900; ++i) erase(t, m, 0);
    check_all(t, m);
    check_all(saved, then);
  }
}

}  // namespace
}  // namespace attune::test
