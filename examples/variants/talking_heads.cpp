// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Talking heads, after softmax
//   Shazeer et al., Talking-Heads Attention, 2020, arXiv 2003.02436
//   out_hi = sum_j (sum_g W_gh softmax_j c <q_gi, k_gj>) v_hj
//
// A fold adds heads of one operator. Its output here has one head, and each head h of the layer is a batch element: q
// and k are views with a batch stride of 0, and v is (H, 1, Lk, D). A layer of several sequences makes a call for each.
// The paper also mixes scores before softmax. The query of head h is then the concatenation of P_gh q_g, the key of all
// heads is the concatenation of k_g.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
/// mix: W, row after row.
template <std::size_t Heads>
auto talking_heads(std::vector<double> const& mix) {
  std::array<parameter, Heads> rows;
  for (std::size_t g = 0; g < Heads; ++g) rows[g] = tensor<double const>(&mix[g * Heads], shape{Heads, 1, 1, 1});
  return fold(softmax_attention(mask::causal{}), rows);
}
// [/snippet]

int main() {
  constexpr index_t heads = 3;
  std::vector<double> mix;
  for (int n = 0; n < heads * heads; ++n) mix.push_back(std::sin(1.0 + 7 * n));
  return variants::run(
      talking_heads<heads>(mix),
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;  // the batch element is the head of the layer
        for (index_t g = 0; g < heads; ++g) {
          variants::weights of_head(w.size(), -INFINITY);
          for (index_t j = 0; j <= position; ++j) {
            double dot = 0;
            for (index_t d = 0; d < x.width; ++d)
              dot += x.in_head(field::q, 0, g, i, d) * x.in_head(field::k, 0, g, j, d);
            of_head[std::size_t(j)] = x.scale() * dot;
          }
          variants::softmax(of_head);
          for (std::size_t j = 0; j < w.size(); ++j) w[j] += mix[std::size_t(g * heads + b)] * of_head[j];
        }
      },
      {.extents = {.batch = heads, .heads = 1, .queries = 5, .keys = 6, .width = 4, .key_heads = heads},
       .compared = {.batch = heads, .heads = 1, .queries = 70, .keys = 90, .width = 8, .key_heads = heads},
       .timed = {.batch = heads, .heads = 1, .queries = 1024, .keys = 1024, .width = 64, .key_heads = heads},
       .model = [](variants::loop_inputs const& x) {  // what a stride of 0 does: all batch elements have the same q, k
         for (field const f : {field::q, field::k}) {
           auto& numbers = x.tensors[std::size_t(f)]->doubles;
           auto const first = std::ptrdiff_t(numbers.size()) / heads;
           for (index_t b = 1; b < heads; ++b) std::copy_n(numbers.begin(), first, numbers.begin() + b * first);
         }
       }});
}
