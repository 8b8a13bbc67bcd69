// expect-error: statistics\(\) over ranks takes the keys in parts, and an ordered sum needs them in one piece
// needs: mpi.h
#include "ordered.hpp"
#include "ranks.hpp"

int main() {
  auto op = attention(summed<later>{});
  statistics(over_ranks(), op, {.q = x, .k = x, .v = x}, rows_of_rank<float, decltype(op)>{});
}
