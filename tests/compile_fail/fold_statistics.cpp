// expect-error: statistics\(\) of a fold do not exist
#include "operators.hpp"

int main() {
  auto const op = fold(softmax_attention(), {1.0, -0.5});
  auto const rows = forward_and_save(cpu{}, op, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(cpu{}, op, {.q = x, .k = x, .v = x}, rows);
}
