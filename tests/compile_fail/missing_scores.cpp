// expect-error: input \.scores \(1 or batch, 1 or head, 1 or query, key\) is missing
#include "operators.hpp"

int main() { forward(cpu{}, scored, {.v = x}, {.out = y}); }
