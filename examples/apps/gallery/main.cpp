// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_gallery: the experiments of the papers on the activations of a real model, as CSV, SVG and one page. --help says more.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>

#include "page.hpp"

namespace {

constexpr char const* about =
    "Repeats the experiments of the papers on queries, keys and values of a real language model that reads Alice in\n"
    "Wonderland. Each writes NAME.csv and NAME.svg (drawn by gnuplot) and prints what is to be seen; `page`, or no name at\n"
    "all, makes them all and one self-contained page, gallery.html. Ends with status 2 if a bound that is proved fails on\n"
    "these data, or if something prevents the run.";

}  // namespace

int main(int argc, char** argv) try {
  gallery::context c;
  std::filesystem::path data = APPS_DATA;
  c.output = "gallery-output";
  std::string gnuplot = "gnuplot";
  bool quiet = false;
  CLI::App app(about, "attune_gallery");
  app.add_option("--output", c.output, "folder for the pictures and the page")->type_name("DIR")->capture_default_str();
  app.add_option("--data", data, "folder of the activations")->type_name("DIR")->capture_default_str();
  app.add_option("--threads", c.threads, "threads; 0: one per processor")->check(CLI::Range(0, 1024));
  app.add_option("--gnuplot", gnuplot, "the program that draws")->type_name("PROGRAM")->capture_default_str();
  app.add_flag("--quick", c.quick, "fewer rows and points: to see that all of it works");
  app.add_flag("--quiet", quiet, "no progress on stderr");
  c.threads = 0;
  std::vector<gallery::experiment> all = gallery::all_experiments();
  for (gallery::experiment const& e : all) app.add_subcommand(e.name, e.summary)->fallthrough();
  app.add_subcommand("page", "all of them, and gallery.html")->fallthrough();
  CLI11_PARSE(app, argc, argv);

  bool const page = app.get_subcommands().empty() || app.got_subcommand("page");
  if (!page) std::erase_if(all, [&](gallery::experiment const& e) { return !app.got_subcommand(e.name); });
  if (c.threads == 0) c.threads = std::max(1, int(std::thread::hardware_concurrency()));
  std::filesystem::create_directories(c.output);
  double cost = 0;
  for (gallery::experiment const& e : all) cost += e.cost;
  apps::progress bar(cost, quiet);
  c.bar = &bar;
  bar.stage("reading activations");
  for (int const number : {0, 2}) c.layers.push_back(apps::load_layer(data, number, c.quick ? 2 : 0));
  std::vector<gallery::finding> found;
  for (gallery::experiment const& e : all) {
    bar.stage(e.name);
    found.push_back({e, e.run(c)});
    draw(e, c, gnuplot);
  }
  bar.end();
  if (page) {
    write_page(c.output / "gallery.html", c, found, bar.seconds());
    std::cout << (c.output / "gallery.html").string() << std::endl;
  } else {
    for (gallery::finding const& f : found)
      for (gallery::picture const& p : f.what.pictures) std::cout << (c.output / (p.name + ".svg")).string() << std::endl;
  }
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "attune_gallery: %s\n", e.what());
  return 2;
}
