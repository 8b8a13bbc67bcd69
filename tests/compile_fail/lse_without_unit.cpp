// expect-error: the LSE of attune is a natural logarithm: say so
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .lse = y}); }
