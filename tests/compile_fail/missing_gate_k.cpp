// expect-error: input \.gate_k \(batch, key head, key, Dg\) is missing: this operator has a score gate
#include "operators.hpp"

int main() { forward(cpu{}, gated, {.q = x, .k = x, .v = x, .gate_q = x}, {.out = y}); }
