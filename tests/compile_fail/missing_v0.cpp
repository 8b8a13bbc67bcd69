// expect-error: input \.v0 .* is missing: the normalizer of this operator has a ground value
#include "operators.hpp"

int main() { forward(cpu{}, with_ground, {.q = x, .k = x, .v = x}, {.out = y}); }
