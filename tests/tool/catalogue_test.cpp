// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "catalogue.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include <attune/core/error.hpp>

#include "captured.hpp"

using namespace attune::tool;

namespace {

/// Whether a text has a name: it stands between characters that belong to no name.
bool names(std::string const& cell, std::string const& name) {
  for (auto at = cell.find(name); at != std::string::npos; at = cell.find(name, at + 1)) {
    auto const is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    auto const end = at + name.size();
    if ((at == 0 || !is_part(cell[at - 1])) && (end == cell.size() || !is_part(cell[end]))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("A preset's parameters are those that the page gives its policies") {
  for (preset const& p : catalogue()) {
    CAPTURE(p.name);
    std::string words;
    for (auto const& name : p.policies) words += std::string(" ") + find_policy(name).parameters;
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

TEST_CASE(
    "One parameter that two policies read has two paths; equal names of different things have names of their own") {
  preset const& principled = find_preset("principled_attention");
  auto const gamma = std::find_if(principled.parameters.begin(), principled.parameters.end(),
                                  [](auto const& e) { return e.name == "gamma"; });
  REQUIRE(gamma != principled.parameters.end());
  CHECK(gamma->paths == std::vector<std::string>{"length_scale.gamma", "normalizer.gamma"});
  CHECK(gamma->expected == "a number, -inf or +inf");
  CHECK(gamma->fallback == "0");
  std::vector<std::string> scales;
  for (auto const& e : find_preset("ssmax").parameters) scales.push_back(e.name + " " + e.paths[0] + " " + e.fallback);
  CHECK(scales == std::vector<std::string>{"kernel.scale kernel.scale 1/√D", "scale length_scale.scale 1",
                                           "bias length_scale.bias 0"});
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
