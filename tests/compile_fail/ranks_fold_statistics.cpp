// expect-error: statistics\(\) of a fold do not exist
// needs: mpi.h
#include "ranks.hpp"

int main() {
  auto const op = fold(plain, {1.0, -0.5});
  auto const rows = forward_and_save(over_ranks(), op, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(over_ranks(), op, {.q = x, .k = x, .v = x}, rows);
}
