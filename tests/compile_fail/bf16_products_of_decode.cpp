// expect-error: decode\(\) by products of bf16 reads bf16 tensors and multiplies by bf16_instructions
#include <type_traits>

#include "operators.hpp"

using Op = std::remove_const_t<decltype(plain)>;
attune::tensor<attune::bfloat16 const> brains;
attune::inputs<Op, attune::tensor<attune::bfloat16 const>> const in{.q = brains, .k = brains, .v = brains};
attune::outputs<Op, attune::bfloat16> const to{};
int main() {
  decode(attune::cpu_bf16_products<xsimd::default_arch, attune::bfloat16, attune::amx_emulated>{}, plain, in, to);
}
