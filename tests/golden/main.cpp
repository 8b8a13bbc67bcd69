// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_golden DIR: runs the golden cases of a directory on every operator and executor of the registry.
// Exit status: 0 all passed or skipped, 1 some failed, 2 unreadable input or bad arguments.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>

#include "report.hpp"
#include "runner.hpp"
#include "selftest.hpp"

namespace {

namespace golden = attune::golden;
namespace instances = attune::instances;

struct arguments {
  std::string path;
  std::vector<std::string> executors, operations, cases, required;
  bool verbose = false, selftest = false;
};

void declare(CLI::App& app, arguments& a) {
  std::vector<std::string> executors;
  for (auto const executor : instances::all_backends) executors.emplace_back(golden::executor_name(executor));
  app.add_option("path", a.path, "directory with golden cases (*.json), or one file")->required();
  app.add_option("--executor", a.executors, "only this executor (repeatable)")->check(CLI::IsMember(executors));
  app.add_option("--operator", a.operations, "only cases of this operator (repeatable)");
  app.add_option("--case", a.cases, "only the case of this name (repeatable)");
  app.add_option("--require", a.required, "count a skipped case of this operator as failed (repeatable)");
  app.add_flag("--verbose", a.verbose, "a line per case and executor");
  app.add_flag("--selftest", a.selftest, "prove that wrong results and malformed files are noticed");
  for (auto* option : app.get_options()) option->allow_extra_args(false);
}

bool selected(std::vector<std::string> const& names, std::string const& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<instances::backend> executors_of(arguments const& a) {
  std::vector<instances::backend> result;
  for (auto const executor : instances::all_backends)
    if (selected(a.executors, golden::executor_name(executor))) result.push_back(executor);
  return result;
}

/// A name that matches nothing is a typing error, not an empty success.
void check_names(std::vector<golden::golden_case> const& cases, std::vector<std::string> const& names,
                 char const* option, std::string golden::golden_case::* field) {
  for (auto const& name : names)
    if (std::none_of(cases.begin(), cases.end(), [&](auto const& c) { return c.*field == name; }))
      throw golden::bad_file(std::string(option) + " " + name + ": no such case");
}

int run(arguments const& a) {
  auto const cases = golden::load(a.path);
  check_names(cases, a.operations, "--operator", &golden::golden_case::operation);
  check_names(cases, a.required, "--require", &golden::golden_case::operation);
  check_names(cases, a.cases, "--case", &golden::golden_case::name);
  auto const executors = executors_of(a);
  golden::report report(executors, a.verbose, std::cout);
  bool ran = false;
  for (auto const& c : cases) {
    if (!selected(a.operations, c.operation) || !selected(a.cases, c.name)) continue;
    ran = true;
    auto outcomes = golden::run_case(c, instances::registry(), executors);
    if (!a.required.empty() && selected(a.required, c.operation)) golden::fail_skipped(outcomes);
    report.add(c, outcomes);
  }
  if (!ran) throw golden::bad_file("no case is of the chosen operator and name");
  report.print();
  return report.failed() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares the operators of attune with golden expectations.", "attune_golden");
  arguments a;
  declare(app, a);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return a.selftest ? golden::selftest(a.path, std::cout) : run(a);
  } catch (std::exception const& error) {
    std::cerr << "attune_golden: " << error.what() << "\n";
    return 2;
  }
}
