// expect-error: decode\(\) splits the keys of a row, and an ordered sum needs them in one piece
// needs: mpi.h
#include "ordered.hpp"
#include "ranks.hpp"

int main() { decode(over_ranks(), attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }
