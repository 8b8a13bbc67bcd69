// expect-error: input \.gate_q is superfluous
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x, .gate_q = x, .gate_k = x}, {.out = y}); }
