// expect-error: jvp\(\) does not run over ranks
// needs: mpi.h
#include "ranks.hpp"

int main() { jvp(over_ranks(), plain, {.q = {x, y}, .k = {x, y}, .v = {x, y}}); }
