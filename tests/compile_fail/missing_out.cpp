// expect-error: output \.out \(batch, head, query, Dv\) is missing
#include "operators.hpp"

int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {}); }
