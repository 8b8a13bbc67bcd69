// expect-error: input \.value_gate \(1 or batch, 1 or value head, key, Dv\) is missing: this operator has a value gate
#include "views.hpp"

auto const op = value_gated_attention();
in<decltype(op)> const given{.q = x, .k = x, .v = x};
int main() {}
