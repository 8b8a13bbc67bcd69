// expect-error: vjp\(\) of bf16 tensors writes to the caller's memory
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
int main() { vjp(attune::cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }
