// expect-error: decode\(\) by products of bf16 reads bf16 tensors and multiplies by bf16_instructions
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
attune::tensor<attune::bfloat16> out;
int main() {
  decode(attune::cpu_bf16_products<xsimd::default_arch, attune::bfloat16, attune::amx_emulated>{}, plain,
         {.q = brains, .k = brains, .v = brains}, {.out = out});
}
