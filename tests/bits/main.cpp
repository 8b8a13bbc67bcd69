// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_bits [count]  a line for each of `count` random problems of each operator: operator, executor, a hash of
//                        what forward, vjp and a split give; then a line for each call of calls.cpp
//
// scripts/compare_bits runs it on two commits: lines that differ are results that differ in some bit. Problems follow
// from their seeds and from the registry's names, so that an operator that one commit lacks changes nothing else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../support/gradients.hpp"
#include "../support/problems.hpp"
#include "calls.hpp"
#include "hash.hpp"

namespace {

using namespace attune::test;

using attune::bits::hash;

std::string outputs(result const& r) {
  hash h;
  for (auto const* x : {&r.out, &r.lse, &r.ground_weight, &r.threshold, &r.average}) h.add(x->data);
  return h.text();
}

}  // namespace

int main(int count, char** values) {
  std::uint64_t const problems = count > 1 ? std::strtoull(values[1], nullptr, 10) : 10;
  for (auto const& [name, op] : attune::instances::registry()) {
    std::uint64_t own = 0xcbf29ce484222325u;
    for (char const c : name) own = (own ^ std::uint64_t(static_cast<unsigned char>(c))) * 0x100000001b3u;
    for (std::uint64_t n = 0; n < problems; ++n) {
      rng random(own + n);
      dimensions const d = random_dimensions(random, n % 3 == 0 ? 200 : 30, 40);
      problem const p = make_problem(op, d, {}, random);
      auto const by = random_cotangent(op, d, random);
      for (backend const b : attune::instances::cpu_backends) {
        options how;
        how.threads = 1 + int(n % 3);
        options split = how;
        split.cuts = {d.keys / 3, d.keys - d.keys / 4};
        hash gradients;
        for (auto const& [of, x] : op.vjp(p, b, by, how)) gradients.add(x.data);
        std::printf("%s %s %llu: forward %s vjp %s split %s\n", name.c_str(), attune::instances::name(b),
                    static_cast<unsigned long long>(n), outputs(op.run(p, b, how)).c_str(), gradients.text().c_str(),
                    outputs(op.run(p, b, split)).c_str());
      }
    }
  }
  attune::bits::print_calls();
}
