// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_ledger: recomputes the evidence of every claim of the papers. Exit status: 0 all evidence holds, 1 some does
// not, 2 wrong arguments.
#include <cctype>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "claim.hpp"

namespace {

using namespace ledger;

struct entry {
  claim what;
  evidence found;
  std::string wrong;
};

std::vector<claim> all_claims() {
  std::vector<claim> all;
  for (auto const family : {principled_claims, scalar_sort_claims, scalar_sort_cache_claims, limits_claims,
                            limits_gradient_claims, affine_claims, softmax_claims, prior_art_claims})
    for (claim& c : family()) all.push_back(std::move(c));
  return all;
}

entry run(claim const& c) {
  entry e{c, {}, {}};
  try {
    c.check(e.found);
    e.wrong = objection(c, e.found);
  } catch (std::exception const& problem) {
    e.wrong = text("threw: ", problem.what());
  }
  return e;
}

/// An item of a Markdown list, in lines of at most 120 columns. A line goes on with a letter or a parenthesis, so that
/// Markdown sees no other item, table or quotation in it.
void write_item(std::ostream& out, std::string const& indent, std::string const& item) {
  std::istringstream words(item);
  std::string line = indent + "-", part, word;
  auto const add = [&] {
    if (line.size() + part.size() > 120) {
      out << line << "\n";
      line = indent + " ";
    }
    line += part;
    part.clear();
  };
  while (words >> word) {
    if (std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '(') add();
    part += " " + word;
  }
  add();
  out << line << "\n";
}

void write(std::ostream& out, std::vector<entry> const& entries, std::map<std::string, int> const& counts) {
  out << "# Claims\n\n"
         "This page lists every claim of the five papers and what a program found. `scripts/ledger` recomputes every\n"
         "line and writes the page. The checks are short functions in `examples/apps/ledger/`. Most of them call\n"
         "[attune/analysis](../reference/analysis.md).\n\n"
         "- A false claim shows its counterexample.\n"
         "- A correction that is a quantified statement passes on at least 1,000 random instances.\n"
         "- A line whose evidence no longer holds fails the run.\n\n"
         "The letter of a claim names its source:\n\n"
         "| letter | source |\n|---|---|\n"
         "| P | Principled Attention |\n"
         "| S | Scalar Sort Attention and its hybrid |\n"
         "| L | Limitations of Normalization |\n"
         "| A | Affine-Scaled Attention |\n"
         "| N | Why Softmax |\n"
         "| R | prior art that these papers cite |\n\n";
  out << "| verdict | claims |\n|---|---|\n";
  for (auto const& [name, count] : counts) out << "| " << name << " | " << count << " |\n";
  out << "\n";
  for (entry const& e : entries) {
    out << "## " << e.what.id << ": " << name_of(e.what.verdict) << "\n\n";
    write_item(out, "", text("Claim (", e.what.source, "): ", e.what.statement));
    if (!e.what.correction.empty()) write_item(out, "", "Instead: " + e.what.correction);
    out << "- Evidence:\n";
    for (std::string const& finding : e.found.findings()) write_item(out, "  ", finding);
    if (!e.wrong.empty()) out << "- **" << e.wrong << "**\n";
    out << "\n";
  }
}

/// The lines of a page that do not depend on rounding: verdicts, claims, corrections.
std::string outline(std::istream& page) {
  std::string all, line;
  bool in_evidence = false;
  while (std::getline(page, line)) {
    in_evidence = line == "- Evidence:" || (in_evidence && line.rfind("  ", 0) == 0);
    if (!in_evidence) all += line + "\n";
  }
  return all;
}

bool same_outline(std::string const& path, std::vector<entry> const& entries,
                  std::map<std::string, int> const& counts) {
  std::ifstream file(path);
  std::stringstream now;
  write(now, entries, counts);
  return file && outline(file) == outline(now);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Recomputes the evidence of every claim of the papers.", "attune_ledger");
  std::string output, only, page;
  app.add_option("--output", output, "write the ledger to this Markdown file");
  app.add_option("--only", only, "only claims whose id begins with this; prints their evidence");
  app.add_option("--check", page, "fail unless this page says the same (but for the digits of the evidence)");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  auto const start = std::chrono::steady_clock::now();
  std::vector<entry> entries;
  std::map<std::string, int> counts;
  int wrong = 0;
  for (claim const& c : all_claims()) {
    if (c.id.rfind(only, 0) != 0) continue;
    entries.push_back(run(c));
    entry const& e = entries.back();
    ++counts[name_of(c.verdict)];
    if (!e.wrong.empty()) ++wrong;
    std::printf("%-5s %-23s %s%s%s\n", c.id.c_str(), name_of(c.verdict), c.statement.c_str(),
                e.wrong.empty() ? "" : "  !! ", e.wrong.c_str());
    if (!only.empty() || !e.wrong.empty())
      for (std::string const& finding : e.found.findings()) std::printf("      %s\n", finding.c_str());
  }
  if (entries.empty()) {
    std::cerr << "attune_ledger: no claim begins with " << only << "\n";
    return 2;
  }
  if (!output.empty()) {
    std::ofstream file(output);
    write(file, entries, counts);
    if (!file) {
      std::cerr << "attune_ledger: cannot write " << output << "\n";
      return 2;
    }
  }
  for (auto const& [name, count] : counts) std::printf("%s: %d  ", name.c_str(), count);
  std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
  std::printf("\n%zu claims in %.1f s, %d whose evidence does not hold\n", entries.size(), seconds.count(), wrong);
  bool const stale = !page.empty() && !same_outline(page, entries, counts);
  if (stale) std::printf("%s says something else: scripts/ledger writes it\n", page.c_str());
  return wrong == 0 && !stale ? 0 : 1;
}
