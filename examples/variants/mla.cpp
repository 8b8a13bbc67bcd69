// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Multi-head latent attention (MLA), absorbed
//   DeepSeek-AI, DeepSeek-V2, 2024, arXiv 2405.04434
//   s_ij = (<U^T q_i, c_j> + <qR_i, kR_j>) / sqrt(D + DR),   out_i = sum_j softmax_j(s_ij) c_j
//
// Keys and values are decompressed from one latent c_j: k_j = U c_j. Absorbed, the query is multiplied by U^T instead.
// All heads share one head of keys (c_j, kR_j), and the values are a view of its first features. Your code multiplies
// the output by the matrix that would decompress the values.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
/// width and rotary: features of a head's query before U^T, without and with rotary positions.
auto mla(index_t width, index_t rotary) {
  return attention(kernel::dot_product{1 / std::sqrt(double(width + rotary))}, mask::causal{});
}
/// Values that are the first `latent` features of a cache (B, 1, L, latent + rotary).
template <class T>
tensor<T const> values_of(tensor<T const> const& cache, index_t latent) {
  shape const e = cache.extents();
  return {cache.data(), {e.batch, e.head, e.position, latent}, cache.steps()};
}
// [/snippet]

constexpr index_t width = 6, latent = 8, rotary = 4;

/// U of a head: `width` rows, `latent` columns.
double u(index_t h, index_t row, index_t column) { return std::sin(double(1 + 97 * h + 13 * row + column)); }

int main() {
  auto const op = mla(width, rotary);
  std::vector<double> q;  // as drawn: D features, which U^T turns into `latent` ones, then the rotary ones
  return variants::run(
      op,
      [&](auto const& x, auto const& row, variants::weights& w) {
        auto const [b, h, i, position] = row;
        double const* const query = &q[std::size_t((h * x.queries + i) * x.width)];
        std::fill(w.begin(), w.end(), -INFINITY);
        for (index_t j = 0; j <= position; ++j) {
          double s = 0;
          for (index_t n = 0; n < width; ++n) {
            double k = 0;
            for (index_t d = 0; d < latent; ++d) k += u(h, n, d) * x.k(b, h, j, d);
            s += query[n] * k;
          }
          for (index_t d = latent; d < latent + rotary; ++d) s += query[d] * x.k(b, h, j, d);
          w[std::size_t(j)] = s / std::sqrt(double(width + rotary));
        }
        variants::softmax(w);
      },
      {.extents = {.heads = 2, .queries = 7, .keys = 9, .width = latent + rotary, .value_width = latent},
       .compared = {.heads = 2, .queries = 70, .keys = 90, .width = latent + rotary, .value_width = latent},
       .timed = {.heads = 2, .queries = 1024, .keys = 1024, .width = 576, .value_width = 512},
       .model = [&](variants::loop_inputs const& x) {
         q = x.tensors[std::size_t(field::q)]->doubles;
         for (index_t h = 0; h < x.heads; ++h)
           for (index_t i = 0; i < x.queries; ++i)
             for (index_t d = 0; d < latent; ++d) {
               double& absorbed = x.of(field::q, 0, h, i, d) = 0;
               for (index_t n = 0; n < width; ++n)
                 absorbed += u(h, n, d) * q[std::size_t((h * x.queries + i) * x.width + n)];
             }
         auto const& cache = *x.tensors[std::size_t(field::k)];
         tensor<double const> const v = values_of(cache.view<tensor<double const>>(), latent);
         for (index_t j = 0; j < x.keys; ++j)
           for (index_t d = 0; d < latent; ++d) x.of(field::v, 0, 0, j, d) = v(0, 0, j, d);
       }});
}
