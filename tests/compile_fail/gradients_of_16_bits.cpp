// expect-error: cpu<bfloat16> and cpu<float16> offer forward\(\); everything else wants cpu<float>
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
int main() { vjp(attune::cpu<attune::bfloat16>{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }
