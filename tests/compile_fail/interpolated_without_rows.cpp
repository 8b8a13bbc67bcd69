// expect-error: input .position_scores \(1 or batch, 1 or head, 1 or query, P\) is missing
#include "interpolated.hpp"
#include "operators.hpp"

int main() { forward(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x}, {.out = y}); }
