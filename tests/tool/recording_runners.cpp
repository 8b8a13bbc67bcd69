// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "recording_runners.hpp"

namespace {

attune::tool::problem& last() {
  static attune::tool::problem p;
  return p;
}

/// Every output, filled with 0.5, in the shape that the first input tells.
attune::tool::results answer(attune::tool::problem const& p) {
  last() = p;
  attune::shape e = p.tensors.count("q") != 0 ? p.tensors.at("q").extents : p.tensors.at("sort_q").extents;
  auto const filled = [](attune::shape const& s) {
    return attune::tool::numbers{s, std::vector<double>(std::size_t(s.size()), 0.5), {}};
  };
  attune::shape const rows{e.batch, e.head, e.position, 1};
  e.feature = p.tensors.at("v").extents.feature;
  return {{"out", filled(e)}, {"lse", filled(rows)}, {"ground_weight", filled(rows)}, {"threshold", filled(rows)}};
}
attune::tool::results gradients(attune::tool::problem const& p) {
  last() = p;
  attune::tool::results r = p.tensors;
  for (auto& [name, x] : r)
    if (x.doubles.empty()) x.doubles.assign(x.floats.begin(), x.floats.end());
  for (auto const& [path, x] : p.parameters) r[path] = x;
  return r;
}

attune::tool::handed_back& last_results() {
  static attune::tool::handed_back r;
  return r;
}
/// FAIL where the first number is above 100, UNDECIDABLE where something is demanded, else PASS.
attune::testing::verdict_report judged(attune::tool::problem const& p, attune::tool::handed_back const& given,
                                       attune::tool::numbers const& out) {
  using namespace attune::testing;
  last() = p;
  auto outputs = std::move(last_results().outputs);
  last_results() = given;
  if (given.outputs.empty()) last_results().outputs = std::move(outputs);  // which were judged before the gradients
  verdict_report r;
  worst_element e;
  e.output = "out";
  e.extents = out.extents;
  e.count = out.extents.size();
  e.ratios.assign(out.doubles.begin(), out.doubles.end());
  e.got = out.doubles[0];
  e.ratio = e.got;
  r.elements.push_back(e);
  r.by_query = {0.5, 2};
  r.by_key = {0, -1, 1};
  finding f;
  f.name = "kernel.scale";
  f.parameter = f.relative = true;
  f.estimate = 0.005;
  f.power = 0.001;
  f.power_of_part = 0.002;
  f.z = 30;
  r.findings.push_back(f);
  finding unseen;  // a whole defect that these inputs cannot show, whatever its z
  unseen.name = "K one too large";
  unseen.estimate = 5.9e12;
  unseen.power = unseen.power_of_part = 3.6e11;
  unseen.z = 99.8;
  r.findings.push_back(unseen);
  if (out.doubles[0] > 100) {
    r.decision = judgement::fail;
    r.caused = true;
    r.reasons = {f.words()};
  } else if (!given.how.must_detect.empty()) {
    r.decision = judgement::undecidable;
    r.reasons = {given.how.must_detect[0].name + " would go unnoticed"};
  }
  return r;
}
attune::testing::verdict_report outputs_judged(attune::tool::problem const& p, attune::tool::handed_back&& given) {
  return judged(p, given, given.outputs.at("out"));
}
attune::testing::verdict_report gradients_judged(attune::tool::problem const& p,
                                                 attune::tool::handed_back const& given) {
  return judged(p, given, given.gradients.begin()->second);
}
/// Three probes of softmax: two at the extents, one with two keys.
std::vector<attune::tool::probe_inputs> probed(attune::tool::problem const& p,
                                               attune::testing::problem_extents const& e,
                                               attune::tool::mask_maker const& mask_of, std::uint64_t) {
  last() = p;
  std::vector<attune::tool::probe_inputs> all;
  for (attune::index_t keys : {e.keys, attune::index_t(2)}) {
    mask_of({e.batch, e.heads, e.queries, keys}, keys - e.queries);
    auto const filled = [](attune::shape const& s) {
      return attune::tool::numbers{s, std::vector<double>(std::size_t(s.size()), 1.0 / 3), {}};
    };
    attune::tool::probe_inputs one;
    one.name = keys == 2 ? "two keys" : "random";
    one.reveals = "something";
    one.tensors["q"] = filled({e.batch, e.heads, e.queries, e.width});
    one.tensors["k"] = one.tensors["v"] = filled({e.batch, e.key_heads, keys, e.width});
    one.dout = filled({e.batch, e.heads, e.queries, e.width});
    all.push_back(one);
  }
  all.push_back(all.front());
  all.back().name = "hidden NaN";
  return all;
}

}  // namespace

namespace tool_tests {
attune::tool::problem const& last_problem() { return last(); }
attune::tool::handed_back const& last_handed_back() { return last_results(); }
}  // namespace tool_tests

namespace attune::tool {
runner const& runner_of(std::string const&, entry) {
  static runner const all{answer, gradients, outputs_judged, gradients_judged, probed};
  return all;
}
}  // namespace attune::tool
