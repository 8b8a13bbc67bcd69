// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "catalogue.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <attune/core/error.hpp>

#include "captured.hpp"

using namespace attune::tool;

namespace {

/// The cells of the tables of docs/operators.md, without backticks and escapes, by heading.
struct row {
  std::string heading;
  std::vector<std::string> cells;
};
std::vector<row> rows_of_the_page() {
  std::ifstream in(ATTUNE_TEST_OPERATORS_PAGE);
  REQUIRE(in);
  std::vector<row> rows;
  std::string heading, line;
  while (std::getline(in, line)) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("|") || line.starts_with("|---")) continue;
    row r{heading, {}};
    std::string cell;
    for (std::size_t n = 1; n < line.size(); ++n) {
      if (line[n] == '\\' && n + 1 < line.size() && line[n + 1] == '|') {
        cell += line[++n];
      } else if (line[n] == '|') {
        auto const first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
        r.cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
        cell.clear();
      } else if (line[n] != '`') {
        cell += line[n];
      }
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

/// Whether a cell names a policy: the name stands between characters that belong to no name.
bool names(std::string const& cell, std::string const& name) {
  for (auto at = cell.find(name); at != std::string::npos; at = cell.find(name, at + 1)) {
    auto const is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    auto const end = at + name.size();
    if ((at == 0 || !is_part(cell[at - 1])) && (end == cell.size() || !is_part(cell[end]))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("The texts of policies are those of docs/operators.md") {
  auto const rows = rows_of_the_page();
  for (policy_text const& t : policy_texts()) {
    CAPTURE(std::string(t.name));
    std::string const full = t.name, role = full.substr(0, full.find("::")), name = full.substr(full.find("::") + 2);
    bool found = false;
    for (row const& r : rows) {
      bool const kernel = role == "kernel" && r.heading == "Kernels: scores";
      bool const normalizer = role == "normalizer" && r.heading == "Normalizers: weights";
      bool const other = r.heading == "Length scales and gates" && r.cells[0].starts_with(role + "::");
      if ((!kernel && !normalizer && !other) || !names(r.cells[0], name)) continue;
      found = true;
      CHECK(r.cells[1] == t.formula);
      CHECK(r.cells[2] == t.parameters);
      CHECK(r.cells[normalizer ? 3 : 4] == t.becomes);
      CHECK(r.cells[5] == t.source);
    }
    CHECK(found);
  }
}

TEST_CASE("Every preset of docs/operators.md is in the catalogue, and no other") {
  std::set<std::string> on_page, here;
  std::regex const name("([a-z0-9_]+_attention)\\b");
  for (row const& r : rows_of_the_page())
    if (r.heading == "Presets")
      for (std::sregex_iterator n(r.cells[0].begin(), r.cells[0].end(), name), end; n != end; ++n) on_page.insert(n->str(1));
  for (preset const& p : catalogue()) here.insert(p.call.substr(0, p.call.find('<')));
  CHECK(on_page.size() > 30);
  CHECK(here == on_page);
}

TEST_CASE("A preset's parameters are those that the page gives its policies") {
  for (preset const& p : catalogue()) {
    CAPTURE(p.name);
    std::string words;
    for (auto const& name : p.policies) {
      auto const texts = policy_texts();
      auto const t = std::find_if(texts.begin(), texts.end(), [&](policy_text const& x) { return name == x.name; });
      REQUIRE(t != texts.end());
      words += std::string(" ") + t->parameters;
    }
    for (auto const& e : p.parameters) {
      CAPTURE(e.name);
      std::string const own = e.paths[0].substr(e.paths[0].rfind('.') + 1);
      CHECK(names(words, own));
    }
    for (auto const& t : p.tables) {
      CAPTURE(t.name);
      std::string const own = p.name == "transformer_xl" ? t.name : t.path.substr(t.path.rfind('.') + 1);
      CHECK(names(words, own));
    }
  }
}

TEST_CASE("One parameter that two policies read has two paths; equal names of different things have names of their own") {
  preset const& principled = find_preset("principled_attention");
  auto const gamma =
      std::find_if(principled.parameters.begin(), principled.parameters.end(), [](auto const& e) { return e.name == "gamma"; });
  REQUIRE(gamma != principled.parameters.end());
  CHECK(gamma->paths == std::vector<std::string>{"length_scale.gamma", "normalizer.gamma"});
  CHECK(gamma->expected == "a number, -inf or +inf");
  CHECK(gamma->fallback == "0");
  std::vector<std::string> scales;
  for (auto const& e : find_preset("ssmax").parameters) scales.push_back(e.name + " " + e.paths[0] + " " + e.fallback);
  CHECK(scales ==
        std::vector<std::string>{"kernel.scale kernel.scale 1/√D", "scale length_scale.scale 1", "bias length_scale.bias 0"});
  CHECK(find_preset("t5").parameters[0].fallback == "1");
  CHECK(find_preset("sink").parameters[1].fallback == "");
}

TEST_CASE("A name that does not exist is answered with near ones") {
  std::string said;
  try {
    find_preset("sparse_max");
  } catch (attune::error const& e) {
    said = e.what();
  }
  CHECK(said.find("PRESET has the value 'sparse_max'; expected sparsemax, ") != std::string::npos);
}

TEST_CASE("presets and explain") {
  auto const list = tool_tests::attune({"presets"});
  CHECK(list.status == 0);
  CHECK(std::count(list.out.begin(), list.out.end(), '\n') == std::ptrdiff_t(catalogue().size()));
  CHECK(list.says("principled                c⟨q, k⟩; s + κ(s − γ)"));
  for (preset const& p : catalogue()) {
    auto const page = tool_tests::attune({"explain", p.name});
    CHECK(page.status == 0);
    CHECK(page.says("--out"));
    CHECK(page.says("--lse ") == p.has_lse);
    CHECK(page.says("(B, Hv, Lk, Dv)"));
  }
  CHECK(tool_tests::attune({"explain", "sink", "--json", "-"}).says("\"domain\": \"a number, -inf or +inf\""));
  auto const unknown = tool_tests::attune({"explain", "sofmax"});
  CHECK(unknown.status == 2);
  CHECK(unknown.says("softmax"));
}
