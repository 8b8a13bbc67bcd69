// expect-error: input \.output_gate \(1 or batch, 1 or head, 1 or query, Dv or 1\) is missing: this operator has an
// output gate
#include "views.hpp"

auto const op = gated_attention();
in<decltype(op)> const given{.q = x, .k = x, .v = x};
int main() {}
