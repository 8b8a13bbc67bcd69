// expect-error: cpu_bf16_products has no products of bf16 for candidate sets
#include "operators.hpp"

attune::tensor<float const> floats;
attune::tensor<float> to;
auto const sparse = attune::attention(attune::kernel::dot_product{}, attune::normalizer::sparsemax{});
int main() {
  forward(attune::cpu_bf16_products<xsimd::default_arch, float, attune::bf16_emulated>{}, sparse,
          {.q = floats, .k = floats, .v = floats}, {.out = to});
}
