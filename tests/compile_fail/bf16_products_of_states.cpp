// expect-error: cpu_bf16_products offers forward\(\), decode\(\), forward_and_save\(\) and vjp\(\)
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
int main() { accumulate(attune::cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {0, 1}); }
