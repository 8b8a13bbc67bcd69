// expect-error: input \.position_k \(batch, key head, key, Dp\) is missing: the kernel of this operator compares
// positions
#include "views.hpp"

auto const op = tupe_attention();
in<decltype(op)> const given{.q = x, .k = x, .v = x, .position_q = x};
int main() {}
