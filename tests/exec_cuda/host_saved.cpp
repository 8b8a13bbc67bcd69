// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward_and_save() of `cuda` on emulated warps: the CPU's vjp() of float gives the gradients of rows that the CPU
// saved, to the rounding of 16-bit weights or of split floats; the outputs are those of forward(), bit by bit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cuda/host/forward.hpp>

namespace {
using namespace attune;
int failures = 0;

void require(bool right, char const* name, char const* what, double figure) {
  failures += right ? 0 : 1;
  std::printf("%s  %-28s %-44s %.2g\n", right ? "PASS" : "FAIL", name, what, figure);
}

/// The larger error; a NaN stays.
double worse(double a, double b) { return a != a || b <= a ? a : b; }

/// Extents: B 2, H 4 over 2 heads of keys, 45 queries, 70 keys, D and Dv 64. The first row sees no key if `offset` says
/// so.
template <class E, class Op>
void check(char const* name, Op const& op, index_t offset) {
  index_t const queries = 45, keys = 70, width = 64;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<E> narrow[field_count];
  std::vector<float> wide[field_count];
  shape extents[field_count];
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      shape const e = F == field::v0                  ? shape{1, 4, 1, width}
                      : side_of(F) == input_side::key ? shape{2, 2, keys, width}
                                                      : shape{2, 4, queries, width};
      extents[int(F)] = e;
      for (index_t n = 0; n < e.size(); ++n) {
        narrow[int(F)].push_back(E(normal(random)));
        wide[int(F)].push_back(float(narrow[int(F)].back()));
      }
    }
  });
  auto const in = make_inputs<Op, tensor<E const>>(
      [&]<field F>() { return tensor<E const>(narrow[int(F)].data(), extents[int(F)]); }, offset);
  auto const exact = make_inputs<Op, tensor<float const>>(
      [&]<field F>() { return tensor<float const>(wide[int(F)].data(), extents[int(F)]); }, offset);
  shape const all{2, 4, queries, width};
  std::vector<E> out(std::size_t(all.size()), E(NAN)), again = out;
  std::vector<float> saved(std::size_t(saved_size(op, in)), NAN), right = saved, of_floats(std::size_t(all.size()));
  testing::forward_and_save_on_host_warps<exec_cuda::widths<64>>(
      op, in, outputs<Op, E>{.out = tensor<E>(out.data(), all)}, std::span<float>(saved));
  testing::forward_on_host_warps<exec_cuda::widths<64>>(op, in, outputs<Op, E>{.out = tensor<E>(again.data(), all)});
  require(std::memcmp(out.data(), again.data(), out.size() * sizeof(E)) == 0, name, "outputs are those of forward()",
          0);
  forward_and_save(cpu<float>{}, op, exact, outputs<Op, float>{.out = tensor<float>(of_floats.data(), all)},
                   std::span<float>(right));
  double worst = 0;  // the numbers themselves: rows that see no key included
  for (std::size_t n = 0; n < right.size(); ++n) {
    if (saved[n] != right[n]) worst = worse(worst, std::fabs(double(saved[n]) - double(right[n])));
  }
  require(worst < (std::is_same_v<E, float> ? 2e-4 : 0.05), name, "largest difference of a saved number", worst);

  std::vector<float> direction(std::size_t(all.size()));
  for (float& x : direction) x = normal(random);
  cotangents<Op, tensor<float const>> const by{.out = tensor<float const>(direction.data(), all)};
  auto const gradients = [&](std::vector<float> const& rows, std::vector<std::vector<float>>& arrays) {
    gradient_outputs<Op, float> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        auto& x = arrays.emplace_back(std::size_t(extents[int(F)].size()), NAN);
        to.fields[std::size_t(F)] = tensor<float>(x.data(), extents[int(F)]);
      }
    });
    vjp(cpu<float>{}, op, exact, std::span<float const>(rows), by, to);
  };
  std::vector<std::vector<float>> mine, theirs;
  gradients(saved, mine), gradients(right, theirs);
  double share = 0;
  for (std::size_t f = 0; f < mine.size(); ++f) {
    double largest = 0, error = 0;
    for (std::size_t n = 0; n < mine[f].size(); ++n) {
      largest = std::fmax(largest, std::fabs(double(theirs[f][n])));
      error = worse(error, std::fabs(double(mine[f][n]) - double(theirs[f][n])));
    }
    share = worse(share, error / largest);
  }
  // Of a row of this family, vjp() looks for the logits that equal the saved extremes: float products differ from them.
  if (Op::normalizer_is.family != row_family::range_weighted)
    require(share <= (std::is_same_v<E, float> ? 0x1p-17 : 0x1p-8), name, "largest error of a gradient, of the largest",
            share);

  bool refused = false;
  saved.pop_back();
  try {
    testing::forward_and_save_on_host_warps<exec_cuda::widths<64>>(
        op, in, outputs<Op, E>{.out = tensor<E>(out.data(), all)}, std::span<float>(saved));
  } catch (error const& problem) {
    refused = std::string(problem.what()).find("forward_and_save") != std::string::npos;
  }
  require(refused, name, "memory that is too small is refused", 0);
}
template <class E>
void checks() {
  check<E>("softmax", softmax_attention(mask::causal{}), 25);
  check<E>("softmax, rows without keys", softmax_attention(mask::causal{}), -3);
  check<E>("negative scale", attention(kernel::dot_product{.scale = -0.2}, mask::causal{}), 25);
  check<E>("principled", principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), 25);
  check<E>("affine-scaled", affine_scaled_attention(0.8, 0.9, mask::causal{}), 25);
  check<E>("self-adjusted", self_adjusted_attention(mask::causal{}), 25);
}
}  // namespace

int main() {
  checks<bfloat16>();
  checks<float>();
  return failures;
}
