// expect-error: cpu_bf16_products offers forward\(\) and decode\(\); everything else wants cpu<float>
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
int main() { vjp(attune::cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }
