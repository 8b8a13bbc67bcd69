// expect-error: a tensor has another element type than the executor computes in
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = wide, .k = wide, .v = wide}, {.out = y}); }
