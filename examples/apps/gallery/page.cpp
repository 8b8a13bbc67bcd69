// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "page.hpp"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <attune/version.hpp>

#include "shared/page_style.hpp"
#include "shared/text.hpp"

namespace gallery {
namespace {

/// `text` with every single quote replaced, between single quotes.
std::string quoted(std::string const& text, char const* quote) {
  std::string all = "'";  // by +=: g++ 12 warns of a sum that begins with a literal
  all += std::regex_replace(text, std::regex("'"), quote);
  all += "'";
  return all;
}
/// One word for a shell, whatever is in it.
std::string word(std::string const& text) { return quoted(text, "'\\''"); }
/// NAME='value';  for gnuplot.
std::string assignment(std::string const& name, std::string const& value) { return name + "=" + quoted(value, "''") + ";"; }

/// An SVG as part of a page: without the lines of an XML file, and with names of its own for what it refers to.
std::string inlined(std::filesystem::path const& file, std::string const& name) {
  std::ifstream in(file);
  std::stringstream all;
  all << in.rdbuf();
  std::string const svg = all.str();
  auto const begin = svg.find("<svg");
  if (!in || begin == std::string::npos) throw std::runtime_error(file.string() + ": no SVG");
  std::string const own =
      std::regex_replace(svg.substr(begin), std::regex("(id=['\"]|href=['\"]#|url\\(#)"), "$1" + name + "-");
  // Gnuplot's titles, which a browser would show as a tip, and its names of plots, which it gives twice and never refers to.
  return std::regex_replace(own, std::regex("<title>[^<]*</title>\\s*| id=\"[^\"]*gnuplot_plot_[^\"]*\""), "");
}

constexpr char const* own_style = R"css(
main { max-width: 1060px; } .plot { background: #fff; color: #111; margin: 14px 0; } .plot figcaption { color: #333; font-weight: 400; font-size: .92rem; }
.plot text { font-family: "DejaVu Sans", Verdana, sans-serif; }
.says { border-left: 3px solid var(--accent); padding-left: 14px; } .says b, .sees b { color: var(--accent); } cite { font-style: normal; color: var(--soft); font-size: .92em; }
)css";

}  // namespace

void draw(experiment const& e, context const& c, std::string const& gnuplot) {
  for (picture const& p : e.pictures) {
    std::string const script = std::string(GALLERY_PLOTS) + "/" + p.name + ".gnuplot";
    std::string const settings = assignment("data", c.output.string()) + assignment("scripts", GALLERY_PLOTS) +
                                 assignment("common", APPS_GNUPLOT_COMMON) +
                                 assignment("out", (c.output / (p.name + ".svg")).string());
    std::string const command = word(gnuplot) + " -e " + word(settings) + " " + word(script);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("gnuplot failed: " + command);
  }
}

void write_page(std::filesystem::path const& file, context const& c, std::vector<finding> const& findings, double seconds) {
  apps::layer const& l = c.layers.front();
  apps::write_file(file, [&](std::ostream& to) {
    to << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width, "
          "initial-scale=1\"><title>The limits of normalization, in pictures</title>\n<style>"
       << apps::page_style << own_style << "</style></head>\n<body><main>\n<h1>The limits of normalization, in pictures</h1>\n"
       << apps::text(
              "<p class=\"lead\">What three papers say about the weights of attention, on the queries, keys and values of a "
              "real model: %zu layers "
              "of %td heads of width %td that read the first %td tokens of <em>Alice’s Adventures in Wonderland</em>.</p>\n",
              c.layers.size(), l.heads, l.width, l.length)
       << "<p>The papers measured GPT-2, or models of their own; this is a small sentence-embedding model (all-MiniLM-L6-v2, "
          "bidirectional). Where "
          "its numbers differ from theirs, the model may differ; where a bound is broken, the bound is wrong. Every number on "
          "this page was "
          "computed when it was written, by the functions of <code>attune/analysis</code> and the operators themselves. The "
          "program stops if an "
          "inequality that is proved fails on any row. Which claims of the papers hold is in "
          "<code>docs/ledger.md</code>.</p>\n";
    for (finding const& f : findings) {
      to << "<h2 id=\"" << f.what.name << "\">" << f.what.title << "</h2>\n<p class=\"says\"><b>The paper says.</b> "
         << f.what.paper << "</p>\n<p class=\"sees\"><b>What we see.</b> " << f.seen << "</p>\n";
      for (picture const& p : f.what.pictures)
        to << "<figure class=\"plot\">" << inlined(c.output / (p.name + ".svg"), p.name) << "<figcaption>" << p.caption
           << "</figcaption></figure>\n";
    }
    to << "<h2>How it is made</h2>\n<p>Rows: " << (c.quick ? 1 : 6)
       << " queries of every head, evenly spaced in the text (all of them under the eight systems, " << (c.quick ? 1 : 4)
       << " in the grid); over L keys means a text cut short after L tokens. Sinks, thresholds, gates and α are set by fixed "
          "rules "
          "(<code>examples/apps/shared/layer.hpp</code>): the model was trained with softmax. The numbers behind the pictures "
          "are in CSV files "
          "beside this page; <code>scripts/gallery NAME</code> makes one experiment again.</p>\n"
       << apps::text("<p class=\"soft\">attune %d.%d.%d; %d threads; %.0f s.</p>\n</main></body></html>\n",
                     ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH, c.threads, seconds);
  });
}

}  // namespace gallery
