// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "catalogue.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <attune/core/number_text.hpp>

#include "recipes.hpp"

namespace attune::tool {
namespace {

/// Names of the command line for parameters and tables whose own name would mean two things.
using aliases = std::map<std::string, std::string>;

std::string fallback_of(std::string const& path, parameter const& p) {
  if (p.is_set()) return attune::detail::number_text(p.at(0, 0, 0), 9);
  if (path.starts_with("kernel.") && path.ends_with(".scale")) return "1/√D";
  if (path == "normalizer.bias") return "−log K";
  return "";
}

template <class Make>
preset described(recipe<Make> const& from, std::string call, std::vector<std::string> policies, aliases const& names) {
  preset p{from.name, std::move(call), std::move(policies), {}, {}, {}, {}};
  auto const name_of_path = [&](std::string const& path, char const* own) {
    auto const found = names.find(path);
    return found == names.end() ? std::string(own) : found->second;
  };
  std::map<std::string, long> asked;
  [[maybe_unused]] auto const op = cooked(
      from, constants{nullptr, &asked, nullptr, &p.arrays}, {},
      [&](std::string const& path, auto const& listed, parameter& x) {
        std::string const name = name_of_path(path, listed.name);
        auto const same =
            std::find_if(p.parameters.begin(), p.parameters.end(), [&](auto const& e) { return e.name == name; });
        if (same != p.parameters.end())
          same->paths.push_back(path);
        else
          p.parameters.push_back({name, {path}, attune::detail::words(listed.values), fallback_of(path, x)});
      },
      [&](std::string const& path, auto const& listed, table&) {
        p.tables.push_back({name_of_path(path, listed.name), path, listed.width});
      });
  using op_type = std::remove_const_t<decltype(op)>;
  for (int f = 0; f < int(field_count); ++f)
    if (op_type::uses(field(f))) p.inputs.push_back(field(f));
  for (auto const& [name, fallback] : asked) p.constants.push_back({name, fallback});
  p.has_lse = op_type::has_lse;
  p.has_ground_weight = op_type::has_ground_weight;
  p.has_threshold = op_type::has_threshold;
  return p;
}

/// The words of a text.
std::vector<std::string> words_of(std::string const& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}
aliases split_names(std::string const& text) {
  aliases to;
  for (std::string const& word : words_of(text))
    to.emplace(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  return to;
}
/// The function without its arguments.
std::string function_of(std::string const& call) {
  std::string const name = call.substr(0, call.find('('));
  return name.find(',') == std::string::npos ? name : name.substr(0, name.find(',')) + ">";
}

std::vector<preset> made() {
  return {
#define ATTUNE_DESCRIBED(name, call, policies, names, ...) \
  described(recipes::name, function_of(call), words_of(policies), split_names(names)),
      ATTUNE_PRESETS(ATTUNE_DESCRIBED) ATTUNE_MORE(ATTUNE_DESCRIBED)
#undef ATTUNE_DESCRIBED
  };
}

/// How many letters must be changed, added or left out.
std::size_t distance(std::string const& a, std::string const& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j)
      corner =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, corner + std::size_t(a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

}  // namespace

policy_text const& find_policy(std::string const& name) {
  for (policy_text const& t : policy_texts()) {
    std::string const own = t.name;
    if (t.role + ("::" + own.substr(0, own.find_first_of("({< "))) == name) return t;
  }
  throw std::logic_error("tools/catalogue/policies.cpp: no row for " + name);
}

std::string plain(char const* text) {
  std::string to;
  for (; *text != 0; ++text)
    if (*text != '`') to += *text;
  return to;
}

std::vector<preset> const& catalogue() {
  static std::vector<preset> const all = made();
  return all;
}

preset const& find_preset(std::string const& name) {
  std::string const end = "_attention";
  std::string const bare = name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
  std::vector<std::pair<std::size_t, std::string>> near;
  for (preset const& p : catalogue()) {
    if (p.name == bare) return p;
    near.emplace_back(p.name.find(bare) != std::string::npos ? 0 : distance(bare, p.name), p.name);
  }
  std::stable_sort(near.begin(), near.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
  throw error(
      "attune", "PRESET", "the value '" + bare + "'",
      near[0].second + ", " + near[1].second + ", " + near[2].second + " or another one that 'attune presets' lists");
}

std::string shape_of(field f) {
  std::string s = fields[std::size_t(f)].extents;
  std::pair<char const*, char const*> const short_names[] = {{"key head", f == field::k ? "Hk" : "H'"},
                                                             {"value head", "Hv"},
                                                             {"batch", "B"},
                                                             {"head", "H"},
                                                             {"query", "Lq"},
                                                             {"key", "Lk"},
                                                             {"axes", "A"},
                                                             {", 1)", ")"}};
  for (auto const& [from, to] : short_names)
    for (auto at = s.find(from); at != std::string::npos; at = s.find(from, at + 1))
      s.replace(at, std::string(from).size(), to);
  return s;
}

bool is_per_position(field f) { return f == field::sort_q || f == field::sort_k || f == field::key_bias; }

std::string summary(preset const& p) {
  std::string s;
  for (auto const& name : p.policies) s += (s.empty() ? "" : "; ") + plain(find_policy(name).formula);
  auto const form = p.call.find('<');
  return form == std::string::npos ? s : s + "  " + p.call.substr(form);
}

}  // namespace attune::tool
