// expect-error: decode\(\) of a fold does not run over ranks
// needs: mpi.h
#include "ranks.hpp"

int main() { decode(over_ranks(), fold(plain, {1.0, -0.5}), {.q = x, .k = x, .v = x}, {.out = y}); }
