// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_bits [count]  a line for each of `count` random problems of each operator: operator, executor, a hash of
//                        what forward, vjp and a split give
//
// scripts/compare_bits runs it on two commits: lines that differ are results that differ in some bit. Problems follow
// from their seeds and from the registry's names, so that an operator that one commit lacks changes nothing else.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../support/gradients.hpp"
#include "../support/problems.hpp"

namespace {

using namespace attune::test;

class hash {
 public:
  void add(array const& x) {
    for (double const y : x.data) {
      std::uint64_t const bits = y == y ? std::bit_cast<std::uint64_t>(y) : ~std::uint64_t(0);  // a NaN is a NaN
      for (int byte = 0; byte < 8; ++byte) state_ = (state_ ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

std::uint64_t outputs(result const& r) {
  hash h;
  for (auto const* x : {&r.out, &r.lse, &r.ground_weight, &r.threshold, &r.average}) h.add(*x);
  return h.value();
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
        for (auto const& [of, x] : op.vjp(p, b, by, how)) gradients.add(x);
        std::printf("%s %s %llu: forward %016llx vjp %016llx split %016llx\n", name.c_str(), attune::instances::name(b),
                    static_cast<unsigned long long>(n), static_cast<unsigned long long>(outputs(op.run(p, b, how))),
                    static_cast<unsigned long long>(gradients.value()),
                    static_cast<unsigned long long>(outputs(op.run(p, b, split))));
      }
    }
  }
}
