// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Counts and messages of a golden run.
#pragma once

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner.hpp"

namespace attune::golden {

class report {
 public:
  report(std::vector<instances::backend> executors, bool verbose, std::ostream& out)
      : executors_(std::move(executors)), verbose_(verbose), out_(out) {}

  /// Counts the outcomes of one case (one per executor) and prints its failures at once.
  void add(golden_case const& c, std::vector<outcome> const& outcomes);

  /// The table of operators, the accuracy of each executor and, as the last line, "N passed, N failed, N skipped".
  void print() const;

  int failed() const { return total_.failed; }
  int passed() const { return total_.passed; }
  int skipped() const { return total_.skipped; }

 private:
  struct counts {
    int passed = 0, failed = 0, skipped = 0;
    void count(status s);
  };
  struct row {
    int cases = 0;
    counts all;
    std::set<std::string> skip_reasons;
  };
  struct accuracy_seen {
    counts all;
    int not_run = 0;  ///< passed without a run: inputs that the executor cannot represent
    double ratio = 0;
    std::string where;
  };

  void print_table() const;
  void print_accuracy() const;

  std::vector<instances::backend> executors_;
  bool verbose_;
  std::ostream& out_;
  std::map<std::string, row> rows_;
  std::map<instances::backend, accuracy_seen> seen_;
  counts total_;
};

}  // namespace attune::golden
