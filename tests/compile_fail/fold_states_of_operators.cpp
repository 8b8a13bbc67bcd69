// expect-error: states of a fold of several operators do not exist
#include "operators.hpp"

int main() {
  auto const op = fold({1.0, -0.5}, softmax_attention(), softmax_attention());
  accumulate(cpu{}, op, {.q = x, .k = x, .v = x}, {0, 1});
}
