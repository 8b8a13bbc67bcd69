// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators on a line.
#include <attune/attune.hpp>
#include <attune/line.hpp>

using namespace attune;

// expect-error line_predicate: attune: a mask by predicate is asked pair by pair, and an operator on a line does not meet all pairs
auto const odd = mask::predicate{[](mask_row const&, index_t j) { return j % 2 == 1; }};
using on_line = line::laplacian<std::remove_const_t<decltype(odd)>>;
void call(inputs<on_line, tensor<float const>> const& in, outputs<on_line, float> const& out) {
  forward(cpu{}, line::laplacian{1.0, odd}, in, out);
}

// expect-error line_without_lse: attune: output .lse does not exist: the weights of this normalizer are not divided by a sum
void call(tensor<float const> s, tensor<float const> v, tensor<float> out, tensor<float> lse) {
  forward(cpu{}, line::sliced_relu{}, {.v = v, .sort_q = s, .sort_k = s}, {.out = out, .lse = natural_lse(lse)});
}
