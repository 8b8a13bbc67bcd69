// expect-error: decode\(\) splits the keys of a row, and an ordered sum needs them in one piece
#include "interpolated.hpp"
#include "operators.hpp"

int main() { decode(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {.out = y}); }
