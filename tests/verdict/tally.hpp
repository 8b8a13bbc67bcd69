// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   correct_tally t;   t.add(report, storage, words);                      return t.finish("kernels");
//   defect_tally t;    t.add(report, named, beyond_the_rule, words);       return t.finish(drawn, "the result");
//   return study_program(arguments, given, {{"correct", correct}, {"defects", defects}});
//
// Counts of verdicts on drawn kernels, and the programs that draw them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>

#include <attune/testing/verdict_report.hpp>

namespace attune::test {

inline void print_reasons(testing::verdict_report const& r) {
  for (std::string const& reason : r.reasons) std::printf("    %s\n", reason.c_str());
}

/// Verdicts on correct kernels.
class correct_tally {
 public:
  void add(testing::verdict_report const& r, certify::storage stored, std::string const& words) {
    using testing::judgement;
    ++count_;
    for (auto const& e : r.energies) {
      double& most = largest_[std::string(certify::name_of(stored)) + " " + e.output];
      most = std::fmax(most, e.used);
    }
    if (r.decision == judgement::pass) return;
    if (r.decision == judgement::undecidable)
      ++undecidable_;
    else
      ++(r.ground == testing::failure_ground::proved ? proved_ : statistical_);
    std::printf("%s %d: %s\n", testing::name_of(r.decision), count_ - 1, words.c_str());
    print_reasons(r);
  }
  /// Prints the sums. 1 if a kernel fails by proof, more than two in 5,000 fail statistically, or more than one in 200
  /// is UNDECIDABLE: of few kernels, two and one may.
  int finish(char const* what) const {
    for (auto const& [output, times] : largest_)
      std::printf("%s: residuals reach %.3g of their limit\n", output.c_str(), times);
    std::printf("%d correct %s: %d proved FAIL, %d statistical, %d UNDECIDABLE\n", count_, what, proved_, statistical_,
                undecidable_);
    return proved_ > 0 || statistical_ > std::max(2, 2 * count_ / 5000) || undecidable_ > std::max(1, count_ / 200);
  }

 private:
  int count_ = 0, proved_ = 0, statistical_ = 0, undecidable_ = 0;
  std::map<std::string, double> largest_;
};

/// Verdicts on kernels with a defect that moves the result.
class defect_tally {
 public:
  /// named: right. beyond: a usual rule finds the defect too.
  void add(testing::verdict_report const& r, bool named, bool beyond, std::string const& words) {
    ++moved_;
    beyond_ += beyond;
    bool const hit = r.decision == testing::judgement::fail;
    caught_ += hit;
    beyond_caught_ += hit && beyond;
    named = named && hit;
    bool const misnamed = hit && !named && r.caused && !r.in_part;
    right_ += named;
    wrong_ += misnamed;
    if (named) return;
    std::printf("%s %s\n", !hit ? "MISSED" : misnamed ? "WRONG NAME" : "no name", words.c_str());
    print_reasons(r);
  }
  /// Prints the sums. 1 if fewer are caught or named than have been so far, less a little and one.
  int finish(int drawn, char const* what) const {
    std::printf("%d drawn, %d move %s, %d of them caught (%.1f %%)\n", drawn, moved_, what, caught_,
                100. * caught_ / moved_);
    std::printf("named right: %d of the caught (%.1f %%), wrong: %d, without a name: %d\n", right_,
                100. * right_ / caught_, wrong_, caught_ - right_ - wrong_);
    std::printf("of %d beyond the 2x rule %d caught\n", beyond_, beyond_caught_);
    return 100 * (caught_ + 1) < 97 * moved_ || 100 * (right_ + 1) < 92 * caught_ || 50 * (wrong_ - 1) > caught_ ||
           100 * (beyond_caught_ + 1) < 97 * beyond_;
  }

 private:
  int moved_ = 0, caught_ = 0, right_ = 0, wrong_ = 0, beyond_ = 0, beyond_caught_ = 0;
};

/// A part of a study: it draws `count` cases of a seed and returns the exit status.
struct study_part {
  char const* name;
  int (*run)(int count, std::uint64_t seed);
};
/// main of PROGRAM PART [COUNT] [SEED].
inline int study_program(int arguments, char** given, std::initializer_list<study_part> parts) {
  std::string const what = arguments > 1 ? given[1] : "";
  int const count = arguments > 2 ? std::atoi(given[2]) : 100;
  std::uint64_t const seed = arguments > 3 ? std::strtoull(given[3], nullptr, 10) : 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  for (study_part const& part : parts)
    if (what == part.name) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
      return part.run(count, seed);
    }
  std::fprintf(stderr, "usage: %s", given[0]);
  for (study_part const& part : parts) std::fprintf(stderr, " %s%s", &part == parts.begin() ? "" : "| ", part.name);
  std::fprintf(stderr, " [COUNT] [SEED]\n");
  return 2;
}

}  // namespace attune::test
