// expect-error: cpu_bf16_products runs one operator: call it for each operator of a mixture or fold
#include "operators.hpp"

int main() {
  auto const op = fold(softmax_attention(), {1.0, -0.5});
  forward(attune::cpu_bf16_products<xsimd::default_arch, float, attune::bf16_emulated>{}, op, {.q = x, .k = x, .v = x},
          {.out = y});
}
