// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "catalogue.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <utility>

#include "recipes.hpp"

namespace attune::tool {
namespace {

/// Names of the command line for parameters and tables whose own name would mean two things.
using aliases = std::map<std::string, std::string>;

std::string fallback_of(std::string const& path, parameter const& p) {
  if (p.is_set()) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", p.at(0, 0, 0));
    return digits;
  }
  if (path.starts_with("kernel.") && path.ends_with(".scale")) return "1/√D";
  if (path == "normalizer.bias") return "−log K";
  return "";
}

template <class Make>
preset described(recipe<Make> const& from, char const* call, std::vector<std::string> policies, aliases const& names = {}) {
  preset p{from.name, call, std::move(policies), {}, {}, {}, {}};
  auto const name_of_path = [&](std::string const& path, char const* own) {
    auto const found = names.find(path);
    return found == names.end() ? std::string(own) : found->second;
  };
  std::map<std::string, long> asked;
  [[maybe_unused]] auto const op = cooked(
      from, constants{nullptr, &asked}, {},
      [&](std::string const& path, auto const& listed, parameter& x) {
        std::string const name = name_of_path(path, listed.name);
        auto const same = std::find_if(p.parameters.begin(), p.parameters.end(), [&](auto const& e) { return e.name == name; });
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

std::vector<preset> made() {
  namespace r = recipes;
  char const *dot = "kernel::dot_product", *soft = "normalizer::softmax";
  return {
      described(r::softmax, "softmax_attention", {dot, soft}),
      described(r::off_by_one, "off_by_one_attention", {dot, "normalizer::off_by_one"}),
      described(r::sink, "sink_attention", {dot, "normalizer::sink"}),
      described(r::principled, "principled_attention", {dot, "length_scale::margin", "gate::softplus", "normalizer::grounded"}),
      described(r::ssmax, "ssmax_attention", {dot, "length_scale::ssmax", soft}, {{"kernel.scale", "kernel.scale"}}),
      described(r::log_n, "log_n_attention", {dot, "length_scale::log_n", soft}),
      described(r::margin, "margin_attention", {dot, "length_scale::margin", soft}),
      described(r::yarn, "yarn_attention", {dot, "length_scale::yarn", soft}),
      described(r::affine_scaled, "affine_scaled_attention<visible>", {dot, "normalizer::affine"}),
      described(r::affine_scaled_total, "affine_scaled_attention<total>", {dot, "normalizer::affine"}),
      described(r::affine_gated, "affine_gated_attention<visible>", {dot, "normalizer::affine", "gate::sigmoid_output"}),
      described(r::affine_gated_total, "affine_gated_attention<total>", {dot, "normalizer::affine", "gate::sigmoid_output"}),
      described(r::gated, "gated_attention", {dot, soft, "gate::sigmoid_output"}),
      described(r::value_gated, "value_gated_attention", {dot, soft, "gate::sigmoid_value"}),
      described(r::two_sided, "two_sided_attention", {dot, "gate::two_sided", soft}),
      described(r::scalar_sort, "scalar_sort_attention", {"kernel::scalar_sort", soft}),
      described(r::scalar_laplacian, "scalar_laplacian_attention", {"kernel::scalar_laplacian", soft}),
      described(r::hybrid, "hybrid_attention", {dot, "kernel::scalar_sort", soft}),
      described(r::rbf, "rbf_attention", {"kernel::rbf", soft}),
      described(r::l2, "l2_attention", {"kernel::l2", soft}),
      described(r::scaled_rbf, "scaled_rbf_attention", {"kernel::scaled_rbf", soft}),
      described(r::inverse_distance, "inverse_distance_attention", {"kernel::inverse_distance", soft}),
      described(r::elliptical, "elliptical_attention", {"kernel::elliptical", soft}),
      described(r::bilinear, "bilinear_attention", {"kernel::bilinear", soft}),
      described(r::biased, "biased_attention", {dot, "kernel::bias", soft}),
      described(r::alibi, "alibi_attention", {dot, "kernel::alibi", soft}),
      described(r::relative_bias, "relative_bias_attention", {dot, "kernel::relative_bias", soft}),
      described(r::smca, "smca_attention", {dot, "kernel::spatial_prior", soft}),
      described(r::t5, "t5_attention", {dot, "kernel::t5_bias", soft}),
      described(r::tupe, "tupe_attention", {"kernel::tupe", soft}),
      described(r::transformer_xl, "transformer_xl_attention", {"kernel::transformer_xl", soft},
                {{"kernel.0.bias", "u"}, {"kernel.1.bias", "w"}, {"kernel.1.relative", "r"}}),
      described(r::goat, "goat_attention", {"kernel::tempered_dot", "kernel::log_prior", soft}),
      described(r::goat_fourier, "goat_fourier_attention",
                {"kernel::tempered_dot", "kernel::fourier_prior", "kernel::key_bias", soft}),
      described(r::softcap, "softcap_attention", {dot, "kernel::softcap", soft}),
      described(r::gaussian, "gaussian_attention", {"kernel::rbf", "normalizer::exponential"}),
      described(r::sliced_relu_sum, "sliced_relu_attention<sum>", {"kernel::scalar_difference", "normalizer::relu"}),
      described(r::sliced_relu_mean, "sliced_relu_attention<mean>", {"kernel::scalar_difference", "normalizer::mean_relu"}),
      described(r::sliced_relu_centered, "sliced_relu_attention<centered>",
                {"kernel::scalar_difference", "normalizer::centered_relu"}),
      described(r::sliced_relu_normalized, "sliced_relu_attention<normalized>",
                {"kernel::scalar_difference", "normalizer::normalized_relu"}),
      described(r::sigmoid, "sigmoid_attention", {dot, "normalizer::sigmoid"}),
      described(r::sparsemax, "sparsemax_attention", {dot, "normalizer::sparsemax"}),
      described(r::entmax, "entmax_attention", {dot, "normalizer::entmax"}),
      described(r::entmax15, "entmax15_attention", {dot, "normalizer::entmax15"}),
      described(r::top_k, "top_k_attention", {dot, "normalizer::top_k"}),
      described(r::self_adjusted, "self_adjusted_attention<with_zero>", {dot, "normalizer::self_adjusted"}),
      described(r::self_adjusted_product, "self_adjusted_attention<product>", {dot, "normalizer::self_adjusted"}),
      described(r::self_adjusted_full_range, "self_adjusted_attention<full_range>", {dot, "normalizer::self_adjusted"}),
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
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, corner + std::size_t(a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

}  // namespace

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
  throw error("attune", "PRESET", "the value '" + bare + "'",
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
  for (auto const& name : p.policies)
    for (auto const& t : policy_texts())
      if (name == t.name) s += (s.empty() ? "" : "; ") + std::string(t.formula);
  auto const form = p.call.find('<');
  return form == std::string::npos ? s : s + "  " + p.call.substr(form);
}

}  // namespace attune::tool
