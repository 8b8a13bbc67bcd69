// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The demo: attention systems on the activations of a real model, checked, timed and drawn. --help says more.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

#include "print.hpp"
#include "report.hpp"
#include "shared/text.hpp"
#include "study.hpp"

namespace {

constexpr char const* about =
    "Runs attention systems on the queries, keys and values of a real language model that reads the opening of Alice "
    "in\n"
    "Wonderland, and compares every number with a reference:\n"
    "  presets   softmax, off-by-one, sink, ssmax and Principled Attention, without mask and causal;\n"
    "  grid      128 variants of Principled Attention: alpha, beta, gamma each off, constant, per head or per query;\n"
    "            v0 zero or per head. All are values of one operator type.\n"
    "The CPU executor (float) is compared with reference<double> and, on sample rows, with reference<digits50>.\n"
    "Prints a table and writes DIR/report.html (a page with heat maps, nothing external) and DIR/results.csv.\n"
    "Ends with status 1 if an error exceeds its bound, 2 if something prevents the run.";

}  // namespace

int main(int argc, char** argv) try {
  demo::study_options options{.data = APPS_DATA};
  std::filesystem::path output = "demo-output";
  CLI::App app(about, "attune_demo");
  app.add_option("--output", output, "folder for report.html and results.csv")->type_name("DIR")->capture_default_str();
  app.add_option("--data", options.data, "folder of the activations")->type_name("DIR")->capture_default_str();
  app.add_option("--threads", options.threads, "threads for checking; 0: one per processor. Timings always use one")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "one layer, two heads, part of the grid: seconds instead of half a minute");
  app.add_flag("--quiet", options.quiet, "no progress on stderr");
  app.footer("Example: attune_demo --output alice && xdg-open alice/report.html");
  CLI11_PARSE(app, argc, argv);

  std::filesystem::create_directories(output);
  demo::study_result const result = demo::run_study(options);
  demo::print_tables(std::cout, result);
  apps::write_file(output / "report.html", [&](std::ostream& to) { demo::write_report(to, result); });
  apps::write_file(output / "results.csv", [&](std::ostream& to) { demo::write_csv(to, result); });
  std::cout << "report: " << (output / "report.html").string() << std::endl;
  return result.passed() ? 0 : 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "attune_demo: %s\n", e.what());
  return 2;
}
