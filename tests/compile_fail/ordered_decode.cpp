// expect-error: decode\(\) splits the keys of a row, and an ordered sum needs them in one piece
#include "operators.hpp"
#include "ordered.hpp"

int main() { decode(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }
