// expect-error: cpu_bf16_products does not read scores, gates and biases given for each pair: use cpu<float>
#include "operators.hpp"

int main() {
  vjp(attune::cpu_bf16_products<xsimd::default_arch, float, attune::bf16_emulated>{}, scored, {.v = x, .scores = x},
      {.out = x});
}
