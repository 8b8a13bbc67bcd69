// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// merge_states (cases/README.md, section 6): parts of the keys, alone and merged, with and without a ground.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {
namespace {

using instances::backend;
using instances::problem;
using instances::result;

constexpr char const* plain_name = "given/none/none/softmax";
constexpr char const* ground_name = "given/none/none/grounded";

struct merge_case {
  std::vector<double> scores;
  std::vector<double> values;
  index width = 0;
  double gamma = 0;
  std::vector<index> cuts;

  index keys() const { return static_cast<index>(scores.size()); }

  /// The keys [begin, end) as a problem of one query.
  problem part(index begin, index end, bool ground) const {
    problem p;
    p.tensors["scores"] = with_axes({1, end - begin}, {scores.begin() + begin, scores.begin() + end}, 4);
    p.tensors["v"] = with_axes({end - begin, width}, {values.begin() + begin * width, values.begin() + end * width}, 4);
    if (!ground) return p;
    p.parameters["gamma"] = with_axes({1}, {gamma}, 3);
    p.tensors["v0"] = with_axes({width}, std::vector<double>(static_cast<std::size_t>(width), 0.0), 4);
    return p;
  }
};

merge_case read(golden_case const& c) {
  merge_case m;
  m.scores = c.inputs.at("s").data;
  m.values = c.inputs.at("v").data;
  m.width = c.inputs.at("v").shape.at(1);
  m.gamma = c.inputs.at("gamma").data.at(0);
  m.cuts = c.params.at("cuts").get<std::vector<index>>();
  return m;
}

/// The state of a ground operator, rebuilt from what it gives for v0 = 0: lse = m + ln z, w0 = shortfall / z, out = acc
/// / z with z = sumexp + shortfall.
struct ground_state {
  double m, sumexp, shortfall;
  std::vector<double> acc;
};

ground_state rebuild(result const& r, double const* first, double const* last, double gamma) {
  ground_state s;
  bool const empty = first == last;
  s.m = empty ? -std::numeric_limits<double>::infinity() : std::max(gamma, *std::max_element(first, last));
  double const z = std::exp(r.lse.data.at(0) - (empty ? 0 : s.m));  // of no keys: exp(-inf)
  s.shortfall = r.ground_weight.data.at(0) * z;
  s.sumexp = (1 - r.ground_weight.data.at(0)) * z;
  for (double o : r.out.data) s.acc.push_back(o * z);
  return s;
}

void append(std::vector<double>& to, std::vector<double> const& more) { to.insert(to.end(), more.begin(), more.end()); }

results run_parts(merge_case const& m, instances::entry const& plain, instances::entry const& ground,
                  backend executor) {
  results got;
  std::vector<index> ends = m.cuts;
  ends.push_back(m.keys());
  index begin = 0;
  for (index end : ends) {
    result const p = plain.run(m.part(begin, end, false), executor, {});
    append(got["partial_o"], p.out.data);
    append(got["partial_lse"], p.lse.data);
    result const g = ground.run(m.part(begin, end, true), executor, {});
    ground_state const s = rebuild(g, m.scores.data() + begin, m.scores.data() + end, m.gamma);
    got["g_partial_m"].push_back(s.m);
    got["g_partial_sumexp"].push_back(s.sumexp);
    got["g_partial_shortfall"].push_back(s.shortfall);
    append(got["g_partial_acc"], s.acc);
    begin = end;
  }
  return got;
}

void run_merged(merge_case const& m, instances::entry const& plain, instances::entry const& ground, backend executor,
                results& got) {
  instances::options options;
  options.cuts = m.cuts;
  result const p = plain.run(m.part(0, m.keys(), false), executor, options);
  got["o"] = p.out.data;
  got["lse"] = p.lse.data;
  result const g = ground.run(m.part(0, m.keys(), true), executor, options);
  got["g_w0"] = g.ground_weight.data;
  got["g_lse"] = g.lse.data;
  got["g_o_values"] = g.out.data;
}

/// What `rebuild` computes in double, whatever the executor's digits.
bool is_rebuilt(std::string const& name) {
  return name == "g_partial_sumexp" || name == "g_partial_shortfall" || name == "g_partial_acc";
}

}  // namespace

outcome run_merge_states(golden_case const& c, registry const& operators, backend executor) {
  for (char const* name : {plain_name, ground_name})
    if (operators.count(name) == 0) return skip(std::string("no ") + name);
  auto const& plain = operators.at(plain_name);
  auto const& ground = operators.at(ground_name);
  merge_case const m = read(c);
  results got = run_parts(m, plain, ground, executor);
  run_merged(m, plain, ground, executor, got);

  accuracy const promised = accuracy_of(executor);
  checker checks(c, magnitude_of(c, logit_magnitude(m.scores)), promised);
  for (auto const& [name, expected] : forward_expectations(c)) {
    auto const found = got.find(name);
    bool const in_double = is_rebuilt(name) && promised == accuracy::correctly_rounded;
    checks.check(name, expected, found == got.end() ? std::nullopt : std::optional(found->second),
                 in_double ? accuracy::binary64 : promised);
  }
  return checks.result();
}

}  // namespace attune::golden
