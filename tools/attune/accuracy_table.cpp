// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_accuracy_table [SEEDS] > docs/reference/accuracy_table.md      scripts/accuracy adds the table by length
//
// The largest error / bound that is known of every preset on every executor, by storage type, with the inputs that gave
// it: all probes of testing/probes.hpp, drawn from several seeds. "Largest known" is a lower bound of the largest.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <attune/core/number_text.hpp>

#include "catalogue.hpp"
#include "masks.hpp"
#include "problem.hpp"
#include "runners.hpp"
#include "thrust_runners.hpp"
#include "typical.hpp"

namespace attune::tool {
namespace {

using certify::storage;

struct largest {
  double ratio = 0;
  std::uint64_t seed = 0;
  std::string probe;

  void note(testing::verdict_report const& r, std::uint64_t of_seed, std::string const& name) {
    for (auto const& e : r.elements)
      if (!(e.ratio <= ratio)) ratio = e.ratio, seed = of_seed, probe = name;
  }
};
/// Two digits, or four where two would leave open on which side of 1 it lies.
std::string cell(largest const& x) {
  return " " + attune::detail::number_text(x.ratio, x.ratio < 0.995 ? 2 : 4) + " |";
}

/// What an executor computes, and the formats that it can be stored in.
struct column {
  char const* name;
  std::map<std::string, runner> const& (*operators)();
  executor on;
  arithmetic in;
  std::vector<storage> stored;
};
std::vector<column> const columns{
    {"cpu, float", &runners, executor::cpu, arithmetic::float32, {storage::fp32, storage::fp16, storage::bf16}},
    {"cpu, double", &runners, executor::cpu, arithmetic::float64, {storage::fp64, storage::fp32}},
    {"thrust, float", &thrust_runners, executor::cpu, arithmetic::float32, {storage::fp32}},
    {"thrust, double", &thrust_runners, executor::cpu, arithmetic::float64, {storage::fp64}},
    {"reference", &runners, executor::reference, arithmetic::float64, {storage::fp64}},
};

/// As a kernel stores it.
numbers rounded(numbers x, storage s) {
  for (double& y : x.doubles) y = certify::rounded_to(s, y);
  return x;
}

struct row_of_table {
  std::vector<largest> outputs, gradients;  ///< by column and format
};

row_of_table measured(preset const& of, int seeds) {
  testing::problem_extents const extents{
      .heads = 4, .queries = 6, .keys = 20, .width = 8, .value_width = 6, .key_heads = 2, .value_heads = 2};
  runner const& run = runners().at(of.name);
  row_of_table to;
  for (column const& c : columns) {
    to.outputs.resize(to.outputs.size() + c.stored.size());
    to.gradients.resize(to.outputs.size());
  }
  mask_maker const causal = [](mask_shape const& m, index_t offset) { return make_mask({"causal"}, m, offset); };
  for (std::uint64_t seed = 1; seed <= std::uint64_t(seeds); ++seed) {
    problem base = typical_operator(of, extents.width, seed);
    for (probe_inputs& probe : run.probes(base, extents, causal, seed)) {
      problem p = base;
      p.tensors = std::move(probe.tensors);
      for (auto& [name, x] : p.tensors) x.floats.assign(x.doubles.begin(), x.doubles.end());
      probe.dout.floats.assign(probe.dout.doubles.begin(), probe.dout.doubles.end());
      p.cotangents["out"] = probe.dout;
      index_t const keys = p.tensors.at("v").extents.position, queries = probe.dout.extents.position;
      p.mask = causal({1, extents.heads, queries, keys}, keys - queries);
      p.threads = 1;
      std::size_t at = 0;
      for (column const& c : columns) {
        p.on = c.on;
        p.in = c.in;
        runner const& on = c.operators().at(of.name);
        results const out = on.run(p), gradients = on.gradient(p);
        for (storage s : c.stored) {
          handed_back given;
          // attune rounds outputs once, and nothing else.
          storage const computed = c.in == arithmetic::float32 ? storage::fp32 : storage::fp64;
          given.how.how = certify::precision(s, computed, computed);
          given.how.rows = 1;  // elements are what is asked for
          given.stored = s;
          given.outputs["out"] = rounded(out.at("out"), s);
          for (char const* name : {"lse", "ground_weight"})
            if (auto const x = out.find(name); x != out.end()) given.outputs[name] = x->second;
          to.outputs[at].note(run.verdict(p, handed_back(given)), seed, probe.name);
          for (field f : of.inputs)
            if (auto const x = gradients.find(name_of(f)); x != gradients.end())
              given.gradients[x->first] = rounded(x->second, s);
          if (!of.has_threshold) to.gradients[at].note(run.gradient_verdict(p, given), seed, probe.name);
          ++at;
        }
      }
    }
  }
  return to;
}

int table(int seeds) {
  std::printf(
      R"(# Accuracy table

This page lists the largest known error / bound ([error_bounds.md](error_bounds.md)) of each preset, executor and
storage type. One table is for outputs (out, lse, ground weight), one for the gradients of every input. A number above 1
would be a bug. An untested problem may have a larger error than the largest known one.

- Inputs: the probes of `attune/testing/probes.hpp`, seeds 1 to %d. A seed has about 14 problems: random, peaked, flat,
  two keys, lengths 63 to 129. Longer rows use less of their bound ([by the number of keys](#by-the-number-of-keys)).
- Shape: causal, 4 heads on 2 key heads, D = 8. Parameters are 0.5 (`tools/attune/typical.cpp`).
- Thrust runs on its host system with one core.
- `scripts/accuracy %d` writes this page.
)",
      seeds, seeds);
  std::vector<std::pair<std::string, row_of_table>> all;
  for (preset const& of : catalogue()) {
    all.emplace_back(of.name, measured(of, seeds));
    std::fprintf(stderr, "%s\n", of.name.c_str());
  }
  bool broken = false;
  for (bool const gradients : {false, true}) {
    std::printf("\n## %s\n\n| preset |", gradients ? "Gradients" : "Outputs");
    for (column const& c : columns)
      for (storage s : c.stored) std::printf(" %s → %s |", c.name, testing::name_of(s));
    std::printf(" worst: seed, probe |\n|---|");
    for (column const& c : columns)
      for (std::size_t n = 0; n < c.stored.size(); ++n) std::printf("---|");
    std::printf("---|\n");
    for (auto const& [name, row] : all) {
      if (gradients && find_preset(name).has_threshold) {
        std::printf("| %s | not judged: a candidate set |\n", name.c_str());
        continue;
      }
      auto const& cells = gradients ? row.gradients : row.outputs;
      std::printf("| %s |", name.c_str());
      for (largest const& x : cells) std::printf("%s", cell(x).c_str());
      auto const worst = std::max_element(cells.begin(), cells.end(),
                                          [](auto const& a, auto const& b) { return !(b.ratio <= a.ratio); });
      std::printf(" %llu, %s |\n", static_cast<unsigned long long>(worst->seed), worst->probe.c_str());
      broken = broken || !(worst->ratio <= 1);
    }
  }
  return broken ? 1 : 0;
}

}  // namespace
}  // namespace attune::tool

int main(int argc, char** argv) {
  try {
    return attune::tool::table(argc > 1 ? std::max(1, std::atoi(argv[1])) : 3);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "attune_accuracy_table: %s\n", e.what());
    return 2;
  }
}
