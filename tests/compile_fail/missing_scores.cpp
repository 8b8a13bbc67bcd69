// expect-error: input \.scores \(batch, head, query, key\) is missing
#include "operators.hpp"

int main() { forward(cpu{}, scored, {.v = x}, {.out = y}); }
