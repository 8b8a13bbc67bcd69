// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The gradients of the CPU backends against those of the reference on random problems: any operator, mask, head
// grouping, parameter granularity and memory layout, with empty rows, planted -inf, and NaN wherever no row looks.
//
// Steered by ATTUNE_SEED and ATTUNE_FUZZ_COUNT (support/random.hpp); a failure prints the seed of its case.

#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "../support/gradients.hpp"
#include "../support/named_operator.hpp"

namespace attune::test {
namespace {

constexpr std::uint64_t fixed_seed = 20260201;
constexpr int patience = 20;  // failures to report before giving up a run

/// The first case of a run, and what its count of discontinuities may have by chance: one case in 75 is at one where a
/// quarter of the operators is entmax, so that a short run of fresh cases may meet several; a fixed run meets the same
/// ones every time.
struct first_case {
  std::uint64_t seed;
  int chance;
};
constexpr first_case fixed(std::uint64_t offset = 0) { return {fixed_seed + offset, 0}; }
first_case fresh() { return {fresh_seed(), 4}; }

/// The worst error / bound of each backend over a run, with its case; how many cases were at a discontinuity.
struct record {
  struct worst_case {
    double ratio = 0;
    std::string where;
  };
  std::map<backend, worst_case> worst;
  int cases = 0, discontinuous = 0, failures = 0;

