// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "report.hpp"

#include <iomanip>
#include <ostream>

namespace attune::golden {
namespace {

std::string joined(std::set<std::string> const& words, std::size_t most) {
  std::string result;
  std::size_t n = 0;
  for (auto const& word : words) {
    if (n++ == most) return result + ", ... (" + std::to_string(words.size()) + " reasons)";
    result += (result.empty() ? "" : ", ") + word;
  }
  return result;
}

char const* word(status s) {
  switch (s) {
    case status::passed:
      return "passed";
    case status::failed:
      return "FAILED";
    case status::skipped:
      break;
  }
  return "skipped";
}

}  // namespace

void report::counts::count(status s) {
  switch (s) {
    case status::passed:
      ++passed;
      break;
    case status::failed:
      ++failed;
      break;
    case status::skipped:
      ++skipped;
      break;
  }
}

void report::add(golden_case const& c, std::vector<outcome> const& outcomes) {
  row& r = rows_[c.operation];
  ++r.cases;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    outcome const& o = outcomes[i];
    accuracy_seen& seen = seen_[executors_[i]];
    for (counts* to : {&r.all, &seen.all, &total_}) to->count(o.result);
    if (o.result == status::skipped) r.skip_reasons.insert(o.why);
    if (o.result == status::passed && !o.why.empty()) ++seen.not_run;
    if (o.worst_ratio > seen.ratio) {
      seen.ratio = o.worst_ratio;
      seen.where = c.name + ": " + o.worst_tensor;
    }
    if (!verbose_ && o.result != status::failed) continue;
    out_ << word(o.result) << "  " << c.name << " (" << c.operation << ", " << executor_name(executors_[i]) << ")";
    if (!o.why.empty()) out_ << ": " << o.why;
    if (o.result == status::passed && !o.worst_tensor.empty())
      out_ << ": error / tolerance <= " << std::setprecision(2) << o.worst_ratio << " (" << o.worst_tensor << ")";
    out_ << "\n";
    for (auto const& line : o.failures) out_ << "        " << line << "\n";
  }
}

void report::print_table() const {
  out_ << std::left << std::setw(28) << "operator" << std::right << std::setw(7) << "cases" << std::setw(8) << "passed"
       << std::setw(8) << "failed" << std::setw(9) << "skipped"
       << "  why skipped\n";
  for (auto const& [name, r] : rows_)
    out_ << std::left << std::setw(28) << name << std::right << std::setw(7) << r.cases << std::setw(8) << r.all.passed
         << std::setw(8) << r.all.failed << std::setw(9) << r.all.skipped << "  " << joined(r.skip_reasons, 3) << "\n";
  out_ << "(passed, failed, skipped count case x executor)\n";
}

void report::print_accuracy() const {
  out_ << std::left << std::setw(20) << "executor" << std::right << std::setw(8) << "passed" << std::setw(8) << "failed"
       << std::setw(9) << "skipped"
       << "  largest error / tolerance\n";
  for (auto const executor : executors_) {
    auto const found = seen_.find(executor);
    if (found == seen_.end()) continue;
    accuracy_seen const& seen = found->second;
    out_ << std::left << std::setw(20) << executor_name(executor) << std::right << std::setw(8) << seen.all.passed
         << std::setw(8) << seen.all.failed << std::setw(9) << seen.all.skipped << "  ";
    if (seen.ratio > 0)
      out_ << std::setprecision(3) << seen.ratio << " (" << seen.where << ")";
    else
      out_ << "0";
    if (seen.not_run > 0) out_ << "; passed without a run because the inputs are no floats: " << seen.not_run;
    out_ << "\n";
  }
}

void report::print() const {
  print_table();
  out_ << "\n";
  print_accuracy();
  out_ << "\n";
  out_ << total_.passed << " passed, " << total_.failed << " failed, " << total_.skipped << " skipped\n";
}

}  // namespace attune::golden
