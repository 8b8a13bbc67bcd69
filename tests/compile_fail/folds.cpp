// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Folds and mixtures.
#include "operators.hpp"

// expect-error fold_without_coefficients: fold\(\) needs at least one coefficient
int main() { fold(softmax_attention(), {}); }

// expect-error fold_one_coefficient_short: fold\(\) of several operators needs one coefficient per operator
int main() { fold({1.0, -0.5}, softmax_attention(), softmax_attention(), softmax_attention()); }

// expect-error fold_of_fold: Mixtures and other folds cannot be folded
int main() { fold(fold(softmax_attention(), {1.0, -0.5}), {1.0, 2.0}); }

// expect-error fold_lse: output \.lse does not exist: a fold adds rows of several normalizers
int main() {
  call(fold(softmax_attention(), {1.0, -0.5}), {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)});
}

// expect-error fold_states_of_operators: states of a fold of several operators do not exist
auto const op = fold({1.0, -0.5}, softmax_attention(), softmax_attention());
int main() { accumulate(cpu{}, op, {.q = x, .k = x, .v = x}, {0, 1}); }

// expect-error fold_statistics: takes no folds
auto const op = fold(softmax_attention(), {1.0, -0.5});
int main() {
  auto const rows = forward_and_save(cpu{}, op, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(cpu{}, op, {.q = x, .k = x, .v = x}, rows);
}
