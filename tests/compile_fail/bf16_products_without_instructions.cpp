// expect-error: cpu_bf16_products multiplies by instructions of AVX-512 BF16.*add -mavx512bf16
#include "operators.hpp"

attune::tensor<attune::bfloat16 const> brains;
attune::tensor<attune::bfloat16> to;
int main() { decode(attune::cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = to}); }
