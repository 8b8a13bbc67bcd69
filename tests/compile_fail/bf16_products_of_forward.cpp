// expect-error: cpu_bf16_products offers decode\(\); forward\(\) wants cpu<bfloat16>
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
attune::tensor<attune::bfloat16> to;
int main() { forward(attune::cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = to}); }
