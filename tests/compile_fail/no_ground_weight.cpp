// expect-error: output \.ground_weight does not exist
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .ground_weight = y}); }
