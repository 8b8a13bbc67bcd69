// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "tolerance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace attune::golden {
namespace {

// C is 4 to 8 times what a plain double transcription of README.md needs (2 for the direct outputs, 5 for gradients,
// 11 elsewhere): room for another order of summation, not for another formula. Float gets four times more because tiles
// and vector lanes round oftener relative to the few digits. Entmax with alpha = 1 + 2^-10 divides by alpha - 1.
constexpr double direct_factor = 8;
constexpr double other_factor = 32;
constexpr double float_factor = 4;
constexpr double nearly_softmax_entmax_factor = 1000;
constexpr double nearly_softmax_entmax_alpha = 1.001;

// 50 digits leave a residue where a gradient cancels (nearly) completely.
constexpr double residue_of_50_digits = 1e-50;

constexpr std::array direct_outputs{"w", "w0", "o", "lse", "tau"};
constexpr std::array counts{"support", "perm",         "insertion", "keep",     "topN",
                            "N_s",     "heads_needed", "spikes_k6", "spikes_k9"};

template <class Names>
bool among(Names const& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_count(golden_case const& c, std::string_view name) {
  if (name == "lo" || name == "hi")
    return c.operation == "sorted_window";  // elsewhere they are positions on the real line
  return among(counts, name);
}

double largest(std::vector<double> const& values) {
  double result = 0;
  for (double x : values)
    if (std::isfinite(x)) result = std::max(result, std::abs(x));
  return result;
}

double largest_input(golden_case const& c, std::string const& name) {
  auto const found = c.inputs.find(name);
  return found == c.inputs.end() ? 0 : largest(found->second.data);
}

double factor(golden_case const& c, std::string_view name) {
  auto const alpha = c.inputs.find("ent_alpha");
  if (alpha != c.inputs.end() && largest(alpha->second.data) < nearly_softmax_entmax_alpha)
    return nearly_softmax_entmax_factor;
  return among(direct_outputs, name) ? direct_factor : other_factor;
}

/// The column "scale" of the table, entry by entry.
std::vector<double> scales(golden_case const& c, std::string const& name, tensor const& expected,
                           magnitude const& size) {
  std::vector<double> result(expected.data.size());
  auto const every_entry = [&](double scale) { std::fill(result.begin(), result.end(), scale); };
  if (is_gradient(c, name)) {
    every_entry(c.grad_scale.at(name));
  } else if (name == "w" || name == "w0" || name == "rowsum") {
    auto const w = c.expected.find("w");
    every_entry(std::max(1.0, w == c.expected.end() ? 0.0 : largest(w->second.data)));
  } else if (name == "o") {
    every_entry(size.values * size.row_weight);
  } else if (name == "lse" || name == "tau") {
    every_entry(1);
  } else if (name == "output_error") {
    every_entry(size.values);
  } else if (c.operation == "primitives") {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = std::max(std::abs(expected.data[i]), name == "softplus_inv" ? 1.0 : 0.0);
  } else if (c.operation == "finite_difference_jacobian" && name == "g") {
    auto const& steps = c.inputs.at("eps").data;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = 1 / steps.at(i);
  } else {
    every_entry(largest(expected.data));
  }
  return result;
}

}  // namespace

double logit_magnitude(std::vector<double> const& logits) {
  double result = 1;
  for (double a : logits) {
    if (!std::isfinite(a)) return 1;
    result = std::max(result, 1 + std::abs(a));
  }
  return result;
}

magnitude magnitude_of(golden_case const& c, double logits) {
  magnitude result;
  result.logits = logits;
  result.values = std::max(largest_input(c, "v"), largest_input(c, "v0"));
  auto const w = c.expected.find("w");
  if (w == c.expected.end()) return result;
  auto const row = static_cast<std::size_t>(std::max<index>(1, w->second.shape.back()));
  for (std::size_t begin = 0; begin + row <= w->second.data.size(); begin += row) {
    double sum = 0;
    for (std::size_t j = begin; j < begin + row; ++j)
      if (std::isfinite(w->second.data[j])) sum += std::abs(w->second.data[j]);
    result.row_weight = std::max(result.row_weight, sum);
  }
  return result;
}

std::vector<double> bounds(golden_case const& c, std::string const& name, magnitude const& size, accuracy promised) {
  return bounds(c, name, c.expected.at(name), size, promised);
}

std::vector<double> bounds(golden_case const& c, std::string const& name, tensor const& expected, magnitude const& size,
                           accuracy promised) {
  if (is_count(c, name)) return std::vector<double>(expected.data.size(), 0.0);
  if (promised == accuracy::correctly_rounded && !is_convention(c))
    return std::vector<double>(expected.data.size(),
                               is_gradient(c, name) ? residue_of_50_digits * c.grad_scale.at(name) : 0.0);
  bool const single = promised == accuracy::binary32;
  double const eps = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  double const floor = single ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  double const common = factor(c, name) * (single ? float_factor : 1) * eps * size.logits;
  std::vector<double> result = scales(c, name, expected, size);
  for (double& bound : result) bound = common * bound + floor;
  return result;
}

bool representable_in_float(golden_case const& c) {
  for (auto const& [name, input] : c.inputs)
    for (double x : input.data)
      if (std::isfinite(x) &&
          !(std::abs(x) <= std::numeric_limits<float>::max() && static_cast<double>(static_cast<float>(x)) == x))
        return false;
  return true;
}

}  // namespace attune::golden
