// expect-error: input \.q \(batch, head, query, D\) is missing
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.k = x, .v = x}, {.out = y}); }
