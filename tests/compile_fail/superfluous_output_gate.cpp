// expect-error: input \.output_gate is superfluous: this operator has no output gate
#include "views.hpp"

auto const op = affine_scaled_attention(1, 1);
in<decltype(op)> const given{.q = x, .k = x, .v = x, .output_gate = x};
int main() {}
