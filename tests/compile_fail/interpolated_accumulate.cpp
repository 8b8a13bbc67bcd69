// expect-error: an ordered sum needs the sum over the keys of the other parts
#include "interpolated.hpp"
#include "operators.hpp"

int main() { accumulate(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {0, 1}); }