  void note(sample const& s, backend b, gradient_comparison const& c) {
    ++cases;
    if (!c.failure.empty()) ++failures;
    if (c.discontinuous) ++discontinuous;
    worst_case& w = worst[b];
    if (c.worst >= w.ratio) w = {c.worst, s.op->name + ", case seed " + std::to_string(s.seed)};
  }
  void finish(std::string const& run, int chance = 0) const {
    for (auto const& [b, w] : worst)
      MESSAGE(run << ": worst error / bound on " << std::string(instances::name(b)) << " " << w.ratio << " (" << w.where
                  << ")");
    MESSAGE(run << ": " << discontinuous << " of " << cases << " cases accepted at a discontinuity of the reference");
    CHECK(discontinuous <= 2 + chance + 0.02 * cases);
  }
};

/// A problem with its cotangents.
struct gradient_sample : sample {
  cotangent d;
  explicit gradient_sample(sample const& s) : sample(s) {
    rng random(seed + 1);
    d = random_cotangent(*op, n, random);
  }
  gradients on(backend b, options const& how) const { return op->vjp(p, b, d, how); }
};

/// Whether the gradient by tensor `name` is 0 exactly wherever no row looks: at keys, values and pairs that nobody
/// sees.
bool still_where_unseen(gradient_sample const& s, std::string const& name, array const& a) {
  bool const pairs = is_of_pairs(name);
  index const groups = a.shape[1];
  for (index b = 0; b < s.n.batch; ++b) {
    std::vector<bool> seen(to_size(groups * s.n.keys), false);
    for (index h = 0; h < s.n.heads; ++h)
      for (index i = 0; i < s.n.queries; ++i)
        for (index j = 0; j < s.n.keys; ++j)
          if (visible(s.p, b, h, i, j))
            seen[to_size(h * groups / s.n.heads * s.n.keys + j)] = true;
          else if (pairs && element(a, s.n.heads, b, h, i, j) != 0)
            return false;
    for (index group = 0; group < groups && !pairs; ++group)
      for (index j = 0; j < s.n.keys; ++j)
        for (index d = 0; d < a.shape[3] && !seen[to_size(group * s.n.keys + j)]; ++d)
          if (element(a, groups, b, group, j, d) != 0) return false;
  }
  return true;
}
std::string unseen_gradients(gradient_sample const& s, gradients const& g) {
  std::string moved;
  for (auto const& [name, a] : g)
    if (s.p.tensors.count(name) != 0 && (is_of_keys(name) || is_of_pairs(name)) && !still_where_unseen(s, name, a))
      moved += "gradient of " + name + ": not 0 where no row looks\n";
  return moved;
}

void check_sample(gradient_sample const& s, record& all) {
  gradient_reference reference(*s.op, s.p, s.d, s.n, s.seed);
  for (backend b : instances::cpu_backends) {
    options how;
    how.odd_strides = s.seed % 2 == 1;
    gradients const got = s.on(b, how);
    gradient_comparison c = compare(got, b, reference);
    c.failure += unseen_gradients(s, got);
    all.note(s, b, c);
    CHECK_MESSAGE(c.failure.empty(), describe(*s.op, b, s.n, name(s.mask), s.seed) << c.failure);
  }
}

template <class Draw>
void fuzz(std::string const& run, first_case first, index count, Draw draw) {
  MESSAGE(run << ": " << count << " cases, first case seed " << first.seed);
  record all;
  for (std::uint64_t n = 0; n < static_cast<std::uint64_t>(count) && all.failures < patience; ++n)
    check_sample(gradient_sample(random_sample(first.seed + n, draw)), all);
  all.finish(run, first.chance);
}

TEST_SUITE_BEGIN("gradient fuzz");

TEST_CASE("gradient fuzz: small problems, fixed seed") {
  fuzz("small, fixed", fixed(), case_count(0.03), small_dimensions);
}

// 57 keys at the floor of a softcap, each with less than half a unit of the largest weight: a sum of floats loses them
// all. A fresh seed found that no bound allowed for it.
TEST_CASE("gradient fuzz: many keys that are each lost beside one") {
  entry const* const capped = named_operator("given|softcap/none/none/softmax");
  if (capped == nullptr) return;
  rng random(fixed_seed);
  sample s;
  s.op = capped;
  s.n.keys = 58;
  s.seed = fixed_seed;
  s.p = make_problem(*s.op, s.n, {}, random);
  for (double& cap : s.p.parameters.at("cap").data) cap = 26.25;
  array &scores = s.p.tensors.at("scores"), &v = s.p.tensors.at("v");
  std::fill(scores.data.begin(), scores.data.end(), -infinity);
  std::fill(v.data.begin(), v.data.end(), 0);
  scores.data[1] = -9.75;  // the others: e^-16.9 of it, 0.75 of half a unit
  v.data[1] = 2;
  gradient_sample lost(s);
  lost.d = {};
  lost.d.out = make_array({1, 1, 1, 1});
  lost.d.out.data[0] = 1;
  record all;
  check_sample(lost, all);
  all.finish("lost");
}

// One query above two keys: its gradient is (h_0 - h_1) / 4 + (h_1 - h_0) / 4, h_j = <do, v_j>. A backend forms the
// mean from the sum of the values, the reference from h_0 + h_1, which often does not round: the terms leave an error
// where the reference and all problems beside this one have 0. A fresh seed found that no bound allowed for it.
TEST_CASE("gradient fuzz: centred terms that cancel") {
  entry const* const centered = named_operator("scalar_difference/none/none/centered_relu");
  if (centered == nullptr) return;
  sample s;
  s.op = centered;
  s.n.keys = 2;
  s.n.value_width = 19;
  record all;
  for (s.seed = fixed_seed; s.seed < fixed_seed + 256; ++s.seed) {
    rng random(s.seed);
    s.p = make_problem(*s.op, s.n, {}, random);
    double& q = s.p.tensors.at("sort_q").data[0];
    for (double const k : s.p.tensors.at("sort_k").data) q = f32(std::fmax(q, k + 1));
    check_sample(gradient_sample(s), all);
  }
  all.finish("centred");
}

TEST_CASE("gradient fuzz: small problems, fresh seed") {
  fuzz("small, fresh", fresh(), case_count(0.03), small_dimensions);
}

TEST_CASE("gradient fuzz: block edges, fixed seed") {
  fuzz("edges, fixed", fixed(), case_count(0.0013), block_edge_dimensions);
}

TEST_CASE("gradient fuzz: block edges, fresh seed") {
  fuzz("edges, fresh", fresh(), case_count(0.0013), block_edge_dimensions);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("full gradient fuzz");

TEST_CASE("full gradient fuzz: small problems") {
  fuzz("many small, fixed", fixed(100000), case_count(0.25), small_dimensions);
  fuzz("many small, fresh", fresh(), case_count(0.25), small_dimensions);
}

TEST_CASE("full gradient fuzz: block edges") {
  fuzz("many edges, fixed", fixed(100000), case_count(0.01), block_edge_dimensions);
  fuzz("many edges, fresh", fresh(), case_count(0.01), block_edge_dimensions);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("gradient determinism");

/// The same bits for any number of threads and any memory layout.
void check_determinism(gradient_sample const& s, backend b) {
  auto const run = [&](int threads, bool odd_strides) {
    options how;
    how.threads = threads;
    how.odd_strides = odd_strides;
    return s.on(b, how);
  };
  gradients const one = run(1, false);
  std::string const where = describe(*s.op, b, s.n, name(s.mask), s.seed);
  CHECK_MESSAGE(same_bits(run(2, false), one), where << "2 threads differ from 1");
  CHECK_MESSAGE(same_bits(run(3, false), one), where << "3 threads differ from 1");
  CHECK_MESSAGE(same_bits(run(1, true), one), where << "odd strides differ from dense");
}

TEST_CASE("gradient determinism: 1, 2 and 3 threads and any memory layout give the same bits") {
  for (index n = 0; n < case_count(0.015); ++n) {
    std::uint64_t const seed = fixed_seed + 1000003 + static_cast<std::uint64_t>(n);
    gradient_sample const s(n % 5 == 0 ? random_sample(seed, block_edge_dimensions)
                                       : random_sample(seed, small_dimensions));
    for (backend b : instances::cpu_backends) check_determinism(s, b);
  }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("gradient tasks");

/// Operators that have every policy of the registry between them, each adding at least one.
std::vector<entry const*> every_policy() {
  std::vector<entry const*> chosen;
  std::set<std::string> known;
  for (auto const& [_, e] : instances::registry()) {
    policies const what = policies_of(e);
    std::vector<std::string> parts = what.terms;
    parts.insert(parts.end(), {what.length_scale, what.gate, what.normalizer, what.post});
    std::size_t const before = known.size();
    known.insert(parts.begin(), parts.end());
    if (known.size() > before) chosen.push_back(&e);
  }
  return chosen;
}

/// A share of them; without averages over all queries, which the reference forms again in every row.
std::vector<entry const*> some_policies() {
  std::vector<entry const*> chosen;
  for (entry const* e : every_policy())
    if (!contains(e->parameters, "momentum")) chosen.push_back(e);
  std::vector<entry const*> share;
  for (std::size_t n = 0; n < chosen.size(); n += 4) share.push_back(chosen[n]);
  return share;
}

/// Sizes that one call splits: queries into chunks, heads into more tasks than are in flight at once.
void check_tasks(std::string const& run, dimensions const& n, std::vector<entry const*> const& operators) {
  std::uint64_t seed = fixed_seed + 2000003;
  record all;
  for (entry const* e : operators) {
    sample s{e, n, ++seed % 2 == 0 ? mask_kind::none : mask_kind::random, {}, seed};
    rng random(seed);
    recipe how;
    how.mask = s.mask;
    s.p = make_problem(*e, n, how, random);
    poison(s.p, n, random);
    gradient_sample const with_cotangents(s);
    check_sample(with_cotangents, all);
    check_determinism(with_cotangents, backend::cpu_float);
  }
  all.finish(run);
}

dimensions const chunks{1, 2, 1, 2, 2100, 9, 4, 3, 2};
dimensions const waves{5, 8, 2, 4, 3, 40, 4, 3, 2, 8};

TEST_CASE("gradient tasks: chunks of queries") { check_tasks("chunks", chunks, some_policies()); }

TEST_CASE("gradient tasks: several waves") { check_tasks("waves", waves, every_policy()); }

TEST_SUITE_END();

TEST_SUITE_BEGIN("full gradient tasks");

TEST_CASE("full gradient tasks: chunks of queries, every policy") {
  check_tasks("chunks, every policy", chunks, every_policy());
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
