// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "page.hpp"

#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <attune/version.hpp>

#include "page_style.hpp"
#include "text.hpp"

namespace apps {
namespace {

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
  // Gnuplot's titles, which a browser would show as a tip, and its names of plots, which it gives twice and never
  // refers to.
  return std::regex_replace(own, std::regex("<title>[^<]*</title>\\s*| id=\"[^\"]*gnuplot_plot_[^\"]*\""), "");
}

constexpr char const* own_style = R"css(
main { max-width: 1060px; } .plot { background: #fff; color: #111; margin: 14px 0; }
.plot figcaption { color: #333; font-weight: 400; font-size: .92rem; }
.plot text { font-family: "DejaVu Sans", Verdana, sans-serif; }
.says { border-left: 3px solid var(--accent); padding-left: 14px; } .says b, .sees b { color: var(--accent); }
.sees p { margin: .5em 0; } cite { font-style: normal; color: var(--soft); font-size: .92em; }
)css";

}  // namespace

std::string html_table(std::vector<std::vector<std::string>> const& rows) {
  std::string to = "<div class=\"scroll\"><table>\n";
  for (auto const& row : rows) {
    bool const head = &row == &rows.front();
    to += head ? "<thead><tr>" : "<tr>";
    for (std::string const& cell : row) {
      bool const name = &cell == &row.front();
      to += (head ? "<th" : "<td") + std::string(name ? " class=\"name\">" : ">") + cell + (head ? "</th>" : "</td>");
    }
    to += head ? "</tr></thead>\n<tbody>" : "</tr>\n";
  }
  return to + "</tbody></table></div>\n";
}

std::string plain(std::string const& html) {
  std::string to = std::regex_replace(html, std::regex("</t[hd]><t[hd][^>]*>"), "  ");
  to = std::regex_replace(to, std::regex("<sup>"), "^");
  to = std::regex_replace(to, std::regex("<sub>"), "_");
  to = std::regex_replace(to, std::regex("<[^>]*>"), "");
  for (auto const& [code, sign] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    to = std::regex_replace(to, std::regex(code), sign);
  return to;
}

void write_page(std::filesystem::path const& file, program const& p, context const& c,
                std::vector<finding> const& findings) {
  write_file(file, [&](std::ostream& to) {
    to << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width, "
          "initial-scale=1\"><title>"
       << p.title << "</title>\n<style>" << page_style << own_style << "</style></head>\n<body><main>\n<h1>" << p.title
       << "</h1>\n"
       << p.introduction(c) << "\n<p>";
    for (finding const& f : findings) to << "<a href=\"#" << f.what.name << "\">" << f.what.title << "</a> &nbsp; ";
    to << "</p>\n";
    for (finding const& f : findings) {
      to << "<h2 id=\"" << f.what.name << "\">" << f.what.title << "</h2>\n<p class=\"says\"><b>The paper says.</b> "
         << f.what.paper << "</p>\n<div class=\"sees\"><p><b>What we see.</b> " << f.seen << "</p></div>\n";
      for (picture const& each : f.what.pictures)
        to << "<figure class=\"plot\">" << inlined(c.output / (each.name + ".svg"), each.name) << "<figcaption>"
           << each.caption << "</figcaption></figure>\n";
    }
    to << "<h2>How it is made</h2>\n"
       << p.method(c)
       << text("<p class=\"soft\">attune %d.%d.%d; %d threads; %.0f s.</p>\n</main></body></html>\n",
               ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH, c.threads, c.bar->seconds());
  });
}

}  // namespace apps
