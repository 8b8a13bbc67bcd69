// expect-error: an ordered sum needs the sum over the keys of the other parts
#include "operators.hpp"
#include "ordered.hpp"

int main() { accumulate(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {0, 1}); }
