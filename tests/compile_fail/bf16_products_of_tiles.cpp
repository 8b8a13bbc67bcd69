// expect-error: amx_tiles and amx_emulated multiply in forward\(\) alone
#include "operators.hpp"

int main() {
  vjp(attune::cpu_bf16_products<xsimd::default_arch, float, attune::amx_emulated>{}, plain, {.q = x, .k = x, .v = x},
      {.out = x});
}
