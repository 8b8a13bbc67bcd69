// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "experiment.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>

#include "gnuplot.hpp"
#include "page.hpp"

namespace apps {

int run_program(program const& what, int argc, char** argv) try {
  context c;
  std::filesystem::path data = APPS_DATA;
  c.output = what.page + "-output";
  c.threads = 0;
  std::string drawn_by = "gnuplot";
  bool quiet = false;
  CLI::App app(what.about, what.name);
  app.add_option("--output", c.output, "folder for the pictures and the page")->type_name("DIR")->capture_default_str();
  app.add_option("--data", data, "folder of the activations")->type_name("DIR")->capture_default_str();
  app.add_option("--threads", c.threads, "threads; 0: one per processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--gnuplot", drawn_by, "the program that draws")->type_name("PROGRAM")->capture_default_str();
  app.add_flag("--quick", c.quick, "few heads, few points: to see that all of it works");
  app.add_flag("--quiet", quiet, "no progress on stderr");
  for (experiment const& e : what.experiments) app.add_subcommand(e.name, e.summary)->fallthrough();
  app.add_subcommand("page", "all of them, and " + what.page + ".html")->fallthrough();
  CLI11_PARSE(app, argc, argv);

  bool const page = app.get_subcommands().empty() || app.got_subcommand("page");
  std::vector<experiment> all = what.experiments;
  if (!page) std::erase_if(all, [&](experiment const& e) { return !app.got_subcommand(e.name); });
  if (c.threads == 0) c.threads = std::max(1, int(std::thread::hardware_concurrency()));
  std::filesystem::create_directories(c.output);
  double cost = 0, preparation = 0;
  for (experiment const& e : all) {
    cost += e.cost;
    preparation = std::max(preparation, e.preparation);
  }
  progress bar(cost + preparation, quiet);
  c.bar = &bar;
  bar.stage("reading activations");
  for (int const number : {0, 2}) c.layers.push_back(load_layer(data, number, c.quick ? 2 : 0));
  std::vector<finding> found;
  for (experiment const& e : all) {
    bar.stage(e.name);
    found.push_back({e, e.run(c)});
    for (picture const& p : e.pictures)
      gnuplot(what.plots / (p.name + ".gnuplot"),
              {{"data", c.output.string()},
               {"scripts", what.plots.string()},
               {"out", (c.output / (p.name + ".svg")).string()}},
              drawn_by);
  }
  bar.end();
  if (page) {
    auto const file = c.output / (what.page + ".html");
    write_page(file, what, c, found);
    std::cout << file.string() << std::endl;
  } else {
    for (finding const& f : found) {
      std::cout << plain(f.seen) << "\n";
      for (picture const& p : f.what.pictures) std::cout << (c.output / (p.name + ".svg")).string() << std::endl;
    }
  }
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s: %s\n", what.name.c_str(), e.what());
  return 2;
}

}  // namespace apps
