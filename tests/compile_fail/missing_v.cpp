// expect-error: input \.v \(batch, value head, key, Dv\) is missing
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x}, {.out = y}); }
