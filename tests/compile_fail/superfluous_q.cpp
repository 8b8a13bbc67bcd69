// expect-error: input \.q is superfluous: the kernel of this operator has no dot product
#include "operators.hpp"

int main() { forward(cpu{}, scored, {.q = x, .v = x, .scores = x}, {.out = y}); }
