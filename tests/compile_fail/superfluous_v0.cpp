// expect-error: input \.v0 is superfluous: the normalizer of this operator has no ground value
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x, .v0 = x}, {.out = y}); }
