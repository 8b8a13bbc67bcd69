// expect-error: output \.lse does not exist
#include "operators.hpp"

int main() { forward(cpu{}, undivided, {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)}); }
